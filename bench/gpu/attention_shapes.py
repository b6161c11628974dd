#!/usr/bin/env python3
"""Attention forward of many head dimensions and forms against cuDNN (torch's scaled_dot_product_attention), f16.

Every program is checked against float32 first; each of our tiles is the same plain program, the best is reported.
  attention_shapes.py [--json FILE] [--only REGEX] [--rounds 7]
"""
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import programs
import table
from tilegen import f16
from timing import captured, medians, rotations, samples
from watch import watched

HALF = torch.float16
BURST = 0.008  # seconds

# head dimension -> (tile of queries, keys), threads, stages
TILES = {64: [((192, 128), 384, 2), ((128, 128), 256, 2)], 80: [((128, 128), 256, 2)], 96: [((128, 128), 256, 2)],
         128: [((128, 128), 256, 2)], 192: [((128, 96), 256, 2)], 256: [((128, 80), 256, 2), ((128, 64), 256, 2)]}

# name -> batch, query heads, heads of keys and values, length, head dimension, causal
SHAPES = {f"d{d}_{'causal' if causal else 'full'}": (1, 32 if d < 192 else 16, 32 if d < 192 else 16, 8192, d, causal)
          for d in TILES for causal in (True, False)}
SHAPES |= {"gqa_64_8_causal": (1, 64, 8, 8192, 128, True), "gqa_64_8_full": (1, 64, 8, 8192, 128, False)}


def reference(q, k, v, group, causal):
    """The last two heads of the last batch, in float32."""
    rows = []
    for h in (q.shape[1] - 2, q.shape[1] - 1):
        scores = q[-1, h].float() @ k[-1, h // group].float().t() / math.sqrt(q.shape[-1])
        if causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
        rows.append(torch.softmax(scores, -1) @ v[-1, h // group].float())
    return torch.stack(rows)


def contenders(sets, dim, group, causal):
    def cudnn(i):
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            sets[i]["out"] = F.scaled_dot_product_attention(*(sets[i][x] for x in "qkv"), is_causal=causal,
                                                            enable_gqa=group > 1)
    found = {"cudnn": cudnn}
    for tile, threads, stages in TILES[dim]:
        kernel = programs.attention(f16, dim, tile, threads, stages, causal, group).compile("cuda").load()
        launches = [kernel.bind(math.log2(math.e) / math.sqrt(dim), s["q"], s["k"], s["v"], s["ours"]) for s in sets]
        found["x".join(map(str, tile))] = lambda i, launches=launches: launches[i]()
    return found


def measure(name, batch, heads, kv_heads, length, dim, causal, rounds):
    group = heads // kv_heads
    shapes = {"q": heads, "k": kv_heads, "v": kv_heads, "ours": heads}
    nbytes = 2 * batch * length * dim * sum(shapes.values())
    sets = [{x: torch.randn(batch, h, length, dim, device="cuda", dtype=HALF) for x, h in shapes.items()}
            for _ in range(rotations(nbytes, 8))]
    want = reference(*(sets[0][x] for x in "qkv"), group, causal)
    flops = 4.0 * batch * heads * length * length * dim * (0.5 if causal else 1.0)
    launches = max(2, int(BURST / (flops / 6e14)))
    watch = lambda who: watched(f"program attention, {name} {who}, on {torch.cuda.get_device_name()}")
    graphs, errors = {}, {}
    found = contenders(sets, dim, group, causal)  # a graph's kernels live as long as it is launched
    for who, fn in found.items():
        sets[0]["ours"].fill_(float("nan"))
        with watch(who):
            fn(0)
            torch.cuda.synchronize()
        got = sets[0]["out" if who == "cudnn" else "ours"][-1, -2:].float()
        errors[who] = float((got - want).norm() / want.norm())
        if not errors[who] < 1e-3:
            print(f"{name}: {who} is wrong: {errors[who]}", flush=True)
            continue
        with watch(who):
            graphs[who] = captured(fn, len(sets), launches)
    times = samples(graphs, launches, rounds, watch)
    ms = medians(times)
    best = min((who for who in ms if who != "cudnn"), key=ms.get)
    rate = {who: flops / t / 1e9 for who, t in ms.items()}
    print(f"{name:18} {batch}x{heads}/{kv_heads}x{length}x{dim}: ours {rate[best]:6.1f}  cudnn {rate['cudnn']:6.1f}  ratio "
          f"{ms['cudnn'] / ms[best]:.3f}  [{best}]  error {errors[best]:.1e}, cudnn's {errors['cudnn']:.1e}", flush=True)
    return {"name": name, "batch": batch, "heads": heads, "kv_heads": kv_heads, "length": length, "dim": dim, "causal": causal,
            "best": best, "ms": ms, "samples": times, "errors": errors, "ratio": ms["cudnn"] / ms[best], "tflops": rate[best]}


table.main(SHAPES, lambda name, shape, rounds: measure(name, *shape, rounds))
