"""The programs of bench/gpu/scan_programs.py against recurrences in float64.   scan_programs_test.py SOURCE"""
import math
import pathlib
import random
import sys
import unittest

import tilegen as tg
from numbers_in_memory import Numbers
from references import EXECUTORS, ROUNDING, flat, run, worst

if len(sys.argv) < 2:
    sys.exit(__doc__)
sys.path.append(str(pathlib.Path(sys.argv.pop(1)) / "bench" / "gpu"))
import scan_programs  # noqa: E402

TYPES = {"float16": tg.f16, "bfloat16": tg.bf16}
SIZES = (64, 64, 32)  # places of a chunk, numbers of a head and of a state's row
CHUNK, HEAD, STATE = SIZES


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


class Mamba(unittest.TestCase):
    """y = C s + D x of the states s = e^(dt A) s + dt x B^T, place by place."""

    def inputs(self, dtype, batch, chunks, heads):
        random.seed(chunks)
        self.batch, self.chunks, self.heads, self.length = batch, chunks, heads, chunks * CHUNK
        self.x = Numbers(dtype, batch, self.length, heads, HEAD).random()
        self.b, self.c = (Numbers(dtype, batch, self.length, STATE).random(-0.5, 0.5) for _ in range(2))
        self.d = Numbers(dtype, heads).random()

    def walk(self, step, decay):
        """(outputs in the order of O, their sizes, states before each chunk, their sizes, what each chunk adds), the
        states as [batch][chunk][head][number][state]. step(s, h, i), decay(s, h, i): dt, and the factor of the state."""
        x, b, c, d = self.x.matrices(), self.b.matrices(), self.c.matrices(), self.d.numbers()
        outputs, sizes = ([[[None] * self.heads for _ in range(self.length)] for _ in range(self.batch)] for _ in range(2))
        before, before_sizes, added = ([[[None] * self.heads for _ in range(self.chunks)] for _ in range(self.batch)] for _ in range(3))
        for s in range(self.batch):
            for h in range(self.heads):
                state, size, own = ([[0.0] * STATE for _ in range(HEAD)] for _ in range(3))
                for i in range(self.length):
                    if i % CHUNK == 0:
                        before[s][i // CHUNK][h], before_sizes[s][i // CHUNK][h] = [list(r) for r in state], [list(r) for r in size]
                        own = [[0.0] * STATE for _ in range(HEAD)]
                    factor, dt, bs = decay(s, h, i), step(s, h, i), b[s][i]
                    for p, value in enumerate(x[s][i][h]):
                        value *= dt
                        state[p] = [factor * y + value * z for y, z in zip(state[p], bs)]
                        size[p] = [factor * y + abs(value * z) for y, z in zip(size[p], bs)]
                        own[p] = [factor * y + value * z for y, z in zip(own[p], bs)]
                    cs = c[s][i]
                    outputs[s][i][h] = [dot(cs, r) + d[h] * y for r, y in zip(state, x[s][i][h])]
                    sizes[s][i][h] = [dot(map(abs, cs), r) + abs(d[h] * y) for r, y in zip(size, x[s][i][h])]
                    if i % CHUNK == CHUNK - 1:
                        added[s][i // CHUNK][h] = own
        return outputs, sizes, before, before_sizes, added

    def whole(self, executors, dtype, batch, chunks, heads, way):
        self.inputs(dtype, batch, chunks, heads)
        dt = Numbers("float32", batch, heads, chunks, CHUNK).random(0.0, 0.1)
        a = Numbers("float32", heads).random(-4.0, -0.5)
        steps, rates = dt.matrices(), a.numbers()
        step = lambda s, h, i: steps[s][h][i // CHUNK][i % CHUNK]
        want, sizes, *_ = self.walk(step, lambda s, h, i: math.exp(step(s, h, i) * rates[h]))
        o = Numbers(dtype, batch, self.length, heads, HEAD)
        program = scan_programs.mamba({"bm": 64, "bk": 32, "threads": 128, "stages": 2, "way": way},
                                      {"bk": 32, "threads": 128, "stages": 2, "way": way}, SIZES, TYPES[dtype], (16, STATE))
        for executor in executors:
            with self.subTest(executor=executor):
                o.set([math.nan] * o.count)
                run(program, executor, self.x, dt, a, self.b, self.c, self.d, o)
                # Weights, CB, states and the result are rounded.
                self.assertLess(worst(o.numbers(), flat(want), flat(sizes)), 5 * ROUNDING[dtype])

    def test_whole(self):
        self.whole(EXECUTORS, "float16", 1, 3, 2, "shared")
        self.whole(("host", "sim:sm_90a"), "bfloat16", 2, 1, 1, "direct")

    def test_its_two_kernels(self):
        """chunk_state and chunk_scan, given what the others make."""
        self.inputs("float16", 1, 2, 2)
        dt = Numbers("float16", 1, 2, 2, CHUNK).random(0.0, 0.1)
        steps = dt.matrices()
        da = Numbers("float16", 1, 2, 2, CHUNK)
        da.set(v for h in range(2) for row in steps[0][h] for v in [-sum(row[: i + 1]) for i in range(CHUNK)])
        sums = da.matrices()
        step = lambda s, h, i: steps[s][h][i // CHUNK][i % CHUNK]
        rise = lambda h, i: sums[0][h][i // CHUNK][i % CHUNK] - (sums[0][h][i // CHUNK][i % CHUNK - 1] if i % CHUNK else 0.0)
        outputs, sizes, before, before_sizes, added = self.walk(step, lambda s, h, i: math.exp(rise(h, i)))
        states = Numbers("float16", 1, 2, 2, HEAD, STATE)
        given = Numbers("float16", 1, 2, 2, HEAD, STATE).set(flat(before))
        products = [[dot(c, b) for b in self.b.matrices()[0][k * CHUNK :][:CHUNK]] for k in range(2) for c in self.c.matrices()[0][k * CHUNK :][:CHUNK]]
        cb = Numbers("float16", 1, 2, CHUNK, CHUNK).set(flat(products))
        o = Numbers("float16", 1, self.length, 2, HEAD)
        made = {way: (scan_programs.chunk_state(32, 128, 2, way, SIZES), scan_programs.chunk_scan(32, 32, 128, 2, way, SIZES))
                for way in ("shared", "direct")}
        made |= {group: (scan_programs.chunk_state_by_heads(group, 128, 2, SIZES), scan_programs.chunk_scan_by_heads(group, 2, SIZES))
                 for group in (1, 2)}
        for way, (state, scan) in made.items():
            for executor in EXECUTORS:
                with self.subTest(executor=executor, way=way):
                    for result in (states, o):
                        result.set([math.nan] * result.count)
                    run(state, executor, self.x, dt, da, self.b, states)
                    largest = max(map(abs, flat(added)))
                    self.assertLess(max(abs(g - w) for g, w in zip(states.numbers(), flat(added))), 4 * ROUNDING["float16"] * largest)
                    run(scan, executor, self.x, dt, da, cb, self.c, given, self.d, o)
                    # By heads, factors of weights are rounded too.
                    self.assertLess(worst(o.numbers(), flat(outputs), flat(sizes)), (5 if isinstance(way, str) else 7) * ROUNDING["float16"])

    def test_products_of_warpgroups(self):
        """By heads at sizes for warpgroups, on the simulator and on the host."""
        random.seed(3)
        x, b, c = (Numbers("float16", 1, 256, *shape).random(-0.5, 0.5) for shape in ((2, 64), (128,), (128,)))
        dt, da = Numbers("float16", 1, 2, 1, 256).random(0.0, 0.1), Numbers("float16", 1, 2, 1, 256)
        da.set(v for row in dt.matrices()[0] for v in [-sum(row[0][: i + 1]) for i in range(256)])
        cb, s, d = Numbers("float16", 1, 1, 256, 256).random(-0.3, 0.3), Numbers("float16", 1, 1, 2, 64, 128).random(-0.3, 0.3), Numbers("float16", 2).random()
        for program, inputs, o in ((scan_programs.chunk_scan_by_heads(2), (x, dt, da, cb, c, s, d), Numbers("float16", 1, 256, 2, 64)),
                                   (scan_programs.chunk_state_by_heads(2), (x, dt, da, b), Numbers("float16", 1, 1, 2, 64, 128))):
            results = []
            for executor in ("host", "sim:sm_90a"):
                o.set([math.nan] * o.count)
                run(program, executor, *inputs, o)
                results.append(list(o.numbers()))
            largest = max(map(abs, results[0]))
            self.assertLess(max(abs(g - w) for g, w in zip(*results)), 4 * ROUNDING["float16"] * largest)


class Retention(unittest.TestCase):
    def check(self, executors, length, dtype="float16", heads=2, keys=64, values=64, tile=(64, 32)):
        random.seed(length)
        q, k = (Numbers(dtype, 1, heads, length, keys).random(-1.0, 1.0) for _ in range(2))
        v, o = Numbers(dtype, 1, heads, length, values).random(), Numbers(dtype, 1, heads, length, values)
        decay = Numbers("float32", heads).set([-0.05 * (h + 1) for h in range(heads)])
        want, sizes = [], []
        for h in range(heads):
            ks, vs = k.matrices()[0][h], v.matrices()[0][h]
            for i, row in enumerate(q.matrices()[0][h]):
                weights = [(dot(row, ks[j]) * 2 ** (decay.numbers()[h] * (i - j)), dot(map(abs, row), map(abs, ks[j])) *
                            2 ** (decay.numbers()[h] * (i - j))) for j in range(i + 1)]
                want.append([sum(w * x[c] for (w, _), x in zip(weights, vs)) for c in range(values)])
                sizes.append([sum(w * abs(x[c]) for (_, w), x in zip(weights, vs)) for c in range(values)])
        program = scan_programs.retention(TYPES[dtype], tile, 128, 2, keys, values)
        for executor in executors:
            with self.subTest(executor=executor):
                o.set([math.nan] * o.count)
                run(program, executor, q, k, v, decay, o)
                # Weights, K, the state and the result are rounded.
                self.assertLess(worst(o.numbers(), flat(want), flat(sizes)), 5 * ROUNDING[dtype])

    def test_lengths(self):
        self.check(EXECUTORS, 150)
        self.check(EXECUTORS, 1, "bfloat16")
        self.check(("sim:sm_90a",), 128, heads=1, values=40, tile=(64, 64))


unittest.main()
