#!/usr/bin/env python3
"""Plain programs whose tiles are moved or multiplied under other forms of loops than one pipelined loop, against PyTorch:
a product without a loop, in a serial loop, in nested loops, and a transposition through a shared tile.

Timed as gemm_shapes.py times; every program is checked against float32 first.
  loop_forms.py [--json FILE] [--only REGEX] [--rounds 7]
"""

import torch

import table
import tilegen as tg
from timing import captured, medians, rotations, samples
from watch import watched

BURST = 0.008   # seconds
HALF = torch.float16

FRAME = """tl 1 program p
dim m divisible 128
dim n divisible 128
dim e
dim kk divisible 64
{tensors}
kernel k grid (by: ceildiv(m, 128), bx: ceildiv(n, {bn})) threads 256 {{
  alloc As: shared f16[128, 64]
  alloc Bs: shared f16[64, {bn}]
  alloc acc: fragment f32[128, {bn}]
{body}
  copy acc -> C[by * 128 :+ 128, bx * {bn} :+ {bn}]
}}
"""
PLAIN = "tensor A: f16[m, kk] readonly\ntensor B: f16[kk, n] readonly\ntensor C: f16[m, n]"
BATCHED = "tensor A: f16[e, m, kk] readonly\ntensor B: f16[e, kk, n] readonly\ntensor C: f16[m, n]"
STEP = """copy A[{x}by * 128 :+ 128, ko * 64 :+ 64] -> As
copy B[{x}ko * 64 :+ 64, bx * {bn} :+ {bn}] -> Bs
gemm As, Bs -> acc"""


def program(form, bn):
    step = STEP.format(x="x :+ 1, " if form == "nested" else "", bn=bn)
    clear = "fill acc, 0.0f32\n"
    body = {"lone": clear + step.replace("ko * 64", "0"),
            "serial": clear + "serial ko in 0 .. kk // 64 {\n" + step + "\n}",
            "pipelined": clear + "pipelined ko in 0 .. kk // 64 {\n" + step + "\n}",
            "nested": clear + "serial x in 0 .. e {\npipelined ko in 0 .. kk // 64 {\n" + step + "\n}\n}"}[form]
    text = FRAME.format(tensors=BATCHED if form == "nested" else PLAIN, body=body, bn=bn)
    return "\n".join(line for line in text.split("\n") if form == "nested" or line != "dim e")


TRANSPOSE = """tl 1 program tr
dim m divisible 64
dim n divisible 64
tensor A: f32[m, n] readonly
tensor C: f32[n, m]
kernel k grid (by: ceildiv(m, 64), bx: ceildiv(n, 64)) threads 256 {
  alloc S: shared f32[64, 64]
  alloc T: fragment f32[64, 64]
  copy A[by * 64 :+ 64, bx * 64 :+ 64] -> S
  parallel j, i in 64, 64 { T[j, i] = S[i, j] }
  copy T -> C[bx * 64 :+ 64, by * 64 :+ 64]
}
"""

# name -> form, m, n, k, experts
CASES = {"lone_8192x8192x64": ("lone", 8192, 8192, 64, 1), "serial_4096": ("serial", 4096, 4096, 4096, 1),
         "pipelined_4096": ("pipelined", 4096, 4096, 4096, 1), "nested_4096x4096x512x8": ("nested", 4096, 4096, 512, 8),
         "transpose_8192": ("transpose", 8192, 8192, 0, 1)}


def inputs(form, m, n, k, e):
    if form == "transpose":
        return torch.randn(m, n, device="cuda"), torch.empty(n, m, device="cuda")
    shape = (lambda *s: (e, *s)) if form == "nested" else (lambda *s: s)
    make = lambda *s: torch.randn(*shape(*s), device="cuda", dtype=HALF)
    return make(m, k), make(k, n), torch.empty(m, n, device="cuda", dtype=HALF)


def peer(form, a, *rest):
    if form == "transpose":
        return rest[0].copy_(a.t())
    b, c = rest
    if form != "nested":
        return torch.mm(a, b, out=c)
    # The sum over experts is one product of the operands side by side, which the peer is given laid out.
    return torch.mm(a.flat, b.flat, out=c)


def expected(form, a, b, *_):
    if form == "transpose":
        return a.t()
    return sum(x.float() @ y.float() for x, y in (zip(a, b) if form == "nested" else [(a, b)]))


def measure(name, case, rounds):
    form, m, n, k, e = case
    nbytes = 2 * (m * n + e * k * (m + n)) if k else 8 * m * n
    sets = [inputs(*case) for _ in range(rotations(nbytes, 8))]
    for a, b, *_ in sets if form == "nested" else []:
        a.flat, b.flat = a.permute(1, 0, 2).reshape(m, e * k).contiguous(), b.reshape(e * k, n)
    contenders = {"torch": lambda i: peer(form, *sets[i])}
    for bn in ((128, 256) if k else (0,)):
        text = program(form, bn) if k else TRANSPOSE
        kernel = tg.Program.parse(text).compile("cuda").load()
        bound = [kernel.bind(*s) for s in sets]
        contenders[f"128x{bn}" if bn else "ours"] = lambda i, bound=bound: bound[i]()
    for who, run in contenders.items():
        sets[0][-1].fill_(float("nan"))
        run(0)
        want = expected(form, *sets[0])
        error = ((sets[0][-1].float() - want).abs().max() / want.abs().max()).item()
        if not error < 2e-3:
            print(f"{name}: {who} is wrong, {error}", flush=True)
    flops = 2 * m * n * k * e
    guess = max(flops / 600e12, nbytes / 4e12)
    launches = max(4, int(BURST / guess))
    graphs = {who: captured(run, len(sets), launches) for who, run in contenders.items()}
    times = samples(graphs, launches, rounds, watched)
    middle = medians(times)
    ours = min((who for who in middle if who != "torch"), key=middle.get)
    rate = (f"{flops / middle[ours] / 1e9:.0f} TF/s" if k else f"{nbytes / middle[ours] / 1e6:.0f} GB/s")
    print(f"{name:24} ours {middle[ours] * 1e3:9.1f} us {rate:>10} ({ours})  torch {middle['torch'] * 1e3:9.1f} us"
          f"  ratio {middle['torch'] / middle[ours]:.3f}", flush=True)
    return {"name": name, "case": case, "ms": times}


if __name__ == "__main__":
    table.main(CASES, measure)
