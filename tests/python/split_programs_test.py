"""attention_split of bench/gpu computes what its attention does, of keys in pages too, and how many parts it says keep a GPU
busy; latent_attention computes its definition.   split_programs_test.py SOURCE"""
import math
import pathlib
import random
import sys
import unittest

import tilegen as tg
from numbers_in_memory import Halves, Numbers, floats
from references import EXECUTORS, ROUNDING, absolute, flat, run, times, times_transposed, worst

if len(sys.argv) < 2:
    sys.exit(__doc__)
sys.path.append(str(pathlib.Path(sys.argv.pop(1)) / "bench" / "gpu"))
import programs  # noqa: E402
import split_programs  # noqa: E402

DIM, TILE = 64, (64, 64)


class AttentionSplit(unittest.TestCase):
    def check(self, target, group, queries, keys, parts, passed=False, **options):
        random.seed(keys)
        heads, rows = 2, group * queries
        q, k, v = (Halves(1, h, n, DIM).random() for h, n in ((heads * group, queries), (heads, keys), (heads, keys)))
        want, got = Halves(*q.shape), Halves(1, heads, rows, DIM)
        want_sums, want_view = floats(1, heads * group, queries)
        got_sums, got_view = floats(1, heads, rows)
        plain = programs.attention(tg.f16, DIM, TILE, 128, 2, group=group, row_sums=True, **options)
        plain.compile("host").load()(0.18, q, k, v, want, want_view)
        split = split_programs.attention_split(tg.f16, DIM, TILE, 128, 2, group=group, row_sums=True, passed=passed, together=4, **options)
        between = [floats(heads, parts, rows, DIM)[1], floats(heads, parts, rows)[1]] if passed else []
        split.compile(target).load()(1, heads, queries, keys, parts, 0.18, q.viewed(1, heads, rows, DIM), k, v, got, got_view, *between)
        self.assertLess(max(abs(a - b) for a, b in zip(got.numbers(), want.numbers())), 4e-3)
        self.assertLess(max(abs(a - b) for a, b in zip(got_sums, want_sums)), 1e-3)

    def test_parts_of_the_keys(self):
        for target in ("host", "sim:sm_80", "sim:sm_90a"):
            with self.subTest(target=target):
                self.check(target, group=4, queries=1, keys=300, parts=3)

    def test_masks_and_tensors_in_the_place_of_workspaces(self):
        self.check("sim:sm_90a", group=2, queries=5, keys=200, parts=5, passed=True, causal=True)
        self.check("sim:sm_90a", group=2, queries=40, keys=200, parts=2, window=(70, 10))
        self.check("sim:sm_90a", group=1, queries=3, keys=200, parts=6, window=(30, -2))

    def test_parts_keep_the_processors_busy(self):
        for tiles, blocks, parts in ((8, 64, 16), (64, 64, 2), (132, 64, 1), (200, 64, 5), (1, 4, 4), (1, 0, 1)):
            self.assertEqual(split_programs.split_parts(tiles, blocks), parts, (tiles, blocks))


def softmax_of(q, k, v, scale):
    """softmax(q k^T * scale) v, and the same of the sizes of v."""
    weights = []
    for row in times_transposed(q, k):
        top = max(row, default=0.0)
        row = [math.exp((x - top) * scale) for x in row]
        weights.append([x / sum(row) for x in row])
    if not k:
        return [[0.0] * DIM for _ in q], [[0.0] * DIM for _ in q]
    return times(weights, v), times(weights, absolute(v))


class Pages:
    """Sequences of some lengths in pages that lie in any order; the numbers outside of all sequences are zeros."""

    def __init__(self, lengths, page):
        self.lengths, self.page = lengths, page
        needed = [-(-n // page) for n in lengths]
        self.most, self.count = max(max(needed), 1), sum(needed) + 2
        order = random.sample(range(self.count), sum(needed))
        self.pages = [[order.pop() for _ in range(n)] for n in needed]
        table = [x for pages in self.pages for x in pages + [0] * (self.most - len(pages))]
        self.table = Numbers("int32", len(lengths), self.most).set(table)
        self.lengths_given = Numbers("int32", len(lengths)).set(lengths)

    def fill(self, tensor, row_size):
        """Zeros after the sequences' ends: what a mask hides must be finite."""
        tensor.random()
        used = {p * self.page + i for pages, n in zip(self.pages, self.lengths)
                for at, p in enumerate(pages) for i in range(min(self.page, n - at * self.page))}
        kept = tensor.numbers()
        return tensor.set(x if i // row_size in used else 0.0 for i, x in enumerate(kept))

    def rows(self, tensor, s):
        """The keys of a sequence in their order."""
        matrices = tensor.matrices()
        return [matrices[p][i] for p in self.pages[s] for i in range(self.page)][: self.lengths[s]]


class PagedSplit(unittest.TestCase):
    def check(self, executors, lengths, dtype="float16", queries=1, group=4, heads=2, parts=3, page=64, tile=(64, 64)):
        random.seed(str(lengths))
        keys = Pages(lengths, page)
        batch, rows = len(lengths), group * queries
        q, o = Numbers(dtype, batch, heads, rows, DIM).random(), Numbers(dtype, batch, heads, rows, DIM)
        k, v = (keys.fill(Numbers(dtype, keys.count, page, heads, DIM), heads * DIM) for _ in range(2))
        want, sizes = [], []
        for s in range(batch):
            for h in range(heads):
                of_head = lambda tensor: [row[h] for row in keys.rows(tensor, s)]
                found = softmax_of(q.matrices()[s][h], of_head(k), of_head(v), 1 / math.sqrt(DIM))
                want.append(found[0])
                sizes.append(found[1])
        program = split_programs.attention_split(getattr(tg, {"float16": "f16", "bfloat16": "bf16"}[dtype]), DIM, tile, 128, 2,
                                                 group=group, together=4, page=page)
        for executor in executors:
            with self.subTest(executor=executor):
                o.set([math.nan] * o.count)
                run(program, executor, batch, heads, queries, keys.count, keys.most, parts, math.log2(math.e) / math.sqrt(DIM),
                    q, k, v, keys.table, keys.lengths_given, o)
                # The weights and the result are rounded once each.
                self.assertLess(worst(o.numbers(), flat(want), flat(sizes)), 3 * ROUNDING[dtype])

    def test_lengths(self):
        self.check(EXECUTORS, [150, 0, 64, 1])

    def test_larger_pages_and_more_queries(self):
        self.check(EXECUTORS, [300, 127], "bfloat16", queries=5, group=2, parts=2, page=128)
        self.check(("sim:sm_80", "sim:sm_90a"), [70], group=1, parts=4, tile=(16, 64))

    def test_tiles_of_several_pages(self):
        self.check(EXECUTORS, [150, 0, 64, 1], page=32)
        self.check(("sim:sm_80", "sim:sm_90a"), [300, 127], queries=5, group=2, parts=2, tile=(64, 128))


class LatentAttention(unittest.TestCase):
    def check(self, executors, lengths, page=0, dtype="float16", heads=64, tile=(64, 32), latent=128, turned=64, stages=2, pieces=1):
        random.seed(str(lengths))
        batch, width = len(lengths), latent + turned
        keys = Pages(lengths, page) if page else None
        q, o = Numbers(dtype, batch, heads, width).random(-1.0, 1.0), Numbers(dtype, batch, heads, latent)
        kept = keys.fill(Numbers(dtype, keys.count, page, width), width) if page else Numbers(dtype, batch, lengths[0], width).random()
        want, sizes = [], []
        for s in range(batch):
            rows = keys.rows(kept, s) if page else kept.matrices()[s]
            found = softmax_of(q.matrices()[s], rows, [row[:latent] for row in rows], 1 / math.sqrt(width))
            want.append(found[0])
            sizes.append(found[1])
        program = split_programs.latent_attention(getattr(tg, {"float16": "f16", "bfloat16": "bf16"}[dtype]), tile, 256, stages,
                                                  latent, turned, page, pieces)
        between = [keys.table, keys.lengths_given] if page else []
        for executor in executors:
            with self.subTest(executor=executor):
                o.set([math.nan] * o.count)
                run(program, executor, math.log2(math.e) / math.sqrt(width), q, kept, *between, o)
                self.assertLess(worst(o.numbers(), flat(want), flat(sizes)), 3 * ROUNDING[dtype])

    def test_keys_in_a_row(self):
        self.check(EXECUTORS, [70, 70])
        self.check(("sim:sm_90a",), [33], heads=80, dtype="bfloat16")

    def test_tiles_of_several_pages(self):
        self.check(("sim:sm_90a",), [150, 64, 1], page=64, tile=(64, 128), stages=1, pieces=2)

    def test_one_slot_of_each_piece(self):
        self.check(EXECUTORS, [70], heads=16, latent=64, tile=(16, 32), stages=1, pieces=2)
        self.check(("sim:sm_90a",), [290, 290], tile=(64, 128), latent=256, stages=1, pieces=2)

    def test_pages(self):
        self.check(EXECUTORS, [100, 1], page=64)
        self.check(("sim:sm_90a",), [65], page=64, tile=(64, 64), dtype="bfloat16")


unittest.main()
