#!/usr/bin/env python3
"""Chunk scan and chunk state of Mamba-2 as plain programs, against the time in which a copy moves their bytes, measured in
the same run. 64 heads of 64, states of 128, chunks of 256, one group; everything f16.

Timed as gemm_shapes.py times; every program is checked against float32 first.
  mamba.py [--json FILE] [--only REGEX] [--rounds 7]
"""
import functools
import math

import torch

import table
import tilegen as tg
from timing import captured, copy_by_events, medians, rotations, samples
from watch import watched

BURST = 0.008   # seconds
HALF = torch.float16
HEADS, HEAD, STATE, CHUNK = 64, 64, 128, 256

TENSORS = """tl 1 program {name}
dim batch >= 1
dim chunks >= 1
dim heads >= 1
tensor X: f16[batch, chunks * 256, heads, 64] readonly
tensor DT: f16[batch, heads, chunks, 256] readonly
tensor DA: f16[batch, heads, chunks, 256] readonly
"""
SCAN = TENSORS + """tensor CB: f16[batch, chunks, 256, 256] readonly
tensor C: f16[batch, chunks * 256, 128] readonly
tensor S: f16[batch, chunks, heads, 64, 128] readonly
tensor D: f16[heads] readonly
tensor O: f16[batch, chunks * 256, heads, 64]
kernel k grid (bc: batch * chunks, m: 256 // {bm}, h: heads) threads {threads} {{
  alloc cbs: shared f16[{bm}, {bk}]
  alloc cb: fragment f16[{bm}, {bk}]
  {tiles}
  alloc ak: fragment f32[{bk}]
  alloc dt: fragment f32[{bk}]
  alloc am: fragment f32[{bm}]
  alloc scale: fragment f32[{bm}]
  alloc xs: shared f16[{bk}, 64]
  alloc cs: shared f16[{bm}, 128]
  alloc ss: shared f16[64, 128]
  alloc out: fragment f32[{bm}, 64]
  alloc xr: fragment f16[{bm}, 64]
  copy DA[bc // chunks :+ 1, h :+ 1, bc % chunks :+ 1, m * {bm} :+ {bm}] -> am
  parallel i in {bm} {{ scale[i] = exp2(am[i] * 1.44269504f32) }}
  copy C[bc // chunks :+ 1, bc % chunks * 256 + m * {bm} :+ {bm}, 0 :+ 128] -> cs
  copy S[bc // chunks :+ 1, bc % chunks :+ 1, h :+ 1, 0 :+ 64, 0 :+ 128] -> ss
  gemm cs, ss -> out {{transpose_b, clear}}
  parallel i, j in {bm}, 64 {{ out[i, j] = out[i, j] * scale[i] }}
  pipelined k in 0 .. (m * {bm} + {bm}) // {bk} stages {stages} {{
    copy CB[bc // chunks :+ 1, bc % chunks :+ 1, m * {bm} :+ {bm}, k * {bk} :+ {bk}] -> cbs
    copy cbs -> cb
    {vectors}
    parallel i, j in {bm}, {bk} {{
      cb[i, j] = cast(f16, select(k * {bk} + j <= m * {bm} + i, cast(f32, cb[i, j]) * exp2(am[i] * 1.44269504f32 - ak[j] * 1.44269504f32) * dt[j], 0.0f32))
    }}
    copy X[bc // chunks :+ 1, bc % chunks * 256 + k * {bk} :+ {bk}, h :+ 1, 0 :+ 64] -> xs
    gemm cb, xs -> out
  }}
  copy X[bc // chunks :+ 1, bc % chunks * 256 + m * {bm} :+ {bm}, h :+ 1, 0 :+ 64] -> xr
  parallel i, j in {bm}, 64 {{ out[i, j] = out[i, j] + cast(f32, xr[i, j]) * cast(f32, D[h]) }}
  copy out -> O[bc // chunks :+ 1, bc % chunks * 256 + m * {bm} :+ {bm}, h :+ 1, 0 :+ 64]
}}
"""
STATES = TENSORS + """tensor B: f16[batch, chunks * 256, 128] readonly
tensor O: f16[batch, chunks, heads, 64, 128]
kernel k grid (h: heads, bc: batch * chunks) threads {threads} {{
  alloc xs: shared f16[{bk}, 64]
  alloc x: fragment f16[{bk}, 64]
  alloc xw: shared f16[{bk}, 64]
  {tiles}
  alloc ak: fragment f32[{bk}]
  alloc dt: fragment f32[{bk}]
  alloc bs: shared f16[{bk}, 128]
  alloc out: fragment f32[64, 128]
  fill out, 0.0f32
  pipelined k in 0 .. 256 // {bk} stages {stages} {{
    copy X[bc // chunks :+ 1, bc % chunks * 256 + k * {bk} :+ {bk}, h :+ 1, 0 :+ 64] -> xs
    {vectors}
    copy xs -> x
    parallel i, j in {bk}, 64 {{
      x[i, j] = cast(f16, cast(f32, x[i, j]) * exp2((cast(f32, DA[bc // chunks, h, bc % chunks, 255]) - ak[i]) * 1.44269504f32) * dt[i])
    }}
    copy x -> xw
    copy B[bc // chunks :+ 1, bc % chunks * 256 + k * {bk} :+ {bk}, 0 :+ 128] -> bs
    gemm xw, bs -> out {{transpose_a}}
  }}
  copy out -> O[bc // chunks :+ 1, bc % chunks :+ 1, h :+ 1, 0 :+ 64, 0 :+ 128]
}}
"""
# How the vectors of a chunk come to the threads that multiply by them.
VECTORS = {"shared": """copy DA[bc // chunks :+ 1, h :+ 1, bc % chunks :+ 1, k * {bk} :+ {bk}] -> as
    copy as -> ak
    copy DT[bc // chunks :+ 1, h :+ 1, bc % chunks :+ 1, k * {bk} :+ {bk}] -> ts
    copy ts -> dt""", "direct": """copy DA[bc // chunks :+ 1, h :+ 1, bc % chunks :+ 1, k * {bk} :+ {bk}] -> ak
    copy DT[bc // chunks :+ 1, h :+ 1, bc % chunks :+ 1, k * {bk} :+ {bk}] -> dt"""}
# name -> text, what is tried
FORMS = {"scan": (SCAN, [dict(bm=64, bk=64, threads=128, stages=2), dict(bm=128, bk=64, threads=256, stages=2),
                         dict(bm=128, bk=64, threads=256, stages=3), dict(bm=128, bk=128, threads=256, stages=2)]),
         "state": (STATES, [dict(bk=64, threads=128, stages=2), dict(bk=64, threads=128, stages=3), dict(bk=128, threads=128, stages=2)])}


def programs(form):
    """label -> text of what is tried."""
    text, configurations = FORMS[form]
    out = {}
    for way, vectors in VECTORS.items():
        for values in configurations:
            tiles = "alloc as: shared f16[{bk}]\n  alloc ts: shared f16[{bk}]".format(**values) if way == "shared" else ""
            label = " ".join(f"{k}{v}" for k, v in values.items())
            out[f"ours {label} {way}"] = text.format(name=form, vectors=vectors.format(**values), tiles=tiles, **values)
    return out


CASES = {f"{form}_b{batch}_s{length}": (form, batch, length)
         for form in FORMS for batch, length in ((1, 1024), (1, 2048), (1, 8192), (64, 1024), (64, 2048), (64, 8192))}


def inputs(batch, length):
    chunks = length // CHUNK
    half = lambda *shape: torch.randn(*shape, device="cuda", dtype=HALF)
    steps = torch.rand(batch, HEADS, chunks, CHUNK, device="cuda") * 0.1
    return {"X": half(batch, length, HEADS, HEAD), "DT": steps.to(HALF), "DA": (-torch.cumsum(steps, 3)).to(HALF),
            "CB": half(batch, chunks, CHUNK, CHUNK) * 0.3, "C": half(batch, length, STATE) * 0.3,
            "S": half(batch, chunks, HEADS, HEAD, STATE) * 0.3, "D": half(HEADS), "B": half(batch, length, STATE) * 0.3}


def expected(form, t):
    """Of the first sequence."""
    chunks = t["X"].shape[1] // CHUNK
    x = t["X"][0].float().view(chunks, CHUNK, HEADS, HEAD)
    a, dt = t["DA"][0].float(), t["DT"][0].float()   # heads, chunks, place
    if form == "state":
        weight = torch.exp(a[:, :, -1:] - a) * dt
        return torch.einsum("cln,hcl,clhp->chpn", t["B"][0].float().view(chunks, CHUNK, STATE), weight, x)
    out = torch.empty_like(x)
    lower = torch.ones(CHUNK, CHUNK, device="cuda").tril().bool()
    for c in range(chunks):
        decay = torch.exp(torch.where(lower, a[:, c, :, None] - a[:, c, None, :], -torch.inf)) * dt[:, c, None, :]
        inner = torch.einsum("lk,hlk,khp->lhp", t["CB"][0, c].float(), decay, x[c])
        carried = torch.einsum("ln,hpn,hl->lhp", t["C"][0].float().view(chunks, CHUNK, STATE)[c], t["S"][0, c].float(), torch.exp(a[:, c]))
        out[c] = inner + carried + x[c] * t["D"].float()[None, :, None]
    return out.view(1, -1, HEADS, HEAD)[0]


def argument_names(form):
    return ("X", "DT", "DA", "CB", "C", "S", "D") if form == "scan" else ("X", "DT", "DA", "B")


copy_rate = functools.cache(copy_by_events)   # GB/s, one for all cases


def measure(name, case, rounds):
    form, batch, length = case
    names = argument_names(form)
    shape = (batch, length, HEADS, HEAD) if form == "scan" else (batch, length // CHUNK, HEADS, HEAD, STATE)
    sets = [inputs(batch, length)]
    nbytes = HALF.itemsize * math.prod(shape) + sum(sets[0][n].nbytes for n in names)
    count = rotations(nbytes, 8)
    sets += [inputs(batch, length) for _ in range(count - 1)]
    outs = [torch.empty(shape, device="cuda", dtype=HALF) for _ in range(count)]
    want = expected(form, sets[0])
    scale = float(want.abs().max())
    floor_us = nbytes / copy_rate(rounds) * 1e-3
    graphs, errors, kept = {}, {}, []  # kept: what the graphs launch
    launches = max(count, int(BURST / (floor_us * 2e-6)))
    for who, text in programs(form).items():
        try:
            kernel = tg.Program.parse(text).compile("cuda").load()
            bound = [kernel.bind(*[sets[i][n] for n in names], outs[i]) for i in range(count)]
            kept.append((kernel, bound))
            outs[0].fill_(float("nan"))
            with watched(f"{name} {who}"):
                bound[0]()
                torch.cuda.synchronize()
            errors[who] = float((outs[0][0].float() - want).abs().max()) / scale
            if not errors[who] < 5e-3:
                print(f"  {name} {who} WRONG error {errors[who]:.2e}", flush=True)
                continue
            with watched(f"{name} {who}"):
                graphs[who] = captured(lambda i: bound[i](), count, launches)
        except Exception as e:  # noqa: BLE001
            print(f"  {name} {who} failed: {str(e)[:300]}", flush=True)
    times = samples(graphs, launches, rounds, lambda who: watched(f"{name} {who}"))
    us = {who: ms * 1e3 for who, ms in medians(times).items()}
    for who, t in sorted(us.items(), key=lambda item: item[1]):
        print(f"  {name:16s} {who:36s} {t:9.1f} us  {floor_us / t:5.2f} of the floor {floor_us:.1f} us, error {errors[who]:.1e}", flush=True)
    return {"case": name, "floor_us": floor_us, "us": us, "errors": errors,
            "samples_us": {who: [round(m * 1e3, 3) for m in t] for who, t in times.items()}}


if __name__ == "__main__":
    torch.manual_seed(1)
    with torch.cuda.stream(torch.cuda.Stream()):
        table.main(CASES, measure)
