#!/usr/bin/env python3
"""Matrix products of few rows and of long sums, whose grids do not fill the machine, against the fastest of cuBLAS
(torch.mm), cuBLASLt and Triton: f16 with f32 sums, sizes known. One plain program, whose tiles are compile-time parameters:
the cost model puts their configurations in order, the first few are measured. The planner says how many blocks share a
tile's loop; `alone` is the same tile with one block for each point of the grid.

Timed as gemm_shapes.py times; every program is checked against float32 first.
  few_blocks.py [--json FILE] [--only REGEX] [--rounds 7]
Other processes rank the configurations and load the code of the first ones, so that the driver's cache has it.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys

import tilegen as tg

BODY = """tensor A: f16[{m}, {k}] readonly
tensor B: f16[{n}, {k}] readonly
tensor C: f16[{m}, {n}]
kernel gemm grid (by: ceildiv({m}, BM), bx: ceildiv({n}, BN)) threads THREADS {{
  alloc As: shared f16[BM, BK]
  alloc Bs: shared f16[BN, BK]
  alloc acc: fragment f32[BM, BN]
  fill acc, 0.0f32
  pipelined ko in 0 .. ceildiv({k}, BK) {{
    copy A[by * BM :+ BM, ko * BK :+ BK] -> As
    copy B[bx * BN :+ BN, ko * BK :+ BK] -> Bs
    gemm As, Bs -> acc {{transpose_b}}
  }}
  copy acc -> C[by * BM :+ BM, bx * BN :+ BN]
}}
"""
# B is weights: blocks may read it before the kernel in front has ended.
OF_WEIGHTS = BODY.replace("tensor B: f16[{n}, {k}] readonly", "tensor B: f16[{n}, {k}] constant")
PARAMS = """tl 1 program gemm
param BM in {{16, 32, 64, 128, 192, 256}}
param BN in {{16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 208, 224, 256}}
param BK in {{64, 128, 256}}
param THREADS in {{128, 256, 384}}
"""
TRIED = 6       # configurations, the first of the model's order
ALGORITHMS = 8  # of cuBLASLt, the first of its heuristic's
BURST = 0.008   # seconds
WEIGHTS = ", weights constant"
MEMORY = 4.8e9  # bytes of a millisecond, by the data sheet

SHAPES = {f"rows_{m}x{n}x{k}": (m, n, k) for n, k in ((6144, 4096), (28672, 8192), (8192, 28672), (2560, 2560))
          for m in (16, 32, 64, 128, 256, 512, 1024)}
SUMS = ((64, 64, 65536), (128, 128, 32768), (256, 256, 16384), (1024, 1024, 16384))
WAVES = ((2560, 2560, 2560), (4000, 4000, 4000), (384, 8192, 8192))
SHAPES |= {f"{kind}_{m}x{n}x{k}": (m, n, k) for kind, shapes in (("sums", SUMS), ("waves", WAVES)) for m, n, k in shapes}

ALONE = {"version": 1, "kernels": [{"kernel": "gemm", "split": {"parts": 1}}]}


def program(m, n, k, body=BODY):
    return tg.Program.parse((PARAMS + body).format(m=m, n=n, k=k))


def first_configurations(m, n, k, target="cuda"):
    """The model's order: [(values, estimated us)]."""
    return [(c.values, c.us) for c in program(m, n, k).configurations(target)[:TRIED]]


def artifacts(values, m, n, k):
    """{name: artifact} of a configuration: as planned, alone where blocks share its loop, and as planned for constant weights."""
    bound = program(m, n, k).bind(**values)
    planned, weights = bound.compile("cuda"), program(m, n, k, OF_WEIGHTS).bind(**values).compile("cuda")
    split = planned.schedule["kernels"][0].get("split", {})
    parts, through = split.get("parts", 1), split.get("through")
    name = f"{values['BM']}x{values['BN']}x{values['BK']} {values['THREADS']}"
    shared = f"{name} in {parts}{', workspace' if through == 'workspace' else ''}"
    alone = {f"{name} alone": bound.compile("cuda", schedule=ALONE) if parts > 1 else planned}
    return ({shared: planned} if parts > 1 else {}) | alone | {f"{shared if parts > 1 else f'{name} alone'}{WEIGHTS}": weights}


def warm(part, parts, only):
    """Ranks every parts-th shape, prints it, and loads the code of its first configurations."""
    import torch
    torch.zeros(1, device="cuda")
    for name, shape in [s for s in SHAPES.items() if re.search(only, s[0])][part::parts]:
        first = first_configurations(*shape)
        print(json.dumps([name, first]), flush=True)
        for values, _ in first:
            for artifact in artifacts(values, *shape).values():
                artifact.load()


def warmed(only):
    """{name of a shape: its first configurations}."""
    parts = max(1, (os.cpu_count() or 2) - 2)
    ranked = {}
    with concurrent.futures.ThreadPoolExecutor(parts) as pool:
        runs = pool.map(lambda part: subprocess.run([sys.executable, __file__, "--warm", str(part), str(parts), only],
                                                    check=True, stdout=subprocess.PIPE, text=True), range(parts))
        for run in runs:
            ranked |= dict(json.loads(line) for line in run.stdout.splitlines())
    return ranked


def peers(sets, m, n, k):
    """cuBLAS as PyTorch calls it, the first algorithms that cuBLASLt proposes, a product in Triton, tuned."""
    import torch
    import blas_lt
    import triton_peers
    found = {"cublas": lambda i: torch.mm(sets[i][0], sets[i][1].t(), out=sets[i][2])}
    for at, call in enumerate(blas_lt.proposed(m, n, k, ALGORITHMS)):
        found[f"cublaslt {at}"] = lambda i, call=call: call(*sets[i])
    found["triton"] = lambda i: triton_peers.product(*sets[i])
    return found


def measure(name, m, n, k, rounds, first):
    import torch
    from timing import graphs_of_right, medians, rotations, samples
    from watch import watched
    half = torch.float16
    nbytes = 2 * (m * k + n * k + m * n)
    sets = [(torch.randn(m, k, device="cuda", dtype=half), torch.randn(n, k, device="cuda", dtype=half),
             torch.full((m, n), float("nan"), device="cuda", dtype=half)) for _ in range(rotations(nbytes, 40))]
    want = sets[0][0].float() @ sets[0][1].float().t()
    found = peers(sets, m, n, k)
    theirs, estimates = set(found), {}
    for values, us in first:
        for who, artifact in artifacts(values, m, n, k).items():
            kernel = artifact.load()
            bound = [kernel.bind(*s) for s in sets]
            found[who] = lambda i, bound=bound: bound[i]()
            estimates.setdefault(who, us)
    launches = max(2, min(400, int(BURST / (2 * m * n * k / 6e14 + nbytes / 4e12 + 3e-6))))
    watch = lambda who: watched(f"program gemm, kernel gemm {who}, {m}x{n}x{k}, on {torch.cuda.get_device_name()}")
    graphs = graphs_of_right(name, found, sets, want, launches, watch)
    times = samples(graphs, launches, rounds, watch)
    ms = medians(times)
    ours = {who: t for who, t in ms.items() if who not in theirs and not who.endswith(WEIGHTS)}
    weights = {who: t for who, t in ms.items() if who.endswith(WEIGHTS)}
    best, picked = min(ours, key=ours.get), next(iter(ours))
    best_weights = min(weights, key=weights.get)
    peer = min(theirs & set(ms), key=ms.get)
    alone = min(t for who, t in ours.items() if who.endswith("alone"))
    reading = nbytes / MEMORY
    print(f"{name:24}: ours {1e3 * ours[best]:7.2f} us  picked {1e3 * ours[picked]:7.2f}  alone {1e3 * alone:7.2f}  "
          f"cublas {1e3 * ms['cublas']:7.2f}  {peer} {1e3 * ms[peer]:7.2f}  reading {1e3 * reading:6.1f}  "
          f"ratio {ms[peer] / ours[best]:.3f}, picked {ms[peer] / ours[picked]:.3f}, of weights {ms[peer] / ms[best_weights]:.3f}, "
          f"picked {ms[peer] / ms[next(iter(weights))]:.3f}  [{best}]  "
          + "  ".join(f"{w} {1e3 * t:.2f} ({estimates[w]:.1f})" for w, t in ours.items()), flush=True)
    return {"name": name, "m": m, "n": n, "k": k, "best": best, "picked": picked, "ms": ms, "samples": times,
            "estimates_us": estimates, "alone_ms": alone, "peer": peer, "ratio": ms[peer] / ours[best],
            "picked_ratio": ms[peer] / ours[picked], "reading_ms": reading, "weights": best_weights,
            "weights_ratio": ms[peer] / ms[best_weights], "weights_picked_ratio": ms[peer] / ms[next(iter(weights))]}


def main():
    if sys.argv[1:2] == ["--warm"]:
        return warm(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    import table
    ranked = {}

    def measured(name, shape, rounds):
        if not ranked:
            ranked.update(warmed(next((a for b, a in zip(sys.argv, sys.argv[1:]) if b == "--only"), "")))
        return measure(name, *shape, rounds, ranked[name])
    return table.main(SHAPES, measured)


if __name__ == "__main__":
    main()
