"""attention_split of bench/gpu/programs.py computes what its attention does, and how many parts it says keep a GPU busy.
attention_split_test.py SOURCE"""
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
        split = programs.attention_split(tg.f16, DIM, TILE, 128, 2, group=group, row_sums=True, passed=passed, together=4, **options)
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
            self.assertEqual(programs.split_parts(tiles, blocks), parts, (tiles, blocks))


unittest.main()
