"""Views of tiles and tensors, tensors that may be null and layouts through the Python binding, on the host."""
import array
import math
import struct
import sys
import unittest

sys.path.insert(0, __file__.rpartition("/")[0])
import tilegen as tg  # noqa: E402
from numbers_in_memory import Numbers  # noqa: E402
from tilegen import ds, f32, i32, u32  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
