#!/usr/bin/env python3
"""Attention of few queries to many keys that lie in pages, split over the keys, f16, against a kernel in Triton, and against
FlashAttention-2 and cuDNN of PyTorch on keys in a row. What counts is reading K and V once.
  paged_decode.py [--json FILE] [--only REGEX] [--rounds 7] [--check] [--plans]
"""
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import contest
import split_programs
import triton_peers
from programs import ceil_div
from tilegen import f16

DIM = 128
PROCESSORS = torch.cuda.get_device_properties(0).multi_processor_count if torch.cuda.is_available() else 132
# Tile of queries and keys, threads, stages.
TILES = [((64, 64), 128, 4), ((64, 64), 128, 5), ((16, 64), 128, 6), ((64, 128), 128, 2), ((16, 128), 128, 3)]


class PagedDecode(contest.Case):
    def __init__(self, batch, heads, kv_heads, queries, keys, page):
        self.shape, self.page = (batch, heads, kv_heads, queries, keys), page
        self.batch, self.kv_heads, self.queries, self.keys = batch, kv_heads, queries, keys
        self.rows = queries * (heads // kv_heads)
        self.pages = ceil_div(keys, page)
        self.nbytes = 2 * 2 * batch * kv_heads * keys * DIM
        self.flops = 4 * batch * kv_heads * self.rows * keys * DIM
        self.scale = math.log2(math.e) / math.sqrt(DIM)
        self.sizes = (f"batch={batch},heads={kv_heads},queries={queries},pages={batch * self.pages},most={self.pages},"
                      f"parts={self.parts((64, 64))}")

    def small(self):
        _, heads, kv_heads, queries, _ = self.shape
        return PagedDecode(2, 2 * heads // kv_heads, 2, queries, 300, self.page)

    def parts(self, tile):
        tiles = self.batch * self.kv_heads * ceil_div(self.rows, tile[0])
        return split_programs.split_parts(tiles, ceil_div(self.keys, tile[1]), PROCESSORS)

    def inputs(self, device):
        half = lambda *shape: torch.randn(shape, device=device).to(torch.float16)
        kept = (self.batch * self.pages, self.page, self.kv_heads, DIM)
        q = half(self.batch, self.kv_heads, self.rows, DIM)
        table = torch.randperm(self.batch * self.pages, device=device).to(torch.int32).view(self.batch, self.pages)
        lengths = torch.full((self.batch,), self.keys, device=device, dtype=torch.int32)
        return {"q": q, "k": half(*kept), "v": half(*kept), "table": table, "lengths": lengths, "out": torch.empty_like(q)}

    def part(self, name, tensor):
        return tensor[-1]

    def reference(self, t):
        k, v = (t[x][t["table"][-1].long()].flatten(0, 1)[: self.keys].transpose(0, 1).float() for x in "kv")
        scores = t["q"][-1].float() @ k.transpose(1, 2) / math.sqrt(DIM)
        return {"out": torch.softmax(scores, -1) @ v}

    def ours(self):
        found = {}
        group = self.rows // self.queries
        for tile, threads, stages in TILES:
            if self.page % tile[1] and tile[1] % self.page:
                continue
            parts = self.parts(tile)
            program = split_programs.attention_split(f16, DIM, tile, threads, stages, group=group, page=self.page)
            found[f"ours {tile[0]}x{tile[1]} {stages} / {parts}"] = (program, lambda t, parts=parts: (
                self.batch, self.kv_heads, self.queries, None, None, parts, self.scale, t["q"], t["k"], t["v"], t["table"], t["lengths"],
                t["out"]))
        return found

    def peers(self, t):
        found = {}
        for parts in sorted({self.parts((64, 64)), 2 * self.parts((64, 64))}):
            between = [torch.empty(self.batch * self.kv_heads, parts, self.rows, *width, device=t["q"].device) for width in ([DIM], [])]
            found[f"triton / {parts}"] = triton_peers.peer(lambda t, parts=parts, between=between: triton_peers.paged_decode(
                t["q"], t["k"], t["v"], t["table"], t["lengths"], t["out"], self.scale, parts, between))

        def in_a_row(backend):
            kept = {}

            def run(t):
                if id(t) not in kept:
                    kept[id(t)] = [t[x][t["table"].long()].flatten(1, 2)[:, : self.keys].transpose(1, 2).contiguous() for x in "kv"]
                q = t["q"].view(self.batch, -1, self.queries, DIM)
                with sdpa_kernel(backend):
                    out = F.scaled_dot_product_attention(q, *kept[id(t)], enable_gqa=self.rows > self.queries)
                return {"out": out.view(self.batch, self.kv_heads, self.rows, DIM)}
            return run
        return found | {"flash, keys in a row": in_a_row(SDPBackend.FLASH_ATTENTION),
                        "cudnn, keys in a row": in_a_row(SDPBackend.CUDNN_ATTENTION)}


SHAPES = {"b1_32_8_q1_8k": (1, 32, 8, 1, 8192), "b1_32_8_q1_128k": (1, 32, 8, 1, 131072), "b8_32_8_q1_8k": (8, 32, 8, 1, 8192),
          "b1_32_32_q16_16k": (1, 32, 32, 16, 16384), "b4_64_8_q1_32k": (4, 64, 8, 1, 32768)}
CASES = {f"paged{page}_{name}": PagedDecode(*shape, page) for name, shape in SHAPES.items() for page in (64, 128)}

if __name__ == "__main__":
    contest.main(CASES, __doc__)
