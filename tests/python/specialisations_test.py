"""Code for parts of a range of sizes: launches of all sizes are right, and take what was made for theirs."""
import os
import re
import tempfile
import unittest

import tilegen as tg
from numbers_in_memory import Numbers

# Every element says which configuration wrote it, beside a product whose best tile depends on the rows.
GEMM = """tl 1 program gemm
param BM in {16, 64, 128}
param BN in {64, 128}
dim m
tensor A: f16[m, 256] readonly
tensor B: f16[256, 256] readonly
tensor C: f32[m, 256]
tensor T: i32[m]
kernel gemm grid (by: ceildiv(m, BM), bx: 256 // BN) {
  alloc a: shared f16[BM, 64]
  alloc b: shared f16[BN, 64]
  alloc acc: fragment f32[BM, BN]
  fill acc, 0.0f32
  pipelined ko in 0 .. 4 {
    copy A[by * BM :+ BM, ko * 64 :+ 64] -> a
    copy B[bx * BN :+ BN, ko * 64 :+ 64] -> b
    gemm a, b -> acc {transpose_b}
  }
  copy acc -> C[by * BM :+ BM, bx * BN :+ BN]
}
kernel tell grid (by: ceildiv(m, BM)) {
  parallel i in BM { T[by * BM + i] = cast(i32, BM * 1000 + BN) }
}
"""
ROWS = """tl 1 program rows
param ROWS in {1, 8}
dim m
scalar offset: i32
tensor X: f32[m, 64]
kernel k grid (b: ceildiv(m, ROWS)) {
  parallel i, j in ROWS, 64 { X[b * ROWS + i, j] = cast(f32, cast(i32, ROWS) + offset) }
}
"""


def serves(sizes, m):
    """Whether the text of a specialisation's sizes has m."""
    for interval in sizes.split(" or "):
        first, last = 0, float("inf")
        if found := re.fullmatch(r"m up to (\d+)", interval):
            last = int(found[1])
        elif found := re.fullmatch(r"m above (\d+)", interval):
            first = int(found[1]) + 1
        elif found := re.fullmatch(r"m (\d+) \.\. (\d+)", interval):
            first, last = int(found[1]), int(found[2])
        elif interval != "any m":
            raise AssertionError(interval)
        if first <= m <= last:
            return True
    return False


class Specialisations(unittest.TestCase):
    def check_gemm(self, artifact, sizes):
        parts = artifact.specialisations
        kernel = artifact.load()
        for m in sizes:
            # Small integers: sums are exact.
            a, b = Numbers("float16", m, 256), Numbers("float16", 256, 256)
            rows = [[(7 * i + 3 * j) % 5 - 2 for j in range(256)] for i in range(m)]
            weights = [[(i + 11 * j) % 3 - 1 for j in range(256)] for i in range(256)]
            a.set(v for row in rows for v in row), b.set(v for row in weights for v in row)
            c, told = Numbers("float32", m, 256), Numbers("int32", m)
            kernel(a, b, c, told)
            values = c.numbers()
            for i in {0, m // 2, m - 1}:
                want = [sum(x * y for x, y in zip(rows[i], weights[j])) for j in range(256)]
                self.assertEqual(list(values[i * 256 : (i + 1) * 256]), want)
            (part,) = [p for text, p in parts if serves(text, m)]
            values = {n: p.value for n, p in part.program.params.items()}
            self.assertEqual(set(told.numbers()), {values["BM"] * 1000 + values["BN"]})

    def test_launches_take_the_code_of_their_sizes(self):
        program = tg.Program.parse(GEMM)
        for target in ("sim:sm_80", "sim:sm_90a", "sim:gfx942"):
            artifact = program.compile(target, tune="model", sizes="m=1..16384")
            parts = artifact.specialisations
            self.assertGreaterEqual(len(parts), 2, target)
            self.assertLessEqual(len(parts), 4, target)
            for m in range(1, 400):
                self.assertEqual(sum(serves(text, m) for text, _ in parts), 1, (target, m))
            self.check_gemm(artifact, (1, 40, 300))
            # The whole shows what the largest sizes take.
            (largest,) = [p for text, p in parts if serves(text, 10**6)]
            self.assertEqual(str(artifact.program), str(largest.program))

    def test_how_many_is_the_callers(self):
        program = tg.Program.parse(GEMM)
        for most in (1, 2):
            artifact = program.compile("sm_80", tune="model", sizes="m=1..4096", specialisations=most, plan_only=True)
            self.assertLessEqual(len(artifact.specialisations), most)
        self.assertEqual(program.compile("sm_80", tune="model", sizes="m=64", plan_only=True).specialisations, [])
        for wrong in (33, 10**6):
            with self.assertRaisesRegex(tg.Error, "'specialisations' cannot be"):
                program.compile("sm_80", sizes="m=1..64", specialisations=wrong)

    def test_plans_alone(self):
        # Values as they are: a grid that does not fill the machine has another plan.
        program = tg.Program.parse(GEMM).bind(BM=64, BN=64)
        artifact = program.compile("sim:sm_90a", sizes="m=1..8192", specialisations=8)
        for _, part in artifact.specialisations:
            self.assertEqual({n: p.value for n, p in part.program.params.items()}, {"BM": 64, "BN": 64})
        self.check_gemm(artifact, (1, 65, 200))

    def test_measured_on_the_host(self):
        with tempfile.TemporaryDirectory() as records:
            options = dict(tune="measure", sizes="m=1..16", tune_records=os.path.join(records, "r"))
            artifact = tg.Program.parse(ROWS).compile("host", **options)
            self.assertEqual(len(os.listdir(options["tune_records"])), 8)  # one for each size looked at
            kernel = artifact.load()
            for m in (1, 3, 16, 50):
                x = Numbers("float32", m, 64)
                kernel(m, 2, x)
                (part,) = [p for text, p in artifact.specialisations if serves(text, m)]
                self.assertEqual(set(x.numbers()), {part.program.params["ROWS"].value + 2})

    def test_wrong_sizes_are_refused(self):
        program = tg.Program.parse(ROWS)
        for sizes, what in (("m=4..1", "expected a name"), ("m=1..", "expected a name"), ("m=..4", "expected a name"),
                            ("m=1...4", "expected a name"), ("m=-1..4", "expected a name"), ("k=1..4", "which is no dim"),
                            ("X=1..4", "which is no dim")):
            with self.assertRaisesRegex(tg.Error, what):
                program.compile("host", sizes=sizes)
        with self.assertRaisesRegex(tg.Error, "tl_tune takes one size"):
            program.configurations("sm_80", sizes="m=1..4")
        with self.assertRaisesRegex(tg.Error, "tl_measure takes one size"):
            program.measure("host", sizes="m=1..4")
        # The last of two counts; a scalar's sizes, too.
        self.assertEqual(program.compile("host", sizes="m=1..4,m=8").specialisations, [])
        self.assertEqual(len(program.compile("host", sizes="offset=1..4").specialisations), 1)

    def test_parameters_of_launches_do_not_depend_on_values(self):
        text = ROWS.replace("X: f32[m, 64]", "X: f32[m, 64 + ROWS]")
        with self.assertRaisesRegex(tg.Error, "parameters follow from compile-time parameters.*declare parameters without"):
            tg.Program.parse(text).compile("host", tune="measure", tune_count=2, sizes="m=1..64")

    @unittest.skipIf("TILEGEN_CUDA_DRIVER" not in os.environ, "no driver")
    def test_on_a_device(self):
        artifact = tg.Program.parse(GEMM).compile("cuda", tune="model", sizes="m=1..16384")
        self.assertGreaterEqual(len(artifact.specialisations), 2)
        kernel = artifact.load()
        kernel.prepare()
        texts = [text for text, _ in artifact.specialisations]
        for form in kernel.forms():
            self.assertTrue(any(form["guards"].startswith(text) for text in texts), form["guards"])


if __name__ == "__main__":
    unittest.main()
