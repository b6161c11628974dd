#!/usr/bin/env python3
"""Matrix products of many shapes and layouts against cuBLAS (torch.mm), f16 with f32 sums.

CUDA graphs of back-to-back launches over input sets that rotate past the L2, short bursts after a rest, shuffled order,
medians; every program is checked against float32 first. Each of our tiles is a plain program; the best is reported.
  gemm_shapes.py [--json FILE] [--only REGEX] [--rounds 7]
"""

import torch

import programs
import table
from tilegen import f16, f32
from timing import graphs_of_right, medians, rotations, samples
from watch import watched

HALF = torch.float16
BURST = 0.012   # seconds

# (tile m, n, k), threads, stages: the second row is for products of few tiles.
TILES = [((128, 256, 64), 256, 4), ((256, 128, 64), 256, 4), ((128, 128, 64), 256, 6),
         ((128, 64, 64), 256, 8), ((64, 64, 64), 128, 8), ((64, 128, 64), 128, 8), ((64, 64, 128), 128, 4), ((64, 256, 64), 128, 4)]

# name -> (m, n, k, layout): the first letter tells A's layout, the second B's; t = stored transposed.
SHAPES = {f"{name}_{layout}": (*shape, layout)
          for name, shape in (("M1", (4096, 8192, 8192)), ("M5", (8192, 8192, 8192)))
          for layout in ("nn", "nt", "tn", "tt")}
SHAPES |= {f"cube_{s}": (s, s, s, "nt") for s in (2048, 4096)}
SHAPES |= {f"flat_{k}": (8192, 8192, k, "nt") for k in (512, 1024, 2048)}
SHAPES |= {f"ragged_{m}x{n}x{k}": (m, n, k, "nt") for m, n, k in ((8191, 8190, 8184), (1000, 776, 520), (4097, 4095, 4104))}


def inputs(m, n, k, layout):
    a = torch.randn(*((k, m) if layout[0] == "t" else (m, k)), device="cuda", dtype=HALF)
    b = torch.randn(*((n, k) if layout[1] == "t" else (k, n)), device="cuda", dtype=HALF)
    return a, b, torch.full((m, n), float("nan"), device="cuda", dtype=HALF)


def views(a, b, layout):
    return (a.t() if layout[0] == "t" else a), (b.t() if layout[1] == "t" else b)


def candidates(m, n, k, layout, sets):
    def cublas(i):
        a, b = views(sets[i][0], sets[i][1], layout)
        torch.mm(a, b, out=sets[i][2])
    found = {"cublas": cublas}
    for tile, threads, stages in TILES:
        if tile[0] * tile[1] < 128 * 128 and m * n > 1000 * tile[0] * tile[1]:
            continue  # many rounds of small tiles
        for shape in (None, (m, n, k)):  # any sizes, these sizes
            kernel = programs.gemm(f16, f32, f16, tile, threads, stages, layout[1] == "t", shape, layout[0] == "t")
            kernel = kernel.compile("cuda").load()
            bound = [kernel.bind(*s) for s in sets]
            name = f"{'x'.join(map(str, tile))} {stages}" + (" known sizes" if shape else "")
            found[name] = lambda i, bound=bound: bound[i]()
    return found


def measure(name, m, n, k, layout, rounds):
    nbytes = 2 * (m * k + n * k + m * n)
    sets = [inputs(m, n, k, layout) for _ in range(rotations(nbytes, 40))]
    a, b = views(sets[0][0], sets[0][1], layout)
    want = a.float() @ b.float()
    found = candidates(m, n, k, layout, sets)
    launches = max(2, min(400, int(BURST / (2 * m * n * k / 6e14 + 3e-6))))
    watch = lambda who: watched(f"program gemm, kernel gemm {who}, {m}x{n}x{k} {layout}, on {torch.cuda.get_device_name()}")
    graphs = graphs_of_right(name, found, sets, want, launches, watch)
    times = samples(graphs, launches, rounds, watch)
    ms = medians(times)
    ours = {who: t for who, t in ms.items() if who != "cublas"}
    best = min(ours, key=ours.get)
    rate = 2 * m * n * k / 1e9
    print(f"{name:24} {m}x{n}x{k} {layout}: ours {rate / ours[best]:6.1f}  cublas {rate / ms['cublas']:6.1f}  "
          f"ratio {ms['cublas'] / ours[best]:.3f}  [{best}]  "
          + "  ".join(f"{w} {ms['cublas'] / t:.3f}" for w, t in ours.items()), flush=True)
    return {"name": name, "m": m, "n": n, "k": k, "layout": layout, "best": best, "ms": ms,
            "samples": times, "ratio": ms["cublas"] / ours[best], "tflops": rate / ours[best]}


table.main(SHAPES, lambda name, shape, rounds: measure(name, *shape, rounds))
