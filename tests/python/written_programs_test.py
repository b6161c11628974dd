"""Programs as they are first written, against plain definitions: losses, gradients, attention with all that masks it, small
matrices, sums by segments, a step of a beam search."""
import array
import math
import random
import unittest
import warnings

import tilegen as tg

EXECUTORS = ("interpreter", "host", "sim:sm_80", "sim:sm_90a", "sim:gfx942")

CROSS_ENTROPY = """\
tl 1 program xent
dim r
dim v >= 1
tensor X: f32[r, v] readonly
tensor T: i32[r] readonly
tensor L: f32[r]
fn merge(m: f32, s: f32, m2: f32, s2: f32) -> (f32, f32) {
  let t = max(m, m2)
  return t, s * exp(m - t) + s2 * exp(m2 - t)
}
kernel k grid(b: r) {
  alloc x: fragment f32[128]
  alloc one: fragment f32[128]
  alloc m: fragment f32[1]
  alloc s: fragment f32[1]
  fill m, -1e30
  fill s, 0
  serial t in 0 .. ceildiv(v, 128) {
    parallel j in 128 {
      let inside = t * 128 + j < v
      x[j] = select(inside, X[b, t * 128 + j], -1e30)
      one[j] = select(inside, 1.0, 0.0)
    }
    reduce x, one -> m, s by merge {axis = 0, accumulate}
  }
  parallel i in 1 { L[b] = log(s[0]) + m[0] - X[b, cast(i64, T[b])] }
}
"""

LAYER_NORM_BACKWARD = """\
tl 1 program lnbwd
dim r
dim d <= 128
tensor X: f32[r, d] readonly
tensor W: f32[d] readonly
tensor DY: f32[r, d] readonly
tensor DX: f32[r, d]
tensor DW: f32[d]
kernel k grid(b: ceildiv(r, 4)) threads 128 {
  alloc x: fragment f32[4, 128]
  alloc g: fragment f32[4, 128]
  alloc t: fragment f32[4, 128]
  alloc mu: fragment f32[4]
  alloc rs: fragment f32[4]
  alloc c1: fragment f32[4]
  alloc c2: fragment f32[4]
  alloc dw: fragment f32[128]
  let n = cast(f32, d)
  copy X[b * 4 :+ 4, 0 :+ 128] -> x
  reduce x -> mu {kind = sum, axis = 1}
  parallel i, j in 4, 128 {
    x[i, j] = select(j < d, x[i, j] - mu[i] / n, 0)
    t[i, j] = x[i, j] * x[i, j]
  }
  reduce t -> rs {kind = sum, axis = 1}
  parallel i in 4 { rs[i] = rsqrt(rs[i] / n + 1e-5) }
  copy DY[b * 4 :+ 4, 0 :+ 128] -> g
  parallel i, j in 4, 128 {
    x[i, j] *= rs[i]
    t[i, j] = g[i, j] * x[i, j]
  }
  reduce t -> dw {kind = sum, axis = 0}
  parallel i, j in 4, 128 {
    g[i, j] *= W[j]
    t[i, j] = g[i, j] * x[i, j]
  }
  reduce t -> c1 {kind = sum, axis = 1}
  reduce g -> c2 {kind = sum, axis = 1}
  parallel i, j in 4, 128 { DX[b * 4 + i, j] = (g[i, j] - x[i, j] * c1[i] / n - c2[i] / n) * rs[i] }
  atomic dw -> DW[0 :+ 128] {kind = add}
}
"""

ATTENTION = """\
tl 1 program attn
dim s <= 4096
scalar scale: f32
scalar slope: f32
let W = 6
tensor Q: f32[s, 32] readonly
tensor K: f32[s, 32] readonly
tensor V: f32[s, 32] readonly
tensor O: f32[s, 32]
kernel k grid(b: ceildiv(s, 64)) {
  alloc q: shared f32[64, 32]
  alloc kt: shared f32[64, 32]
  alloc vt: shared f32[64, 32]
  alloc p: fragment f32[64, 64]
  alloc acc: fragment f32[64, 32]
  alloc m: fragment f32[64]
  alloc l: fragment f32[64]
  alloc old: fragment f32[64]
  alloc ls: fragment f32[64]
  copy Q[b * 64 :+ 64, 0 :+ 32] -> q
  fill acc, 0
  fill l, 0
  fill m, -1e30
  pipelined j in 0 .. ceildiv(s, 64) {
    copy K[j * 64 :+ 64, 0 :+ 32] -> kt
    copy V[j * 64 :+ 64, 0 :+ 32] -> vt
    gemm q, kt -> p {transpose_b, clear}
    parallel y, x in 64, 64 {
      let back = b * 64 + y - (j * 64 + x)
      let a = 5 * tanh(p[y, x] * scale / 5) - slope * cast(f32, back)
      p[y, x] = select(back >= 0 and back < W and j * 64 + x < s, a, -1e30)
    }
    copy m -> old
    reduce p -> m {kind = max, axis = 1, accumulate}
    parallel y, x in 64, 64 { p[y, x] = select(p[y, x] > -1e29, exp(p[y, x] - m[y]), 0) }
    reduce p -> ls {kind = sum, axis = 1}
    parallel y in 64 { l[y] = l[y] * exp(old[y] - m[y]) + ls[y] }
    parallel y, x in 64, 32 { acc[y, x] *= exp(old[y] - m[y]) }
    gemm p, vt -> acc
  }
  parallel y, x in 64, 32 { acc[y, x] /= l[y] }
  copy acc -> O[b * 64 :+ 64, 0 :+ 32]
}
"""

INVERSE = """\
tl 1 program inverse
dim n
tensor A: f32[n, 8, 8] readonly
tensor Y: f32[n, 8, 8]
kernel k grid(b: n) {
  alloc m: shared f32[8, 16]
  alloc next: shared f32[8, 16]
  parallel i, j in 8, 16 { m[i, j] = select(j < 8, A[b, i, j], select(i == j - 8, 1, 0)) }
  serial p in 0 .. 8 {
    parallel i, j in 8, 16 {
      let top = m[p, j] / m[p, p]
      next[i, j] = select(i == p, top, m[i, j] - m[i, p] * top)
    }
    copy next -> m
  }
  copy m[0 :+ 8, 8 :+ 8] -> Y[b, 0 :+ 8, 0 :+ 8]
}
"""

HADAMARD = """\
tl 1 program hadamard
dim r
tensor X: f32[r, 128] readonly
tensor Y: f32[r, 128]
kernel k grid(b: r) threads 128 {
  alloc a: shared f32[128]
  threads warp, lane in 4, 32 {
    let t = warp * 32 + lane
    var x = X[b, t]
    unroll s in 0 .. 5 {
      let other = shuffle_xor(x, 1 << s)
      x = select((lane >> s) % 2 == 0, x + other, other - x)
    }
    a[t] = x
    barrier
    unroll s in 5 .. 7 {
      let mine = a[t]
      let other = a[t ^ (1 << s)]
      barrier
      a[t] = select((t >> s) % 2 == 0, mine + other, other - mine)
      barrier
    }
    Y[b, t] = a[t]
  }
}
"""

SEGMENTED_SUMS = """\
tl 1 program segsum
dim n
tensor F: i32[n] readonly
tensor X: f32[n] readonly
tensor Y: f32[n]
fn join(f: i32, x: f32, g: i32, y: f32) -> (i32, f32) { return f | g, select(g != 0, y, x + y) }
kernel k grid(b: 1) {
  alloc f: fragment i32[128]
  alloc x: fragment f32[128]
  alloc carry: shared f32[1]
  fill carry, 0
  serial t in 0 .. ceildiv(n, 128) {
    copy F[t * 128 :+ 128] -> f
    copy X[t * 128 :+ 128] -> x
    scan f, x -> f, x by join {axis = 0}
    parallel j in 128 { x[j] = select(f[j] != 0, x[j], x[j] + carry[0]) }
    copy x -> Y[t * 128 :+ 128]
    copy x[127] -> carry
  }
}
"""

BEAM_SEARCH = """\
tl 1 program beam
dim b
dim v >= 3 <= 32
tensor Score: f32[b, 3] readonly
tensor LogP: f32[b, 3, v] readonly
tensor Best: f32[b, 3]
tensor Parent: i32[b, 3]
tensor Word: i32[b, 3]
kernel k grid(n: b) {
  alloc all: fragment f32[3, 32]
  alloc best: fragment f32[3]
  alloc at: fragment i32[3]
  parallel p, w in 3, 32 { all[p, w] = select(w < v, Score[n, p] + LogP[n, p, w], -inf) }
  view line = reshape(all, [96])
  topk line -> best, at {axis = 0}
  copy best -> Best[n, 0 :+ 3]
  parallel i in 3 {
    Parent[n, i] = at[i] // 32
    Word[n, i] = at[i] % 32
  }
}
"""


def tensor(code, shape, values=None):
    values = [0] * math.prod(shape) if values is None else values
    return memoryview(array.array(code, values)).cast("B").cast(code, list(shape))


def flat(values):
    while values and isinstance(values[0], list):
        values = sum(values, [])
    return values


def reals(count, scale=1.0):
    return [round(random.uniform(-scale, scale), 3) for _ in range(count)]


class WrittenPrograms(unittest.TestCase):
    def setUp(self):
        random.seed(3)

    def agrees(self, text, make, expected, bound):
        """make() gives the arguments; expected has the values of some of them, by place."""
        program = tg.Program.parse(text)
        for executor in EXECUTORS:
            arguments = make()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tg.PerformanceWarning)
                run = program.interpret if executor == "interpreter" else program.compile(executor).load()
            run(*arguments)
            for place, want in expected.items():
                got = flat(arguments[place].tolist())
                self.assertEqual(len(got), len(want))
                for i, (a, b) in enumerate(zip(got, want)):
                    self.assertLessEqual(abs(a - b), bound * (1 + abs(b)), f"{executor}: element {i} of argument {place}")

    def test_cross_entropy(self):
        rows, words = 6, 300
        x, target, want = reals(rows * words, 5), [random.randrange(words) for _ in range(rows)], []
        for r in range(rows):
            row = x[r * words : (r + 1) * words]
            most = max(row)
            want.append(math.log(sum(math.exp(a - most) for a in row)) + most - row[target[r]])
        self.agrees(CROSS_ENTROPY, lambda: [tensor("f", (rows, words), x), tensor("i", (rows,), target), tensor("f", (rows,))],
                    {2: want}, 1e-4)

    def test_layer_norm_backward(self):
        rows, d = 5, 96
        x, w, dy = reals(rows * d), reals(d), reals(rows * d)
        dx, dw = [], [0.0] * d
        for r in range(rows):
            row, g = x[r * d : (r + 1) * d], dy[r * d : (r + 1) * d]
            mean = sum(row) / d
            scale = 1 / math.sqrt(sum((a - mean) ** 2 for a in row) / d + 1e-5)
            normal = [(a - mean) * scale for a in row]
            wg = [a * b for a, b in zip(w, g)]
            along, average = sum(a * b for a, b in zip(normal, wg)) / d, sum(wg) / d
            dx += [(wg[j] - normal[j] * along - average) * scale for j in range(d)]
            dw = [a + b * c for a, b, c in zip(dw, g, normal)]
        self.agrees(LAYER_NORM_BACKWARD,
                    lambda: [tensor("f", (rows, d), x), tensor("f", (d,), w), tensor("f", (rows, d), dy), tensor("f", (rows, d)),
                             tensor("f", (d,))], {3: dx, 4: dw}, 1e-4)

    def test_attention(self):
        """Causal, within a window, logits capped, with ALiBi's slope."""
        s, d, window, slope = 70, 32, 6, 0.3
        q, k, v, want = reals(s * d), reals(s * d), reals(s * d), []
        for i in range(s):
            seen = range(max(0, i - window + 1), i + 1)
            logits = [5 * math.tanh(sum(q[i * d + t] * k[j * d + t] for t in range(d)) * 0.2 / 5) - slope * (i - j) for j in seen]
            weights = [math.exp(a - max(logits)) for a in logits]
            want += [sum(a * v[j * d + t] for a, j in zip(weights, seen)) / sum(weights) for t in range(d)]
        self.agrees(ATTENTION, lambda: [0.2, slope, *(tensor("f", (s, d), n) for n in (q, k, v)), tensor("f", (s, d))], {5: want}, 2e-3)

    def test_inverse(self):
        a, want = [], []
        for _ in range(3):
            m = [[random.uniform(-1, 1) + 6 * (i == j) for j in range(8)] for i in range(8)]
            a += flat(m)
            m = [row + [float(i == j) for j in range(8)] for i, row in enumerate(m)]
            for p in range(8):
                m[p] = [x / m[p][p] for x in m[p]]
                m = [row if i == p else [x - row[p] * y for x, y in zip(row, m[p])] for i, row in enumerate(m)]
            want += flat([row[8:] for row in m])
        self.agrees(INVERSE, lambda: [tensor("f", (3, 8, 8), a), tensor("f", (3, 8, 8))], {1: want}, 1e-3)

    def test_hadamard(self):
        n, x = 128, reals(2 * 128)
        want = [sum(x[r * n + j] * (-1) ** bin(i & j).count("1") for j in range(n)) for r in range(2) for i in range(n)]
        self.agrees(HADAMARD, lambda: [tensor("f", (2, n), x), tensor("f", (2, n))], {1: want}, 1e-4)

    def test_segmented_sums(self):
        n = 200
        first, x, want = [int(i == 0 or random.random() < 0.1) for i in range(n)], reals(n), []
        for begins, value in zip(first, x):
            want.append(value if begins else want[-1] + value)
        self.agrees(SEGMENTED_SUMS, lambda: [tensor("i", (n,), first), tensor("f", (n,), x), tensor("f", (n,))], {2: want}, 1e-4)

    def test_beam_search(self):
        b, v = 2, 20
        scores, steps, best, parent, word = reals(b * 3, 2), reals(b * 3 * v, 3), [], [], []
        for n in range(b):
            all = sorted((-scores[n * 3 + p] - steps[(n * 3 + p) * v + w], p, w) for p in range(3) for w in range(v))
            best += [-a for a, _, _ in all[:3]]
            parent += [p for _, p, _ in all[:3]]
            word += [w for _, _, w in all[:3]]
        self.agrees(BEAM_SEARCH,
                    lambda: [tensor("f", (b, 3), scores), tensor("f", (b, 3, v), steps), tensor("f", (b, 3)), tensor("i", (b, 3)),
                             tensor("i", (b, 3))], {2: best, 3: parent, 4: word}, 1e-5)


if __name__ == "__main__":
    unittest.main()
