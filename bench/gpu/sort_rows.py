#!/usr/bin/env python3
"""Rows in order, and the first of each, with their places: sort and topk of the language beside torch.sort and torch.topk.
  sort_rows.py [--json FILE] [--only REGEX] [--rounds 7] [--check] [--plans]
"""
import torch

import contest
import tilegen as tg
from programs import ceil_div

ELEMENTS = 1 << 24
NAMES = {torch.float32: tg.f32, torch.float16: tg.f16}
# rows of a block, threads
BLOCKS = [(16, 128), (4, 128), (4, 256), (1, 128), (1, 256), (1, 512)]
MOST = 32  # elements of a thread


def program(cols, first, dtype, rows, threads, places):
    """Of each row the elements in ascending order, or the `first` ones in descending order."""
    b = tg.Builder("sort_rows")
    m, wanted = b.dim("m"), first or cols
    X = b.tensor("X", dtype, [m, cols], read_only=True)
    Y = b.tensor("Y", dtype, [m, wanted])
    P = b.tensor("P", tg.i32, [m, wanted]) if places else None
    with b.kernel("sort_rows", [ceil_div(m, rows)], threads=threads) as block:
        x, y = b.fragment("x", dtype, [rows, cols]), b.fragment("y", dtype, [rows, wanted])
        p = b.fragment("p", tg.i32, [rows, wanted]) if places else None
        b.copy(X[block * rows, 0], x)
        if first:
            b.top_k(x, y, 1, index=p)
        else:
            b.sort(x, y, 1, index=p)
        b.copy(y, Y[block * rows, 0])
        if places:
            b.copy(p, P[block * rows, 0])
    return b.finish()


class Rows(contest.Case):
    bound = 1e-6

    def __init__(self, cols, first=0, dtype=torch.float32, places=True, count=None):
        self.cols, self.first, self.dtype, self.places = cols, first, dtype, places
        self.count = count or ELEMENTS // cols
        self.results = ("out", "at") if places else ("out",)
        self.flops = 0
        size = torch.finfo(dtype).bits // 8
        self.nbytes = self.count * (cols * size + (first or cols) * (size + 4 * places))
        self.sizes = f"m={self.count}"

    def small(self):
        return Rows(self.cols, self.first, self.dtype, self.places, 5)

    def inputs(self, device):
        """Each row a permutation; pairs of equal elements where all are sorted, since torch.topk leaves open which is first. f16 has
        all of them."""
        x = torch.rand(self.count, self.cols, device=device).argsort(1)
        x = x - self.cols // 2 if self.first else x // 2 - self.cols // 4
        shape = (self.count, self.first or self.cols)
        return {"x": x.to(self.dtype), "out": torch.empty(shape, device=device, dtype=self.dtype),
                "at": torch.empty(shape, device=device, dtype=torch.int32)}

    def reference(self, t):
        values, at = torch.sort(t["x"].float(), dim=1, descending=bool(self.first), stable=True)
        return {"out": values[:, :self.first or self.cols], "at": at[:, :self.first or self.cols]}

    def ours(self):
        found = {}
        for rows, threads in BLOCKS:
            each = rows * self.cols / threads
            if not 1 <= each <= MOST:
                continue
            found[f"ours {rows} rows, {threads} threads"] = (
                program(self.cols, self.first, NAMES[self.dtype], rows, threads, self.places),
                lambda t: (t["x"], t["out"], t["at"]) if self.places else (t["x"], t["out"]))
        return found

    def peers(self, t):
        def torch_sort(t, stable):
            values, at = torch.sort(t["x"], dim=1, stable=stable)
            return {"out": values, "at": at}

        def torch_topk(t):
            values, at = torch.topk(t["x"], self.first, 1)
            return {"out": values, "at": at}
        if self.first:
            return {"torch.topk": torch_topk}
        return {"torch.sort stable": lambda t: torch_sort(t, True)} | (
            {} if self.places else {"torch.sort": lambda t: torch_sort(t, False)})


CASES = {}
for cols in (32, 64, 256, 1024, 4096):
    CASES[f"sort_f32_{cols}"] = Rows(cols)
    CASES[f"sort_f32_{cols}_values"] = Rows(cols, places=False)
    CASES[f"sort_f16_{cols}"] = Rows(cols, dtype=torch.float16)
for cols in (256, 4096):
    for first in (8, 32):
        CASES[f"topk_f32_{first}_of_{cols}"] = Rows(cols, first)
        CASES[f"topk_f16_{first}_of_{cols}"] = Rows(cols, first, torch.float16)

if __name__ == "__main__":
    contest.main(CASES, __doc__)
