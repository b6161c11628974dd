"""Atomic operations, their orders and random words through the Python binding, on the host."""
import array
import sys
import unittest

sys.path.insert(0, __file__.rpartition("/")[0])
import tilegen as tg  # noqa: E402
from tilegen import ds, f32, i32, i64, u32, u8  # noqa: E402


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
        for run in (program.interpret, *(program.compile(t).load() for t in ("host", "sim:sm_80", "sim:sm_90a"))):
            y, z = array.array("i", range(32)), array.array("i", [0] * 32)
            run(*(memoryview(v).cast("B").cast("i", [4, 8]) for v in (y, z)))
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

    def test_named_barriers(self):
        b = tg.Builder("turns")
        n = b.dim("n")
        x, y = b.tensor("X", i32, [n, 64], read_only=True), b.tensor("Y", i32, [64])
        with b.kernel("k", [1], threads=128):
            row = b.shared("row", i32, [64])
            full, empty = b.named_barriers("full", 1, threads=128), b.named_barriers("empty", 1, threads=128)
            with b.threads(4, 32) as (warp, lane):
                at = warp % 2 * 32 + lane
                with b.branch(warp < 2) as otherwise:
                    with b.serial(0, n) as k:
                        b.barrier_sync(empty[0])
                        b.store(row, at, x(k, at))
                        b.barrier_arrive(full)
                    otherwise()
                    total = b.var(0, "total", i32)
                    with b.serial(0, n) as k:
                        b.barrier_arrive(empty)
                        b.barrier_sync(full)
                        b.assign(total, total + row(63 - at))
                    b.store(y, at, total)
        program = b.finish()
        values = [k * 7 % 101 for k in range(8 * 64)]
        for target in ("host", "sim:sm_80", "sim:sm_90a", "sim:gfx942"):
            out = array.array("i", [0] * 64)
            rows = memoryview(array.array("i", values)).cast("B").cast("i", [8, 64])
            program.compile(target).load()(rows, out)
            self.assertEqual(list(out), [sum(values[63 - t::64]) for t in range(64)], target)
        code = bytes(program.compile("sm_80").code).decode("latin1")
        self.assertEqual(sorted(line.strip() for line in code.splitlines() if line.strip().startswith("bar.")),
                         ["bar.arrive 1, 128;", "bar.arrive 2, 128;", "bar.sync 1, 128;", "bar.sync 2, 128;"])


if __name__ == "__main__":
    unittest.main()
