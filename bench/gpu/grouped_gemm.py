#!/usr/bin/env python3
"""Products by groups of rows (experts), bf16, against PyTorch's grouped operator and a product of cuBLAS for each group.
  grouped_gemm.py [--json FILE] [--only REGEX] [--rounds 7] [--check] [--plans]
"""
import torch

import contest
import product_programs
from tilegen import bf16

# (tile m, n, k), threads, stages
TILES = [((128, 256, 64), 256, 4), ((256, 128, 64), 256, 4), ((128, 128, 64), 256, 6), ((64, 128, 64), 128, 8), ((64, 256, 64), 128, 4)]


class Grouped(contest.Case):
    bound = 5e-3

    def __init__(self, sizes, n, k):
        self.rows, self.n, self.k = sizes, n, k
        self.total = sum(sizes)
        self.flops, self.nbytes = 2.0 * self.total * n * k, 2 * (self.total * (n + k) + len(sizes) * n * k)
        self.sizes = f"groups={len(sizes)},total={self.total},most={max(sizes)},n={n},k={k}"

    def small(self):
        return Grouped([70, 0, 200, 1], 264, 136)

    def inputs(self, device):
        a = torch.randn(self.total, self.k, device=device).to(torch.bfloat16)
        b = torch.randn(len(self.rows), self.n, self.k, device=device).to(torch.bfloat16)
        ends = torch.tensor([0, *self.rows], device=device).cumsum(0).to(torch.int32)
        return {"a": a, "b": b, "ends": ends, "out": torch.empty(self.total, self.n, device=device, dtype=torch.bfloat16)}

    def _each(self, t):
        begin = 0
        for g, rows in enumerate(self.rows):
            yield g, slice(begin, begin + rows)
            begin += rows

    def reference(self, t):
        return {"out": torch.cat([t["a"][rows].float() @ t["b"][g].float().t() for g, rows in self._each(t)])}

    def ours(self):
        arguments = lambda t: (len(self.rows), self.total, max(self.rows), self.n, self.k, t["a"], t["b"], t["ends"], t["out"])
        return {f"ours {'x'.join(map(str, tile))} {stages}": (product_programs.grouped_gemm(bf16, bf16, tile, threads, stages), arguments)
                for tile, threads, stages in TILES}

    def peers(self, t):
        def cublas(t):
            for g, rows in self._each(t):
                torch.mm(t["a"][rows], t["b"][g].t(), out=t["out"][rows])
        return {"torch._grouped_mm": lambda t: {"out": torch._grouped_mm(t["a"], t["b"].transpose(1, 2), offs=t["ends"][1:])},
                "cublas, a group at a time": cublas}


def spread(groups, total, seed=1):
    """Rows of each group, as a router leaves them: uneven, some without any."""
    generator = torch.Generator().manual_seed(seed)
    share = torch.distributions.Exponential(1.0).icdf(torch.rand(groups, generator=generator).clamp(1e-3, 0.999))
    rows = (share / share.sum() * total).long()
    rows[0] += total - rows.sum()
    return rows.tolist()


CASES = {"even_8x4096_n4096_k4096": Grouped([4096] * 8, 4096, 4096), "even_32x512_n4096_k2048": Grouped([512] * 32, 4096, 2048),
         "even_64x128_n2048_k7168": Grouped([128] * 64, 2048, 7168), "uneven_8_32768_n4096_k4096": Grouped(spread(8, 32768), 4096, 4096),
         "uneven_64_8192_n4096_k2048": Grouped(spread(64, 8192), 4096, 2048), "decode_64x4_n4096_k2048": Grouped([4] * 64, 4096, 2048)}

if __name__ == "__main__":
    contest.main(CASES, __doc__)
