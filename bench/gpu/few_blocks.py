#!/usr/bin/env python3
"""Matrix products of few rows and of long sums, whose grids do not fill the machine, against cuBLAS (torch.mm): f16 with f32
sums, sizes known. Each of our tiles is the plain program; the planner says how many blocks share a tile's loop. `alone` is
the same tile with one block for each point of the grid.

Timed as gemm_shapes.py times; every program is checked against float32 first.
  few_blocks.py [--json FILE] [--only REGEX] [--rounds 7]
"""

import torch

import programs
import table
from tilegen import f16, f32
from timing import graphs_of_right, medians, rotations, samples
from watch import watched

HALF = torch.float16
BURST = 0.008   # seconds
MEMORY = 4.8e9  # bytes of a millisecond, by the data sheet

# (tile m, n, k), threads, stages
TILES = [((64, 32, 128), 128, 8), ((64, 64, 128), 128, 6), ((64, 128, 64), 128, 8), ((64, 256, 64), 128, 4),
         ((128, 64, 64), 256, 8), ((128, 128, 64), 256, 6), ((128, 256, 64), 256, 4)]

SHAPES = {f"rows_{m}x{n}x{k}": (m, n, k) for n, k in ((6144, 4096), (28672, 8192), (8192, 28672), (2560, 2560))
          for m in (16, 32, 64, 128, 256, 512, 1024)}
SUMS = ((64, 64, 65536), (128, 128, 32768), (256, 256, 16384), (1024, 1024, 16384))
WAVES = ((2560, 2560, 2560), (4000, 4000, 4000), (384, 8192, 8192))
SHAPES |= {f"{kind}_{m}x{n}x{k}": (m, n, k) for kind, shapes in (("sums", SUMS), ("waves", WAVES)) for m, n, k in shapes}

ALONE = {"version": 1, "kernels": [{"kernel": "gemm", "split": {"parts": 1}}]}


def candidates(m, n, k, sets):
    found = {"cublas": lambda i: torch.mm(sets[i][0], sets[i][1].t(), out=sets[i][2])}
    for tile, threads, stages in TILES:
        blocks = -(-m // tile[0]) * -(-n // tile[1])
        if (tile[0] > 64 and m < 128) or blocks > 1000:
            continue
        program = programs.gemm(f16, f32, f16, tile, threads, stages, True, (m, n, k))
        planned = program.compile("cuda")
        split = planned.schedule["kernels"][0].get("split", {})
        name = f"{'x'.join(map(str, tile))} {stages}"
        forms = {f"{name} alone": planned}
        if split:
            forms = {f"{name} in {split['parts']}": planned, f"{name} alone": program.compile("cuda", schedule=ALONE)}
        for who, artifact in forms.items():
            kernel = artifact.load()
            bound = [kernel.bind(*s) for s in sets]
            found[who] = lambda i, bound=bound: bound[i]()
    return found


def measure(name, m, n, k, rounds):
    nbytes = 2 * (m * k + n * k + m * n)
    sets = [(torch.randn(m, k, device="cuda", dtype=HALF), torch.randn(n, k, device="cuda", dtype=HALF),
             torch.full((m, n), float("nan"), device="cuda", dtype=HALF)) for _ in range(rotations(nbytes, 40))]
    want = sets[0][0].float() @ sets[0][1].float().t()
    found = candidates(m, n, k, sets)
    launches = max(2, min(400, int(BURST / (2 * m * n * k / 6e14 + nbytes / 4e12 + 3e-6))))
    watch = lambda who: watched(f"program gemm, kernel gemm {who}, {m}x{n}x{k}, on {torch.cuda.get_device_name()}")
    graphs = graphs_of_right(name, found, sets, want, launches, watch)
    times = samples(graphs, launches, rounds, watch)
    ms = medians(times)
    ours = {who: t for who, t in ms.items() if who != "cublas"}
    best = min(ours, key=ours.get)
    alone = min(t for who, t in ours.items() if who.endswith("alone"))
    reading = nbytes / MEMORY
    print(f"{name:24}: ours {1e3 * ours[best]:7.2f} us  alone {1e3 * alone:7.2f}  cublas {1e3 * ms['cublas']:7.2f}  reading "
          f"{1e3 * reading:6.1f}  ratio {ms['cublas'] / ours[best]:.3f}  [{best}]  "
          + "  ".join(f"{w} {1e3 * t:.2f}" for w, t in sorted(ours.items(), key=lambda x: x[1])[:4]), flush=True)
    return {"name": name, "m": m, "n": n, "k": k, "best": best, "ms": ms, "samples": times, "alone_ms": alone,
            "ratio": ms["cublas"] / ours[best], "reading_ms": reading}


if __name__ == "__main__":
    table.main(SHAPES, lambda name, shape, rounds: measure(name, *shape, rounds))
