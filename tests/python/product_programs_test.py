"""The products of bench/gpu/product_programs.py, and gemm of programs.py, against their definitions.
product_programs_test.py SOURCE"""
import math
import pathlib
import random
import sys
import unittest

import tilegen as tg
from numbers_in_memory import Numbers
from references import EXECUTORS, ROUNDING, absolute, flat, run, times_transposed, transposed, worst

if len(sys.argv) < 2:
    sys.exit(__doc__)
sys.path.append(str(pathlib.Path(sys.argv.pop(1)) / "bench" / "gpu"))
import product_programs  # noqa: E402
import programs  # noqa: E402

TYPES = {"float16": tg.f16, "bfloat16": tg.bf16, "float32": tg.f32, "float8_e4m3fn": tg.e4m3, "uint8": tg.u8, "int32": tg.i32}


class Products(unittest.TestCase):
    def expect(self, program, executors, result, want, sizes, bound, *before, after=()):
        """The program, given `before`, the result and `after`, makes it `want`, within a part of `sizes`."""
        want, sizes = list(flat(want)), list(flat(sizes))
        for executor in executors:
            with self.subTest(executor=executor):
                result.set([math.nan] * result.count)
                run(program, executor, *before, result, *after)
                if want:
                    self.assertLess(worst(result.numbers(), want, sizes), bound)

    def test_gemm(self):
        for m, n, k, dtype, transpose_a, transpose_b in ((70, 50, 90, "float16", False, True), (1, 130, 33, "bfloat16", False, False),
                                                         (64, 64, 64, "float16", True, False), (129, 1, 1, "float16", True, True),
                                                         (5, 9, 0, "float16", False, True)):
            random.seed(m)
            a = Numbers(dtype, *((k, m) if transpose_a else (m, k))).random()
            b = Numbers(dtype, *((n, k) if transpose_b else (k, n))).random()
            rows = (transposed(a.matrices()) if transpose_a else a.matrices()) if k else [[]] * m
            columns = (b.matrices() if transpose_b else transposed(b.matrices())) if k else [[]] * n
            program = programs.gemm(TYPES[dtype], tg.f32, TYPES[dtype], (64, 64, 32), 128, 3, transpose_b, None, transpose_a)
            self.expect(program, EXECUTORS, Numbers(dtype, m, n), times_transposed(rows, columns),
                        times_transposed(absolute(rows), absolute(columns)), 1.1 * ROUNDING[dtype], a, b)

    def test_gemv(self):
        for n, k, dtype in ((70, 300, "float16"), (1, 1, "bfloat16"), (33, 513, "float16")):
            random.seed(n)
            w, x = Numbers(dtype, n, k).random(), Numbers(dtype, k).random()
            program = product_programs.gemv(TYPES[dtype], (16, 256), 128)
            self.expect(program, EXECUTORS, Numbers("float32", n), times_transposed(w.matrices(), [list(x.numbers())]),
                        times_transposed(absolute(w.matrices()), absolute([x.numbers()])), k * ROUNDING["float32"], w, x)

    def test_grouped_gemm(self):
        for sizes, n, k, dtype, transpose_b, tile in (([40, 0, 64, 1, 70], 72, 40, "float16", True, (64, 64, 32)),
                                                      ([3, 5], 16, 64, "bfloat16", False, (64, 32, 64)),
                                                      ([128], 64, 48, "float16", False, (64, 64, 32)), ([0, 0], 8, 8, "float16", True, (64, 64, 32))):
            random.seed(n)
            total, groups = sum(sizes), len(sizes)
            a = Numbers(dtype, total, k).random()
            b = Numbers(dtype, groups, *((n, k) if transpose_b else (k, n))).random()
            ends = [sum(sizes[:g]) for g in range(groups + 1)]
            want, scale = [], []
            for g in range(groups):
                rows = a.matrices()[ends[g] : ends[g + 1]]
                columns = b.matrices()[g] if transpose_b else transposed(b.matrices()[g])
                want += times_transposed(rows, columns)
                scale += times_transposed(absolute(rows), absolute(columns))
            program = product_programs.grouped_gemm(TYPES[dtype], TYPES[dtype], tile, 128, 2, transpose_b)
            self.expect(program, EXECUTORS, Numbers(dtype, total, n), want, scale, 1.1 * ROUNDING[dtype], groups, total, max(sizes), n, k,
                        a, b, Numbers("int32", groups + 1).set(ends))

    def test_block_scaled_gemm(self):
        for m, n, k, tile in ((70, 144, 272, (64, 128)), (33, 65, 128, (64, 64)), (1, 300, 129, (64, 256))):
            random.seed(m)
            a, b = (Numbers("float8_e4m3fn", rows, k).random(-8.0, 8.0) for rows in (m, n))
            blocks = -(-k // 128)
            sa, sb = Numbers("float32", blocks, m).random(0.01, 1.0), Numbers("float32", -(-n // 128), blocks).random(0.01, 1.0)
            scales_a, scales_b = sa.matrices(), sb.matrices()
            rows = [[x * scales_a[j // 128][i] for j, x in enumerate(row)] for i, row in enumerate(a.matrices())]
            columns = [[x * scales_b[i // 128][j // 128] for j, x in enumerate(row)] for i, row in enumerate(b.matrices())]
            program = product_programs.block_scaled_gemm(tg.e4m3, tile, 256 if tile[1] > 128 else 128, 2)
            self.expect(program, EXECUTORS, Numbers("bfloat16", m, n), times_transposed(rows, columns),
                        times_transposed(absolute(rows), absolute(columns)), 1.1 * ROUNDING["bfloat16"], a, b, sa, sb)

    def test_int4_gemm(self):
        for m, n, k, word, tile, group in ((20, 72, 256, "uint8", (16, 64, 64), 128), (70, 40, 128, "int32", (64, 64, 64), 64),
                                           (1, 65, 256, "int32", (16, 64, 128), 64)):
            random.seed(m)
            per_word = 2 if word == "uint8" else 8
            x = Numbers("float16", m, k).random()
            w = Numbers(word, n, k // per_word).random(*((0, 255) if word == "uint8" else (-(2**31), 2**31 - 1)))
            s = Numbers("float16", k // group, n).random(0.1, 1.0)
            codes = [[word_ >> 4 * i & 15 for word_ in row for i in range(per_word)] for row in w.matrices()]
            scales = s.matrices()
            decoded = [[(q - 8) * scales[j // group][i] for j, q in enumerate(row)] for i, row in enumerate(codes)]
            program = product_programs.int4_gemm(tile, 128, 2, TYPES[word], group)
            # Decoded weights are rounded, and so is the result.
            self.expect(program, EXECUTORS, Numbers("float16", m, n), times_transposed(x.matrices(), decoded),
                        times_transposed(absolute(x.matrices()), absolute(decoded)), 2.1 * ROUNDING["float16"], x, w, s)

    def test_sparse_gemm(self):
        for m, n, k, dtype, tile, threads in ((70, 40, 256, "float16", (64, 64, 128), 128), (130, 72, 128, "bfloat16", (128, 64, 128), 256),
                                              (1, 9, 64, "float16", (64, 64, 64), 128)):
            random.seed(m)
            v, x = Numbers(dtype, m, k // 2).random(), Numbers(dtype, n, k).random()
            places = [[sorted(random.sample(range(4), 2)) for _ in range(k // 4)] for _ in range(m)]
            words = [sum((first | second << 2) << 4 * i for i, (first, second) in enumerate(row[at : at + 4]))
                     for row in places for at in range(0, k // 4, 4)]
            rows = [[0.0] * k for _ in range(m)]
            for i, values in enumerate(v.matrices()):
                for j, value in enumerate(values):
                    rows[i][j // 2 * 4 + places[i][j // 2][j % 2]] = value
            program = product_programs.sparse_gemm(TYPES[dtype], TYPES[dtype], tile, threads, 2)
            self.expect(program, EXECUTORS, Numbers(dtype, m, n), times_transposed(rows, x.matrices()),
                        times_transposed(absolute(rows), absolute(x.matrices())), 1.1 * ROUNDING[dtype], v, Numbers("uint16", m, k // 16).set(words), x)

    def test_codes_of_a_packed_type_are_those_of_bytes(self):
        for tile, threads, stages in (((16, 64, 256), 128, 4), ((64, 64, 128), 128, 4), ((256, 128, 64), 256, 3)):
            in_bytes, packed = (product_programs.int4_gemm(tile, threads, stages, word).compile("sm_90a") for word in (tg.u8, tg.u4))
            self.assertEqual(packed.code, in_bytes.code)

    def test_conv2d(self):
        for (images, h, w, c, f), dtype, tile, kernel, pad in (((2, 9, 11, 24, 40), "float16", ((1, 4, 16), 64, 32), (3, 3), (1, 1)),
                                                               ((1, 5, 20, 16, 8), "bfloat16", ((2, 4, 8), 32, 16), (1, 1), (0, 0)),
                                                               ((1, 7, 6, 8, 16), "float16", ((1, 2, 32), 32, 16), (5, 3), (0, 2)),
                                                               ((3, 5, 7, 16, 16), "float16", ((2, 8, 4), 64, 64), (3, 3), (1, 1))):
            random.seed(h)
            (kh, kw), (ph, pw) = kernel, pad
            x, weights = Numbers(dtype, images, h, w, c).random(), Numbers(dtype, f, kh, kw, c).random()
            pixels, taps, rows = x.matrices(), [list(flat(filter_)) for filter_ in weights.matrices()], []
            out_h, out_w = h + 2 * ph - kh + 1, w + 2 * pw - kw + 1
            for image in pixels:
                for i in range(out_h):
                    for j in range(out_w):
                        rows.append([v for r in range(kh) for s in range(kw)
                                     for v in (image[i + r - ph][j + s - pw] if 0 <= i + r - ph < h and 0 <= j + s - pw < w else [0.0] * c)])
            program = product_programs.conv2d(TYPES[dtype], tile, 128, 2, kernel, pad)
            self.expect(program, EXECUTORS, Numbers(dtype, images, out_h, out_w, f), times_transposed(rows, taps),
                        times_transposed(absolute(rows), absolute(taps)), 1.1 * ROUNDING[dtype], x, weights)


class NarrowAttention(unittest.TestCase):
    """attention of 8-bit floats."""

    def test_against_float64(self):
        for queries, keys, dim, causal in ((70, 96, 64, False), (64, 80, 128, True)):
            random.seed(keys)
            q, k, v = (Numbers("float8_e4m3fn", 1, 1, *shape).random(-4.0, 4.0) for shape in ((queries, dim), (keys, dim), (dim, keys)))
            scale, weights = 1 / math.sqrt(dim) / 4, []
            for i, row in enumerate(times_transposed(q.matrices()[0][0], k.matrices()[0][0])):
                row = [math.exp(x * scale) if not causal or j <= i + keys - queries else 0.0 for j, x in enumerate(row)]
                weights.append([x / sum(row) for x in row])
            values = v.matrices()[0][0]
            o = Numbers("bfloat16", 1, 1, queries, dim)
            program = programs.attention(tg.e4m3, dim, (64, 64), 128, 2, causal, out_dtype=tg.bf16)
            for executor in EXECUTORS:
                with self.subTest(executor=executor):
                    o.set([math.nan] * o.count)
                    run(program, executor, scale * math.log2(math.e), q, k, v, o)
                    error = worst(o.numbers(), flat(times_transposed(weights, values)), flat(times_transposed(weights, absolute(values))))
                    self.assertLess(error, ROUNDING["float8_e4m3fn"] + 2 * ROUNDING["bfloat16"])  # each weight is rounded


unittest.main()
