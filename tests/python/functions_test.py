"""Functions, native text and matrix instructions through the Python binding, against Python's own."""
import array
import math
import os
import sys
import unittest

sys.path.insert(0, __file__.rpartition("/")[0])
import tilegen as tg  # noqa: E402
from tilegen import f16, f32, f64, i32, i64  # noqa: E402

X = [0.1, -0.7, 0.5, 0.9, -0.3, 0.25, 1.0, 0.0]
UNARY = {"sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
         "exp10": lambda x: 10.0**x, "expm1": math.expm1, "log1p": math.log1p, "cbrt": lambda x: math.copysign(abs(x) ** (1 / 3), x),
         "erfc": math.erfc, "rint": round, "trunc": math.trunc, "round": lambda x: math.copysign(math.floor(abs(x) + 0.5), x)}
BINARY = {"atan2": math.atan2, "fmod": lambda a, b: math.fmod(a, b), "copysign": math.copysign,
          "pow": lambda a, b: math.nan if a < 0 else a**b}


class Functions(unittest.TestCase):
    def test_of_floats(self):
        b = tg.Builder("functions")
        x = b.tensor("X", f64, [8], read_only=True)
        ys = {name: b.tensor(name + "_of", f64, [8]) for name in [*UNARY, *BINARY, "fma", "tests"]}
        with b.kernel("k", [1]):
            with b.parallel(8) as i:
                for name in UNARY:
                    b.store(ys[name], i, getattr(b, name)(x(i)))
                for name in BINARY:
                    b.store(ys[name], i, getattr(b, name)(x(i), 0.75))
                b.store(ys["fma"], i, b.fma(x(i), x(i), 2.0))
                b.store(ys["tests"], i, b.select(b.isnan(x(i)) | b.isinf(x(i)), x(i) + 1.0, 0.0))
        out = {name: array.array("d", [7.0] * 8) for name in ys}
        b.finish().compile("host").load()(array.array("d", X), *out.values())
        for name, function in UNARY.items():
            for at, value in enumerate(X):
                self.assertAlmostEqual(out[name][at], function(value), delta=1e-14, msg=f"{name}({value})")
        for name, function in BINARY.items():
            for at, value in enumerate(X):
                want = function(value, 0.75)
                self.assertTrue(out[name][at] == want or abs(out[name][at] - want) < 1e-14 or out[name][at] != out[name][at] and want != want,
                                f"{name}({value}, 0.75) is {out[name][at]}, not {want}")
        self.assertEqual(list(out["tests"]), [0.0] * 8)
        for at, value in enumerate(X):
            self.assertAlmostEqual(out["fma"][at], value * value + 2, delta=1e-15)

    def test_of_integers(self):
        b = tg.Builder("bits")
        x, y = b.tensor("X", i32, [4], read_only=True), b.tensor("Y", i32, [4, 4])
        with b.kernel("k", [1]):
            with b.parallel(4) as i:
                for row, value in enumerate((b.popcount(x(i)), b.clz(x(i)), b.ctz(x(i)), b.mulhi(x(i), 1 << 30))):
                    b.store(y, row, i, value)
        out = array.array("i", [7] * 16)
        b.finish().compile("host").load()(array.array("i", [0, 1, -1, 12]), memoryview(out).cast("B").cast("i", [4, 4]))
        self.assertEqual(list(out), [0, 1, 32, 2, 32, 31, 0, 28, 32, 0, 0, 2, 0, 0, -1, 3])


class NativeText(unittest.TestCase):
    def program(self, **texts):
        b = tg.Builder("native")
        x, y = b.tensor("X", i32, [8]), b.tensor("Y", i32, [8])
        parts = b.function("parts", [i32, i32], lambda a, by: (a & by, a | by), **texts)
        with b.kernel("k", [1]):
            with b.parallel(8) as i:
                both, any = parts(x(i), 12)
                b.store(y, i, both * 100 + any)
        return b.finish()

    def test_is_what_its_meaning_is(self):
        values = array.array("i", range(8))
        expected = [(v & 12) * 100 + (v | 12) for v in values]
        llvm = ("define {i32, i32} @parts(i32 %a, i32 %b) {\n%x = and i32 %a, %b\n%y = or i32 %a, %b\n"
                "%r = insertvalue {i32, i32} undef, i32 %x, 0\n%s = insertvalue {i32, i32} %r, i32 %y, 1\nret {i32, i32} %s\n}")
        for texts in ({}, {"ptx": "and.b32 $0, $2, $3; or.b32 $1, $2, $3;"}, {"llvm": llvm}):
            program = self.program(**texts)
            self.assertEqual(tg.Program.parse(str(program)).hash, program.hash)
            for target in ("host", "sim:sm_80"):
                out = array.array("i", [0] * 8)
                program.compile(target).load()(values, out)
                self.assertEqual(list(out), expected)

    def test_bitcode_is_text(self):
        """What LLVM's assembler makes of a module; tests/unit/ir/bitcode/mix.ll."""
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(os.path.join(root, "tests/fuzz/corpus/bitcode/mix.bc"), "rb") as file:
            bitcode = file.read()
        b = tg.Builder("bitcode")
        x, y = b.tensor("X", i64, [8]), b.tensor("Y", i64, [8])
        mix = b.function("mix", [i64, i64], lambda a, by: (a ^ by, a + by), llvm=bitcode)
        with b.kernel("k", [1]):
            with b.parallel(8) as i:
                first, second = mix(x(i), 12)
                b.store(y, i, first * 100 + second)
        program = b.finish()
        self.assertIn("define { i64, i64 } @mix(i64 %v2, i64 %v3) {", str(program))
        self.assertEqual(tg.Program.parse(str(program)).hash, program.hash)
        for target in ("host", "sim:sm_80"):
            out = array.array("q", [0] * 8)
            program.compile(target).load()(array.array("q", range(8)), out)
            self.assertEqual(list(out), [(v ^ 12) * 100 + v + 12 for v in range(8)])
        with self.assertRaisesRegex(tg.Error, "does not begin with the bytes of bitcode"):
            tg.bitcode_text(b"no bitcode")

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "no native text 'x86'"):
            self.program(x86="nop")
        with self.assertRaisesRegex(tg.Error, "'exit' is not taken"):
            self.program(ptx="exit;")


class MatrixAtoms(unittest.TestCase):
    A = (f16, 16, 8, "(i, k) -> (i % 8 * 4 + k // 2) * 4 + i // 8 * 2 + k % 2")
    B = (f16, 8, 8, lambda k, j: (j * 4 + k // 2) * 2 + k % 2)
    C = (f32, 16, 8, "(i, j) -> (i % 8 * 4 + j // 2) * 4 + i // 8 * 2 + j % 2")
    TEXT = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0, $1, $2, $3}, {$4, $5}, {$6}, {$7, $8, $9, $10};"

    def program(self, a=A, text=TEXT, meaning=None):
        b = tg.Builder("atoms")
        x, y, z = (b.tensor(name, f32, [32, 32]) for name in "XYZ")
        b.matrix_atom("mul", a, self.B, self.C, meaning=meaning and meaning(b), cycles=8, ptx=text)
        with b.kernel("k", [1], threads=64):
            s, t = b.shared("s", f16, [32, 32]), b.shared("t", f16, [32, 32])
            sums = b.fragment("sums", f32, [32, 32])
            with b.parallel(32, 32) as (i, j):
                b.store(s, i, j, b.cast(x(i, j), f16))
                b.store(t, i, j, b.cast(y(i, j), f16))
            b.fill(sums, 0)
            b.gemm(s, t, sums, atom="mul")
            b.copy(sums, z)
        return b.finish()

    def test_products_are_made_of_it(self):
        tile = lambda numbers: memoryview(array.array("f", numbers)).cast("B").cast("f", [32, 32])
        x, y = [i % 7 - 3 for i in range(1024)], [i % 5 - 2 for i in range(1024)]
        expected = [sum(x[i * 32 + k] * y[k * 32 + j] for k in range(32)) for i in range(32) for j in range(32)]
        for meaning in (None, (lambda b: lambda x, y, z: z + b.cast(x, f32) * b.cast(y, f32))):
            program = self.program(meaning=meaning)
            self.assertEqual(tg.Program.parse(str(program)).hash, program.hash)
            self.assertIn("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", program.compile("sm_80").section("ptx"))
            for target in ("host", "sim:sm_80"):
                out = tile([0.0] * 1024)
                program.compile(target).load()(tile(x), tile(y), out)
                self.assertEqual(sum(out.tolist(), []), expected)

    def test_mistakes(self):
        with self.assertRaisesRegex(tg.Error, "where element"):
            self.program(a=(f16, 16, 8, "(i, k) -> i * 8"))
        with self.assertRaisesRegex(tg.Error, "a warpgroup"):
            self.program(text="wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0};")
        with self.assertRaisesRegex(ValueError, "A is m x k"):
            self.program(a=(f16, 16, 16, "(i, k) -> i"))


if __name__ == "__main__":
    unittest.main()
