"""The row programs of bench/gpu/programs.py against their definitions.   row_programs_test.py SOURCE"""
import math
import pathlib
import random
import sys
import unittest

import tilegen as tg
from numbers_in_memory import Halves, floats

if len(sys.argv) < 2:
    sys.exit(__doc__)
sys.path.append(str(pathlib.Path(sys.argv.pop(1)) / "bench" / "gpu"))
import programs  # noqa: E402

TARGETS = ("host", "sim:sm_80", "sim:sm_90a")


class RowPrograms(unittest.TestCase):
    def close(self, got, want, bound):
        self.assertEqual(len(got), len(want))
        self.assertLess(max(abs(a - b) for a, b in zip(got, want)), bound)

    def test_residual_rmsnorm(self):
        rows, cols = 5, 256
        random.seed(1)
        x, r, gamma = Halves(rows, cols).random(), Halves(rows, cols).random(), Halves(cols).random()
        sums = [a + b for a, b in zip(x.numbers(), r.numbers())]
        want = []
        for i in range(rows):
            row = sums[i * cols : (i + 1) * cols]
            scale = 1 / math.sqrt(sum(v * v for v in row) / cols + 1e-5)
            want += [v * scale * g for v, g in zip(row, gamma.numbers())]
        for target in TARGETS:
            with self.subTest(target=target):
                s, y = Halves(rows, cols), Halves(rows, cols)
                programs.residual_rmsnorm(cols, 64).compile(target).load()(x, r, gamma, s, y)
                self.close(s.numbers(), sums, 2e-3)
                self.close(y.numbers(), want, 4e-3)

    def test_rotary(self):
        rows, heads, dim = 3, 4, 64
        half = dim // 2
        random.seed(2)
        x = Halves(rows, heads, dim).random()
        (c, cosines), (s, sines) = floats(rows, half), floats(rows, half)
        for i in range(rows):
            for j in range(half):
                angle = i * 10000 ** (-j / half) + 0.3
                c[i * half + j], s[i * half + j] = math.cos(angle), math.sin(angle)
        numbers, want = x.numbers(), []
        for i in range(rows):
            for h in range(heads):
                head = numbers[(i * heads + h) * dim :][:dim]
                turn = list(zip(head[:half], head[half:], c[i * half : (i + 1) * half], s[i * half : (i + 1) * half]))
                want += [a * p - b * q for a, b, p, q in turn] + [b * p + a * q for a, b, p, q in turn]
        for target in TARGETS:
            with self.subTest(target=target):
                y = Halves(rows, heads, dim)
                programs.rotary(heads, dim, 64).compile(target).load()(x, y, cosines, sines)
                self.close(y.numbers(), want, 2e-3)


unittest.main()
