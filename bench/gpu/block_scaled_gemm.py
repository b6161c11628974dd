#!/usr/bin/env python3
"""Products of 8-bit floats with scales of 128 columns of A's rows and of 128 x 128 blocks of B, against PyTorch's operators of the
same and a kernel in Triton.
  block_scaled_gemm.py [--json FILE] [--only REGEX] [--rounds 7] [--check] [--plans]
"""
import torch

import contest
import product_programs
import triton_peers
from programs import ceil_div
from tilegen import e4m3

# (tile m, n), threads, stages
TILES = [((192, 128), 384, 4), ((192, 128), 384, 3), ((128, 128), 256, 4), ((64, 128), 128, 6), ((64, 128), 128, 4), ((128, 64), 256, 6),
         ((64, 64), 128, 8), ((64, 64), 128, 6)]


class BlockScaled(contest.Case):
    bound = 5e-3

    def __init__(self, m, n, k):
        self.m, self.n, self.k = m, n, k
        self.flops, self.nbytes = 2.0 * m * n * k, m * k + n * k + 2 * m * n
        self.sizes = f"m={m},n={n},k={k}"

    def small(self):
        return BlockScaled(70, 272, 272)

    def inputs(self, device):
        narrow = lambda *shape: torch.randn(shape, device=device).to(torch.float8_e4m3fn)
        scales = lambda *shape: torch.rand(shape, device=device) + 0.1
        blocks = ceil_div(self.k, 128)
        return {"a": narrow(self.m, self.k), "b": narrow(self.n, self.k), "sa": scales(blocks, self.m),
                "sb": scales(ceil_div(self.n, 128), blocks), "out": torch.empty(self.m, self.n, device=device, dtype=torch.bfloat16)}

    def reference(self, t):
        a = t["a"].float() * t["sa"].t().repeat_interleave(128, 1)[:, : self.k]
        b = t["b"].float() * t["sb"].repeat_interleave(128, 0)[: self.n].repeat_interleave(128, 1)[:, : self.k]
        return {"out": a @ b.t()}

    def ours(self):
        arguments = lambda t: (t["a"], t["b"], t["sa"], t["sb"], t["out"])
        return {f"ours {tile[0]}x{tile[1]} {threads} {stages}{known}":
                (product_programs.block_scaled_gemm(e4m3, tile, threads, stages, shape=shape), arguments)
                for tile, threads, stages in TILES for known, shape in (("", None), (" known sizes", (self.m, self.n, self.k)))}

    def peers(self, t):
        def scaled_mm(t):
            from torch.nn.functional import ScalingType, scaled_mm
            return {"out": scaled_mm(t["a"], t["b"].t(), t["sa"].t(), ScalingType.BlockWise1x128, t["sb"].t(), ScalingType.BlockWise128x128,
                                     output_dtype=torch.bfloat16)}
        return {"torch._scaled_mm": lambda t: {"out": torch._scaled_mm(t["a"], t["b"].t(), t["sa"].t(), t["sb"].t(), out_dtype=torch.bfloat16)},
                "torch scaled_mm": scaled_mm,
                "triton": triton_peers.peer(lambda t: triton_peers.block_scaled_gemm(*(t[x] for x in ("a", "b", "sa", "sb", "out"))))}


CASES = {f"block_{m}x{n}x{k}": BlockScaled(m, n, k) for m, n, k in ((4096, 7168, 2048), (4096, 2048, 7168), (128, 7168, 4096))}

if __name__ == "__main__":
    contest.main(CASES, __doc__)
