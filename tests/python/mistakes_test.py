"""What is said of programs as they are first written in Python, and what numbers, one extent and one end stand for."""
import unittest

import tilegen as tg
from tilegen import f16, f32, i64


class Mistakes(unittest.TestCase):
    def test_words(self):
        def in_loop(body):
            def build(b, x, t, n):
                with b.parallel(8) as i:
                    body(b, x, t, i)
            return build

        for body, error, words in (
                (lambda b, x, t, n: b.parallel(n), TypeError, r"extent of a parallel loop is a constant, and n is known at launch only; cut it"),
                (lambda b, x, t, n: b.parallel(4, n + 1), TypeError, r"and n \+ 1 is known at launch only"),
                (lambda b, x, t, n: b.parallel(1.5), TypeError, r"extent of a parallel loop is an integer, not float"),
                (lambda b, x, t, n: b.threads(n), TypeError, r"they multiply to the kernel's threads"),
                (lambda b, x, t, n: b.shared("s", f32, [4, n]), TypeError, r"extent of the tile 's' is a constant.*loop over the parts"),
                (lambda b, x, t, n: b.serial(0, n, step=n), TypeError, r"the step of a loop is a constant"),
                (lambda b, x, t, n: b.serial(n, 0, step=-1), ValueError, r"step -1, expected at least 1; count upwards"),
                (lambda b, x, t, n: b.copy(t, 3.0), TypeError, r"an operation takes tensors, tiles and boxes of them, not float"),
                (lambda b, x, t, n: b.reduce("median", t, t, 0), ValueError, r"no kind of reduction 'median'; it is one of sum, max"),
                (lambda b, x, t, n: b.gemm(t, t, t, policy="rows"), ValueError, r"no warp policy 'rows'; it is one of square, full_row"),
                (lambda b, x, t, n: b.reduce("sum", t, t, -3), ValueError, r"axis -3 of a region of 1 dimensions"),
                (lambda b, x, t, n: list(t), TypeError, r"not iterated over while it is built; loop with b.parallel"),
                (lambda b, x, t, n: t + 1.0, TypeError, r"a buffer of a tile program has no arithmetic.*buffer\(i, j\) is one"),
                (in_loop(lambda b, x, t, i: 2.0 * t[i]), TypeError, r"a region of a tile program has no arithmetic"),
                (in_loop(lambda b, x, t, i: t.__setitem__(i, 1.0)), TypeError, r"an element is stored by b.store"),
                (in_loop(lambda b, x, t, i: b.store(x, i, t[i])), TypeError, r"Region is neither an expression .* buffer\(i, j\) is one element"),
                (in_loop(lambda b, x, t, i: b.store(x, i, 1 if i == 0 else 2)), TypeError, r"no truth value.*Builder.select")):
            b = tg.Builder("mistakes")
            n = b.dim("n")
            x = b.tensor("X", f32, [n])
            with self.subTest(words), self.assertRaisesRegex(error, words):
                with b.kernel("k", [1], threads=32):
                    body(b, x, b.fragment("t", f32, [8]), n)

    def test_the_library_names_the_line(self):
        b = tg.Builder("mistakes")
        x, y = b.tensor("X", f32, [8]), b.tensor("Y", f16, [8])
        with b.kernel("k", 1):
            with b.parallel(8) as i:
                b.store(y, i, x(i) + 1.0)  # of two types
        with self.assertRaisesRegex(tg.Error, "holds f16, the value is f32") as caught:
            b.finish()
        first = caught.exception.diagnostics[0]
        with open(first.file) as source:
            self.assertIn("# of two types", source.readlines()[first.line - 1])


class Plain(unittest.TestCase):
    def text(self, body, shape=(8,)):
        b = tg.Builder("plain")
        n = b.dim("n")
        x = b.tensor("X", f32, shape)
        with b.kernel("k", n, names=["b"]):
            body(b, x, n)
        return str(b.finish())

    def test_one_for_a_list(self):
        self.assertEqual(self.text(lambda b, x, n: b.fill(x, 0), 8), self.text(lambda b, x, n: b.fill(x, 0)))
        self.assertIn("alloc t: local f32[4]", self.text(lambda b, x, n: b.fill(b.local("t", f32, 4), 0)))

    def test_numbers_on_the_left(self):
        def body(b, x, n):
            with b.parallel(8, names=["i"]) as i:
                v = x(i)
                b.store(x, i, b.max(0, v) + b.pow(2, v) + 1 / (3 - 2 * v) + b.fma(2, v, 1) + b.select(4 <= i, 1, v) + b.sqrt(4.0))
                b.store(x, i, b.select(True, b.cast(7 // (i + 1) % 5, f32), 2.0) + b.cast(b.min(3, i) << 1, f32))
        text = self.text(body)
        for part in ("max(0.0f32, X[i])", "pow(2.0f32, X[i])", "1.0f32 / (3.0f32 - 2.0f32 * X[i])", "fma(2.0f32, X[i], 1.0f32)",
                     "select(4 <= i, 1.0f32, X[i])", "+ 2.0f32", "cast(f32, 7 // (i + 1) % 5)", "min(3, i) << 1"):
            self.assertIn(part, text.replace("i >= 4", "4 <= i"))

    def test_choices_of_numbers_are_numbers(self):
        """They have the type of what they are combined with or stored to, as in .tl; no type of their own is left in the text."""
        def body(b, x, n):
            with b.parallel(8, names=["i"]) as i:
                chosen = b.select(i < 3, 1, 0)
                b.store(x, i, chosen)
                b.store(x, i, chosen * 0.5 + x(i) * -b.select(i == 1, 2, b.max(b.select(i > 4, 3, 4), 1.5)))
                b.store(x, i, b.cast(i + chosen, f32) + b.select(chosen == 1, b.pow(7, 2), b.fma(1, 2, 3)))
                b.store(x, i, b.cast(chosen, f32))
        text = self.text(body)
        for part in ("X[i] = select(i < 3, 1.0f32, 0.0f32)", "select(i < 3, 1.0f32, 0.0f32) * 0.5f32", "max(select(4 < i, 3.0f32, 4.0f32), 1.5f32)",
                     "cast(f32, i + select(i < 3, 1, 0))", "select(select(i < 3, 1, 0) == 1, ", "X[i] = cast(f32, select(i < 3, 1, 0))"):
            self.assertIn(part, text)
        for found in (tg.f16, tg.bf16, tg.i8, tg.u32):
            b = tg.Builder("typed")
            y = b.tensor("Y", found, 8)
            with b.kernel("k", 1):
                with b.parallel(8, names=["i"]) as i:
                    b.store(y, i, y(i) + b.select(i < 3, 1, 0))
            self.assertIn("select(i < 3, 1", str(b.finish()))

        def sliced(b, x, n):
            first = b.select(n < 3, 1, 0)
            b.fill(x[first : first + 4], 0)
            b.fill(x[n + first : first + 4 + n], 0)
        self.assertEqual(self.text(sliced).count(" :+ 4], 0.0f32"), 2)

        def pointed(b, x, n):
            with b.parallel(8) as i:
                b.store(x, i, b.cast(i + b.select(i < 3, 1.5, 0), f32))
        with self.assertRaisesRegex(TypeError, "1.5 is no i64"):
            self.text(pointed)
        with self.assertRaisesRegex(TypeError, "neither an expression"):
            self.text(lambda b, x, n: b.select(n < 3, "1", 0))

    def test_loops_count_as_range_does(self):
        def loops(kind, *range_, **keywords):
            def body(b, x, n):
                range_of = [n if r == "n" else r for r in range_]
                with getattr(b, kind)(*range_of, name="i", **keywords) as i:
                    with b.parallel(8, names=["j"]) as j:
                        b.store(x, j, b.cast(i, f32))
            return self.text(body)
        for kind in ("serial", "unroll", "pipelined"):
            end = 8 if kind == "unroll" else "n"
            self.assertIn(f"{kind} i in 0 .. {end} {{", loops(kind, end))
            self.assertEqual(loops(kind, end), loops(kind, 0, end, step=1))
        stepped = loops("serial", 2, "n", step=4)
        self.assertIn("serial i in 0 .. (n + 1) // 4 {", stepped)
        self.assertIn("cast(f32, 2 + i * 4)", stepped.replace("i * 4 + 2", "2 + i * 4"))
        self.assertIn("unroll i in 0 .. 3 {", loops("unroll", 1, 11, step=4))


if __name__ == "__main__":
    unittest.main()
