"""The Python binding end to end on the host: build, print, parse, compile, launch, and what goes wrong."""
import array
import ctypes
import unittest
import warnings

import tilegen as tg
from tilegen import boolean, ds, f32, i32, i64

try:
    import numpy
except ImportError:
    numpy = None


def scale_program():
    b = tg.Builder("scale")
    n = b.dim("n")
    factor = b.scalar("factor", f32)
    x, y = b.tensor("X", f32, [n], read_only=True), b.tensor("Y", f32, [n])
    with b.kernel("scale", [(n + 255) // 256]) as block:
        tile = b.fragment("tile", f32, [256])
        b.copy(x[ds(block * 256, 256)], tile)
        with b.parallel(256) as i:
            b.store(tile, i, b.max(tile(i), 0.0) * factor)
        b.copy(tile, y[ds(block * 256, 256)])
    return b.finish()


# More threads than the row's elements divide between: partial results meet in shared memory.
ROWS = """tl 1 program p
dim m
tensor X: f16[m, 2048] readonly
tensor Y: f16[m, 2048]
kernel k grid (b: m) threads 768 {
  alloc x: fragment f32[1, 2048]
  alloc s: fragment f32[1]
  copy X[b :+ 1, 0 :+ 2048] -> x
  reduce x -> s {kind=sum, axis=1}
  parallel i, j in 1, 2048 { x[i, j] = x[i, j] * s[i] }
  copy x -> Y[b :+ 1, 0 :+ 2048]
}
"""


def floats(values):
    return array.array("f", values)


class Building(unittest.TestCase):
    def test_text_round_trip(self):
        program = scale_program()
        again = tg.Program.parse(str(program))
        self.assertEqual(again.hash, program.hash)
        self.assertEqual([p.name for p in program.parameters()], [b"n", b"factor", b"X", b"Y"])

    def test_scopes_and_operators(self):
        b = tg.Builder("rows")
        m = b.dim("m", divisor=4)
        x, y = b.tensor("X", f32, [m, 8]), b.tensor("Y", f32, [m])
        with b.kernel("rows", [m // 4], threads=32, names=["row"]) as row:
            tile, total = b.fragment("tile", f32, [4, 8]), b.fragment("total", f32, [4])
            b.fill(total, 1.0)
            with b.serial(0, 2) as _:
                b.copy(x[ds(row * 4, 4), 0 : 8], tile)
                b.reduce("sum", tile, total, axis=1, accumulate=True)
            b.copy(total, y[ds(row * 4, 4)])
        program = b.finish()
        x_data, y_data = memoryview(floats(range(32))).cast("B").cast("f", [4, 8]), floats([0] * 4)
        program.compile("host").load()(x_data, y_data)
        self.assertEqual(list(y_data), [1 + 2 * sum(range(8 * r, 8 * r + 8)) for r in range(4)])

    def test_cumsum(self):
        b = tg.Builder("sums")
        x, y, z = (b.tensor(name, f32, [6]) for name in "XYZ")
        with b.kernel("k", [1]):
            tile, sums = b.shared("tile", f32, [6]), b.fragment("sums", f32, [6])
            b.copy(x, tile)
            b.cumsum(tile, sums, axis=0)
            b.copy(sums, y)
            b.cumsum(tile, sums, axis=0, reverse=True)
            b.copy(sums, z)
        y_data, z_data = floats([0] * 6), floats([0] * 6)
        b.finish().compile("host").load()(floats(range(1, 7)), y_data, z_data)
        self.assertEqual(list(y_data), [1, 3, 6, 10, 15, 21])
        self.assertEqual(list(z_data), [21, 20, 18, 15, 11, 6])

    def test_an_expression_is_no_truth_value(self):
        b = tg.Builder("p")
        n = b.dim("n")
        for ask in (lambda: bool(n < 4), lambda: n == 4 and n, lambda: not n != 4, lambda: n in [b.dim("m")]):
            with self.assertRaisesRegex(TypeError, "Builder.select or Builder.branch"):
                ask()
        self.assertEqual(len({n: 0, b.dim("k"): 1, n: 2}), 2)

    def test_every_comparison_is_of_the_program(self):
        comparisons = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
                       "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
        b = tg.Builder("compare")
        n = b.dim("n")
        x = b.tensor("X", i32, [n], read_only=True)
        out = {name: b.tensor(name, boolean, [n]) for name in comparisons}
        swapped = {name: b.tensor(name + "_swapped", boolean, [n]) for name in comparisons}
        with b.kernel("compare", [(n + 63) // 64]) as block:
            with b.parallel(64) as i:
                for name, compare in comparisons.items():
                    b.store(out[name], block * 64 + i, compare(x(block * 64 + i), 3))
                    b.store(swapped[name], block * 64 + i, compare(3, x(block * 64 + i)))
        values = [i % 5 for i in range(70)]
        results = [array.array("B", bytes(70)) for _ in range(12)]
        b.finish().compile("host").load()(array.array("i", values), *(memoryview(r).cast("?") for r in results))
        for (name, compare), result, other in zip(comparisons.items(), results[:6], results[6:]):
            self.assertEqual([bool(v) for v in result], [compare(v, 3) for v in values], name)
            self.assertEqual([bool(v) for v in other], [compare(3, v) for v in values], name)

    def test_what_is_no_scalar_is_not_compared(self):
        b = tg.Builder("p")
        x = b.tensor("X", i32, [b.dim("n")])
        for compare in (lambda: x[0:4] == 3, lambda: x != 3, lambda: 3 == x, lambda: x[0:1] == x[0:1], lambda: x < 3):
            with self.assertRaisesRegex(TypeError, "one element"):
                compare()
        self.assertEqual({x: "X"}[x], "X")

    def test_a_number_that_the_type_lacks_is_refused(self):
        b = tg.Builder("p")
        n = b.dim("n")
        for use in (lambda: n < 2.5, lambda: n == float("nan"), lambda: n * 0.5):
            with self.assertRaisesRegex(TypeError, "is no i64; cast"):
                use()
        for value in (None, "4", [4], b.tensor("X", i64, [n])):
            with self.assertRaisesRegex(TypeError, "neither an expression of a tile program nor a number"):
                b.expr(value)
        self.assertIs((n == 2.0).dtype, boolean)

    def test_a_mistake_is_an_exception_with_diagnostics(self):
        b = tg.Builder("p")
        n = b.dim("n")
        with b.kernel("k", [n]):
            tile = b.fragment("t", f32, [4])
            b.copy(tile, b.fragment("u", f32, [5]))
        with self.assertRaises(tg.Error) as caught:
            b.finish()
        self.assertTrue(caught.exception.diagnostics[0].code)
        self.assertTrue(caught.exception.diagnostics[0].hint)


class Launching(unittest.TestCase):
    def test_host_and_interpreter_agree(self):
        program = scale_program()
        kernel = program.compile("host").load()
        x = floats(i - 150 for i in range(300))
        want = [max(v, 0.0) * 2.5 for v in x]
        for run in (lambda y: kernel(2.5, x, y), lambda y: kernel(None, 2.5, x, y), kernel.bind(2.5, x, z := floats([0] * 300))):
            y = floats([0] * 300)
            if isinstance(run, tg.Launch):
                run()
                y = z
            else:
                run(y)
            self.assertEqual(list(y), want)
        y = floats([0] * 300)
        program.interpret(2.5, x, y)
        self.assertEqual(list(y), want)

    def test_runs_end_when_their_time_is_over(self):
        b = tg.Builder("p")
        steps, y = b.dim("steps"), b.tensor("Y", f32, [64])
        with b.kernel("k", [1]):
            t = b.fragment("t", f32, [64])
            b.fill(t, 0.0)
            with b.serial(0, steps):
                with b.parallel(64) as i:
                    b.store(t, i, t(i) + 1.0)
            b.copy(t, y)
        program, out = b.finish(), floats([0] * 64)
        for run in (program.interpret, program.compile("host").load(), program.compile("sim:sm_80").load()):
            with self.assertRaises(tg.Error) as failed:
                run(1 << 40, out, timeout_ms=20)
            self.assertEqual(failed.exception.diagnostics[0].code, "cancelled_by_caller")
            run(3, out, timeout_ms=60000)
            self.assertEqual(out[63], 3.0)

    def test_a_wrong_argument_names_the_parameter(self):
        kernel = scale_program().compile("host").load()
        with self.assertRaisesRegex(tg.Error, "'Y'"):
            kernel(1.0, floats([1] * 8), floats([1] * 7))
        with self.assertRaises(TypeError):
            kernel(1.0)
        with self.assertRaises(TypeError):
            kernel(1.0, "text", "text")

    def test_only_what_may_be_written_is_written(self):
        class Array:  # as NumPy has them
            def __init__(self, data, read_only, typestr="<f4"):
                self.data, self.dtype = data, DType()
                self.__array_interface__ = {"version": 3, "shape": (len(data),), "typestr": typestr,
                                            "data": (data.buffer_info()[0], read_only)}

        class DType:
            name, itemsize = "float32", 4

        class CudaArray:
            def __init__(self, face): self.dtype, self.__cuda_array_interface__ = DType(), face

        program = scale_program()
        kernel = program.compile("host").load()
        x, y = floats([1, 2]), floats([0, 0])
        for run in (kernel, kernel.bind, program.interpret):
            with self.assertRaisesRegex(ValueError, "'Y' is given read-only memory"):
                run(1.0, x, Array(y, True))
            with self.assertRaisesRegex(ValueError, "'Y' is given read-only memory"):
                run(1.0, x, CudaArray(Array(y, True).__array_interface__))
            with self.assertRaisesRegex(TypeError, "'Y': a read-only buffer"):
                run(1.0, x, memoryview(y).toreadonly())
            with self.assertRaisesRegex(TypeError, "'X': .*>f4 have their bytes in the other order"):
                run(1.0, Array(x, False, ">f4"), y)
            with self.assertRaisesRegex(TypeError, "'X': .*'>f' has its bytes in the other order"):
                run(1.0, (ctypes.c_float.__ctype_be__ * 2)(), y)
        self.assertEqual(list(y), [0, 0])
        kernel(2.0, Array(x, True), (c := (ctypes.c_float * 2)()))
        self.assertEqual(list(c), [2, 4])

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_numpy_flags_and_byte_order(self):
        kernel = scale_program().compile("host").load()
        x, y = numpy.ones(8, numpy.float32), numpy.zeros(8, numpy.float32)
        y.setflags(write=False)
        for fixed in (y, y[::2], numpy.broadcast_to(numpy.float32(0), 8), numpy.frombuffer(bytes(32), numpy.float32)):
            with self.assertRaisesRegex(ValueError, "'Y' is given read-only memory"):
                kernel(1.0, x, fixed)
        y = numpy.zeros(8, numpy.float32)
        for swapped in (numpy.ones(8, ">f4"), numpy.ones(16, ">f4")[::2], x.view(x.dtype.newbyteorder())):
            with self.assertRaisesRegex(TypeError, "'X': .*in the other order"):
                kernel(1.0, swapped, y)
        x.setflags(write=False)
        kernel(numpy.float32(2.0), x, y)
        self.assertEqual(list(y), [2.0] * 8)

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_numbers_of_numpy_on_either_side(self):
        b = tg.Builder("p")
        x = b.tensor("X", i32, [b.dim("n")])
        with b.kernel("k", [1]):
            with b.parallel(4) as i:
                for e in (numpy.int32(3) == x(i), x(i) == numpy.int32(3), numpy.int64(3) > x(i), numpy.float32(3) != x(i)):
                    self.assertIs(e.dtype, boolean)
                self.assertIs((numpy.int64(3) + x(i)).dtype, i32)

    def test_sections_stages_and_schedule(self):
        program = scale_program()
        artifact = program.compile("host")
        self.assertIn("plan", artifact.stages())
        self.assertIn("kernel scale", artifact.section("schedule_text"))
        replayed = program.compile("host", schedule=artifact.schedule)
        self.assertEqual(replayed.section("thread_program"), artifact.section("thread_program"))
        self.assertEqual(artifact.code_format, "object")
        self.assertEqual(artifact.code[:4], b"\x7fELF")
        ptx = program.compile("sm_80")
        self.assertEqual((ptx.code_format, ptx.code.decode()), ("ptx", ptx.section("ptx")))
        self.assertEqual(program.compile("sim:sm_80").code_format, "")
        self.assertIsNone(artifact.fallback())
        fallback = program.compile("sm_80").fallback()
        self.assertIn("kernel scale", fallback.section("schedule_text"))
        self.assertIsNone(fallback.fallback())
        with self.assertRaises(tg.Error):
            program.compile("host", no_such_option=1)
        with self.assertRaises(tg.Error):
            program.compile("no_such_target")

    def test_estimates_and_warnings(self):
        program = tg.Program.parse(ROWS)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            artifact = program.compile("sm_90a", plan_only=True, sizes="m=512")
        self.assertEqual([w.category for w in caught], [tg.PerformanceWarning])
        self.assertIn("k/reduce#0", str(caught[0].message))
        self.assertEqual([w.code for w in artifact.warnings], ["wide_reduction"])
        self.assertEqual(artifact.cost["sizes"], {"m": 512})
        self.assertGreater(artifact.cost["us"], 0)
        self.assertIn("k/reduce#0", artifact.section("cost"))
        larger = program.compile("sm_90a", plan_only=True, sizes="m=51200")
        self.assertGreater(larger.cost["us"], 10 * artifact.cost["us"])
        self.assertIsNone(program.compile("host", plan_only=True).cost)
        for sizes, said in (("q=3", "which is no dim or integer scalar of the program .it has m"), ("m", "expected a name"), ("m=-1", "expected a name"), ("m=x", "m=x")):
            with self.assertRaisesRegex(tg.Error, said):
                program.compile("sm_90a", plan_only=True, sizes=sizes)

    def test_byte_floats_are_torchs(self):
        class Device:
            type, index = "cpu", None

        class Tensor:  # as PyTorch has them
            device = Device()

            def __init__(self, data, dtype):
                self.data, self.dtype, self.shape = data, dtype, (len(data),)

            def data_ptr(self): return self.data.buffer_info()[0]
            def stride(self): return (1,)

        b = tg.Builder("bytes")
        x, y, z = b.tensor("X", f32, [4], read_only=True), b.tensor("Y", "float8_e4m3fn", [4]), b.tensor("Z", tg.e5m2, [4])
        with b.kernel("bytes", [1]):
            tile = b.fragment("tile", tg.e4m3, [4])
            b.copy(x, tile)
            b.copy(tile, y)
            b.copy(tile, z)
        kernel = b.finish().compile("host").load()
        y_data, z_data = array.array("B", bytes(4)), array.array("B", bytes(4))
        kernel(floats([1, -1.5, 1000, 0]), Tensor(y_data, "torch.float8_e4m3fn"), Tensor(z_data, "torch.float8_e5m2"))
        self.assertEqual(list(y_data), [0x38, 0xbc, 0x7e, 0])
        self.assertEqual(list(z_data), [0x3c, 0xbe, 0x5f, 0])  # 448, which e5m2 has
        with self.assertRaisesRegex(tg.Error, "e4m3"):
            kernel(floats([1, 2, 3, 4]), Tensor(y_data, "torch.float8_e5m2"), Tensor(z_data, "torch.float8_e5m2"))

        b = tg.Builder("fnuz")  # AMD's: 240 is the largest, there is no negative zero
        x, y = b.tensor("X", "float8_e5m2fnuz", [4], read_only=True), b.tensor("Y", tg.e4m3fnuz, [4])
        with b.kernel("fnuz", [1]):
            b.copy(x, y)
        x_data = array.array("B", [0x40, 0x7f, 0x80, 0x81])  # 1, 57344, NaN, the negative number next to 0
        b.finish().compile("host").load()(Tensor(x_data, "torch.float8_e5m2fnuz"), Tensor(y_data, "torch.float8_e4m3fnuz"))
        self.assertEqual(list(y_data), [0x40, 0x7f, 0x80, 0])

    def test_integers_of_all_widths(self):
        b = tg.Builder("widths")
        tensors = [b.tensor(t.name, t, [3]) for t in (tg.i16, tg.u16, tg.u32, tg.u64)]
        with b.kernel("widths", [1]), b.parallel(3) as i:
            for tensor, largest in zip(tensors, (2**15 - 1, 2**16 - 1, 2**32 - 1, 2**64 - 1)):
                b.store(tensor, i, b.select(b.expr(largest, tensor.dtype) > tensor(i), tensor(i) // 3, largest))
        data = [array.array(kind, [9, 100, 2**bits - 1 - (kind == "h") * 2**15]) for kind, bits in zip("hHIQ", (16, 16, 32, 64))]
        b.finish().compile("host").load()(*data)
        self.assertEqual([list(d) for d in data], [[3, 33, 2**15 - 1], [3, 33, 2**16 - 1], [3, 33, 2**32 - 1], [3, 33, 2**64 - 1]])

    def test_workspaces_are_the_launchs_own(self):
        b = tg.Builder("halves")
        n, parts = b.dim("n"), b.dim("parts", 1)
        x, y = b.tensor("X", f32, [n], read_only=True), b.tensor("Y", f32, [1])
        sums = b.workspace("sums", f32, [parts])
        with b.kernel("add_up", [parts], threads=32) as part:
            tile, total = b.fragment("tile", f32, [64]), b.fragment("total", f32, [1])
            b.fill(total, 0.0)
            with b.serial(part * n // parts, (part + 1) * n // parts) as i:
                b.copy(x[i], tile[0:1])
                with b.parallel(1) as j:
                    b.store(total, j, total(j) + tile(j))
            b.copy(total, sums[part])
        with b.kernel("combine", [1], threads=32):
            total = b.fragment("all", f32, [1])
            b.fill(total, 0.0)
            with b.serial(0, parts) as part:
                with b.parallel(1) as j:
                    b.store(total, j, total(j) + sums(part))
            b.copy(total, y)
        program = b.finish()
        self.assertIn("tensor sums: f32[parts] workspace", str(program))
        self.assertEqual(tg.Program.parse(str(program)).hash, program.hash)
        self.assertEqual([p.name for p in program.parameters()], [b"n", b"parts", b"X", b"Y"])
        x_data = floats(range(50))
        for run in (program.interpret, program.compile("host").load(), program.compile("sim:sm_80").load()):
            for parts in (1, 3, 60):
                y_data = floats([0])
                run(None, parts, x_data, y_data)
                self.assertEqual(list(y_data), [sum(range(50))])
            with self.assertRaisesRegex(tg.Error, "parts.*TL_ARG_I64"):
                run(x_data, floats([0]))
            with self.assertRaisesRegex(tg.Error, "'parts' is 4611686018427387904"):
                run(None, 2**62, x_data, floats([0]))

    def test_tf32_is_a_keyword_of_gemm(self):
        b = tg.Builder("p")
        x, y = b.tensor("X", f32, [8, 8]), b.tensor("Y", f32, [8, 8])
        with b.kernel("k", [1]):
            tile, total = b.shared("tile", f32, [8, 8]), b.fragment("total", f32, [8, 8])
            b.copy(x, tile)
            b.gemm(tile, tile, total, clear=True, tf32=True)
            b.copy(total, y)
        self.assertIn("{clear, tf32}", str(b.finish()))

    def test_promote_is_a_keyword_of_gemm(self):
        b = tg.Builder("p")
        x, y = b.tensor("X", tg.e4m3, [8, 8]), b.tensor("Y", f32, [8, 8])
        with b.kernel("k", [1]):
            tile, total = b.shared("tile", tg.e4m3, [8, 8]), b.fragment("total", f32, [8, 8])
            b.copy(x, tile)
            b.gemm(tile, tile, total, clear=True, promote=True)
            b.copy(total, y)
        self.assertIn("{clear, promote}", str(b.finish()))

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_numpy_strides(self):
        b = tg.Builder("transpose")
        m, n, s = b.dim("m"), b.dim("n"), b.dim("s")
        x, y = b.tensor("X", f32, [m, n], strides=[s, 1]), b.tensor("Y", f32, [n, m])
        with b.kernel("transpose", [(m + 15) // 16, (n + 15) // 16]) as (i, j):
            tile = b.fragment("tile", f32, [16, 16])
            b.copy(x[ds(i * 16, 16), ds(j * 16, 16)], tile)
            with b.parallel(16, 16) as (r, c):
                b.store(y, j * 16 + c, i * 16 + r, tile(r, c))
        wide = numpy.random.rand(20, 50).astype(numpy.float32)
        out = numpy.zeros((33, 20), numpy.float32)
        b.finish().compile("host").load()(wide[:, :33], out)
        numpy.testing.assert_array_equal(out, wide[:, :33].T)


if __name__ == "__main__":
    unittest.main()
