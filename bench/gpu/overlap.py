#!/usr/bin/env python3
"""Plain programs whose threads work beside products, against the product alone and PyTorch: weights decoded into registers,
a product scaled before it is added, three products with exponentials between.

Timed as gemm_shapes.py times; every program is checked against float32 first.
  overlap.py [--json FILE] [--only REGEX] [--rounds 7]
"""

import torch

import table
import tilegen as tg
from timing import captured, medians, rotations, samples
from watch import watched

BURST = 0.008   # seconds
HALF = torch.float16

STEPS = {
    "alone": ("""alloc As: shared f16[{bm}, 64]""",
              """copy A[by * {bm} :+ {bm}, ko * 64 :+ 64] -> As
    gemm As, Bs -> acc"""),
    "scaled": ("""alloc As: shared f16[{bm}, 64]
  alloc part: fragment f32[{bm}, {bn}]""",
               """copy A[by * {bm} :+ {bm}, ko * 64 :+ 64] -> As
    gemm As, Bs -> part {{clear}}
    parallel i, j in {bm}, {bn} {{ acc[i, j] = acc[i, j] + part[i, j] * 0.5f32 }}"""),
    "decoded": ("""alloc Aw: shared i8[{bm}, 64]
  alloc Ai: fragment i8[{bm}, 64]
  alloc Af: fragment f16[{bm}, 64]""",
                """copy A[by * {bm} :+ {bm}, ko * 64 :+ 64] -> Aw
    copy Aw -> Ai
    parallel i, j in {bm}, 64 {{ Af[i, j] = cast(f16, Ai[i, j]) * 0.5f16 }}
    gemm Af, Bs -> acc {{policy=full_row}}"""),
}
FRAME = """tl 1 program p
dim m divisible 128
dim n divisible 256
dim kk divisible 64
tensor A: {type}[m, kk] readonly
tensor B: f16[kk, n] readonly
tensor C: f16[m, n]
kernel k grid (by: ceildiv(m, {bm}), bx: ceildiv(n, {bn})) threads {threads} {{
  alloc Bs: shared f16[64, {bn}]
  alloc acc: fragment f32[{bm}, {bn}]
  {tiles}
  fill acc, 0.0f32
  pipelined ko in 0 .. kk // 64 stages 4 {{
    copy B[ko * 64 :+ 64, bx * {bn} :+ {bn}] -> Bs
    {step}
  }}
  copy acc -> C[by * {bm} :+ {bm}, bx * {bn} :+ {bn}]
}}
"""
CHAIN = """tl 1 program chain
dim q divisible {bq}
dim kk divisible {bk}
tensor Q: f16[q, 64] readonly
tensor K: f16[kk, 64] readonly
tensor V: f16[kk, 64] readonly
tensor W: f16[64, 64] readonly
tensor O: f16[q, 64]
kernel k grid (by: ceildiv(q, {bq})) threads {threads} {{
  alloc Qs: shared f16[{bq}, 64]
  alloc Ks: shared f16[{bk}, 64]
  alloc Vs: shared f16[{bk}, 64]
  alloc Ws: shared f16[64, 64]
  alloc s: fragment f32[{bq}, {bk}]
  alloc sh: fragment f16[{bq}, {bk}]
  alloc t: fragment f32[{bq}, 64]
  alloc th: fragment f16[{bq}, 64]
  alloc o: fragment f32[{bq}, 64]
  copy Q[by * {bq} :+ {bq}, 0 :+ 64] -> Qs
  copy W[0 :+ 64, 0 :+ 64] -> Ws
  fill o, 0.0f32
  pipelined kb in 0 .. kk // {bk} stages 2 {{
    copy K[kb * {bk} :+ {bk}, 0 :+ 64] -> Ks
    copy V[kb * {bk} :+ {bk}, 0 :+ 64] -> Vs
    gemm Qs, Ks -> s {{transpose_b, policy=full_row, clear}}
    parallel i, j in {bq}, {bk} {{ s[i, j] = exp(s[i, j]) }}
    copy s -> sh
    gemm sh, Vs -> t {{policy=full_row, clear}}
    parallel i, j in {bq}, 64 {{ t[i, j] = exp(t[i, j] * 0.01f32) }}
    copy t -> th
    gemm th, Ws -> o {{policy=full_row}}
  }}
  copy o -> O[by * {bq} :+ {bq}, 0 :+ 64]
}}
"""

# name -> form, rows and columns of a tile, threads
CASES = {f"{form}_{bm}x{bn}": (form, bm, bn, threads)
         for bm, bn, threads in ((128, 256, 256), (128, 128, 256), (64, 128, 128))
         for form in ("alone", "scaled", "decoded") if (form, bn) != ("scaled", 256)}
CASES |= {f"chain_{bq}x{bk}": ("chain", bq, bk, threads)
          for bq, bk, threads in ((128, 128, 256), (128, 64, 256), (64, 64, 128))}
SIZE, QUERIES, KEYS = 4096, 16896, 4096


def inputs(form):
    if form == "chain":
        make = lambda rows: torch.randn(rows, 64, device="cuda", dtype=HALF) * 0.1
        return make(QUERIES), make(KEYS), make(KEYS), make(64), torch.empty(QUERIES, 64, device="cuda", dtype=HALF)
    a = torch.randn(SIZE, SIZE, device="cuda", dtype=HALF)
    if form == "decoded":
        a = torch.randint(-8, 8, (SIZE, SIZE), device="cuda", dtype=torch.int8)
    return a, torch.randn(SIZE, SIZE, device="cuda", dtype=HALF), torch.empty(SIZE, SIZE, device="cuda", dtype=HALF)


def peer(form, *tensors):
    """The product alone, of operands that are ready; of the chain, nothing."""
    if form == "chain":
        return None
    a, b, c = tensors
    return torch.mm(a if a.dtype == HALF else b, b, out=c)


def expected(form, bk, *tensors):
    if form != "chain":
        a, b, _ = tensors
        return (a.float() @ b.float()) * (1 if form == "alone" else 0.5)
    q, k, v, w, _ = (t.float() for t in tensors)
    total = 0
    for begin in range(0, KEYS, bk):
        scores = torch.exp(q @ k[begin:begin + bk].t()).half().float()
        total = total + torch.exp(scores @ v[begin:begin + bk] * 0.01).half().float() @ w
    return total


def measure(name, case, rounds):
    form, rows, columns, threads = case
    sets = [inputs(form) for _ in range(1 if form == "chain" else rotations(3 * 2 * SIZE * SIZE, 8))]
    if form == "chain":
        text = CHAIN.format(bq=rows, bk=columns, threads=threads)
    else:
        tiles, step = (part.format(bm=rows, bn=columns) for part in STEPS[form])
        text = FRAME.format(bm=rows, bn=columns, threads=threads, type="i8" if form == "decoded" else "f16", tiles=tiles, step=step)
    kernel = tg.Program.parse(text).compile("cuda").load()
    bound = [kernel.bind(*s) for s in sets]
    contenders = {"ours": lambda i: bound[i]()}
    if form != "chain":
        contenders["torch"] = lambda i: peer(form, *sets[i])
    sets[0][-1].fill_(float("nan"))
    bound[0]()
    want = expected(form, columns, *sets[0])
    error = ((sets[0][-1].float() - want).abs().max() / want.abs().max()).item()
    if not error < 3e-3:
        print(f"{name}: wrong, {error}", flush=True)
    flops = 2 * SIZE ** 3 if form != "chain" else 2 * QUERIES * KEYS * 64 * 2 + 2 * QUERIES * (KEYS // columns) * 64 * 64
    launches = max(4, int(BURST / (flops / 500e12)))
    graphs = {who: captured(run, len(sets), launches) for who, run in contenders.items()}
    times = samples(graphs, launches, rounds, watched)
    middle = medians(times)
    beside = f"  the product alone, torch {middle['torch'] * 1e3:9.1f} us" if "torch" in middle else ""
    print(f"{name:20} {middle['ours'] * 1e3:9.1f} us {flops / middle['ours'] / 1e9:6.0f} TF/s{beside}", flush=True)
    return {"name": name, "case": case, "ms": times}


if __name__ == "__main__":
    table.main(CASES, measure)
