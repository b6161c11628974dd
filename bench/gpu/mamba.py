#!/usr/bin/env python3
"""Chunk scan and chunk state of Mamba-2 as plain programs, against the time in which a copy moves their bytes, measured in
the same run. 64 heads of 64, states of 128, chunks of 256, one group; everything f16.

Timed as gemm_shapes.py times; every program is checked against float32 first.
  mamba.py [--json FILE] [--only REGEX] [--rounds 7]
"""
import functools
import math

import torch

import scan_programs
import table
from timing import captured, copy_by_events, medians, rotations, samples
from watch import watched

BURST = 0.008   # seconds
HALF = torch.float16
HEADS, HEAD, STATE, CHUNK = 64, 64, 128, 256

# What is tried: a head a block, with the vectors of a chunk through shared memory, and directly.
FORMS = {"scan": (scan_programs.chunk_scan, [dict(bm=64, bk=64, threads=128, stages=2), dict(bm=128, bk=64, threads=256, stages=2),
                                             dict(bm=128, bk=64, threads=256, stages=3), dict(bm=128, bk=128, threads=256, stages=2)]),
         "state": (scan_programs.chunk_state, [dict(bk=64, threads=128, stages=2), dict(bk=64, threads=128, stages=3),
                                               dict(bk=128, threads=128, stages=2)])}
BY_HEADS = {"scan": scan_programs.chunk_scan_by_heads, "state": scan_programs.chunk_state_by_heads}
MULTIPROCESSORS, MOST_WAVES = 132, 70


def programs(form, batch, length):
    """label -> what is tried."""
    make, configurations = FORMS[form]
    one = {f"ours {' '.join(f'{k}{v}' for k, v in values.items())} {way}": make(way=way, **values)
           for way in ("shared", "direct") for values in configurations}
    make = BY_HEADS[form]
    blocks = lambda group: batch * (length // CHUNK) * HEADS // group
    groups = [g for g in (2, 4, 8, 16, 32, 64) if 0.9 * MULTIPROCESSORS <= blocks(g) <= MOST_WAVES * MULTIPROCESSORS]
    several = {f"ours heads{group}": make(group) for group in groups}
    # Blocks of few heads: what loads the next head's tiles ahead takes the memory that a short walk does not need.
    known = (batch, length // CHUNK, HEADS)
    return one | several | {f"ours heads{group} stages{stages} known sizes": make(group, stages=stages, known=known)
                            for group in groups if group <= 4 for stages in (1, 2)}


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
    for who, program in programs(form, batch, length).items():
        try:
            kernel = program.compile("cuda").load()
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
