#!/usr/bin/env python3
"""Matrix products whose program asks for no number of stages, as planned and with four: f16 with f32 sums, sizes known.

Timed as gemm_shapes.py times; every program is checked against float32 first.
  default_stages.py [--json FILE] [--only REGEX] [--rounds 7]
"""

import torch

import programs
import table
from tilegen import f16, f32
from timing import graphs_of_right, medians, rotations, samples
from watch import watched

HALF = torch.float16
BURST = 0.008  # seconds
TILES = [((64, 64, 64), 128), ((64, 64, 128), 128), ((64, 128, 64), 128), ((128, 64, 64), 256), ((128, 128, 64), 256)]
SHAPES = {f"{m}x{n}x{k}": (m, n, k) for m, n, k in (
    (64, 2560, 2560), (128, 2560, 2560), (256, 2560, 2560), (64, 6144, 4096), (128, 6144, 4096), (256, 6144, 4096),
    (64, 8192, 28672), (128, 8192, 28672), (128, 128, 32768), (64, 64, 65536), (256, 256, 16384), (1024, 1024, 16384))}


def plan_words(artifact):
    kernel = artifact.schedule["kernels"][0]
    return f"{kernel['loops'][0]['num_stages']} stages, {kernel.get('split', {}).get('parts', 1)} parts"


def measure(name, m, n, k, rounds):
    sets = [(torch.randn(m, k, device="cuda", dtype=HALF), torch.randn(n, k, device="cuda", dtype=HALF),
             torch.full((m, n), float("nan"), device="cuda", dtype=HALF))
            for _ in range(rotations(2 * (m * k + n * k + m * n), 40))]
    want = sets[0][0].float() @ sets[0][1].float().t()
    launches = max(2, min(400, int(BURST / (2 * m * n * k / 6e14 + n * k / 2e12 + 3e-6))))
    watch = lambda who: watched(f"program gemm, kernel gemm {who}, {m}x{n}x{k}, on {torch.cuda.get_device_name()}")
    found, plans = {}, {}
    for tile, threads in TILES:
        for stages in (0, 4):
            artifact = programs.gemm(f16, f32, f16, tile, threads, stages, True, (m, n, k)).compile("cuda")
            kernel = artifact.load()
            who = f"{'x'.join(map(str, tile))} {'default' if stages == 0 else 'four'}"
            plans[who] = plan_words(artifact)
            found[who] = lambda i, bound=[kernel.bind(*s) for s in sets]: bound[i]()
    graphs = graphs_of_right(name, found, sets, want, launches, watch)
    times = samples(graphs, launches, rounds, watch)
    ms = medians(times)
    print(f"{name:18} " + "  ".join(f"{w} {1e3 * t:.2f} ({plans[w]})" for w, t in ms.items()), flush=True)
    return {"name": name, "m": m, "n": n, "k": k, "ms": ms, "plans": plans, "samples": times}


if __name__ == "__main__":
    table.main(SHAPES, lambda name, shape, rounds: measure(name, *shape, rounds))
