#!/usr/bin/env python3
"""Tiles that reach beyond a tensor: products of fewer rows than a tile has. The copy engine fills the rest of the tile with zeros,
and all multiprocessors together do so at a lower rate than they load. Prints microseconds of a launch by rows; the cost
model's `filled_bytes_per_cycle` is fitted to these.
  outside.py
"""
import statistics

import torch

import dynamic_rows
from timing import captured, replay_ms, rotations

TILES = ((6144, 4096, {"BM": 128, "BN": 96, "BK": 64, "THREADS": 256}), (6144, 4096, {"BM": 64, "BN": 96, "BK": 64, "THREADS": 128}),
         (2560, 2560, {"BM": 64, "BN": 64, "BK": 128, "THREADS": 128}))
LAUNCHES = 100


def microseconds(kernel, m, n, k):
    half = torch.float16
    sets = [(torch.randn(m, k, device="cuda", dtype=half), torch.randn(n, k, device="cuda", dtype=half),
             torch.zeros(m, n, device="cuda", dtype=half)) for _ in range(rotations(2 * (m * k + n * k + m * n), 40))]
    bound = [kernel.bind(*s) for s in sets]
    graph = captured(lambda i: bound[i](), len(sets), LAUNCHES)
    return 1e3 * statistics.median(replay_ms(graph, LAUNCHES) for _ in range(7))


for n, k, tile in TILES:
    kernel = dynamic_rows.program(n, k).bind(**tile).compile("cuda", sizes=f"m={tile['BM']}").load()
    rows = [tile["BM"] * part // 8 for part in (1, 2, 4, 6, 7, 8, 9, 12, 15, 16)]
    print(f"n {n}, k {k}, {tile}: " + ", ".join(f"{m} rows {microseconds(kernel, m, n, k):.2f}" for m in rows), flush=True)
