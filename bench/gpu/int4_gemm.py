#!/usr/bin/env python3
"""Products with weights of 4 bits, groups of 128 with a scale each, f16, against PyTorch's operator (bf16) and the product of decoded
weights by cuBLAS.
  int4_gemm.py [--json FILE] [--only REGEX] [--rounds 7] [--check] [--plans]
"""
import torch

import contest
import product_programs
import tilegen as tg

GROUP = 128
# (tile m, n, k), threads, stages; by the rows of the left operand
TILES = {16: [((16, 64, 256), 128, 4), ((16, 128, 256), 256, 4), ((16, 64, 128), 128, 4), ((16, 128, 128), 256, 4)],
         64: [((64, 64, 128), 128, 4), ((64, 128, 128), 256, 4), ((64, 64, 256), 128, 3)],
         256: [((256, 128, 64), 256, 3), ((128, 128, 128), 256, 3), ((256, 64, 64), 128, 3)],
         4096: [((256, 128, 64), 256, 3), ((256, 128, 128), 256, 2), ((128, 128, 64), 256, 4)]}


class Int4(contest.Case):
    def __init__(self, m, n, k):
        self.m, self.n, self.k = m, n, k
        self.flops, self.nbytes = 2.0 * m * n * k, n * k // 2 + n * k // GROUP * 2 + 2 * m * (n + k)
        self.sizes = f"m={m},n={n},k={k}"

    def small(self):
        return Int4(min(self.m, 70), 136, 256)

    def inputs(self, device):
        x = torch.randn(self.m, self.k, device=device).to(torch.float16)
        bytes_ = torch.randint(0, 256, (self.n, self.k // 2), device=device, dtype=torch.uint8)
        s = (torch.rand(self.k // GROUP, self.n, device=device) * 0.1 + 0.01).to(torch.float16)
        return {"x": x, "bytes": bytes_, "words": bytes_.view(torch.int32), "s": s,
                "out": torch.empty(self.m, self.n, device=device, dtype=torch.float16)}

    @staticmethod
    def _codes(t):
        return torch.stack([t["bytes"] & 15, t["bytes"] >> 4], -1).flatten(1)

    def _decoded(self, t):
        return ((self._codes(t).float() - 8) * t["s"].t().float().repeat_interleave(GROUP, 1)).to(torch.float16)

    def reference(self, t):
        return {"out": t["x"].float() @ self._decoded(t).float().t()}

    def ours(self):
        tiles = TILES[min(m for m in TILES if self.m <= m)]
        found = {}
        for tile, threads, stages in tiles:
            for key, word in (("bytes", tg.u8), ("words", tg.i32)):
                for shape in (None, (self.m, self.n, self.k)):
                    who = f"ours {'x'.join(map(str, tile))} {threads} {stages} {word.name}{' known sizes' if shape else ''}"
                    found[who] = (product_programs.int4_gemm(tile, threads, stages, word, GROUP, shape=shape),
                                  lambda t, key=key: (t["x"], t[key], t["s"], t["out"]))
        return found

    def peers(self, t):
        kept = {}

        def dense(t):
            if id(t) not in kept:
                kept[id(t)] = self._decoded(t).t()
            torch.mm(t["x"], kept[id(t)], out=t["out"])
        return {"cublas of decoded weights": dense}


CASES = {f"int4_m{m}_{n}x{k}": Int4(m, n, k) for n, k in ((16384, 16384), (8192, 28672)) for m in (1, 16, 64, 256, 4096)}

if __name__ == "__main__":
    contest.main(CASES, __doc__)
