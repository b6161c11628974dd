"""Constructs of the language through the Python binding, on the host, against Python's own."""
import array
import os
import sys
import unittest

sys.path.insert(0, __file__.rpartition("/")[0])
import tilegen as tg  # noqa: E402
from tilegen import ds, f32, i32, i64, u8  # noqa: E402


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
