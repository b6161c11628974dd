#!/usr/bin/env python3
"""Attention over latent keys (MLA, decoding): 128 heads, 512 + 64 numbers a key, one query a sequence, against products and softmax of
PyTorch, and a kernel in Triton; with the keys in pages too.
  latent_attention.py [--json FILE] [--only REGEX] [--rounds 7] [--check] [--plans]
"""
import math

import torch

import contest
import split_programs
import triton_peers
from tilegen import bf16, f16

LATENT, TURNED, PAGE = 512, 64, 64
WIDTH = LATENT + TURNED
TYPES = {"f16": (f16, torch.float16), "bf16": (bf16, torch.bfloat16)}
# Tile of heads and keys, threads, stages, tiles that the latent columns are in, blocks of a cluster.
TILES = [((64, 64), 256, 2, 1, 2), ((64, 64), 256, 2, 1, 1), ((64, 64), 256, 2, 2, 1), ((64, 32), 256, 4, 1, 1), ((64, 128), 256, 1, 2, 1), ((64, 128), 256, 1, 4, 1)]


class Latent(contest.Case):
    def __init__(self, batch, keys, dtype, paged, heads=128):
        self.batch, self.keys, self.heads, self.paged = batch, keys, heads, paged
        self.dtype, self.torch_dtype = TYPES[dtype]
        self.bound = 2e-3 if dtype == "f16" else 1e-2
        self.flops = 2.0 * batch * heads * keys * (WIDTH + LATENT)
        self.nbytes = 2 * batch * (keys * WIDTH + heads * (WIDTH + LATENT))
        self.pages = -(-keys // PAGE)
        self.scale = math.log2(math.e) / math.sqrt(192)
        self.sizes = f"batch={batch},heads={heads}," + (f"pages={batch * self.pages},most={self.pages}" if paged else f"keys={keys}")
        self.name = dtype

    def small(self):
        return Latent(2, 150, self.name, self.paged)

    def inputs(self, device):
        made = lambda *shape: torch.randn(shape, device=device).to(self.torch_dtype)
        q = made(self.batch, self.heads, WIDTH)
        t = {"q": q, "out": torch.empty_like(q[:, :, :LATENT].contiguous())}
        if not self.paged:
            return t | {"kv": made(self.batch, self.keys, WIDTH)}
        table = torch.randperm(self.batch * self.pages, device=device).to(torch.int32).view(self.batch, self.pages)
        lengths = torch.full((self.batch,), self.keys, device=device, dtype=torch.int32)
        return t | {"kv": made(self.batch * self.pages, PAGE, WIDTH), "table": table, "lengths": lengths}

    def part(self, name, tensor):
        return tensor[-1]

    def reference(self, t):
        rows = t["kv"][t["table"][-1].long()].flatten(0, 1)[: self.keys] if self.paged else t["kv"][-1]
        weights = torch.softmax(t["q"][-1].double() @ rows.double().t() * (self.scale / math.log2(math.e)), -1)
        return {"out": weights @ rows[:, :LATENT].double()}

    def ours(self):
        more = ("table", "lengths") if self.paged else ()
        arguments = lambda t: (self.scale, t["q"], t["kv"], *(t[x] for x in more), t["out"])
        page = PAGE if self.paged else 0
        # Sequences of lengths that the kernel reads are different work, which blocks of a cluster do not have.
        return {f"ours {tile[0]}x{tile[1]} {threads} {stages} / {pieces}" + (f", clusters of {cluster}" if cluster > 1 else ""):
                (split_programs.latent_attention(self.dtype, tile, threads, stages, LATENT, TURNED, page, pieces, cluster), arguments)
                for tile, threads, stages, pieces, cluster in TILES if not page or (cluster == 1 and (page % tile[1] == 0 or tile[1] % page == 0))}

    def peers(self, t):
        if self.paged:
            return {}

        def products(t):
            weights = torch.softmax(torch.bmm(t["q"], t["kv"].transpose(1, 2)).float() * (self.scale / math.log2(math.e)), -1)
            torch.bmm(weights.to(self.torch_dtype), t["kv"][:, :, :LATENT], out=t["out"])
        return {"torch": products,
                "triton": triton_peers.peer(lambda t: triton_peers.latent_attention(t["q"], t["kv"], t["out"], self.scale, LATENT))}


CASES = {f"mla_{'paged_' if paged else ''}b{batch}_{keys}_{dtype}": Latent(batch, keys, dtype, paged)
         for paged in (False, True)
         for batch, keys, dtype in ((64, 4096, "f16"), (64, 8192, "f16"), (128, 4096, "f16"), (128, 8192, "f16"), (64, 8192, "bf16"), (128, 8192, "bf16"))}

if __name__ == "__main__":
    contest.main(CASES, __doc__)
