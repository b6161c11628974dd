#!/usr/bin/env python3
"""Matrix products of weights, whose rows only launches know, against cuBLAS (torch.mm): f16 with f32 sums. One plain program a pair of
n and k, whose tiles are compile-time parameters, compiled once for 1 to 8192 rows: `parts` has code for up to four parts of
these, `eight` for up to eight, `one` the best single configuration, all by the cost model; `measured` has eight parts chosen
by measuring. `known` is compiled for the very number of rows, by the model.

Timed as gemm_shapes.py times; every program is checked against float32 first.
  dynamic_rows.py [--json FILE] [--only REGEX] [--rounds 7]
"""
import functools
import os
import tempfile
import time

import few_blocks
import tilegen as tg

PROGRAM = """tl 1 program gemm
param BM in {{16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 208, 224, 256}}
param BN in {{48, 64, 80, 96, 112, 128, 160, 192, 208, 224, 256}}
param BK in {{64, 128}}
param THREADS in {{128, 256, 384}}
dim m
""" + few_blocks.OF_WEIGHTS
ROWS = "m=1..8192"
BURST = 0.008  # seconds

# Rows that the choice looked at, and others.
SHAPES = {f"{m}x{n}x{k}": (m, n, k) for n, k in ((6144, 4096), (28672, 8192), (2560, 2560))
          for m in (1, 16, 40, 64, 100, 128, 200, 256, 333, 512, 777, 1024, 1500, 2048, 4096, 8000)}


@functools.lru_cache
def program(n, k):
    return tg.Program.parse(PROGRAM.format(m="m", n=n, k=k))


@functools.lru_cache
def kernels(n, k):
    """{who: kernel} of the artifacts for all rows; prints their parts."""
    records = tempfile.TemporaryDirectory()
    ways = {"parts": {}, "eight": {"specialisations": 8}, "one": {"specialisations": 1}}
    if os.environ.get("MEASURED"):
        ways["measured"] = {"specialisations": 8, "tune": "measure", "tune_count": 4, "tune_records": records.name + "/r"}
    found = {}
    for who, options in ways.items():
        start = time.time()
        artifact = program(n, k).compile("cuda", **{"tune": "model", "sizes": ROWS, **options})
        print(f"{n}x{k} {who}, {time.time() - start:.2f} s:", flush=True)
        for sizes, part in artifact.specialisations:
            print(f"  {sizes}: " + ", ".join(f"{name} {p.value}" for name, p in part.program.params.items()), flush=True)
        found[who] = artifact.load()
    return found


def measure(name, shape, rounds):
    import torch
    from timing import graphs_of_right, medians, rotations, samples
    from watch import watched
    m, n, k = shape
    half = torch.float16
    nbytes = 2 * (m * k + n * k + m * n)
    sets = [(torch.randn(m, k, device="cuda", dtype=half), torch.randn(n, k, device="cuda", dtype=half),
             torch.full((m, n), float("nan"), device="cuda", dtype=half)) for _ in range(rotations(nbytes, 40))]
    want = sets[0][0].float() @ sets[0][1].float().t()
    found = {"cublas": lambda i: torch.mm(sets[i][0], sets[i][1].t(), out=sets[i][2])}
    known = program(n, k).compile("cuda", tune="model", sizes=f"m={m}").load()
    for who, kernel in (kernels(n, k) | {"known": known}).items():
        bound = [kernel.bind(*s) for s in sets]
        found[who] = lambda i, bound=bound: bound[i]()
    launches = max(2, min(400, int(BURST / (2 * m * n * k / 6e14 + nbytes / 4e12 + 3e-6))))
    watch = lambda who: watched(f"program gemm, {who}, {name}, on {torch.cuda.get_device_name()}")
    times = samples(graphs_of_right(name, found, sets, want, launches, watch), launches, rounds, watch)
    ms = medians(times)
    print(f"{name:16}: " + "  ".join(f"{who} {1e3 * t:8.2f} us" for who, t in ms.items()) + "  of cublas: "
          + "  ".join(f"{who} {ms['cublas'] / t:.3f}" for who, t in ms.items() if who != "cublas"), flush=True)
    return {"name": name, "m": m, "n": n, "k": k, "ms": ms, "samples": times,
            "ratio": {who: ms["cublas"] / t for who, t in ms.items() if who != "cublas"}}


if __name__ == "__main__":
    import table
    table.main(SHAPES, measure)
