#!/usr/bin/env python3
"""Linear attention with decay (retention), f16, in chunks whose state stays with the block, against a kernel in Triton.
  linear_attention.py [--json FILE] [--only REGEX] [--rounds 7] [--check] [--plans]
"""
import torch

import contest
import scan_programs
import triton_peers
from tilegen import f16

# (places of a chunk, columns of V), threads, stages
TILES = [((64, 64), 128, 2), ((64, 64), 128, 3), ((64, 32), 128, 2), ((128, 64), 256, 2), ((64, 128), 256, 2)]


class Retention(contest.Case):
    def __init__(self, batch, heads, length, keys=128, values=128):
        self.shape, self.keys, self.values = (batch, heads, length), keys, values
        self.nbytes = 2 * batch * heads * length * 2 * (keys + values)
        self.flops = 2.0 * batch * heads * length * (2 * keys * values + 64 * (keys + values))  # with chunks of 64
        self.sizes = f"batch={batch},heads={heads},length={length}"

    def small(self):
        return Retention(1, 2, 300, self.keys, self.values)

    def inputs(self, device):
        batch, heads, length = self.shape
        half = lambda width: torch.randn(batch, heads, length, width, device=device).to(torch.float16)
        decay = torch.log2(1 - 2.0 ** -torch.linspace(5, 8, heads, device=device))
        v = half(self.values)
        return {"q": half(self.keys) * 0.1, "k": half(self.keys) * 0.1, "v": v, "decay": decay, "out": torch.empty_like(v)}

    def part(self, name, tensor):
        return tensor[-1, -1]

    def reference(self, t):
        q, k, v = (t[x][-1, -1].float() for x in "qkv")
        at = torch.arange(q.shape[0], device=q.device)
        away = (at[:, None] - at[None, :]).float()
        weights = torch.where(away >= 0, torch.exp2(t["decay"][-1] * away.clamp(min=0)), 0.0)
        return {"out": (q @ k.t() * weights) @ v}

    def ours(self):
        arguments = lambda t: (t["q"], t["k"], t["v"], t["decay"], t["out"])
        return {f"ours {tile[0]}x{tile[1]} {threads} {stages}":
                (scan_programs.retention(f16, tile, threads, stages, self.keys, self.values), arguments) for tile, threads, stages in TILES}

    def peers(self, t):
        return {"triton": triton_peers.peer(lambda t: triton_peers.retention(t["q"], t["k"], t["v"], t["decay"], t["out"]))}


CASES = {f"retention_b{batch}_h{heads}_{length}": Retention(batch, heads, length)
         for batch, heads, length in ((8, 32, 2048), (8, 32, 4096), (2, 32, 8192), (1, 16, 16384))}

if __name__ == "__main__":
    contest.main(CASES, __doc__)
