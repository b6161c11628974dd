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


if __name__ == "__main__":
    unittest.main()
