"""Tuning by measurement: on the host for real, on a device that the fake driver stands in for, by a function, from records."""
import json
import os
import pathlib
import tempfile
import unittest

import tilegen as tg

FILL = """tl 1 program fill
param WIDTH in {1, 64, 2048}
dim m
tensor X: f32[m, 2048]
kernel k grid (b: m, c: 2048 // WIDTH) {
  parallel i in WIDTH { X[b, c * WIDTH + i] = 1.0f32 }
}
"""
GEMM = """tl 1 program gemm
param BM in {64, 128}
param BN in {64, 128}
param STAGES in {2, 3}
dim m
dim n
dim k
tensor A: f16[m, k] readonly
tensor B: f16[n, k] readonly
tensor C: f16[m, n]
kernel gemm grid (by: ceildiv(m, BM), bx: ceildiv(n, BN)) threads 128 {
  alloc As: shared f16[BM, 64]
  alloc Bs: shared f16[BN, 64]
  alloc acc: fragment f32[BM, BN]
  fill acc, 0.0f32
  pipelined ko in 0 .. ceildiv(k, 64) stages STAGES {
    copy A[by * BM :+ BM, ko * 64 :+ 64] -> As
    copy B[bx * BN :+ BN, ko * 64 :+ 64] -> Bs
    gemm As, Bs -> acc {transpose_b}
  }
  copy acc -> C[by * BM :+ BM, bx * BN :+ BN]
}
"""
SIZES = "m=512,n=512,k=256"


class Tuning(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.records = os.path.join(folder.name, "records")
        self.calls = 0

    def records_written(self):
        return sorted(pathlib.Path(self.records).glob("*"))

    def by_width(self, program):
        """Pretends that 64 is the best."""
        self.calls += 1
        width = program.params["WIDTH"].value
        if width == 1:
            raise RuntimeError("too many blocks")
        return float(width)

    def test_configurations_run_on_the_host(self):
        program = tg.Program.parse(FILL)
        found = program.configurations("host", tune="measure", sizes="m=64")
        self.assertEqual(sorted(c.values["WIDTH"] for c in found), [1, 64, 2048])
        times = [c.measured for c in found]
        self.assertEqual(times, sorted(times))
        self.assertEqual(found[-1].values["WIDTH"], 1)
        self.assertGreater(times[-1], times[0])
        self.assertEqual([c.us for c in found], [None] * 3)
        tuned = program.compile("host", tune="measure", sizes="m=64")
        self.assertNotEqual(tuned.program.params["WIDTH"].value, 1)
        slow, fast = (program.bind(WIDTH=w).measure("host", sizes="m=64") for w in (1, 2048))
        self.assertGreater(slow, fast)

    def test_a_function_measures(self):
        found = tg.Program.parse(FILL).configurations("host", measure=self.by_width)
        self.assertEqual([(c.values["WIDTH"], c.measured) for c in found], [(64, 64), (2048, 2048), (1, None)])
        self.assertIn("RuntimeError: too many blocks", found[-1].refused)
        with self.assertRaisesRegex(tg.Error, "of 3 configurations of 'fill' none can be measured for host.*ZeroDivisionError"):
            tg.Program.parse(FILL).configurations("host", measure=lambda program: 1 / 0)

    def test_times_are_remembered(self):
        program = tg.Program.parse(FILL)
        options = dict(tune_records=self.records, sizes="m=100")
        program.configurations("host", measure=self.by_width, **options)
        calls = self.calls
        self.assertGreater(calls, 0)
        program.configurations("host", measure=self.by_width, **options)
        self.assertEqual(self.calls, calls)
        # The next compilation takes the record, of any size of the bucket, and runs nothing: 64 is not the fastest.
        options["sizes"] = "m=128"
        self.assertEqual(program.compile("host", tune="measure", **options).program.params["WIDTH"].value, 64)
        (record,) = self.records_written()
        text = json.loads(record.read_text())
        self.assertEqual(text["bucket"], {"m": 128})
        self.assertEqual(text["sizes"], {"m": 100})
        self.assertEqual([c["values"]["WIDTH"] for c in text["configurations"]], [64, 2048])
        # A damaged one is left alone, and replaced.
        record.write_text("{")
        self.assertEqual(len(program.configurations("host", measure=self.by_width, **options)), 3)
        self.assertGreater(self.calls, calls)
        self.assertEqual(json.loads(record.read_text())["sizes"], {"m": 128})
        self.assertEqual(self.records_written(), [record])

    @unittest.skipIf("TILEGEN_CUDA_DRIVER" not in os.environ, "no driver")
    def test_the_best_by_the_model_run_on_a_device(self):
        program = tg.Program.parse(GEMM)
        found = program.configurations("sm_90a", tune="measure", tune_count=3, sizes=SIZES, tune_records=self.records)
        self.assertEqual(len(found), 8)
        self.assertEqual([c.measured is not None for c in found], [True] * 3 + [False] * 5)
        best_by_model = [c.values for c in program.configurations("sm_90a", sizes=SIZES)[:3]]
        for c in found[:3]:
            self.assertIn(c.values, best_by_model)
        (record,) = self.records_written()
        self.assertNotEqual(json.loads(record.read_text())["device"], "")
        again = program.compile("sm_90a", tune="measure", tune_count=3, sizes=SIZES, tune_records=self.records)
        self.assertEqual({n: p.value for n, p in again.program.params.items()}, found[0].values)


if __name__ == "__main__":
    unittest.main()
