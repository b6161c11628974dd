"""Casts that round or end otherwise, views of other widths, fast forms and bytes, parameters that are types: in `.tl` and in Python, by every
executor, against Python's own arithmetic."""
import array
import math
import random
import struct
import sys
import unittest
import warnings

sys.path.insert(0, __file__.rpartition("/")[0])
import tilegen as tg  # noqa: E402
from numbers_in_memory import Halves  # noqa: E402
from tilegen import ds, f16, f32, u4, u8, u16, u32  # noqa: E402

EXECUTORS = ("interpreter", "host", "sim:sm_80", "sim:sm_90a", "sim:gfx942")
N = 53


def tensor(code, *shape, values=None):
    return memoryview(array.array(code, values or [0] * math.prod(shape))).cast("B").cast(code, shape)


def numbers(argument):
    if hasattr(argument, "numbers"):
        return list(argument.numbers())
    values = argument.tolist()
    while values and isinstance(values[0], list):
        values = sum(values, [])
    return values


def singles(values): return array.array("f", values).tolist()
def floats(values): return tensor("f", len(values), values=values)


def each(declarations, value, before=""):
    """Y[j] = value for each j of a ragged number of elements."""
    return tg.Program.parse(f"tl 1 program each dim n {declarations} {before}\n"
                            "kernel k grid (b: ceildiv(n, 32)) { parallel i in 32 { if b * 32 + i < n { let j = b * 32 + i\n"
                            f"Y[j] = {value} }} }} }}")


class Conversions(unittest.TestCase):
    def setUp(self):
        random.seed(7)
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore", tg.PerformanceWarning)

    def agrees(self, program, make, want, bound=0.0):
        """make() gives the arguments; the last one becomes `want`."""
        for executor in EXECUTORS:
            arguments = make()
            (program.interpret if executor == "interpreter" else program.compile(executor).load())(*arguments)
            got = numbers(arguments[-1])
            self.assertEqual(len(got), len(want))
            for i, (a, b) in enumerate(zip(got, want)):
                if a != b and not (a != a and b != b):
                    self.assertLessEqual(abs(a - b), bound * (1 + abs(b)), f"{executor}: element {i} is {a}, not {b}\n{program}")

    def test_roundings_of_floats(self):
        halves = [struct.unpack("e", struct.pack("H", bits))[0] for bits in range(0x7C00)]
        above = {a: b for a, b in zip(halves, halves[1:] + [math.inf])}

        def beside(x):
            """The halves at both sides of a magnitude."""
            low = max(h for h in halves if h <= x)
            return low, low if low == x else above[low]

        x = singles([65504.0, 65519.0, 70000.0, 1.0, 0.0, 1e-8] + [random.uniform(0, 4) for _ in range(20)])
        x = x + [-v for v in x]
        wanted = {"zero": [math.copysign(beside(abs(v))[0], v) for v in x],
                  "down": [beside(v)[0] if v >= 0 else -beside(-v)[1] for v in x],
                  "up": [beside(v)[1] if v >= 0 else -beside(-v)[0] for v in x]}
        for word, want in wanted.items():
            program = each("tensor X: f32[n] readonly tensor Y: f32[n]", f"cast(f32, cast(f16, X[j], {word}))")
            self.agrees(program, lambda: [floats(x), tensor("f", len(x))], want)
            held = [max(-65504.0, min(65504.0, v)) for v in want]
            program = each("tensor X: f32[n] readonly tensor Y: f32[n]", f"cast(f32, cast(f16, X[j], {word}, saturate))")
            self.agrees(program, lambda: [floats(x), tensor("f", len(x))], held)

    def test_integers(self):
        x = singles([0.5, 1.5, -0.5, -2.5, 300.0, -300.0, 127.5] + [random.uniform(-200, 200) for _ in range(N)])
        for word, function in {"nearest": round, "zero": math.trunc, "down": math.floor, "up": math.ceil}.items():
            program = each("tensor X: f32[n] readonly tensor Y: i8[n]", f"cast(i8, X[j], {word})")
            self.agrees(program, lambda: [floats(x), tensor("b", len(x))], [max(-128, min(127, function(v))) for v in x])
        for name, code, low, high in (("i8", "b", -128, 127), ("u8", "B", 0, 255), ("u16", "H", 0, 65535), ("u64", "Q", 0, 2**64 - 1)):
            y = [random.randint(-(2**31), 2**31 - 1) for _ in range(N)] + list(range(-300, 300, 7))
            program = each(f"tensor X: i32[n] readonly tensor Y: {name}[n]", f"cast({name}, X[j], saturate)")
            self.agrees(program, lambda: [tensor("i", len(y), values=y), tensor(code, len(y))], [max(low, min(high, v)) for v in y])

    def test_ends_of_narrow_floats(self):
        x = [448.0, 464.0, 465.0, -1e9, math.inf, 57344.0, 61439.0, -61440.0, 1.0]
        for name, want in {"e4m3": [0x7E, 0x7E, 0x7F, 0xFF, 0x7F, 0x7F, 0x7F, 0xFF, 0x38],
                           "e5m2": [0x5F, 0x5F, 0x5F, 0xFC, 0x7C, 0x7B, 0x7B, 0xFC, 0x3C]}.items():
            program = each("tensor X: f32[n] readonly tensor Y: u8[n]", f"bitcast(u8, cast({name}, X[j], overflow))")
            self.agrees(program, lambda: [floats(x), tensor("B", len(x))], want)

    def test_in_python(self):
        b = tg.Builder("casts")
        n = b.dim("n")
        x, y = b.tensor("X", f32, [n], read_only=True), b.tensor("Y", f32, [n])
        with b.kernel("k", [b.ceildiv(n, 32)]) as block, b.parallel(32) as i, b.branch(block * 32 + i < n):
            j = block * 32 + i
            b.store(y, j, b.cast(b.cast(x(j), f16, rounding="down", end="saturate"), f32) + b.cast(b.cast(x(j), u8, rounding="up"), f32))
        self.agrees(b.finish(), lambda: [floats([1e9, 2.25, 0.5]), tensor("f", 3)], [65504.0 + 255, 5.25, 1.5])
        with self.assertRaisesRegex(ValueError, "nearest.*zero.*down.*up"):
            tg.Builder("b").cast(1.0, f16, rounding="away")

    def test_fast_forms(self):
        x = singles([random.uniform(0.1, 3) for _ in range(N)])
        forms = {"fast_exp": math.exp, "fast_exp2": lambda v: 2**v, "fast_exp10": lambda v: 10**v, "fast_log": math.log,
                 "fast_log2": math.log2, "fast_sin": math.sin, "fast_cos": math.cos, "fast_tanh": math.tanh,
                 "fast_sigmoid": lambda v: 1 / (1 + math.exp(-v)), "fast_sqrt": math.sqrt, "fast_rsqrt": lambda v: 1 / math.sqrt(v)}
        value = " + ".join(f"{name}(X[j])" for name in forms) + " + fast_div(X[j], 3) + fast_pow(X[j], 1.5)"
        program = each("tensor X: f32[n] readonly tensor Y: f32[n]", value)
        self.agrees(program, lambda: [floats(x), tensor("f", N)], [sum(f(v) for f in forms.values()) + v / 3 + v**1.5 for v in x], 2e-6)
        for target in ("sm_80", "sm_90a", "gfx942"):  # the library's own text is nobody's whom the option is about
            made = program.compile(target, native_text=False)
            self.assertEqual(made.section("native_text"), "")
        ptx = program.compile("sm_80").section("ptx")
        for word in ("ex2.approx.ftz.f32", "lg2.approx.f32", "sin.approx.f32", "cos.approx.f32", "tanh.approx.f32", "div.approx.f32"):
            self.assertIn(word, ptx)
        b = tg.Builder("each")
        n = b.dim("n")
        given, y = b.tensor("X", f32, [n], read_only=True), b.tensor("Y", f32, [n])
        with b.kernel("k", [b.ceildiv(n, 32)], names=["b"]) as block, b.parallel(32, names=["i"]) as i, b.branch(block * 32 + i < n):
            j = block * 32 + i
            total = b.fast_exp(given(j))
            for name in list(forms)[1:]:
                total = total + getattr(b, name)(given(j))
            b.store(y, j, total + b.fast_div(given(j), 3) + b.fast_pow(given(j), 1.5))
        self.assertEqual(str(b.finish()), str(program))

    def test_bytes(self):
        words = [[random.getrandbits(32) for _ in range(N)] for _ in range(2)] + [[random.getrandbits(16) for _ in range(N)]]

        def permuted(a, b, selector):
            source, out = struct.pack("<II", a, b), 0
            for i in range(4):
                digit = selector >> 4 * i & 15
                byte = source[digit & 7]
                out |= ((255 if byte > 127 else 0) if digit & 8 else byte) << 8 * i
            return out

        program = each("tensor A: u32[n] readonly tensor B: u32[n] readonly tensor S: u32[n] readonly tensor Y: u32[n]",
                       "byte_permute(A[j], B[j], S[j])")
        self.agrees(program, lambda: [*(tensor("I", N, values=w) for w in words), tensor("I", N)], [permuted(*w) for w in zip(*words)])
        self.assertIn("prmt.b32", program.compile("sm_80").section("ptx"))

    def test_other_widths(self):
        rows, codes = 21, [random.randint(0, 255) for _ in range(21 * 24)]
        pairs = [codes[i] | codes[i + 1] << 8 for i in range(0, len(codes), 2)]
        for declared, tile in (("u8[m, 24]", "u8[8, 24]"), ("u4[m, 48]", "u4[8, 48]")):
            inner = declared[declared.index(",") + 2 : -1]
            for read in (f"alloc s: shared {tile} view w = reinterpret(s, u16) copy X[b * 8 :+ 8, 0 :+ {inner}] -> s "
                         "copy w -> Y[b * 8 :+ 8, 0 :+ 12]",
                         "view w = reinterpret(X, u16) copy w[b * 8 :+ 8, 0 :+ 12] -> Y[b * 8 :+ 8, 0 :+ 12]"):
                program = tg.Program.parse(f"tl 1 program wide dim m tensor X: {declared} readonly tensor Y: u16[m, 12]\n"
                                           f"kernel k grid (b: ceildiv(m, 8)) {{ {read} }}")
                self.agrees(program, lambda: [tensor("B", rows, 24, values=codes), tensor("H", rows, 12)], pairs)
        program = tg.Program.parse("tl 1 program narrow dim m tensor X: u16[m, 12] readonly tensor Y: i32[m, 48]\n"
                                   "kernel k grid (b: ceildiv(m, 8)) { view w = reinterpret(X, i4)\n"
                                   "parallel i, j in 8, 48 { Y[b * 8 + i, j] = cast(i32, w[b * 8 + i, j]) } }")
        signed = [v - 16 if v > 7 else v for code in codes for v in (code & 15, code >> 4)]
        self.agrees(program, lambda: [tensor("H", rows, 12, values=pairs), tensor("i", rows, 48)], signed)
        b = tg.Builder("wide")
        m, k = b.dim("m"), b.dim("k", divisor=4)
        x, y = b.tensor("X", u4, [m, k], read_only=True), b.tensor("Y", u16, [m, 12])
        with b.kernel("wide", [b.ceildiv(m, 8)]) as block:
            b.copy(x.reinterpret(u16)[ds(block * 8, 8), ds(0, 12)], y[ds(block * 8, 8), :])
        self.agrees(b.finish(), lambda: [tg.packed(tensor("B", rows, 24, values=codes), u4), tensor("H", rows, 12)], pairs)

    def test_parameters_that_are_types(self):
        text = ("tl 1 program typed param T in {f16, f32} dim n tensor X: T[n] readonly tensor Y: f32[n]\n"
                "kernel k grid (b: ceildiv(n, 32)) { alloc s: shared T[32] copy X[b * 32 :+ 32] -> s\n"
                "parallel i in 32 { Y[b * 32 + i] = cast(f32, s[i] + cast(T, 1)) } }")
        values = [v / 8 for v in range(N)]
        for dtype, given in ((f16, lambda: Halves(N).set(values)), (f32, lambda: floats(values))):
            self.agrees(tg.Program.parse(text, params={"T": dtype}), lambda: [given(), tensor("f", N)], [v + 1 for v in values])
            b = tg.Builder("typed", params={"T": dtype})
            chosen = b.param("T", [f16, f32])
            self.assertIs(chosen, dtype)
        # Tuned are programs that take the same arguments.
        tiled = ("tl 1 program typed param T in {f16, f32} param B in {16, 32, 64} dim n tensor X: T[n] readonly tensor Y: T[n]\n"
                 "kernel k grid (b: ceildiv(n, B)) { alloc s: shared T[B] copy X[b * B :+ B] -> s copy s -> Y[b * B :+ B] }")
        found = tg.Program.parse(tiled, params={"T": f32}).configurations("sm_80", sizes="n=100000")
        self.assertEqual({(c.values["T"], c.values["B"]) for c in found if c.us is not None}, {(f32.value, b) for b in (16, 32, 64)})
        self.assertIn("other types", next(c.refused for c in found if c.us is None))
        self.assertEqual(tg.Program.parse(text).bind(T=f32).hash, tg.Program.parse(text, params={"T": f32}).hash)


if __name__ == "__main__":
    unittest.main()
