"""Compile-time parameters: the builder, the text, and binding anew."""
import unittest

import tilegen as tg


class CompileTimeParameters(unittest.TestCase):
    TEXT = """tl 1 program fill
param BM in {64, 128}
tensor X: f32[4096]
kernel fill grid (b: 4096 // BM) threads BM {
  parallel i in BM { X[b * BM + i] = 1.0f32 }
}
"""

    @staticmethod
    def build(**params):
        b = tg.Builder("fill", params=params)
        bm = b.param("BM", [64, 128])
        x = b.tensor("X", tg.f32, [4096])
        with b.kernel("fill", [4096 // bm], threads=bm, names=["b"]) as block:
            with b.parallel(bm, names=["i"]) as i:
                b.store(x, block * bm + i, 1.0)
        return b.finish()

    def test_text_and_builder_give_equal_programs(self):
        first = tg.Program.parse(self.TEXT)
        for value in (64, 128):
            bound = first.bind(BM=value)
            self.assertEqual(bound.params, {"BM": (value, (64, 128))})
            self.assertEqual(str(bound), str(self.build(BM=value)))
            self.assertEqual(bound.hash, self.build(BM=value).hash)
            self.assertEqual(bound.hash, tg.Program.parse(self.TEXT, params={"BM": value}).hash)
            self.assertEqual(bound.bind().hash, bound.hash)
            self.assertEqual(tg.Program.parse(str(bound)).hash, bound.hash)
        self.assertEqual(first.hash, first.bind(BM=64).hash)
        self.assertNotEqual(first.hash, first.bind(BM=128).hash)

    def test_refusals(self):
        first = tg.Program.parse(self.TEXT)
        for part, attempt in (("is bound to 96", lambda: first.bind(BM=96)),
                              ("it has BM", lambda: first.bind(ROWS=1)),
                              ("tl_builder_bind", lambda: self.build().bind(BM=64)),
                              ("is bound to 96", lambda: self.build(BM=96)),
                              ("it has BM", lambda: self.build(ROWS=1)),
                              ("folded in", lambda: tg.Program.parse(str(first)).bind(BM=128))):
            with self.assertRaisesRegex(tg.Error, part):
                attempt()
        for values, part in (([], "is empty"), ([8, 8], "twice"), (range(300), "more than 256")):
            b = tg.Builder("p")
            b.param("N", values)
            with self.assertRaisesRegex(tg.Error, part):
                b.finish()

    GEMM = """tl 1 program gemm
param BM in {64, 128, 256}
param BN in {32, 64, 128, 256}
param STAGES in {2, 3, 4}
param THREADS in {128, 256, 384}
dim m
dim n
dim k
tensor A: f16[m, k] readonly
tensor B: f16[n, k] readonly
tensor C: f16[m, n]
kernel gemm grid (by: ceildiv(m, BM), bx: ceildiv(n, BN)) threads THREADS {
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

    def test_configurations_are_in_the_order_of_estimates(self):
        program = tg.Program.parse(self.GEMM)
        large = program.configurations("sm_90a", sizes="m=8192,n=8192,k=8192")
        self.assertEqual(len(large), 108)
        times = [c.us for c in large if c.us is not None]
        self.assertEqual(times, sorted(times))
        # Large products want large tiles, deep pipelines and two warpgroups; products of few rows want narrow tiles.
        best = large[0].values
        self.assertEqual((best["BM"] * best["BN"], best["STAGES"], best["THREADS"]), (128 * 256, 4, 256))
        small = program.configurations("sm_90a", sizes="m=64,n=4096,k=4096")[0].values
        self.assertEqual(small["BM"], 64)
        self.assertLess(small["BN"], 128)
        self.assertAlmostEqual(program.bind(**best).compile("sm_90a", plan_only=True, sizes="m=8192,n=8192,k=8192").cost["us"], large[0].us)
        tuned = program.compile("sm_90a", plan_only=True, tune="model", sizes="m=8192,n=8192,k=8192")
        self.assertEqual(tuned.cost["us"], large[0].us)
        self.assertEqual({name: p.value for name, p in tuned.program.params.items()}, best)
        with self.assertRaisesRegex(tg.Error, "no estimates"):
            program.configurations("host")
        with self.assertRaisesRegex(tg.Error, "tl_builder_bind"):
            self.build().configurations("sm_90a")
        with self.assertRaisesRegex(tg.Error, "cannot be 'guess'"):
            program.compile("sm_90a", plan_only=True, tune="guess")

    def test_a_configuration_that_is_refused_is_last(self):
        program = tg.Program.parse(self.TEXT.replace("{64, 128}", "{64, 128, 4096}"))
        found = program.configurations("sm_90a")
        self.assertEqual([c.values["BM"] for c in found if c.us is None], [4096])
        self.assertIn("threads", found[-1].refused)
        with self.assertRaisesRegex(tg.Error, "of 2 configurations of 'fill' none can be planned for sm_90a; the first .BM 2048.: "):
            tg.Program.parse(self.TEXT.replace("{64, 128}", "{2048, 4096}")).configurations("sm_90a")


if __name__ == "__main__":
    unittest.main()
