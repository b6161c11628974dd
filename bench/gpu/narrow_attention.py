#!/usr/bin/env python3
"""Attention of 8-bit floats, forward, heads of 128, against a kernel in Triton, and against cuDNN's attention of bf16.
  narrow_attention.py [--json FILE] [--only REGEX] [--rounds 7] [--check] [--plans]
"""
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import contest
import programs
import triton_peers
from tilegen import bf16, e4m3

DIM = 128
# Tile of queries and keys, threads, stages.
TILES = [((128, 128), 256, 2), ((128, 160), 256, 2), ((128, 192), 256, 2), ((128, 224), 256, 2)]


class Narrow(contest.Case):
    bound = 5e-2  # weights have 3 bits of mantissa

    def __init__(self, length, causal, batch=1, heads=32):
        self.shape, self.length, self.causal = (batch, heads), length, causal
        self.flops = 4.0 * batch * heads * DIM * (length * (length + 1) / 2 if causal else length * length)
        self.nbytes = 5 * batch * heads * length * DIM
        self.sizes = f"batch={batch},heads={heads},queries={length},keys={length}"

    def small(self):
        return Narrow(272, self.causal, 1, 2)

    def inputs(self, device):
        shape = (*self.shape, self.length, DIM)
        wide = {x: torch.randn(shape, device=device) for x in "qkv"}
        t = {x: y.to(torch.float8_e4m3fn) for x, y in wide.items()}
        t |= {x + "16": y.float().to(torch.bfloat16) for x, y in t.items()}
        t["v"] = t["v16"].transpose(2, 3).contiguous().to(torch.float8_e4m3fn)
        return t | {"out": torch.empty(shape, device=device, dtype=torch.bfloat16)}

    def part(self, name, tensor):
        return tensor[-1, -1]

    def reference(self, t):
        q, k, v = (t[x + "16"][-1, -1].float() for x in "qkv")
        scores = q @ k.t() / math.sqrt(DIM)
        if self.causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
        return {"out": torch.softmax(scores, -1) @ v}

    def ours(self):
        scale = math.log2(math.e) / math.sqrt(DIM)
        arguments = lambda t: (scale, t["q"], t["k"], t["v"], t["out"])
        return {f"ours {tile[0]}x{tile[1]} {threads} {stages}":
                (programs.attention(e4m3, DIM, tile, threads, stages, self.causal, out_dtype=bf16), arguments) for tile, threads, stages in TILES}

    def peers(self, t):
        def cudnn(t):
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return {"out": F.scaled_dot_product_attention(t["q16"], t["k16"], t["v16"], is_causal=self.causal)}
        scale = math.log2(math.e) / math.sqrt(DIM)
        return {"triton": triton_peers.peer(lambda t: triton_peers.narrow_attention(t["q"], t["k"], t["v"], t["out"], scale, self.causal)),
                "cudnn bf16": cudnn}


CASES = {f"narrow_{length}_{'causal' if causal else 'full'}": Narrow(length, causal) for length in (4096, 8192, 16384) for causal in (False, True)}

if __name__ == "__main__":
    contest.main(CASES, __doc__)
