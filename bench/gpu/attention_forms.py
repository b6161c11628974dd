#!/usr/bin/env python3
"""Attention with windows, a cap, sums of rows, and of packed sequences: rates of the pairs of a query and a key that are seen,
against FlashAttention-2 (of PyTorch) where that has the form, f16.

Every program is checked against float32 first; all of ours are one plain program with other masks.
  attention_forms.py [--json FILE] [--only REGEX] [--rounds 7]
"""
import math

import torch

import programs
import table
from tilegen import f16
from timing import captured, medians, rotations, samples
from watch import watched

HALF = torch.float16
BURST = 0.008  # seconds
CAP = 20.0
LOG2E = math.log2(math.e)

# head dimension -> tile of queries and keys, threads, stages
TILES = {64: ((192, 128), 384, 2), 128: ((128, 128), 256, 2)}


class Form:
    """`lengths` of the sequences: one, or packed ones; 32 heads."""

    def __init__(self, lengths, dim=128, causal=False, window=None, cap=False, packed=False, row_sums=False):
        self.lengths, self.dim, self.heads, self.cap, self.packed, self.row_sums = lengths, dim, 32, cap, packed, row_sums
        self.causal, self.window = causal, window

    def seen(self, length):
        """(first, last) key of each query."""
        left, right = self.window or (None, None)
        i = torch.arange(length, device="cuda")
        right = 0 if self.causal else right
        first = torch.zeros_like(i) if left is None else (i - left).clamp(min=0)
        return first, torch.full_like(i, length - 1) if right is None else (i + right).clamp(max=length - 1)

    def flops(self):
        pairs = sum(int((last - first + 1).sum()) for first, last in map(self.seen, self.lengths))
        return 4.0 * self.heads * self.dim * pairs

    def program(self):
        tile, threads, stages = TILES[self.dim]
        return programs.attention(f16, self.dim, tile, threads, stages, self.causal, window=self.window, cap=self.cap,
                                  packed=self.packed, row_sums=self.row_sums)


# Of 16 packed sequences: many short ones and few long ones.
LENGTHS = [int(200 * 40 ** (k / 15)) for k in (7, 0, 15, 3, 11, 1, 9, 5, 14, 2, 8, 12, 4, 10, 6, 13)]
FORMS = {"causal": Form([16384], causal=True), "window_1024": Form([16384], window=(1023, 0)),
         "window_4096": Form([16384], window=(4095, 0)), "window_512_512": Form([16384], window=(512, 512)),
         "window_1024_d64": Form([16384], dim=64, window=(1023, 0)), "cap": Form([8192], causal=True, cap=True),
         "row_sums": Form([8192], causal=True, row_sums=True), "packed": Form(LENGTHS, packed=True),
         "packed_causal": Form(LENGTHS, packed=True, causal=True)}


def reference(form, s):
    """The last two heads, in float32, [heads, length, dim]."""
    heads, begin = [], 0
    for h in (-2, -1):
        parts, begin = [], 0
        for length in form.lengths:
            q, k, v = ((s[x][begin : begin + length, h] if form.packed else s[x][0, h]).float() for x in "qkv")
            scores = q @ k.t() / math.sqrt(form.dim)
            if form.cap:
                scores = CAP * torch.tanh(scores / CAP)
            first, last = form.seen(length)
            at = torch.arange(length, device="cuda")
            scores.masked_fill_((at < first[:, None]) | (at > last[:, None]), float("-inf"))
            parts.append(torch.softmax(scores, -1) @ v)
            begin += length
        heads.append(torch.cat(parts))
    return torch.stack(heads)


def last_heads(form, out):
    return (out[:, -2:].transpose(0, 1) if form.packed else out[0, -2:]).float()


def contenders(form, sets):
    kernel = form.program().compile("cuda").load().prepare()
    ends = torch.tensor([0, *form.lengths], device="cuda").cumsum(0).to(torch.int32)
    longest = max(form.lengths)
    launches = []
    for s in sets:
        numbers = [None] * 4 + [longest] if form.packed else []
        numbers += [LOG2E / math.sqrt(form.dim)] + [CAP * LOG2E] * form.cap
        where = [ends, ends] if form.packed else []
        sums = [torch.empty(1, form.heads, longest, device="cuda", dtype=torch.float32)] * form.row_sums
        launches.append(kernel.bind(*numbers, s["q"], s["k"], s["v"], *where, s["ours"], *sums))

    def ours(i):
        launches[i]()
        return sets[i]["ours"]

    def flash(i):
        q, k, v = (sets[i][x] if form.packed else sets[i][x].transpose(1, 2) for x in "qkv")
        left, right = form.window or (None, None)
        where = (ends, ends) if form.packed else (None, None)
        causal = form.causal or right == 0
        out = torch.ops.aten._flash_attention_forward(
            q, k, v, *where, longest, longest, 0.0, causal, False, scale=1 / math.sqrt(form.dim), window_size_left=left,
            window_size_right=right)[0]
        return out if form.packed else out.transpose(1, 2)
    return {"ours": ours} if form.cap else {"ours": ours, "flash": flash}


def measure(name, form, rounds):
    total = sum(form.lengths)
    shape = (total, form.heads, form.dim) if form.packed else (1, form.heads, total, form.dim)
    sets = [{x: torch.randn(shape, device="cuda", dtype=HALF) for x in ("q", "k", "v", "ours")}
            for _ in range(rotations(8 * math.prod(shape), 8))]
    want, flops = reference(form, sets[0]), form.flops()
    watch = lambda who: watched(f"program attention, {name} {who}, on {torch.cuda.get_device_name()}")
    launches = max(2, int(BURST / (flops / 5e14)))
    graphs, errors = {}, {}
    found = contenders(form, sets)  # a graph's kernels live as long as it is launched
    for who, fn in found.items():
        sets[0]["ours"].fill_(float("nan"))
        try:
            with watch(who):
                got = last_heads(form, fn(0))
                torch.cuda.synchronize()
                errors[who] = float((got - want).norm() / want.norm())
                if not errors[who] < 1e-3:
                    print(f"{name}: {who} is wrong: {errors[who]}", flush=True)
                    continue
                graphs[who] = captured(fn, len(sets), launches)
        except RuntimeError as refused:  # the other is measured all the same
            print(f"{name}: {who} does not run: {str(refused).splitlines()[0]}", flush=True)
    times = samples(graphs, launches, rounds, watch)
    ms = medians(times)
    rate = {who: flops / t / 1e9 for who, t in ms.items()}
    print(f"{name:18} " + "  ".join(f"{who} {ms[who] * 1e3:8.1f} us {rate[who]:6.1f} TFLOP/s error {errors[who]:.1e}" for who in ms) +
          (f"  ratio {ms['flash'] / ms['ours']:.3f}" if len(ms) == 2 else ""), flush=True)
    return {"name": name, "lengths": form.lengths, "dim": form.dim, "heads": form.heads, "causal": form.causal, "window": form.window,
            "ms": ms, "samples": times, "errors": errors, "tflops": rate}


table.main(FORMS, measure)
