"""Programs as somebody writes them in Python, in two spellings each, against plain definitions."""
import math
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import newcomers_test as written  # noqa: E402
import tilegen as tg  # noqa: E402
from newcomers_test import NVIDIA, halves, in_half, reals, sums, tensor, whole  # noqa: E402
from tilegen import boolean, ds, f16, f32, i32, i64  # noqa: E402


def moving_average(named):
    b = tg.Builder("moving_average")
    t, c = b.dim("t"), b.dim("c")
    a = b.scalar("a", f32)
    x, y = b.tensor("X", f32, [t, c], read_only=True), b.tensor("Y", f32, [t, c])
    with b.kernel("k", [b.ceildiv(c, 50)]) as q:
        s = b.fragment("s", f32, [50])
        b.fill(s, 0)
        with b.serial(t) as i:
            with b.parallel(50) as j:
                v = s(j) + a * (x(i, q * 50 + j) - s(j))
                b.store(s, j, b.let(v) if named else v)
                b.store(y, i, j + 50 * q, s(j))
    return b.finish()


def masked_softmax(named):
    b = tg.Builder("masked_softmax")
    r, c = b.dim("r"), b.dim("c", upper=200)
    x, m = b.tensor("X", f32, [r, c], read_only=True), b.tensor("M", boolean, [r, c], read_only=True)
    y = b.tensor("Y", f32, [r, c])
    with b.kernel("k", b.ceildiv(r, 3)) as block:
        t, most, total = b.fragment("t", f32, [3, 200]), b.fragment("most", f32, [3]), b.fragment("total", f32, [3])
        with b.parallel(3, 200) as (i, j):
            keep = b.let((j < c) & m(block * 3 + i, j)) if named else m(i + block * 3, j) & (j < c)
            b.store(t, i, j, b.select(keep, x(block * 3 + i, j), -math.inf))
        b.reduce("max", t, most, 1)
        with b.parallel(3, 200) as (i, j):
            b.store(t, i, j, b.select(most(i) == -math.inf, 0.0, b.exp(t(i, j) - most(i))))
        b.reduce("sum", t, total, axis=-1)
        with b.parallel(3, 200) as (i, j):
            b.store(y, block * 3 + i, j, t(i, j) / b.max(total(i), 1e-30))
    return b.finish()


def resized(rows_first):
    b = tg.Builder("resized")
    h, w, high, wide = (b.dim(name, 1) for name in ("h", "w", "high", "wide"))
    x, y = b.tensor("X", f32, [h, w], read_only=True), b.tensor("Y", f32, [high, wide])
    with b.kernel("k", [b.ceildiv(high, 9), b.ceildiv(wide, 31)]) as (p, q):
        with b.parallel(*((9, 31) if rows_first else (31, 9))) as (u, v):
            i, j = (p * 9 + u, q * 31 + v) if rows_first else (p * 9 + v, q * 31 + u)
            at_y = (b.cast(i, f32) + 0.5) * (b.cast(h, f32) / b.cast(high, f32)) - 0.5
            at_x = (b.cast(j, f32) + 0.5) * (b.cast(w, f32) / b.cast(wide, f32)) - 0.5
            y0, x0 = b.let(b.floor(at_y)), b.let(b.floor(at_x))

            def pixel(down, right):
                row, column = b.cast(y0, i64) + down, b.cast(x0, i64) + right
                return x(b.min(b.max(row, 0), h - 1), b.min(b.max(column, 0), w - 1))

            wy, wx = at_y - y0, at_x - x0
            upper, lower = (pixel(d, 0) * (1 - wx) + pixel(d, 1) * wx for d in (0, 1))
            b.store(y, i, j, upper * (1 - wy) + lower * wy)
    return b.finish()


def gelu_product(by_function):
    b = tg.Builder("gelu_product")
    m, n, k = b.dim("m"), b.dim("n", divisor=8), b.dim("k", divisor=8)
    a, w, c = b.tensor("A", f16, [m, k], read_only=True), b.tensor("W", f16, [n, k], read_only=True), b.tensor("C", f32, [m, n])
    gelu = b.function("gelu", [f32], lambda v: v * b.sigmoid(1.702 * v))
    with b.kernel("g", [b.ceildiv(m, 96), b.ceildiv(n, 80)], threads=192, raster="column_major") as (y, x):
        rows, columns, acc = b.shared("rows", f16, [96, 32], padding=8), b.shared("columns", f16, [80, 32]), b.fragment("acc", f32, [96, 80])
        b.fill(acc, 0)
        with b.pipelined(b.ceildiv(k, 32), stages=2) as t:
            b.copy(a[ds(y * 96, 96), ds(t * 32, 32)], rows, cache="evict_first")
            b.copy(w[ds(x * 80, 80), ds(t * 32, 32)], columns)
            b.gemm(rows, columns, acc, transpose_b=True, policy="full_row")
        with b.parallel(96, 80) as (i, j):
            b.store(acc, i, j, gelu(acc(i, j)) if by_function else acc(i, j) * b.sigmoid(acc(i, j) * 1.702))
        b.copy(acc, c[ds(y * 96, 96), ds(x * 80, 80)])
    return b.finish()


def kth_smallest(sorts):
    b = tg.Builder("kth_smallest")
    r, k = b.dim("r"), b.scalar("k", i32)
    x, y = b.tensor("X", i32, [r, 37], read_only=True), b.tensor("Y", i32, [r])
    with b.kernel("kth", [r]) as row:
        with b.branch((k < 0) | (k >= 10)):
            with b.parallel(1):
                b.store(y, row, -1)
            b.leave_kernel()
        t, least = b.shared("t", i32, [37]), b.shared("least", i32, [37 if sorts else 10])
        b.copy(x[row], t)
        b.sort(t, least, 0) if sorts else b.top_k(t, least, 0, smallest=True)
        with b.parallel(1):
            b.store(y, row, least(b.cast(k, i64)))
    return b.finish()


class InPython(unittest.TestCase):
    setUp, agree = written.Newcomers.setUp, written.Newcomers.agree

    def test_moving_average(self):
        t, c = 20, 73
        x, want, s = reals(t * c), [], [0.0] * c
        for i in range(t):
            s = [v + 0.25 * (x[i * c + j] - v) for j, v in enumerate(s)]
            want += s
        self.agree("moving_average", map(moving_average, (0, 1)), lambda: [0.25, tensor("f", t, c, values=x), tensor("f", t, c)], {2: want}, 1e-5)

    def test_masked_softmax(self):
        r, c = 7, 133
        x, mask, want = reals(r * c, 4), whole(r * c, 0, 1), []
        mask[2 * c:3 * c] = [0] * c
        for i in range(r):
            row = [x[i * c + j] if mask[i * c + j] else -math.inf for j in range(c)]
            e = [0 if max(row) == -math.inf else math.exp(v - max(row)) for v in row]
            want += [v / max(sum(e), 1e-30) for v in e]
        self.agree("masked_softmax", map(masked_softmax, (0, 1)),
                   lambda: [tensor("f", r, c, values=x), memoryview(bytearray(mask)).cast("?", (r, c)), tensor("f", r, c)], {2: want}, 1e-5)

    def test_resized(self):
        h, w, high, wide = 7, 10, 20, 33
        x, want = reals(h * w), []
        for i in range(high):
            for j in range(wide):
                y, z = (i + 0.5) * (h / high) - 0.5, (j + 0.5) * (w / wide) - 0.5
                a, c = math.floor(y), math.floor(z)
                at = lambda d, e: x[min(max(a + d, 0), h - 1) * w + min(max(c + e, 0), w - 1)] * abs(1 - d - y + a) * abs(1 - e - z + c)
                want.append(at(0, 0) + at(0, 1) + at(1, 0) + at(1, 1))
        self.agree("resized", map(resized, (1, 0)), lambda: [tensor("f", h, w, values=x), tensor("f", high, wide)], {1: want}, 1e-4)

    def test_gelu_product(self):
        m, n, k = 101, 88, 72
        a, w = in_half(m * k), in_half(n * k)
        dots = sums([a[i * k + t] * w[j * k + t] for t in range(k)] for i in range(m) for j in range(n))
        self.agree("gelu_product", map(gelu_product, (0, 1)), lambda: [halves(m, k, values=a), halves(n, k, values=w), tensor("f", m, n)],
                   {2: [v / (1 + math.exp(-1.702 * v)) for v in dots]}, 2e-3, executors=NVIDIA)

    def test_kth_smallest(self):
        x = whole(5 * 37, -50, 50)
        for k in (3, 12):
            want = [sorted(x[i * 37:(i + 1) * 37])[k] if k < 10 else -1 for i in range(5)]
            self.agree("kth_smallest", map(kth_smallest, (0, 1)), lambda: [k, tensor("i", 5, 37, values=x), tensor("i", 5)], {2: want}, plans=False)


if __name__ == "__main__":
    unittest.main()
