"""Programs of the folder `newcomers`, as somebody writes them who has read docs/language.md, against plain definitions: each in two
spellings of one meaning, whose plans take as long."""
import array
import cmath
import math
import os
import random
import sys
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tilegen as tg  # noqa: E402
from numbers_in_memory import Halves, Numbers  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "newcomers")
EXECUTORS = ("interpreter", "host", "sim:sm_80", "sim:sm_90a", "sim:gfx942")
NVIDIA = EXECUTORS[:4]  # of native PTX, of warps of 32 lanes, of what is asked for
# A second spelling whose plan may take longer, and how much.
LONGER = {"sparsified": 1.1,  # a tile in shared memory, not in registers
          "permuted_rows": 1.06,  # a copy is no loop that another is joined with
          "gram": 1.26,  # bytes that lie across the product's depth are read one at a time
          "long_max": 1.06, "noise": 1.05}  # work that is one operation more


def tensor(code, *shape, values=None):
    return memoryview(array.array(code, values or [0] * math.prod(shape))).cast("B").cast(code, shape)


def halves(*shape, values=None):
    return Halves(*shape).set(values) if values else Halves(*shape)


def numbers(argument):
    if hasattr(argument, "numbers"):
        return list(argument.numbers())
    values = argument.tolist()
    while values and isinstance(values[0], list):
        values = sum(values, [])
    return values


def singles(values): return array.array("f", values).tolist()
def reals(count, scale=1.0): return singles(round(random.uniform(-scale, scale), 3) for _ in range(count))
def whole(count, low, high): return [random.randint(low, high) for _ in range(count)]
def in_half(count): return list(Halves(count).random(-1, 1).numbers())
def sums(terms): return [sum(t) for t in terms]


class Newcomers(unittest.TestCase):
    def setUp(self):
        random.seed(5)
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore", tg.PerformanceWarning)

    def program(self, name, **params):
        path = os.path.join(FOLDER, name + ".tl")
        with open(path) as text:
            return tg.Program.parse(text.read(), file_name=path, params=params or None)

    def agrees(self, name, make, expected, bound=0.0, executors=EXECUTORS, plans=True, **params):
        """make() gives the arguments; expected has the values of some of them, by place."""
        spellings = [n for n in (name, name + ".again") if os.path.exists(os.path.join(FOLDER, n + ".tl"))]
        self.agree(name, [self.program(n, **params) for n in spellings], make, expected, bound, executors, plans)

    def agree(self, name, programs, make, expected, bound=0.0, executors=EXECUTORS, plans=True):
        times = []
        for number, program in enumerate(programs):
            for executor in executors:
                arguments = make()
                (program.interpret if executor == "interpreter" else program.compile(executor).load())(*arguments)
                for place, want in expected.items():
                    got = numbers(arguments[place])
                    self.assertEqual(len(got), len(want))
                    for i, (a, b) in enumerate(zip(got, want)):
                        if a != b:
                            self.assertLessEqual(abs(a - b), bound * (1 + abs(b)),
                                                 f"{name}, spelling {number}, {executor}: element {i} of argument {place}")
            times.append([program.compile(target).cost["us"] for target in ("sm_80", "sm_90a")])
        for other in times[1:] if plans else ():
            for first, second in zip(times[0], other):
                self.assertLessEqual(second, LONGER.get(name, 1.02) * first, f"the plan of the second spelling of {name}")

    def test_median_of_three(self):
        n, c = 37, 53
        x = reals(n * c)
        want = [sorted(x[min(max(r + d, 0), n - 1) * c + j] for d in (-1, 0, 1))[1] for r in range(n) for j in range(c)]
        self.agrees("median_of_three", lambda: [tensor("f", n, c, values=x), tensor("f", n, c)], {1: want})

    def test_components(self):
        n, near = 61, [0] * 61 * 61
        for i in range(0, n, 2):
            j = random.randrange(n)
            near[i * n + j] = near[j * n + i] = 1
        label, changed = list(range(n)), True
        while changed:
            before = list(label)
            label = [min([label[i]] + [label[j] for j in range(n) if near[i * n + j]]) for i in range(n)]
            changed = before != label
        self.agrees("components", lambda: [tensor("B", n, n, values=near), tensor("i", n), tensor("i", 1)], {1: label})

    def test_run_lengths(self):
        x, value, length = [], [], []
        while len(x) < 150:
            x += [random.randint(0, 3)] * random.randint(1, 6)
        n = len(x)
        for i, v in enumerate(x):
            if i == 0 or v != x[i - 1]:
                value, length = value + [v], length + [0]
            length[-1] += 1
        rest = [0] * (n - len(value))
        self.agrees("run_lengths", lambda: [tensor("i", n, values=x), tensor("i", n), tensor("i", n), tensor("i", 1)],
                    {1: value + rest, 2: length + rest, 3: [len(value)]})

    def test_permuted_rows(self):
        n, c = 33, 100
        x, to = in_half(n * c), random.sample(range(n), n)
        want = [0.0] * (n * c)
        for i in range(n):
            want[to[i] * c:(to[i] + 1) * c] = x[i * c:(i + 1) * c]
        self.agrees("permuted_rows", lambda: [halves(n, c, values=x), tensor("i", n, values=to), halves(n, c)], {2: want})

    def test_sparsified(self):
        r, c = 7, 77
        x = singles(random.sample([i / 50 for i in range(-400, 400) if i], r * c))
        for k in (5, 8):
            kept, places = [], []
            for i in range(r):
                row = x[i * c:(i + 1) * c]
                order = sorted(range(c), key=lambda j: (-abs(row[j]), j))[:k]
                places += order
                kept += [v if abs(v) >= abs(row[order[-1]]) else 0 for v in row]
            self.agrees("sparsified", lambda: [tensor("f", r, c, values=x), tensor("f", r, c), tensor("i", r, k)],
                        {1: kept, 2: places}, K=k)

    def test_optional_bias(self):
        m, n = 20, 83
        x, bias = reals(m * n), reals(n)
        for has in (0, 1):
            want = singles(v + has * bias[i % n] for i, v in enumerate(x))
            self.agrees("optional_bias", lambda: [tensor("f", m, n, values=x), tensor("f", n, values=bias), tensor("f", m, n)],
                        {2: want}, plans=has == 1, HAS=has)

    def test_matvec_4bit(self):
        n, k = 31, 96
        w, s, x = whole(n * k, -8, 7), reals(n * k // 32), reals(k)
        bytes_ = [w[2 * i] & 15 | (w[2 * i + 1] & 15) << 4 for i in range(n * k // 2)]
        want = sums([w[i * k + t] * x[t] * s[i * 3 + t // 32] for t in range(k)] for i in range(n))
        self.agrees("matvec_4bit", lambda: [tensor("B", n, k // 2, values=bytes_), tensor("f", n, 3, values=s),
                                            tensor("f", k, values=x), tensor("f", n)], {3: want}, 1e-4)

    def test_noise(self):
        first = tensor("f", 250)
        self.program("noise").interpret(99, first)
        self.assertLess(abs(sum(first)) / 250, 0.2)
        self.assertLess(abs(sum(v * v for v in first) / 250 - 1), 0.3)
        self.agrees("noise", lambda: [99, tensor("f", 250)], {1: list(first)}, 2e-6)

    def test_hash_set(self):
        n = 130
        keys = [random.choice([3, 67, 131, 9, 12, 5, 77, 1000, 1064, 40, 41, 42, 43, 44]) for _ in range(n)]
        self.agrees("hash_set", lambda: [tensor("i", n, values=keys), tensor("i", 64), tensor("i", n)], {2: [1] * n})

    def test_batched_products(self):
        b, m, n, k = 2, 21, 30, 33
        x, y = reals(b * m * k), reals(b * n * k)
        want = sums([x[(z * m + i) * k + t] * y[(z * n + j) * k + t] for t in range(k)] for z in range(b) for i in range(m) for j in range(n))
        self.agrees("batched_products", lambda: [tensor("d", b, m, k, values=x), tensor("d", b, n, k, values=y), tensor("d", b, m, n)],
                    {2: want}, 1e-12)

    def test_row_operations(self):
        r, c, codes = 9, 150, [0, 1, 2, 3, 4, -1, 7, 3, 0]
        x, want = [float(v) for v in whole(r * c, -9, 9)], [0.0] * (r * c)
        for i, code in enumerate(codes):
            for first in (0, 128) if code >= 0 else ():
                part = x[i * c + first:i * c + min(first + 64, c)]
                want[i * c + first:i * c + first + len(part)] = ([-v for v in part] if code == 0 else [v * code for v in part] if code < 3
                                                                 else [sum(part) if code == 3 else 9] * len(part))
        self.agrees("row_operations", lambda: [tensor("i", r, values=codes), tensor("f", r, c, values=x), tensor("f", r, c)], {2: want})

    def test_bit_ranks(self):
        n = 230
        x, want = [random.getrandbits(32) for _ in range(n)], []
        for i in range(n):
            want.append((want[-1] if i % 96 else 0) + bin(x[i]).count("1"))
        self.agrees("bit_ranks", lambda: [tensor("I", n, values=x), tensor("i", n)], {1: want}, executors=NVIDIA)

    def test_discounted(self):
        t, e, g = 43, 8, 0.9
        reward = reals(t * e)
        want = [sum(g ** (k - i) * reward[k * e + j] for k in range(i, t)) for i in range(t) for j in range(e)]
        self.agrees("discounted", lambda: [g, tensor("d", t, e, values=reward), tensor("d", t, e)], {2: want}, 1e-12)

    def test_ordered(self):
        r, c, least = 5, 38, -2**63 + 1
        x = [random.choice([2**62, -2**62, 5, 5, 0, -1, random.randint(least, 2**63 - 1)]) for _ in range(r * c)]
        rows, places = [], []
        for i in range(r):
            row = x[i * c:(i + 1) * c] + [least] * (45 - c)
            order = sorted(range(45), key=lambda j: (-row[j], j))
            rows, places = rows + [row[j] for j in order], places + order
        self.agrees("ordered", lambda: [tensor("q", r, c, values=x), tensor("q", r, 45), tensor("q", r, 45)], {1: rows, 2: places})

    def test_depthwise(self):
        c, h, w = 2, 17, 20
        x, weights = in_half(c * h * w), reals(c * 9)
        at = lambda z, i, j: x[(z * h + i) * w + j] if 0 <= i < h and 0 <= j < w else 0
        want = sums([weights[z * 9 + u * 3 + v] * at(z, i + u - 1, j + v - 1) for u in range(3) for v in range(3)]
                    for z in range(c) for i in range(h) for j in range(w))
        self.agrees("depthwise", lambda: [halves(c, h, w, values=x), tensor("f", c, 3, 3, values=weights), tensor("f", c, h, w)], {2: want}, 1e-5)

    def test_pruned_product(self):
        m, n = 72, 40
        weights, x, kept = in_half(m * 64), in_half(64 * n), []
        for i in range(0, m * 64, 4):
            four = weights[i:i + 4]
            places = sorted(range(4), key=lambda t: (-abs(four[t]), t))[:2]
            kept += [v if t in places else 0 for t, v in enumerate(four)]
        want = sums([kept[i * 64 + t] * x[t * n + j] for t in range(64)] for i in range(m) for j in range(n))
        self.agrees("pruned_product", lambda: [halves(m, 64, values=weights), halves(64, n, values=x), tensor("f", m, n)], {2: want}, 1e-3)

    def test_nearest(self):
        q, p = 13, 41
        a, b = [float(v) for v in whole(q * 3, -5, 5)], [float(v) for v in whole(p * 3, -5, 5)]
        far = [[sum((a[i * 3 + t] - b[j * 3 + t]) ** 2 for t in range(3)) for j in range(p)] for i in range(q)]
        self.agrees("nearest", lambda: [tensor("f", q, 3, values=a), tensor("f", p, 3, values=b), tensor("f", q), tensor("i", q)],
                    {2: [min(d) for d in far], 3: [d.index(min(d)) for d in far]})

    def test_rotated(self):
        n, d = 11, 90
        x, angle, want = reals(n * d), reals(n), []
        for i in range(n):
            for j in range(d // 2):
                z = complex(*x[i * d + 2 * j:i * d + 2 * j + 2]) * cmath.exp(1j * angle[i] * (j + 1))
                want += [z.real, z.imag]
        self.agrees("rotated", lambda: [tensor("f", n, d, values=x), tensor("f", n, values=angle), tensor("f", n, d)], {2: want}, 2e-4)

    def test_counting_sort(self):
        n = 1003
        keys = whole(n, 0, 255)
        self.agrees("counting_sort", lambda: [tensor("B", n, values=keys), tensor("B", n)], {1: sorted(keys)})

    def test_ragged_mean(self):
        counts, d, first, want = [3, 0, 9, 4, 1, 0, 13], 31, [0], []
        for v in counts:
            first.append(first[-1] + v)
        x = [float(v) for v in whole(first[-1] * d, -9, 9)]
        for g, v in enumerate(counts):
            want += [sum(x[(first[g] + i) * d + j] for i in range(v)) / v if v else -1 for j in range(d)]
        self.agrees("ragged_mean", lambda: [tensor("i", 8, values=first), tensor("f", first[-1], d, values=x), tensor("f", 7, d)], {2: want}, 1e-6)

    def test_products(self):
        m, n, k = 50, 61, 80
        a, b = in_half(m * k), in_half(n * k)
        want = sums([a[i * k + t] * b[j * k + t] for t in range(k)] for i in range(m) for j in range(n))
        self.agrees("own_atom", lambda: [halves(m, k, values=a), halves(n, k, values=b), tensor("f", m, n)], {2: want}, 1e-3, executors=NVIDIA)
        m, n, k = 77, 72, 104
        a, b, bias = in_half(m * k), in_half(k * n), reals(n)
        want = [max(sum(a[i * k + t] * b[t * n + j] for t in range(k)) + bias[j], 0) for i in range(m) for j in range(n)]
        self.agrees("asked_gemm", lambda: [halves(m, k, values=a), halves(k, n, values=b), tensor("f", n, values=bias), halves(m, n)],
                    {3: want}, 2e-2, executors=NVIDIA)
        n, d = 53, 45
        x = whole(n * d, -128, 127)
        want = sums([x[t * d + i] * x[t * d + j] for t in range(n)] for i in range(d) for j in range(d))
        self.agrees("gram", lambda: [tensor("b", n, d, values=x), tensor("i", d, d)], {1: want})

    def test_warp_pipe(self):
        m, n = 3, 700
        x = [float(v) for v in whole(m * n, -9, 9)]
        self.agrees("warp_pipe", lambda: [tensor("f", m, n, values=x), tensor("f", m)], {1: sums(x[i * n:(i + 1) * n] for i in range(m))})

    def test_life(self):
        boards = whole(2 * 576, 0, 1)
        cells, want = [boards[:576], boards[576:]], []
        for g in cells:
            for _ in range(3):
                near = sums([g[(i + u) % 24 * 24 + (j + v) % 24] for u in (-1, 0, 1) for v in (-1, 0, 1)] for i in range(24) for j in range(24))
                g = [int(k == 3 or own and k == 4) for k, own in zip(near, g)]
            want += g
        self.agrees("life", lambda: [tensor("B", 2, 24, 24, values=boards), tensor("B", 2, 24, 24)], {1: want})

    def test_quantised(self):
        r, c = 8, 77
        x = reals(r * c, 3)
        make = lambda: [tensor("f", r, c, values=x), Numbers("float8_e4m3fn", r, c), tensor("f", r), tensor("f", r, c)]
        first = make()
        self.program("quantised").interpret(*first)
        for i, v in enumerate(x):
            self.assertLessEqual(abs(numbers(first[3])[i] - v), abs(v) / 16 + 3 / 448)
        self.agrees("quantised", make, {place: numbers(first[place]) for place in (1, 2, 3)})

    def test_crumbs(self):
        x = reals(400)
        code = [(v >= -0.5) + (v >= 0) + (v >= 0.5) for v in x]
        bytes_ = [sum(code[4 * i + t] << 2 * t for t in range(4)) for i in range(100)]
        self.agrees("crumbs", lambda: [tensor("f", 400, values=x), tensor("B", 100), tensor("i", 4)], {1: bytes_, 2: [code.count(t) for t in range(4)]})

    def test_fft16(self):
        n, want = 5, []
        x = reals(n * 32)
        for b in range(n):
            z = [complex(x[b * 32 + 2 * i], x[b * 32 + 2 * i + 1]) for i in range(16)]
            for k in range(16):
                v = sum(z[i] * cmath.exp(-2j * math.pi * i * k / 16) for i in range(16))
                want += [v.real, v.imag]
        self.agrees("fft16", lambda: [tensor("f", n, 16, 2, values=x), tensor("f", n, 16, 2)], {1: want}, 1e-4)

    def test_long_max(self):
        r, c = 5, 333
        x = [float(v) for v in whole(r * c, 0, 40)]
        rows = [x[i * c:(i + 1) * c] for i in range(r)]
        self.agrees("long_max", lambda: [tensor("f", r, c, values=x), tensor("f", r), tensor("i", r)],
                    {1: [max(row) for row in rows], 2: [c - 1 - row[::-1].index(max(row)) for row in rows]})


if __name__ == "__main__":
    unittest.main()
