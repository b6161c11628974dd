"""Constructs of the language through the Python binding, on the host, against Python's own."""
import array
import math
import os
import struct
import sys
import unittest

sys.path.insert(0, __file__.rpartition("/")[0])
import tilegen as tg  # noqa: E402
from numbers_in_memory import Numbers  # noqa: E402
from tilegen import ds, f32, i32, i64, u32, u8  # noqa: E402

class Annotations(unittest.TestCase):
    def build(self, **layout):
        b = tg.Builder("p")
        n = b.dim("n")
        x, y = b.tensor("X", f32, [n], read_only=True), b.tensor("Y", f32, [n])
        with b.kernel("k", [(n + 31) // 32], 32, names=["b"], raster="row_major", persistence="none") as block:
            t = b.shared("t", f32, [32], **layout)
            b.copy(x[ds(block * 32, 32)], t, label="load", vector=1, engine="vector_copy")
            with b.pipelined(0, 1, name="r", label="again", drained=False):
                with b.parallel(32, names=["i"], label="add", unroll=8) as i:
                    b.store(t, i, t(i) + 1.0)
            b.copy(t, y[ds(block * 32, 32)], full_tile_version=False)
        return b.finish()

    def test_are_keywords(self):
        text = str(self.build(layout=lambda i: i // 8 * 10 + i % 8, slots=1))
        for line in ("kernel k grid (b: (n + 31) // 32) threads 32 with {raster=row_major, persistence=none} {",
                     "  alloc t: shared f32[32] {layout=(d0) -> d0 // 8 * 10 + d0 % 8, slots=1}",
                     "  label load: copy X[b * 32 :+ 32] -> t {vector=1, engine=vector_copy}",
                     "  label again: pipelined r in 0 .. 1 with {drained=false} {",
                     "    label add: parallel i in 32 with {unroll=8} {",
                     "  copy t -> Y[b * 32 :+ 32] {full_tile_version=false}"):
            self.assertIn(line + "\n", text)
        self.assertIn('{layout="(32) -> [0: d0/1%32*1]"}', str(self.build(layout="(32) -> [0: d0/1%32*1]")))

    def test_change_no_result(self):
        x, y = array.array("f", range(70)), array.array("f", [0.0] * 70)
        self.build(layout=lambda i: i // 8 * 10 + i % 8).compile("sim:sm_80").load()(x, y)
        self.assertEqual(list(y), [v + 1 for v in x])

    def test_registers_by_a_function(self):
        b = tg.Builder("held")
        n = b.dim("n")
        x = b.tensor("X", f32, [n, 32])
        with b.kernel("k", [b.ceildiv(n, 16)], threads=128) as block:
            t = b.fragment("t", f32, [16, 32], layout=lambda i, j: (i // 4 * 32 + j) * 4 + i % 4)
            b.copy(x[ds(block * 16, 16), :], t)
            with b.parallel(16, 32) as (i, j):
                b.store(t, i, j, t(i, j) * 2.0)
            b.copy(t, x[ds(block * 16, 16), :])
        program = b.finish()
        for target in ("host", "sim:sm_80", "sim:sm_90a", "sim:gfx942"):
            values = array.array("f", range(21 * 32))
            program.compile(target).load()(memoryview(values).cast("B").cast("f", [21, 32]))
            self.assertEqual(list(values), [2.0 * v for v in range(21 * 32)])
        self.assertIn("threads 128 : (16,32) -> [0: d0/4%4*32 + d1/1%32*1; 1: d0/1%4*1]", program.compile("sm_80").section("schedule_json"))

    def test_stores_of_the_engine_wait_for_copies_of_threads(self):
        """The copy engine reads a tile that asynchronous copies fill in front of it."""
        for statement in ("copy s -> Y[b * 64 :+ 64, 0 :+ 64] {engine = tensor_copy}",
                          "atomic s -> Y[b * 64 :+ 64, 0 :+ 64] {kind = add, engine = tensor_copy}"):
            for filled in ("copy X[b * 64 :+ 64, 0 :+ 64] -> s {engine = async_copy}",
                           "if b > 0 { copy X[b * 64 :+ 64, 0 :+ 64] -> s {engine = async_copy} } else { fill s, 3 }"):
                program = tg.Program.parse("tl 1 program stored dim m tensor X: f32[m, 64] readonly tensor Y: f32[m, 64]\n"
                                           f"kernel k grid (b: ceildiv(m, 64)) threads 128 {{ alloc s: shared f32[64, 64] {filled}\n"
                                           f"{statement} }}")
                x = array.array("f", [float(v % 11) for v in range(100 * 64)])
                y = [array.array("f", [0.0] * (100 * 64)) for _ in range(2)]
                shaped = [memoryview(v).cast("B").cast("f", [100, 64]) for v in (x, *y)]
                program.compile("sim:sm_90a").load()(shaped[0], shaped[1])
                program.interpret(shaped[0], shaped[2])
                self.assertEqual(y[0], y[1], statement)

    def test_mistakes(self):
        with self.assertRaisesRegex(TypeError, "made of the indices and integers"):
            self.build(layout=lambda i: i * 0.5)
        with self.assertRaisesRegex(tg.Error, "a tile has no annotation 'swizle'"):
            self.build(swizle=64)


class OptionalTensors(unittest.TestCase):
    def build(self, guarded=True):
        b = tg.Builder("optional")
        n = b.dim("n")
        x = b.tensor("X", f32, [n], read_only=True)
        bias = b.tensor("Bias", f32, [n], read_only=True, optional=True)
        y, twice = b.tensor("Y", f32, [n]), b.tensor("Twice", f32, [n], optional=True)
        with b.kernel("k", [(n + 31) // 32]) as block:
            with b.parallel(32) as i:
                at = block * 32 + i
                b.store(y, at, x(at) + (b.select(b.present(bias), bias(at), 0.0) if guarded else bias(at)))
                with b.branch(b.present(twice)):
                    b.store(twice, at, y(at) * 2.0)
        return b.finish()

    def test_none_is_null(self):
        program = self.build()
        self.assertIn("tensor Bias: f32[n] readonly optional\n", str(program))
        x, bias = array.array("f", range(70)), array.array("f", [v * 0.5 for v in range(70)])
        for run in (program.compile("host").load(), program.compile("sim:sm_80").load(), program.interpret):
            for given in (bias, None):
                y, twice = array.array("f", [-1.0] * 70), array.array("f", [-1.0] * 70)
                expected = [v + (w if given else 0) for v, w in zip(x, bias)]
                run(x, given, y, None)
                self.assertEqual(list(y), expected)
                run(x, given, y, twice)
                self.assertEqual(list(twice), [2 * v for v in expected])

    def test_others_are_not_none(self):
        x = array.array("f", range(7))
        with self.assertRaisesRegex(TypeError, "tensor 'X'"):
            self.build().interpret(None, None, x, None)

    def test_a_mistake(self):
        with self.assertRaisesRegex(tg.Error, "'Bias' is optional and accessed where nothing says"):
            self.build(guarded=False)


class ViewsOfTensors(unittest.TestCase):
    def test_shapes(self):
        """Heads of rows, a batch as one matrix, its columns, and rows from an offset on."""
        b = tg.Builder("views")
        m, h, s, first = b.dim("m"), b.dim("h"), b.dim("s"), b.dim("first")
        x = b.tensor("X", f32, [m, h * 4], read_only=True)
        z = b.tensor("Z", f32, [2, s, 4], read_only=True)
        heads, rows, part = b.tensor("Heads", f32, [h, m, 4]), b.tensor("Rows", f32, [4, s * 2]), b.tensor("Part", f32, [8, 4])
        with b.kernel("k", [1]):
            by_head, out = x.reshape(m, h, 4), heads.transpose(1, 0, 2)
            flat, back = z.reshape(-1, 4), rows.T
            self.assertEqual(len(flat.shape), 2)
            rest = x.view(slice(first, m), slice(0, 4))
            with b.parallel(8, 4, 4) as (i, j, k):
                b.store(out, i, j, k, by_head(i, j, k))
            with b.parallel(16, 4) as (i, j):
                b.store(back, i, j, flat(i, j))
            with b.parallel(8, 4) as (i, j):
                b.store(part, i, j, rest(i, j))
        kernel = b.finish().compile("host").load()
        made = lambda values, *shape: Numbers("float32", *shape).set(values)
        xs, zs = list(range(40)), list(range(100, 148))
        out, back, part = (made([-1.0] * math.prod(shape), *shape) for shape in ((2, 5, 4), (4, 12), (8, 4)))
        kernel(5, 2, 6, 3, made(xs, 5, 8), made(zs, 2, 6, 4), out, back, part)
        self.assertEqual(list(out.numbers()), [xs[i * 8 + j * 4 + k] for j in range(2) for i in range(5) for k in range(4)])
        self.assertEqual(list(back.numbers()), [zs[i * 4 + j] for j in range(4) for i in range(12)])
        self.assertEqual(list(part.numbers()), [xs[(i + 3) * 8 + j] if i < 2 else 0 for i in range(8) for j in range(4)])

    def test_mistakes(self):
        b = tg.Builder("mistakes")
        m = b.dim("m")
        x = b.tensor("X", f32, [m, 4])
        with self.assertRaisesRegex(tg.Error, r"the view \[m, 3\] of 'X' \[m, 4\] is not known to have as many elements"):
            with b.kernel("k", [1]):
                x.reshape(m, 3)
            b.finish()


class Orders(unittest.TestCase):
    def test_last_block(self):
        """The block that comes last adds up what all have left."""
        b = tg.Builder("last")
        n = b.dim("n")
        x, y = b.tensor("X", i32, [n], read_only=True), b.tensor("Y", i32, [1])
        part, count = b.workspace("Part", i32, [n]), b.workspace("Count", i32, [1])
        with b.kernel("begin", [1]):
            with b.parallel(1) as i:
                b.store(count, i, 0)
        with b.kernel("k", [n]) as block:
            before, total = b.shared("before", i32, [1]), b.local("total", i32, [1])
            with b.parallel(1) as i:
                b.store(part, block, x(block) * 2)
            with b.parallel(1) as i:
                b.fetch_atomic("add", count, i, 1, to=(before, i), order="acq_rel")
            with b.branch(before(0) == b.cast(n, i32) - 1):
                b.store(total, 0, 0)
                with b.serial(0, n) as r:
                    b.store(total, 0, total(0) + part(r))
                with b.parallel(1) as i:
                    b.store(y, i, total(0))
        program = b.finish()
        self.assertIn(", 1i32) {order=acq_rel}", str(program))
        for target in ("host", "sim:sm_80"):
            y_ = array.array("i", [0])
            program.compile(target).load()(20, array.array("i", range(20)), y_)
            self.assertEqual(y_[0], 380)

    def test_iterations_of_a_block(self):
        """The iteration that comes last finds what all have exchanged in a shared tile of bytes."""
        b = tg.Builder("iterations")
        x, y = b.tensor("X", u8, [64], read_only=True), b.tensor("Y", i32, [1])
        with b.kernel("k", [1]):
            data, count, total = b.shared("data", u8, [64]), b.shared("count", i32, [1]), b.shared("total", i32, [1])
            b.fill(count, 0)
            b.fill(total, 0)
            b.fill(data, 0)
            with b.parallel(64) as i:
                b.store_atomic("exchange", data, 63 - i, x(i))
                ticket = b.fetch_atomic("add", count, 0, 1, order="acq_rel")
                with b.branch(ticket == 63):
                    with b.unroll(0, 64) as j:
                        b.store_atomic("add", total, 0, b.cast(b.fetch_atomic("or", data, j, 0), i32))
            with b.parallel(1) as i:
                b.store(y, i, total(0))
        program = b.finish()
        for target in ("host", "sim:sm_80"):
            y_ = array.array("i", [0])
            program.compile(target).load()(array.array("B", range(100, 164)), y_)
            self.assertEqual(y_[0], sum(range(100, 164)))

    def test_mistakes(self):
        b = tg.Builder("mistakes")
        y = b.tensor("Y", i32, [1])
        with b.kernel("k", [1]):
            with b.parallel(1) as i:
                with self.assertRaisesRegex(ValueError, "there is no memory order 'seq'; it is one of relaxed, acquire"):
                    b.store_atomic("add", y, i, 1, order="seq")


def philox(seed, offset, lane):
    """Salmon et al., SC 2011, in Python."""
    block, word = lane >> 2, 0xFFFFFFFF
    c, k = [offset & word, offset >> 32, block & word, block >> 32], [seed & word, seed >> 32]
    for _ in range(10):
        even, odd = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(odd >> 32) ^ c[1] ^ k[0], odd & word, (even >> 32) ^ c[3] ^ k[1], even & word]
        k = [(k[0] + 0x9E3779B9) & word, (k[1] + 0xBB67AE85) & word]
    return c[lane & 3]


class RandomWords(unittest.TestCase):
    def test_words_and_uniform_numbers(self):
        self.assertEqual([philox(0, 0, i) for i in range(4)], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])
        b = tg.Builder("random")
        seed = b.scalar("seed", i64)
        w, u = b.tensor("W", u32, [100]), b.tensor("U", f32, [100])
        with b.kernel("k", [1]):
            with b.parallel(100) as i:
                b.store(w, i, b.philox(seed, 7, i))
                b.store(u, i, b.uniform(b.philox(seed, i // 4, 5)))
        words, numbers = array.array("I", [0] * 100), array.array("f", [0.0] * 100)
        b.finish().compile("host").load()(0x123456789AB, words, numbers)
        self.assertEqual(list(words), [philox(0x123456789AB, 7, i) for i in range(100)])
        self.assertEqual(list(numbers), [(philox(0x123456789AB, i // 4, 5) >> 8) / 2**24 for i in range(100)])


class Switches(unittest.TestCase):
    def test_of_each_point(self):
        b = tg.Builder("switch")
        x, y = b.tensor("X", i32, [8], read_only=True), b.tensor("Y", i32, [8])
        with b.kernel("k", [1]):
            with b.parallel(8) as i:
                with b.switch(x(i) % 4) as case:
                    with case(0, 3):
                        b.store(y, i, -x(i))
                    with case(2):
                        b.store(y, i, x(i) * 10)
                    with case():
                        b.store(y, i, 1)
        out = array.array("i", [7] * 8)
        b.finish().compile("host").load()(array.array("i", range(8)), out)
        self.assertEqual(list(out), [0, 1, 20, -3, -4, 1, 60, -7])


class Atomics(unittest.TestCase):
    def test_blocks_and_iterations_meet(self):
        b = tg.Builder("atomics")
        n = b.dim("n")
        x = b.tensor("X", f32, [n, 8], read_only=True)
        total, most, count = b.tensor("T", f32, [8]), b.tensor("M", f32, [8]), b.tensor("C", i32, [2])
        with b.kernel("k", [n]) as block:
            row = b.fragment("row", f32, [8])
            b.copy(x[block, 0 : 8], row)
            b.atomic("add", row, total)
            b.atomic("max", row, most)
            with b.parallel(8) as i:
                b.store_atomic("add", count, i % 2, 1)
        values = [float((r * 7 + c * 3) % 11) for r in range(5) for c in range(8)]
        t, m, c = array.array("f", [1.0] * 8), array.array("f", [5.0] * 8), array.array("i", [0, 100])
        b.finish().compile("host").load()(memoryview(array.array("f", values)).cast("B").cast("f", [5, 8]), t, m, c)
        columns = [values[k::8] for k in range(8)]
        self.assertEqual(list(t), [1 + sum(v) for v in columns])
        self.assertEqual(list(m), [max(5.0, *v) for v in columns])
        self.assertEqual(list(c), [20, 120])
        with self.assertRaisesRegex(ValueError, "one of add, min"):
            b.atomic("multiply", row, total)

    def test_old_values_of_tiles(self):
        b = tg.Builder("swaps")
        y, z = b.tensor("Y", i32, [4, 8]), b.tensor("Z", i32, [4, 8])
        with b.kernel("k", [4]) as block:
            row, before = b.fragment("row", i32, [8]), b.fragment("before", i32, [8])
            b.fill(row, 7)
            b.atomic("exchange", row, y[block, 0:8], old=before)
            b.copy(before, z[block, 0:8])
        program = b.finish()
        for target in ("host", "sim:sm_80"):
            y, z = array.array("i", range(32)), array.array("i", [0] * 32)
            program.compile(target).load()(*(memoryview(v).cast("B").cast("i", [4, 8]) for v in (y, z)))
            self.assertEqual((list(y), list(z)), ([7] * 32, list(range(32))))

    def test_old_values(self):
        b = tg.Builder("old")
        n = b.dim("n")
        x, count = b.tensor("X", i32, [n], read_only=True), b.tensor("C", i32, [2])
        places, swaps = b.tensor("P", i32, [n]), b.tensor("S", i32, [n])
        with b.kernel("k", [(n + 31) // 32]) as block:
            with b.parallel(32) as i:
                at = block * 32 + i
                with b.branch(at < n):
                    place = b.fetch_atomic("add", count, b.cast(x(at), i64) % 2, 1, name="place")
                    b.store(places, at, place)
                    b.store(swaps, at, b.compare_exchange(swaps, at, 3, x(at)))
        values = [(k * 7) % 5 for k in range(50)]
        c, p, s = array.array("i", [0, 0]), array.array("i", [-1] * 50), array.array("i", [k % 4 for k in range(50)])
        b.finish().compile("host").load()(array.array("i", values), c, p, s)
        even = sum(v % 2 == 0 for v in values)
        self.assertEqual(list(c), [even, 50 - even])
        for odd, number in ((0, even), (1, 50 - even)):
            self.assertEqual(sorted(p[k] for k in range(50) if values[k] % 2 == odd), list(range(number)))
        self.assertEqual(list(s), [k % 4 for k in range(50)])  # the store of the old value comes last


    def test_threads(self):
        b = tg.Builder("threads")
        n = b.dim("n")
        x, y = b.tensor("X", i32, [n], read_only=True), b.tensor("Y", i32, [n])
        with b.kernel("k", [(n + 63) // 64], threads=64) as block:
            tile = b.shared("t", i32, [64])
            with b.threads(4, 16) as (group, lane):
                t = group * 16 + lane
                own = b.let(x(block * 64 + t), "own")
                total = b.var(own, "total", i32)
                with b.unroll(0, 4) as step:
                    b.assign(total, total + b.shuffle_xor(total, 8 >> step))
                words = b.cast(b.ballot(own > 2), i32) + b.cast(b.match_any(own) & 1, i32) * 7
                words = words + b.select(b.elect(own > 2), b.expr(3000, i32), b.expr(0, i32))
                odd = b.select(b.vote_any(own == 4), b.expr(100000, i32), b.expr(0, i32))
                b.store(tile, t, total + words + odd + b.shuffle(own, 3) - b.shuffle_up(own, 1) + b.shuffle_down(own, 2))
                b.barrier()
                ids = b.warp_id() * 100 + b.lane_id() + b.warpgroup_id() + b.cluster_rank() * b.cluster_blocks()
                b.store(y, b.block_id() * 64 + b.thread_id(),
                        b.select(b.vote_all(own < 4), tile(t), tile(63 - t)) + b.cast(ids, i32))
        values = [(k * 7) % 5 if k < 90 else k % 3 for k in range(128)]

        def stored(k):
            first, lane = k // 16 * 16, k % 16
            group = values[first:first + 16]
            words = sum(1 << l for l in range(16) if group[l] > 2) + (7 if group[0] == group[lane] else 0)
            words += 3000 if lane == next((l for l in range(16) if group[l] > 2), -1) else 0
            return (sum(group) + words + (100000 if 4 in group else 0) + group[3] - group[max(lane - 1, 0)]
                    + group[lane + 2 if lane + 2 < 16 else lane])

        def given(k):
            alike = all(v < 4 for v in values[k // 16 * 16:k // 16 * 16 + 16])
            return (stored(k) if alike else stored(k // 64 * 64 + 63 - k % 64)) + k % 64 // 32 * 100 + k % 32

        program = b.finish()
        for target in ("host", "sim:sm_80", "sim:gfx942"):
            out = array.array("i", [-1] * 128)
            program.compile(target).load()(array.array("i", values), out)
            self.assertEqual(list(out), [given(k) for k in range(128)], target)

    def test_copies_in_groups(self):
        b = tg.Builder("copies")
        x, y = b.tensor("X", i32, [512], read_only=True), b.tensor("Y", i32, [64])
        with b.kernel("k", [1], threads=64):
            tile = b.shared("t", i32, [2, 256])
            with b.threads(2, 32) as (warp, lane):
                at = (warp * 32 + lane) * 4
                for row in range(2):
                    b.copy_async(x[ds(row * 256 + at, 4)], tile[row, ds(at, 4)])
                    b.commit_group()
                b.wait_group(1)
                first = b.let(tile(0, 255 - at), "first")
                b.wait_group()
                b.store(y, warp * 32 + lane, first + tile(1, at))
        program = b.finish()
        values = [k * 3 % 101 for k in range(512)]
        for target in ("host", "sim:sm_80", "sim:gfx942"):
            out = array.array("i", [0] * 64)
            program.compile(target).load()(array.array("i", values), out)
            self.assertEqual(list(out), [values[255 - 4 * k] + values[256 + 4 * k] for k in range(64)], target)


    def test_ring_of_transaction_barriers(self):
        b = tg.Builder("ring")
        n = b.dim("n")
        x, y = b.tensor("X", i32, [n, 64], read_only=True), b.tensor("Y", i32, [64])
        with b.kernel("k", [1], threads=128):
            ring = b.shared("ring", i32, [3, 64])
            full, empty = b.mbarriers("full", 3, arrivals=64), b.mbarriers("empty", 3, arrivals=64)
            with b.threads(4, 32) as (warp, lane):
                at = warp % 2 * 32 + lane
                total = b.var(0, "total", i32)
                with b.serial(0, n) as k:
                    with b.branch(warp < 2) as otherwise:
                        b.mbarrier_wait(empty[k % 3], (k // 3 + 1) % 2)
                        b.store(ring, k % 3, at, x(k, at))
                        b.mbarrier_arrive(full[k % 3])
                        otherwise()
                        b.mbarrier_wait(full[k % 3], k // 3 % 2)
                        b.assign(total, total + ring(k % 3, 63 - at))
                        b.mbarrier_arrive(empty[k % 3])
                with b.branch(warp > 1):
                    b.store(y, at, total)
        program = b.finish()
        values = [k * 7 % 101 for k in range(8 * 64)]
        for target in ("host", "sim:sm_80", "sim:sm_90a", "sim:gfx942"):
            out = array.array("i", [0] * 64)
            rows = memoryview(array.array("i", values)).cast("B").cast("i", [8, 64])
            program.compile(target).load()(rows, out)
            self.assertEqual(list(out), [sum(values[63 - t::64]) for t in range(64)], target)


class Names(unittest.TestCase):
    def test_values_at_their_place(self):
        b = tg.Builder("names")
        x, y = b.tensor("X", f32, [8], read_only=True), b.tensor("Y", f32, [8])
        with b.kernel("k", [1]):
            tile = b.fragment("t", f32, [8])
            b.copy(x[0:8], tile)
            with b.parallel(8) as i:
                old = b.let(tile(i), "old")
                total = b.var(0.5, "total", f32)
                with b.unroll(0, 3) as k:
                    b.assign(total, total + b.cast(k, f32) * old)
                b.store(tile, i, total)
                with b.branch(old > 2) as otherwise:
                    b.assign(total, -total)
                b.store(y, i, 2 * total + tile(i) - old)
        out = array.array("f", [7.0] * 8)
        b.finish().compile("host").load()(array.array("f", range(8)), out)
        self.assertEqual(list(out), [(1 if v <= 2 else -1) * 2 * (0.5 + 3 * v) + 0.5 + 3 * v - v for v in range(8)])

    def test_numbers_on_the_left(self):
        b = tg.Builder("left")
        y = b.tensor("Y", tg.i64, [5])
        with b.kernel("k", [1]):
            with b.parallel(1) as i:
                for at, value in enumerate((7 % (i + 4), 6 & (i + 3), 8 | (i + 1), 5 ^ (i + 1), 1 << (i + 3))):
                    b.store(y, at, value)
        out = array.array("q", [0] * 5)
        b.finish().compile("host").load()(out)
        self.assertEqual(list(out), [3, 2, 9, 4, 8])


class Rows(unittest.TestCase):
    def test_scans_places_and_kinds(self):
        b = tg.Builder("rows")
        x = b.tensor("X", i32, [2, 4], read_only=True)
        names = ("largest", "place", "product", "bits")
        before, results = b.tensor("Before", i32, [2, 4]), {name: b.tensor(name, i32, [2]) for name in names}
        with b.kernel("k", [1]):
            t, s = b.fragment("t", i32, [2, 4]), b.fragment("s", i32, [2, 4])
            rows = {name: b.fragment(name + "_row", i32, [2]) for name in names}
            b.copy(x[0:2, 0:4], t)
            b.scan("sum", t, s, -1, exclusive=True)
            b.argmax(t, rows["largest"], rows["place"], -1)
            b.reduce("product", t, rows["product"], -1)
            b.reduce("xor", t[0:2, 0:4], rows["bits"], axis=-1)
            b.copy(s, before[0:2, 0:4])
            for name in names:
                b.copy(rows[name], results[name][0:2])
        given = memoryview(array.array("i", [3, 1, 4, 4, -2, 5, 2, 1])).cast("B").cast("i", [2, 4])
        sums = memoryview(array.array("i", [0] * 8)).cast("B").cast("i", [2, 4])
        out = {name: array.array("i", [0] * 2) for name in names}
        b.finish().compile("host").load()(given, sums, *out.values())
        self.assertEqual(sums.tolist(), [[0, 3, 4, 8], [0, -2, 3, 5]])
        self.assertEqual({n: list(v) for n, v in out.items()},
                         {"largest": [4, 5], "place": [2, 1], "product": [48, -20], "bits": [2, -2 ^ 5 ^ 2 ^ 1]})
        with self.assertRaisesRegex(ValueError, "axis 2 of a region of 2 dimensions"):
            b.scan("max", t, s, 2)


    def test_scans_carry(self):
        """Rows of 12 in tiles of 4: the values that go on, of a kind and of a combination of two."""
        b = tg.Builder("carried")
        x, y, z = b.tensor("X", i32, [2, 12], read_only=True), b.tensor("Y", i32, [2, 12]), b.tensor("Z", i32, [2, 12])
        with b.kernel("k", [1]):
            t, s, u, v = (b.fragment(name, i32, [2, 4]) for name in "tsuv")
            total, slope, level = (b.fragment(name, i32, [2]) for name in ("total", "slope", "level"))
            b.fill(total, 10)
            b.fill(slope, 1)
            b.fill(level, 5)
            with b.serial(0, 3) as i:
                b.copy(x[0:2, tg.ds(i * 4, 4)], t)
                b.scan("sum", t, s, axis=1, exclusive=True, carry=total)
                b.copy(s, y[0:2, tg.ds(i * 4, 4)])
                b.scan_by(lambda a, c: (a[0] * c[0], a[1] * c[0] + c[1]), [t, t], [u, v], axis=1, carry=[slope, level])
                b.copy(v, z[0:2, tg.ds(i * 4, 4)])
            for bad, words in ((dict(carry=slope, first=1), "first= or with what it carries"),
                               (dict(carry=[slope, level]), "a scan of 1 values carries 2"),
                               (dict(exclusive=True), "first= or carry=")):
                with self.assertRaisesRegex(ValueError, words):
                    b.scan_by(lambda a, c: a[0] + c[0], t, s, axis=1, **bad)
        rows = [[(i * 7 + r) % 5 - 1 for i in range(12)] for r in range(2)]
        given = memoryview(array.array("i", rows[0] + rows[1])).cast("B").cast("i", [2, 12])
        sums, levels = (memoryview(array.array("i", [0] * 24)).cast("B").cast("i", [2, 12]) for _ in range(2))
        b.finish().compile("host").load()(given, sums, levels)
        for r, row in enumerate(rows):
            total, level = 10, 5
            for i, value in enumerate(row):
                level = level * value + value
                self.assertEqual((sums[r, i], levels[r, i]), (total, level), (r, i))
                total += value

    def test_points_leave_loops(self):
        """A condition of each point, and trips of each: 3 n + 1, and sums of the first numbers."""
        b = tg.Builder("points")
        x, y, z = b.tensor("X", i32, [8], read_only=True), b.tensor("Y", i32, [8]), b.tensor("Z", i32, [8])
        with b.kernel("k", [1]):
            with b.parallel(8) as i:
                v, steps, total = b.var(x(i), "v", i32), b.var(0, "steps", i32), b.var(0, "total", i32)
                with b.loop_while(v > 1):
                    b.assign(v, b.select(v % 2 == 0, v // 2, 3 * v + 1))
                    b.assign(steps, steps + 1)
                with b.serial(0, b.cast(x(i), tg.i64)) as k:
                    b.assign(total, total + b.cast(k, i32))
                b.store(y, i, steps)
                b.store(z, i, total)
        given = array.array("i", [1, 2, 3, 6, 7, 9, 27, 0])
        steps, sums = array.array("i", [0] * 8), array.array("i", [0] * 8)
        b.finish().compile("host").load()(given, steps, sums)
        self.assertEqual(list(steps), [0, 1, 7, 8, 16, 19, 111, 0])
        self.assertEqual(list(sums), [n * (n - 1) // 2 for n in given])

    def test_sorts_and_combinations(self):
        b = tg.Builder("made")
        x = b.tensor("X", f32, [2, 5], read_only=True)
        s, p = b.tensor("S", f32, [2, 5]), b.tensor("P", i32, [2, 5])
        top, mean, square = b.tensor("Top", f32, [2, 2]), b.tensor("Mean", f32, [2]), b.tensor("Square", f32, [2])
        sums = b.tensor("Sums", f32, [2, 5])
        with b.kernel("k", [1]):
            t, zero, one = (b.fragment(name, f32, [2, 5]) for name in ("t", "zero", "one"))
            order, place = b.fragment("order", f32, [2, 5]), b.fragment("place", i32, [2, 5])
            first = b.fragment("first", f32, [2, 2])
            m, q, n = (b.fragment(name, f32, [2]) for name in ("m", "q", "n"))
            b.copy(x[0:2, 0:5], t)
            b.fill(zero, 0)
            b.fill(one, 1)
            b.sort(t, order, -1, index=place, descending=True)
            b.top_k(t, first, axis=1, smallest=True)

            def welford(a, c):
                d = c[0] - a[0]
                n = a[2] + c[2]
                return a[0] + d * c[2] / n, a[1] + c[1] + d * d * a[2] * c[2] / n, n
            b.reduce_by(welford, [t, zero, one], [m, q, n], axis=1)
            b.scan_by(lambda a, c: a[0] + c[0], t, t, axis=1, reverse=True)
            for tile, tensor in ((order, s), (place, p), (first, top), (m, mean), (q, square), (t, sums)):
                b.copy(tile, tensor[tuple(slice(0, e) for e in tensor.shape)])
            with self.assertRaisesRegex(ValueError, "a combination of 1 values gives 2"):
                b.scan_by(lambda a, c: (a[0], c[0]), t, t, axis=1)
            with self.assertRaisesRegex(ValueError, "2 tiles are combined into 1"):
                b.reduce_by(welford, [t, zero], m, axis=1)
        rows = [[3, 1, 4, 1, 5], [2, 2, -1, 7, 0]]
        given = memoryview(array.array("f", rows[0] + rows[1])).cast("B").cast("f", [2, 5])
        out = [memoryview(array.array(c, [0] * n)).cast("B").cast(c, shape) for c, n, shape in
               (("f", 10, [2, 5]), ("i", 10, [2, 5]), ("f", 4, [2, 2]), ("f", 2, [2]), ("f", 2, [2]), ("f", 10, [2, 5]))]
        b.finish().compile("host").load()(given, *out)
        self.assertEqual(out[0].tolist(), [[5, 4, 3, 1, 1], [7, 2, 2, 0, -1]])
        self.assertEqual(out[1].tolist(), [[4, 2, 0, 1, 3], [3, 0, 1, 4, 2]])
        self.assertEqual(out[2].tolist(), [[1, 1], [-1, 0]])
        self.assertEqual(out[5].tolist(), [[14, 11, 10, 6, 5], [10, 8, 6, 7, 0]])
        for row, mean_of, square_of in zip(rows, out[3].tolist(), out[4].tolist()):
            self.assertAlmostEqual(mean_of, sum(row) / 5, places=5)
            self.assertAlmostEqual(square_of, sum((v - sum(row) / 5) ** 2 for v in row), places=4)

    def test_sparse_products(self):
        b = tg.Builder("sparse")
        a, x, y = b.tensor("A", f32, [2, 8], read_only=True), b.tensor("X", f32, [3, 8], read_only=True), b.tensor("Y", f32, [2, 3])
        kept, places = b.tensor("Kept", f32, [2, 4]), b.tensor("Places", tg.u8, [2, 1])
        with b.kernel("k", [1]):
            tile, values, words = b.shared("tile", f32, [2, 8]), b.shared("values", f32, [2, 4]), b.shared("words", tg.u8, [2, 1])
            right, total = b.shared("right", f32, [3, 8]), b.fragment("total", f32, [2, 3])
            b.copy(a[0:2, 0:8], tile)
            b.copy(x[0:3, 0:8], right)
            b.compress(tile, values, words)
            b.gemm_sparse(values, words, right, total, transpose_b=True, clear=True, policy="full_row")
            for one, tensor in ((values, kept), (words, places), (total, y)):
                b.copy(one, tensor[tuple(slice(0, e) for e in tensor.shape)])

        def of(values, shape, kind="f"):
            return memoryview(array.array(kind, values)).cast("B").cast(kind, shape)
        rows = [[1, -3, 2, 0, 5, 5, 5, 5], [0, 0, 0, 0, 1, 0, 0, -2]]
        pruned = [[0, -3, 2, 0, 5, 5, 0, 0], [0, 0, 0, 0, 1, 0, 0, -2]]
        columns = [[1, 2, 3, 4, 5, 6, 7, 8], [1, 0, 0, 1, 0, 0, 1, 0], [2, 2, 2, 2, 1, 1, 1, 1]]
        out = of([0] * 6, [2, 3]), of([0] * 8, [2, 4]), of([0] * 2, [2, 1], "B")
        b.finish().compile("host").load()(of(rows[0] + rows[1], [2, 8]), of(sum(columns, []), [3, 8]), *out)
        self.assertEqual(out[1].tolist(), [[-3, 2, 5, 5], [0, 0, 1, -2]])
        self.assertEqual(out[2].tolist(), [[0x49], [0xc4]])  # places 1, 2 and 0, 1; 0, 1 and 0, 3
        self.assertEqual(out[0].tolist(), [[sum(p * q for p, q in zip(row, c)) for c in columns] for row in pruned])


class Views(unittest.TestCase):
    def test_tiles_in_other_shapes(self):
        b = tg.Builder("views")
        x, y, z = b.tensor("X", i32, [2, 3, 4], read_only=True), b.tensor("Y", i32, [4, 6]), b.tensor("Z", i32, [2, 4])
        with b.kernel("k", [1]):
            tile = b.shared("tile", i32, [6, 4])
            b.copy(x[0:2, 0:3, 0:4], tile)  # dimensions together
            image = tile.reshape(2, -1, 4)
            self.assertEqual(image.shape, [2, 3, 4])
            with b.parallel(2, 4) as (i, k):
                b.store(image, i, 1, k, image(i, 1, k) * 10)
            b.copy(tile.T, y[0:4, 0:6])
            self.assertEqual(image.transpose(2, 0, 1).shape, [4, 2, 3])
            half = tile.view(ds(4, 2), slice(0, 4))
            b.copy(half, z[0:2, 0:4])
        out_y, out_z = array.array("i", [0] * 24), array.array("i", [0] * 8)
        program = b.finish()
        self.assertNotIn("view", str(program).split("{", 1)[1])
        shaped = lambda numbers, *shape: memoryview(numbers).cast("B").cast("i", shape)
        program.compile("host").load()(shaped(array.array("i", range(24)), 2, 3, 4), shaped(out_y, 4, 6), shaped(out_z, 2, 4))
        rows = [[v * (10 if 4 <= v % 12 < 8 else 1) for v in range(4 * r, 4 * r + 4)] for r in range(6)]
        self.assertEqual(list(out_y), [rows[c][r] for r in range(4) for c in range(6)])
        self.assertEqual(list(out_z), rows[4] + rows[5])

    def test_bits_of_values_and_tiles(self):
        b = tg.Builder("bits")
        x, y, u = b.tensor("X", f32, [8], read_only=True), b.tensor("Y", f32, [8]), b.tensor("U", u32, [8])
        with b.kernel("k", [1]):
            tile = b.shared("tile", f32, [8])
            bits = tile.reinterpret(u32)
            self.assertEqual((bits.shape, bits.dtype), ([8], u32))
            b.copy(x[0:8], tile)
            with b.parallel(8) as i:
                b.store(bits, i, bits(i) ^ 2**31)
            with b.parallel(8) as i:
                b.store(u, i, b.bitcast(x(i), u32))
                b.store(y, i, b.bitcast(bits(i) + 1, f32))
        values, out, bits = array.array("f", [0, 1, -2.5, 3e38, -0.0, 1e-45, 7, -8]), array.array("f", [0] * 8), array.array("I", [0] * 8)
        b.finish().compile("host").load()(values, out, bits)
        self.assertEqual(list(bits), list(memoryview(values).cast("B").cast("I")))
        self.assertEqual(list(memoryview(out).cast("B").cast("I")), [(v ^ 2**31) + 1 for v in bits])

    def test_operands_of_other_types_and_shapes(self):
        """The largest word of rows of floats, and sums of pairs; a tile of bits is multiplied as numbers."""
        b = tg.Builder("operands")
        x, y = b.tensor("X", f32, [4, 8], read_only=True), b.tensor("Y", f32, [16])
        u, c = b.tensor("U", u32, [4]), b.tensor("C", f32, [16, 16])
        with b.kernel("k", [1]):
            tile, pairs = b.shared("tile", f32, [4, 8]), b.fragment("pairs", f32, [16])
            words, most = b.fragment("words", u32, [4]), tile.reinterpret(u32)
            bits, product = b.shared("bits", tg.u16, [16, 16]), b.fragment("product", f32, [16, 16])
            b.copy(x, tile)
            b.reduce("sum", tile.reshape(16, 2), pairs, 1)
            b.reduce("max", most, words, 1)
            with b.parallel(16, 16) as (i, j):
                b.store(bits, i, j, b.cast(i, tg.u16) * 64 + 0x3C00)
            b.fill(product, 0)
            b.gemm(bits.reinterpret(tg.f16), bits.reinterpret(tg.f16), product, transpose_b=True)
            b.copy(pairs, y)
            b.copy(words, u)
            b.copy(product, c)
        program = b.finish()
        self.assertIn("bits: shared f16", str(program))
        numbers = [struct.unpack("e", struct.pack("H", 0x3C00 + 64 * i))[0] for i in range(16)]
        values = array.array("f", [1.5 * i - 20 for i in range(32)])
        for target in ("host", "sim:sm_90a"):
            y_, u_, c_ = array.array("f", [0] * 16), array.array("I", [0] * 4), array.array("f", [0] * 256)
            shaped = lambda numbers, code, *shape: memoryview(numbers).cast("B").cast(code, shape)
            program.compile(target).load()(shaped(values, "f", 4, 8), y_, u_, shaped(c_, "f", 16, 16))
            self.assertEqual(list(y_), [values[2 * i] + values[2 * i + 1] for i in range(16)])
            raw = memoryview(values).cast("B").cast("I")
            self.assertEqual(list(u_), [max(raw[8 * i : 8 * i + 8]) for i in range(4)])
            self.assertEqual(list(c_), [16 * p * q for p in numbers for q in numbers])

    def test_bits_of_another_number_are_refused(self):
        b = tg.Builder("bits")
        with b.kernel("k", [1]):
            b.shared("tile", f32, [6, 3]).reinterpret(tg.f64)
        with self.assertRaisesRegex(tg.Error, "the last extent of 'tile' .* is not known to be a multiple of 2"):
            b.finish()

    def test_what_is_no_view_is_refused(self):
        b = tg.Builder("views")
        with b.kernel("k", [1]):
            b.shared("tile", i32, [6, 4]).reshape(5, 5)
        with self.assertRaisesRegex(tg.Error, "'tile' .6, 4. has 24 elements, its view .5, 5. 25"):
            b.finish()


class Layout(unittest.TestCase):
    def test_text_is_laid_out_and_stays_the_same_program(self):
        loose = "tl 1 program p ; name\ndim n\ntensor X:f32[n]\nkernel k grid(b:n){ parallel i in 1 {X[b]=-1.5}\n }\n"
        text = tg.format_text(loose)
        self.assertEqual(text, "tl 1 program p  ; name\ndim n\ntensor X: f32[n]\n"
                               "kernel k grid (b: n) { parallel i in 1 { X[b] = -1.5 }\n}\n")
        self.assertEqual(tg.format_text(text), text)
        self.assertEqual(tg.Program.parse(text).hash, tg.Program.parse(loose).hash)
        with self.assertRaisesRegex(tg.Error, "syntax_error"):
            tg.format_text("tl 1 program")


class Reports(unittest.TestCase):
    def test_assertions_and_prints(self):
        b = tg.Builder("reports")
        x = b.tensor("X", f32, [8], read_only=True)
        with b.kernel("k", [1]):
            with b.parallel(8) as i:
                b.check(x(i) < 6, "below six")
                with b.branch(i < 1):
                    b.print("first", x(i), i)
        kernel = b.finish().compile("sim:sm_80").load()
        kernel(array.array("f", [5.0] * 8))
        with self.assertRaises(tg.Error) as caught:
            kernel(array.array("f", range(8)))
        first = caught.exception.diagnostics[0]
        self.assertIn("'below six' does not hold at", first.message)
        with open(first.file) as source:
            self.assertIn("below six", source.readlines()[first.line - 1])


class Locations(unittest.TestCase):
    def test_diagnostics_name_the_line_of_the_user(self):
        b = tg.Builder("places")
        x = b.tensor("X", f32, [8], read_only=True)
        with b.kernel("k", [1]):
            with b.parallel(8) as i:
                b.store(x, i, 1.0)
        with self.assertRaises(tg.Error) as caught:
            b.finish()
        first = caught.exception.diagnostics[0]
        self.assertEqual(os.path.basename(first.file), "language_test.py")
        with open(first.file) as source:
            self.assertIn("b.store(x, i, 1.0)", source.readlines()[first.line - 1])


if __name__ == "__main__":
    unittest.main()
