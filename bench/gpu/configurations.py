#!/usr/bin/env python3
"""Many configurations of plain programs, over shapes of several families: the times that the cost model's order of
configurations is judged by (model_order.py).

Graphs of launches over input sets that rotate past the L2, shuffled order, medians; every result is checked.
  configurations.py [--json FILE] [--only REGEX] [--rounds 3] [--each 64] [--shapes first|held_out|unseen|later]
--shapes: held_out, unseen and later are other shapes and other configurations; to later ones no constant was fitted. Other
processes load the code first, so that the driver's cache has it."""
import argparse
import concurrent.futures
import itertools
import json
import math
import os
import random
import re
import subprocess
import sys
import time

import few_blocks

GEMM = """tl 1 program gemm
dim m
dim n
dim k
tensor A: {type}[m, k] readonly
tensor B: {type}[n, k] readonly
tensor C: {out}[m, n]
kernel gemm grid (by: (m + {tm1}) // {tm}, bx: (n + {tn1}) // {tn}) threads {threads} {{
  alloc As: shared {type}[{tm}, {tk}]
  alloc Bs: shared {type}[{tn}, {tk}]
  alloc acc: fragment f32[{tm}, {tn}]
  fill acc, 0.0f32
  pipelined ko in 0 .. (k + {tk1}) // {tk} stages {stages} {{
    copy A[by * {tm} :+ {tm}, ko * {tk} :+ {tk}] -> As
    copy B[bx * {tn} :+ {tn}, ko * {tk} :+ {tk}] -> Bs
    gemm As, Bs -> acc {{transpose_b}}
  }}
  copy acc -> C[by * {tm} :+ {tm}, bx * {tn} :+ {tn}]
}}
"""
ATTENTION = """tl 1 program attention
dim heads
dim length
scalar scale: f32
tensor Q: f16[heads, length, {dim}] readonly
tensor K: f16[heads, length, {dim}] readonly
tensor V: f16[heads, length, {dim}] readonly
tensor O: f16[heads, length, {dim}]
kernel attention grid (h: heads, bq: (length + {tq1}) // {tq}) threads {threads} {{
  alloc Qs: shared f16[{tq}, {dim}]
  alloc Ks: shared f16[{tk}, {dim}]
  alloc Vs: shared f16[{tk}, {dim}]
  alloc scores: fragment f32[{tq}, {tk}]
  alloc weights: fragment f16[{tq}, {tk}]
  alloc out: fragment f32[{tq}, {dim}]
  alloc top: fragment f32[{tq}]
  alloc before: fragment f32[{tq}]
  alloc part: fragment f32[{tq}]
  alloc total: fragment f32[{tq}]
  copy Q[h :+ 1, bq * {tq} :+ {tq}, 0 :+ {dim}] -> Qs
  fill out, 0.0f32
  fill total, 0.0f32
  fill top, -1e30f32
  pipelined kb in 0 .. {end} stages {stages} {{
    copy K[h :+ 1, kb * {tk} :+ {tk}, 0 :+ {dim}] -> Ks
    gemm Qs, Ks -> scores {{transpose_b, clear}}
    parallel i, j in {tq}, {tk} {{
      scores[i, j] = select({seen}, scores[i, j], -inf:f32)
    }}
    copy top -> before
    reduce scores -> top {{kind=max, axis=1, accumulate}}
    parallel i, j in {tq}, {tk} {{ scores[i, j] = exp2(scores[i, j] * scale - top[i] * scale) }}
    parallel i in {tq} {{ before[i] = exp2((before[i] - top[i]) * scale) }}
    reduce scores -> part {{kind=sum, axis=1}}
    parallel i in {tq} {{ total[i] = total[i] * before[i] + part[i] }}
    copy scores -> weights
    parallel i, j in {tq}, {dim} {{ out[i, j] = out[i, j] * before[i] }}
    copy V[h :+ 1, kb * {tk} :+ {tk}, 0 :+ {dim}] -> Vs
    gemm weights, Vs -> out
  }}
  parallel i, j in {tq}, {dim} {{ out[i, j] = out[i, j] / total[i] }}
  copy out -> O[h :+ 1, bq * {tq} :+ {tq}, 0 :+ {dim}]
}}
"""
SOFTMAX = """tl 1 program softmax
dim m
tensor X: f16[m, {cols}] readonly
tensor Y: f16[m, {cols}]
kernel softmax grid (b: (m + {rows1}) // {rows}) threads {threads} {{
  alloc x: fragment f32[{rows}, {cols}]
  alloc top: fragment f32[{rows}]
  alloc total: fragment f32[{rows}]
  copy X[b * {rows} :+ {rows}, 0 :+ {cols}] -> x
  reduce x -> top {{kind=max, axis=1}}
  parallel i, j in {rows}, {cols} {{ x[i, j] = exp(x[i, j] - top[i]) }}
  reduce x -> total {{kind=sum, axis=1}}
  parallel i, j in {rows}, {cols} {{ x[i, j] = x[i, j] / total[i] }}
  copy x -> Y[b * {rows} :+ {rows}, 0 :+ {cols}]
}}
"""
GEMV = """tl 1 program gemv
dim n
dim k
tensor W: f16[n, k] readonly
tensor X: f16[k] readonly
tensor Y: f32[n]
kernel gemv grid (b: (n + {rows1}) // {rows}) threads {threads} {{
  alloc w: fragment f16[{rows}, {tk}]
  alloc x: fragment f16[{tk}]
  alloc sums: fragment f32[{rows}, {tk}]
  alloc y: fragment f32[{rows}]
  fill sums, 0.0f32
  serial ko in 0 .. (k + {tk1}) // {tk} {{
    copy W[b * {rows} :+ {rows}, ko * {tk} :+ {tk}] -> w
    copy X[ko * {tk} :+ {tk}] -> x
    parallel i, j in {rows}, {tk} {{ sums[i, j] = sums[i, j] + cast(f32, w[i, j]) * cast(f32, x[j]) }}
  }}
  reduce sums -> y {{kind=sum, axis=1}}
  copy y -> Y[b * {rows} :+ {rows}]
}}
"""

# One to eight tiles of rows that do not divide them; the rest is known (dynamic_rows.py).
ROWS = """tl 1 program gemm
{params}dim m
{body}"""


def product(**domains):
    return [dict(zip(domains, values)) for values in itertools.product(*domains.values())]


def gemm_configurations(element):
    row = 128 // element
    fits = lambda c: (c["stages"] * (c["tm"] + c["tn"]) * c["tk"] * element <= 226 << 10
                      and c["tm"] * c["tn"] <= 160 * c["threads"] and c["tm"] * c["tn"] >= 8 * c["threads"])
    return [c for c in product(tm=(16, 32, 64, 128, 192, 256), tn=(32, 64, 128, 192, 256), tk=(row // 2, row, 2 * row),
                               stages=(2, 3, 4, 6), threads=(128, 256)) if fits(c)]


def attention_configurations(dim):
    fits = lambda c: (c["tq"] * 2 * c["threads"] // 128 >= 2 and c["tq"] * (c["tk"] + dim) * 1.5 <= 220 * c["threads"]
                      and (c["tq"] + 2 * c["stages"] * c["tk"]) * dim * 2 <= 224 << 10)
    return [c for c in product(tq=(64, 128, 192), tk=(32, 48, 64, 80, 96, 128, 160, 192), stages=(1, 2, 3), threads=(128, 256, 384))
            if fits(c)]


def row_configurations(cols):
    return [c for c in product(rows=(1, 2, 3, 4, 6, 8, 12, 16), threads=(32, 64, 96, 128, 192, 256, 384, 512, 768, 1024))
            if 2 * c["threads"] <= c["rows"] * cols <= 64 * c["threads"]]


GEMV_CONFIGURATIONS = [c for c in product(rows=(1, 2, 4, 8, 16), tk=(256, 512, 1024, 2048, 4096), threads=(64, 128, 256, 512))
                       if 8 * c["threads"] <= c["rows"] * c["tk"] <= 64 * c["threads"]]


def params_text(values):
    return "".join(f"param {name} in {{{value}}}\n" for name, value in values.items())


def rows_text(values, n, k):
    return ROWS.format(params=params_text(values), body=few_blocks.BODY.format(m="m", n=n, k=k))


def of_warpgroups(c):
    """Instructions of warpgroups divide the tile, along its rows or along its columns, and its sums fit into registers."""
    groups = c["THREADS"] // 128
    return (any(c[side] % (64 * part) == 0 and c[other] % (8 * groups // part) == 0 for side, other in (("BM", "BN"), ("BN", "BM"))
                for part in range(1, groups + 1) if groups % part == 0) and c["BM"] * c["BN"] <= 200 * c["THREADS"])


ROWS_CONFIGURATIONS = [c for c in product(BM=(64, 80, 96, 112, 128, 256), BN=(48, 64, 80, 96, 112, 128, 160, 192, 208, 224, 256), BK=(64, 128),
                                          THREADS=(128, 256, 384)) if of_warpgroups(c)]


def one_less(values):
    """{x1}: the x of a configuration, less one."""
    return {**values, **{f"{name}1": value - 1 for name, value in values.items()}}


def attention_text(values, dim, causal):
    end = "(min(length, bq * {tq} + {tq}) + {tk1}) // {tk}" if causal else "(length + {tk1}) // {tk}"
    seen = "kb * {tk} + j <= bq * {tq} + i" if causal else "kb * {tk} + j < length"
    values = one_less(values)
    return ATTENTION.format(**values, dim=dim, end=end.format(**values), seen=seen.format(**values))


# family -> text of a configuration, configurations, shapes
FAMILIES = {
    "gemm": (lambda c: GEMM.format(**one_less(c), type="f16", out="f16"), gemm_configurations(2),
             [dict(m=m, n=n, k=k) for m, n, k in (
                 (4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048), (1024, 1024, 1024), (512, 512, 4096), (16, 6144, 4096),
                 (64, 28672, 8192), (128, 2560, 2560), (256, 4096, 14336), (1024, 1024, 16384), (3000, 3000, 3000), (512, 28672, 4096),
                 (8192, 1024, 8192), (384, 8192, 8192))]),
    "gemm_fp8": (lambda c: GEMM.format(**one_less(c), type="e4m3", out="f16"), gemm_configurations(1),
                 [dict(m=m, n=n, k=k) for m, n, k in ((4096, 4096, 4096), (8192, 8192, 8192), (128, 7168, 4096), (1024, 1024, 8192), (2048, 8192, 2048))]),
    "gemv": (lambda c: GEMV.format(**one_less(c)), GEMV_CONFIGURATIONS,
             [dict(n=n, k=k) for n, k in ((16384, 16384), (9216, 9216), (14336, 14336), (9216, 36864), (4096, 4096))]),
}
for d in (64, 128):
    for causal in (False, True):
        FAMILIES[f"attention_d{d}_{'causal' if causal else 'full'}"] = (
            lambda c, d=d, causal=causal: attention_text(c, d, causal), attention_configurations(d),
            [dict(heads=h, length=n) for h, n in ((16, 512), (64, 1024), (32, 4096), (16, 8192))])
for cols in (512, 2048, 8192, 16384):
    FAMILIES[f"softmax_{cols}"] = (lambda c, cols=cols: SOFTMAX.format(**one_less(c), cols=cols), row_configurations(cols),
                                   [dict(m=m) for m in (1024, 32768 if cols < 8192 else 16384)])

for n, k in ((6144, 4096), (28672, 8192), (2560, 2560)):
    FAMILIES[f"rows_{n}x{k}"] = (lambda c, n=n, k=k: rows_text(c, n, k), ROWS_CONFIGURATIONS,
                                 [dict(m=m) for m in (100, 144, 200, 333, 500, 777, 1300)])


# Long sums of few blocks, of known sizes, which the family's name has: tiles, each with one block a point and with blocks that
# share its loop in so many parts, whose sums meet in a cluster or in a workspace.
SUMS = ((64, 64, 65536), (128, 128, 32768), (256, 256, 16384), (1024, 1024, 16384), (512, 512, 8192), (96, 1536, 12288), (192, 256, 24576),
        (384, 640, 8192), (48, 512, 32768), (768, 768, 12288))
SUMS_TILES = [c for c in product(BM=(16, 32, 64, 128), BN=(16, 32, 48, 64, 96, 128), BK=(64, 128, 256), THREADS=(128, 256))
              if of_warpgroups(c) and 64 <= (c["BM"] + c["BN"]) * c["BK"] * 2 * 3 <= 226 << 10]
PROCESSORS, CLUSTERS, MOST_PARTS = 132, (2, 4, 8), 64
SPLIT = ("parts", "through")  # of a configuration


def forms(tile, m, n, k):
    points, trips = -(-m // tile["BM"]) * -(-n // tile["BN"]), -(-k // tile["BK"])
    found = [dict(tile, parts=1, through="none")]
    if 2 * points > PROCESSORS:
        return found
    found += [dict(tile, parts=p, through="cluster") for p in CLUSTERS if points * p <= 1.3 * PROCESSORS and p <= trips]
    most = min(MOST_PARTS, PROCESSORS // points, trips)
    even = next(p for p in range(most, 0, -1) if trips % p == 0)
    fill = even if 2 * even > most else most
    return found + [dict(tile, parts=p, through="workspace") for p in sorted({fill, max(2, fill // 2)}) if p > 1]


for m, n, k in SUMS:
    FAMILIES[f"sums_{m}x{n}x{k}"] = (
        lambda c, m=m, n=n, k=k: "tl 1 program gemm\n" + params_text({x: v for x, v in c.items() if x not in SPLIT}) +
                                 few_blocks.BODY.format(m=m, n=n, k=k),
        [form for tile in random.Random(f"{m}{n}{k}").sample(SUMS_TILES, 30) for form in forms(tile, m, n, k)], [{}])


# Products with weights of 4 bits that the same threads decode, as bytes and as words, of known sizes; blocks share loops likewise.
DECODED = ((16, 8192, 28672), (64, 8192, 28672), (16, 16384, 16384), (16, 4096, 4096), (32, 28672, 8192), (64, 4096, 14336), (256, 4096, 4096))
DECODED_TILES = [c for c in product(BM=(16, 32, 64, 128), BN=(32, 64, 128, 256), BK=(64, 128, 256), THREADS=(128, 256), STAGES=(3, 4),
                                    WORD=("u8", "i32"))
                 if of_warpgroups(c) and c["BN"] * c["BK"] <= 192 * c["THREADS"]
                 and c["STAGES"] * (2 * c["BM"] + c["BN"] // 2) * c["BK"] <= 200 << 10]


def decoded_text(c, m, n, k):
    import product_programs
    import tilegen as tg
    return str(product_programs.int4_gemm((c["BM"], c["BN"], c["BK"]), c["THREADS"], c["STAGES"], getattr(tg, c["WORD"]), shape=(m, n, k)))


for m, n, k in DECODED:
    FAMILIES[f"decoded_{m}x{n}x{k}"] = (
        lambda c, m=m, n=n, k=k: decoded_text(c, m, n, k),
        [form for tile in random.Random(f"{m}{n}{k}").sample([t for t in DECODED_TILES if t["BM"] <= max(16, m)], 20)
         for form in forms(tile, m, n, k)], [{}])


def split_of(configuration, kernel):
    """The decision that a configuration gives; of others {}."""
    if "parts" not in configuration:
        return {}
    parts, through = (configuration[x] for x in SPLIT)
    return {"split": {"parts": 1} if parts == 1 else {"loop": f"{kernel}/ko", "parts": parts, "through": through}}


# Other shapes, of other configurations.
HELD_OUT = {
    "gemm": [dict(m=m, n=n, k=k) for m, n, k in (
        (6144, 6144, 2048), (2560, 2560, 2560), (32, 8192, 8192), (128, 6144, 4096), (256, 8192, 8192), (1536, 1536, 6144), (5000, 3000, 2000),
        (16384, 512, 1024))],
    "gemm_fp8": [dict(m=m, n=n, k=k) for m, n, k in ((6144, 3072, 4096), (64, 8192, 8192), (512, 4096, 7168))],
    "gemv": [dict(n=n, k=k) for n, k in ((11008, 4096), (4096, 11008), (32768, 8192))],
}
HELD_OUT |= {f: [dict(heads=h, length=n) for h, n in ((12, 768), (40, 2048), (8, 16384))] for f in FAMILIES if f.startswith("attention")}
HELD_OUT |= {f: [dict(m=4000), dict(m=50000 if f in ("softmax_512", "softmax_2048") else 12000)] for f in FAMILIES if f.startswith("softmax")}


# Shapes that no constant of the cost model was fitted to.
UNSEEN = {
    "gemm": [dict(m=m, n=n, k=k) for m, n, k in (
        (7168, 2048, 4096), (1792, 1792, 1792), (48, 5120, 5120), (192, 10240, 2560), (700, 4096, 4096), (2304, 3072, 768), (16384, 4096, 4096),
        (1280, 13824, 5120))],
    "gemm_fp8": [dict(m=m, n=n, k=k) for m, n, k in ((3072, 5120, 5120), (96, 14336, 4096), (768, 3072, 8192))],
    "gemv": [dict(n=n, k=k) for n, k in ((5120, 5120), (13824, 5120), (2048, 16384), (50304, 4096))],
}
UNSEEN |= {f: [dict(heads=h, length=n) for h, n in ((24, 640), (96, 1536), (20, 6144))] for f in FAMILIES if f.startswith("attention")}
UNSEEN |= {f: [dict(m=2500), dict(m=24000 if f in ("softmax_512", "softmax_2048") else 7000)] for f in FAMILIES if f.startswith("softmax")}
UNSEEN |= {f: [dict(m=m) for m in (72, 260, 640)] for f in FAMILIES if f.startswith("rows")}

# Measured when the constants stood: what the model may be expected to do for others.
LATER = {
    "gemm": [dict(m=m, n=n, k=k) for m, n, k in (
        (5120, 5120, 1280), (96, 7168, 3584), (320, 12288, 3072), (900, 2048, 8192), (3584, 3584, 3584), (20, 11008, 4096), (10240, 1024, 2048),
        (640, 640, 5120))],
    "gemm_fp8": [dict(m=m, n=n, k=k) for m, n, k in ((2048, 7168, 2048), (48, 6144, 6144), (1100, 4096, 4096))],
    "gemv": [dict(n=n, k=k) for n, k in ((6144, 3072), (28672, 4096), (3072, 12288), (8192, 8192))],
}
LATER |= {f: [dict(heads=h, length=n) for h, n in ((20, 896), (48, 1280), (12, 10240))] for f in FAMILIES if f.startswith("attention")}
LATER |= {f: [dict(m=3300), dict(m=20000 if f in ("softmax_512", "softmax_2048") else 9000)] for f in FAMILIES if f.startswith("softmax")}
LATER |= {f: [dict(m=m) for m in (56, 180, 900)] for f in FAMILIES if f.startswith("rows")}

SHAPES = {"first": {f: shapes for f, (_, _, shapes) in FAMILIES.items()}, "held_out": HELD_OUT, "unseen": UNSEEN, "later": LATER}


def chosen(family, each, shapes):
    """A sample of the family's configurations, the same in every process."""
    if family not in SHAPES[shapes]:
        return []
    configurations = FAMILIES[family][1]
    if family.startswith(("sums", "decoded")):
        return configurations
    seed = family + {"first": "", "held_out": " held out", "unseen": " unseen", "later": " later"}[shapes]
    return random.Random(seed).sample(configurations, min(each, len(configurations)))


def kernels_of(text):
    return re.findall(r"^kernel (\w+)", text, re.MULTILINE)


def arguments(family, configuration, args):
    """As the configuration's program takes them."""
    if configuration.get("WORD") != "i32":
        return args
    import torch
    return [args[0], args[1].view(torch.int32), *args[2:]]


def tensors(family, sizes):
    """Arguments, in order, and the output among them."""
    import torch
    def half(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.float16)
    if family.startswith("rows"):
        n, k = map(int, family.split("_")[1].split("x"))
        return [half(sizes["m"], k), half(n, k), half(sizes["m"], n)]
    if family.startswith("sums"):
        m, n, k = map(int, family.split("_")[1].split("x"))
        return [half(m, k), half(n, k), half(m, n)]
    if family.startswith("decoded"):
        m, n, k = map(int, family.split("_")[1].split("x"))
        scales = torch.rand(k // 128, n, device="cuda") * 0.1 + 0.01
        return [half(m, k), torch.randint(0, 256, (n, k // 2), device="cuda", dtype=torch.uint8), scales.half(), half(m, n)]
    if family.startswith("gemm"):
        a, b = half(sizes["m"], sizes["k"]), half(sizes["n"], sizes["k"])
        if family == "gemm_fp8":
            a, b = (a / 4).to(torch.float8_e4m3fn), (b / 4).to(torch.float8_e4m3fn)
        return [a, b, half(sizes["m"], sizes["n"])]
    if family == "gemv":
        return [half(sizes["n"], sizes["k"]), half(sizes["k"]), torch.empty(sizes["n"], device="cuda")]
    if family.startswith("attention"):
        dim = int(re.search(r"d(\d+)", family).group(1))
        return [math.log2(math.e) / math.sqrt(dim)] + [half(sizes["heads"], sizes["length"], dim) for _ in range(4)]
    cols = int(family.split("_")[1])
    return [half(sizes["m"], cols), half(sizes["m"], cols)]


def expected(family, args):
    import torch
    if family.startswith(("gemm", "rows", "sums")):
        return args[0].float() @ args[1].float().t()
    if family.startswith("decoded"):
        codes = torch.stack([args[1] & 15, args[1] >> 4], -1).flatten(1).float()
        return args[0].float() @ ((codes - 8) * args[2].t().float().repeat_interleave(128, 1)).half().float().t()
    if family == "gemv":
        return args[0].float() @ args[1].float()
    if family.startswith("attention"):
        return torch.nn.functional.scaled_dot_product_attention(*(x[None] for x in args[1:4]), is_causal="causal" in family)[0]
    return torch.softmax(args[0].float(), 1)


def loaded(family, configuration):
    import tilegen as tg
    text = FAMILIES[family][0](configuration)
    kernel = kernels_of(text)[0]
    given = split_of(configuration, kernel)
    schedule = {"schedule": {"version": 1, "kernels": [{"kernel": kernel, **given}]}} if given else {}
    return tg.Program.parse(text).compile("cuda", **schedule).load()


def warm(part, parts, only, each, shapes):
    """Loads every parts-th program."""
    work = [(f, c) for f in FAMILIES if re.search(only, f) for c in chosen(f, each, shapes)]
    import torch
    torch.zeros(1, device="cuda")
    for family, configuration in work[part::parts]:
        try:
            loaded(family, configuration)
        except Exception:  # noqa: BLE001, told by the process that measures
            pass


def measure(family, each, rounds, shapes):
    import torch
    import tilegen as tg
    from timing import captured, replay_ms, rotations
    from watch import watched
    kernels, refused = [], {}
    for c in chosen(family, each, shapes):
        try:
            kernels.append((c, loaded(family, c)))
        except tg.Error as e:
            refused[json.dumps(c)] = str(e)[:200]
    rows = []
    for sizes in SHAPES[shapes].get(family, ()):
        first = tensors(family, sizes)
        nbytes = sum(a.nbytes for a in first if not isinstance(a, float))
        sets = [first] + [tensors(family, sizes) for _ in range(rotations(nbytes, 12) - 1)]
        want = expected(family, first)
        graphs, kept = {}, []
        for at, (c, kernel) in enumerate(kernels):
            bound = [kernel.bind(*arguments(family, c, args)) for args in sets]
            kept.append(bound)
            first[-1].fill_(float("nan"))
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            with watched(f"{family} {c} {sizes}"):
                bound[0]()
                torch.cuda.synchronize()
                begin.record()
                bound[-1]()
                end.record()
                end.synchronize()
            error = float((first[-1].float() - want).norm() / want.norm())
            if not error < 5e-3:
                print(f"{family} {c} {sizes} is wrong: {error}", flush=True)
                continue
            ms = max(begin.elapsed_time(end) - 0.004, 0.002)
            launches = max(2, min(200, int(3 / ms)))
            graphs[at] = (captured(lambda i, bound=bound: bound[i](), len(sets), launches), launches)
        times = {at: [] for at in graphs}
        for r in range(rounds):
            for at in random.sample(list(graphs), len(graphs)):
                with watched(f"{family} {kernels[at][0]} {sizes}"):
                    times[at].append(replay_ms(*graphs[at]) * 1e3)
        us = {at: sorted(t)[len(t) // 2] for at, t in times.items()}
        best = min(us, key=us.get)
        print(f"{family:24} {sizes}: {len(us)} configurations, {us[best]:.1f} us by {kernels[best][0]}, "
              f"median {sorted(us.values())[len(us) // 2]:.1f}", flush=True)
        rows.append({"family": family, "sizes": sizes,
                     "us": [[kernels[at][0], round(t, 2)] for at, t in us.items()]})
        del graphs, kept
        torch.cuda.empty_cache()
    return rows, refused


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--json")
    p.add_argument("--only", default="")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--each", type=int, default=64)
    p.add_argument("--shapes", choices=list(SHAPES), default="first")
    p.add_argument("--warm", type=int, nargs=2)
    a = p.parse_args()
    if a.warm:
        return warm(*a.warm, a.only, a.each, a.shapes)
    parts = max(1, (os.cpu_count() or 2) - 2)
    begin = time.time()
    with concurrent.futures.ThreadPoolExecutor(parts) as pool:
        list(pool.map(lambda part: subprocess.run([sys.executable, __file__, "--only", a.only, "--each", str(a.each), "--warm", str(part),
                                                   str(parts), "--shapes", a.shapes], check=False), range(parts)))
    print(f"code made in {time.time() - begin:.0f} s", flush=True)
    import torch
    import table
    torch.manual_seed(1)
    found = {"rows": [], "refused": {}}
    with torch.cuda.stream(torch.cuda.Stream()):
        for family in FAMILIES:
            if not re.search(a.only, family):
                continue
            rows, refused = measure(family, a.each, a.rounds, a.shapes)
            found["rows"] += rows
            found["refused"][family] = refused
            if a.json:
                with open(a.json, "w", encoding="utf-8") as f:
                    json.dump({**table.machine(), **found}, f)
    print(f"{time.time() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
