"""Packed types through the Python binding, against Python's own arithmetic, on the host and on simulated GPUs."""
import array
import ctypes
import random
import sys
import unittest

sys.path.insert(0, __file__.rpartition("/")[0])
import tilegen as tg  # noqa: E402
from numbers_in_memory import Numbers  # noqa: E402
from tilegen import _header as h  # noqa: E402
from tilegen import ds, f16, f32, i32, u4, u8  # noqa: E402

TARGETS = ("host", "sim:sm_80", "sim:sm_90a")


def packed(name, *shape):
    """Bytes of random codes, and the same described by elements of the type."""
    bits = tg.dtype_of(name).bits
    numbers = Numbers("uint8", *shape[:-1], shape[-1] * bits // 8)
    numbers.data = array.array("B", random.randbytes(numbers.count))
    return numbers, tg.packed(numbers, name)


class Unpacked(Numbers):
    def __init__(self, *shape):
        super().__init__("uint8", *shape)
        self.dtype = "torch.uint4"


def codes(numbers, bits):
    return [byte >> at & (1 << bits) - 1 for byte in numbers.data for at in range(0, 8, bits)]


def product(weights):
    """Y[m, n] = sum over k of X[m, k] * (W[n, k] - 8) * S[k / 32, n]."""
    b = tg.Builder("product")
    m, n, k = b.dim("m"), b.dim("n"), b.dim("k", divisor=32)
    x, y = b.tensor("X", f16, [m, k], read_only=True), b.tensor("Y", f32, [m, n])
    s = b.tensor("S", f16, [k // 32, n], read_only=True)
    if weights is u4:
        w = b.tensor("W", u4, [n, k], read_only=True)
    else:
        w = b.tensor("W", u8, [n, k // 2], read_only=True)
    with b.kernel("product", [(m + 31) // 32, (n + 31) // 32], names=["by", "bx"]) as (by, bx):
        xs, scales = b.shared("xs", f16, [32, 32]), b.shared("scales", f16, [1, 32])
        ws, acc = b.fragment("ws", f16, [32, 32]), b.fragment("acc", f32, [32, 32])
        packed = b.shared("packed", u4, [32, 32]) if weights is u4 else b.shared("packed", u8, [32, 16])
        b.fill(acc, 0.0)
        with b.pipelined(0, k // 32, stages=2, name="ko") as ko:
            b.copy(x[ds(by * 32, 32), ds(ko * 32, 32)], xs)
            if weights is u4:
                b.copy(w[ds(bx * 32, 32), ds(ko * 32, 32)], packed)
            else:
                b.copy(w[ds(bx * 32, 32), ds(ko * 16, 16)], packed)
            b.copy(s[ko, ds(bx * 32, 32)], scales)
            with b.parallel(32, 32, names=["j", "p"]) as (j, p):
                if weights is u4:
                    q = b.cast(packed(j, p), i32)
                else:
                    q = b.cast(packed(j, p // 2), i32) >> b.cast(p % 2 * 4, i32) & 15
                b.store(ws, j, p, b.cast(q - 8, f16) * scales(0, j))
            b.gemm(xs, ws, acc, transpose_b=True)
        b.copy(acc, y[ds(by * 32, 32), ds(bx * 32, 32)])
    return b.finish()


class PackedTypes(unittest.TestCase):
    def test_product_of_decoded_weights(self):
        m, n, k = 37, 45, 96
        x = Numbers("float16", m, k).set(random.randint(-4, 4) for _ in range(m * k))
        s = Numbers("float16", k // 32, n).set(random.choice((0.5, 1.0, 2.0)) for _ in range(k // 32 * n))
        in_bytes, w = packed("uint4", n, k)
        q, scale = codes(in_bytes, 4), s.numbers()
        values = [(q[i] - 8) * scale[i % k // 32 * n + i // k] for i in range(n * k)]
        rows = x.numbers()
        want = [sum(rows[i * k + p] * values[j * k + p] for p in range(k)) for i in range(m) for j in range(n)]
        program = product(u4)
        self.assertIn("tensor W: u8[n, k // 2] of u4 readonly\n", str(program))
        for target in TARGETS:
            kernel = program.compile(target).load()
            for weights in (w, in_bytes):  # the dims are solved from either description
                y = Numbers("float32", m, n)
                kernel(x, y, s, weights)
                self.assertEqual(list(y.numbers()), want, target)

    def test_plans_as_what_is_written_by_hand(self):
        for target in ("sm_80", "sm_90a", "gfx942"):
            by_type, by_hand = (product(weights).compile(target) for weights in (u4, u8))
            plans = [a.section("schedule_text").split("\n", 1)[1] for a in (by_type, by_hand)]  # behind the program's hash
            self.assertEqual(plans[0], plans[1])
            self.assertEqual(by_type.code, by_hand.code)

    def test_launches_that_are_refused(self):
        kernel = product(u4).compile("host").load()
        x, y, s = Numbers("float16", 4, 32), Numbers("float32", 4, 8), Numbers("float16", 1, 8)
        kernel(x, y, s, packed("u4", 8, 32)[1])
        for wrong, words in ((packed("i4", 8, 32), "'W' is u8 of u4, the argument is i4"),
                             (packed("u4", 8, 64), "extent 1 of tensor 'W' is 32, the program says 16"),
                             (packed("float4_e2m1fn", 8, 32), "the argument is e2m1")):
            with self.assertRaisesRegex(tg.Error, words):
                kernel(x, y, s, wrong[1])
        halves = packed("u4", 8, 32)[1]
        halves.shape[1] = 33
        with self.assertRaisesRegex(tg.Error, "extent 1 of tensor 'W' is 33, and a byte holds 2 elements of u4"):
            kernel(x, y, s, halves)
        with self.assertRaisesRegex(TypeError, "has a byte for each element"):
            kernel(x, y, s, Unpacked(8, 32))

    def test_quantising(self):
        """Every type is written and read."""
        text = ("tl 1 program p dim n divisible 4 tensor X: f32[n] readonly tensor Q: {0}[n] tensor Y: f32[n]\n"
                "kernel k grid(b: ceildiv(n, 64)) {{ alloc t: shared {0}[64]\n"
                "parallel i in 64 {{ t[i] = cast({0}, X[b * 64 + i]) }}\ncopy t -> Q[b * 64 :+ 64]\n"
                "parallel i in 64 {{ Y[b * 64 + i] = cast(f32, t[i]) }} }}")
        e2m1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
        values = {"i4": list(range(-8, 8)), "u4": list(range(16)), "i2": [-2, -1, 0, 1], "u2": [0, 1, 2, 3],
                  "e2m1": e2m1 + [-v for v in e2m1], "e8m0": [2.0**e for e in (-120, -3, 0, 1, 100)]}
        for name, numbers in values.items():
            bits = tg.dtype_of(name).bits
            program = tg.Program.parse(text.format(name))
            self.assertEqual([p.codes for p in program.parameters()], [0, 0, tg.dtype_of(name).value, 0])
            for target in TARGETS:
                x, (in_bytes, q), y = Numbers("float32", 132), packed(name, 132), Numbers("float32", 132)
                x.set(random.choices(numbers, k=132))
                program.compile(target).load()(x, q, y)
                self.assertEqual(x.numbers(), y.numbers(), (name, target))
                of_code = {}
                for code, value in zip(codes(in_bytes, bits), x.numbers()):
                    self.assertEqual(of_code.setdefault(code, value), value)


class OfOtherLibraries(unittest.TestCase):
    """Values of types that the buffer protocol has no name for: as bits of others, and through DLPack."""

    def kernel(self, dtype):
        b = tg.Builder("values")
        n = b.dim("n")
        x, y = b.tensor("X", dtype, [n], read_only=True), b.tensor("Y", f32, [n])
        with b.kernel("k", b.ceildiv(n, 32)) as block:
            b.copy(x[ds(block * 32, 32)], y[ds(block * 32, 32)])
        return b.finish().compile("host").load()

    def test_bits(self):
        for dtype, code, words in (("bfloat16", "H", [0x3F80, 0xC000]), ("f16", "H", [0x3C00, 0xC000]), ("e4m3", "B", [0x38, 0xC0]),
                                   ("float8_e5m2", "B", [0x3C, 0xC0]), ("f32", "I", [0x3F800000, 0xC0000000])):
            out = array.array("f", [0, 0])
            self.kernel(dtype)(tg.reinterpret(array.array(code, words), dtype), out)
            self.assertEqual(list(out), [1, -2], dtype)
        with self.assertRaisesRegex(TypeError, "elements of u16, which have 16 bits, are no f32 of 32"):
            tg.reinterpret(array.array("H", [0]), "f32")
        with self.assertRaisesRegex(TypeError, "no bool of 8, whose values"):
            tg.reinterpret(array.array("B", [0]), "bool")
        with self.assertRaisesRegex(tg.Error, "'X' is bf16, the argument is u16"):
            self.kernel("bf16")(array.array("H", [0, 0]), out)

    def test_dlpack(self):
        class Values:
            """Of `count` elements from the second on, `step` apart; what an exporter of DLPack gives."""

            def __init__(self, words, code, bits, count, step=None, lanes=1):
                self.words, self.shape = words, (ctypes.c_int64 * 1)(count)
                self.managed = h.DLTensor(data=words.buffer_info()[0], device=h.DLDevice(1, 0), ndim=1,
                                          dtype=h.DLDataType(code, bits, lanes), shape=self.shape, byte_offset=words.itemsize)
                if step:
                    self.strides = (ctypes.c_int64 * 1)(step)
                    self.managed.strides = self.strides

            def __dlpack__(self):
                new = ctypes.pythonapi.PyCapsule_New
                new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
                return new(ctypes.addressof(self.managed), b"dltensor", None)

        words = array.array("H", [0, 0x3F80, 0xC000, 0x4040])
        for count, step, want in ((3, None, [1, -2, 3]), (2, 2, [1, 3])):
            out = array.array("f", [0] * count)
            if step is None:
                self.kernel("bf16")(Values(words, 4, 16, count), out)
                self.assertEqual(list(out), want)
            else:
                with self.assertRaisesRegex(tg.Error, "stride"):
                    self.kernel("bf16")(Values(words, 4, 16, count, step), out)
        with self.assertRaisesRegex(tg.Error, "'X' is f16, the argument is bf16"):
            self.kernel("f16")(Values(words, 4, 16, 3), out)
        for code, bits, lanes in ((5, 64, 1), (2, 16, 2)):  # complex; vectors
            with self.assertRaisesRegex(TypeError, f"no element type of libtilegen for DLPack's type {code} of {bits} bits and {lanes} lanes"):
                self.kernel("bf16")(Values(words, code, bits, 3, lanes=lanes), out)

    def test_elements_written_alone(self):
        b = tg.Builder("parts")
        n = b.dim("n")
        x, q = b.tensor("X", i32, [n, 8], read_only=True), b.tensor("Q", u4, [n, 8])
        with b.kernel("k", [n]) as row:
            codes = b.shared("codes", u4, [8])
            b.fill(codes, 1)
            with b.parallel(8) as j:
                with b.branch(x(row, j) > 5):
                    b.store(codes, j, b.cast(x(row, j), u4))
            with b.parallel(1) as j:
                b.store(codes, j + 3, b.cast(j + 9, u4))
            b.copy(codes, q[row, 0:8])
        program = b.finish()
        rows, random_numbers = 5, random.Random(7)
        values = [random_numbers.randrange(16) for _ in range(rows * 8)]
        want = [9 if i % 8 == 3 else v if v > 5 else 1 for i, v in enumerate(values)]
        for target in TARGETS:
            out = memoryview(bytearray(rows * 4)).cast("B", [rows, 4])
            program.compile(target).load()(memoryview(array.array("i", values)).cast("B").cast("i", [rows, 8]), out)
            self.assertEqual([byte >> shift & 15 for byte in out.tobytes() for shift in (0, 4)], want, target)

    def test_elements_of_tensors_written_alone(self):
        """A block writes three elements, so that bytes are of several blocks; others stay."""
        for dtype, bits in ((u4, 4), (tg.u2, 2)):
            b = tg.Builder("parts")
            n = b.dim("n", divisor=4)
            x, q = b.tensor("X", i32, [n, 3], read_only=True), b.tensor("Q", dtype, [n * 3])
            with b.kernel("k", [n]) as block:
                with b.parallel(3) as j:
                    with b.branch(x(block, j) > 5):
                        b.store(q, block * 3 + j, b.cast(x(block, j), dtype))
            program = b.finish()
            ptx = program.compile("sm_80").section("ptx")
            self.assertRegex(ptx, r"(atom|red)\.[a-z.]*and\.b32")
            self.assertRegex(ptx, r"(atom|red)\.[a-z.]*or\.b32")
            self.assertNotIn(".cas.", ptx)
            rows, random_numbers = 12, random.Random(7)
            values = [random_numbers.randrange(16) for _ in range(rows * 3)]
            before = bytes(random_numbers.randrange(256) for _ in range(rows * 3 * bits // 8))
            places = range(0, 8, bits)
            old = [byte >> shift & (1 << bits) - 1 for byte in before for shift in places]
            want = [v & (1 << bits) - 1 if v > 5 else o for v, o in zip(values, old)]
            for target in TARGETS:
                out = bytearray(before)
                program.compile(target).load()(
                    memoryview(array.array("i", values)).cast("B").cast("i", [rows, 3]), memoryview(out))
                self.assertEqual([byte >> shift & (1 << bits) - 1 for byte in out for shift in places], want, target)


if __name__ == "__main__":
    unittest.main()
