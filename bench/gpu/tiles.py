#!/usr/bin/env python3
"""Plain programs whose tiles only threads read, in pipelined loops: products with a vector, sums of columns, streams,
transpositions, and products of matrices by the instructions of warps. Each has its tiles by asynchronous copies of the
threads, as planned, and by the copy engine, as a given schedule says.

Timed as gemm_shapes.py times; every program is checked against float32 first.
  tiles.py [--json FILE] [--only REGEX] [--rounds 7]
"""
import torch

import table
import tilegen as tg
from timing import captured, medians, rotations, samples
from watch import watched

HALF, FLOAT, DOUBLE = torch.float16, torch.float32, torch.float64
BURST = 0.006  # seconds
SIZE = 16384

GEMV = """tl 1 program gemv
dim m divisible {rows}
dim n divisible {cols}
tensor A: f16[m, n] readonly
tensor x: f32[n] readonly
tensor y: f32[m]
kernel k grid (by: ceildiv(m, {rows})) threads {threads} {{
  alloc As: shared f16[{rows}, {cols}]
  alloc xs: shared f32[{cols}]
  alloc p: fragment f32[{rows}, {cols}]
  alloc s: fragment f32[{rows}]
  fill s, 0.0f32
  pipelined ko in 0 .. n // {cols} stages {stages} {{
    copy A[by * {rows} :+ {rows}, ko * {cols} :+ {cols}] -> As
    copy x[ko * {cols} :+ {cols}] -> xs
    parallel i, j in {rows}, {cols} {{ p[i, j] = cast(f32, As[i, j]) * xs[j] }}
    reduce p -> s {{axis=1, accumulate}}
  }}
  copy s -> y[by * {rows} :+ {rows}]
}}
"""

COLUMN_SUMS = """tl 1 program column_sums
dim m divisible {rows}
dim n divisible {cols}
tensor A: f16[m, n] readonly
tensor y: f32[n]
kernel k grid (bx: ceildiv(n, {cols})) threads {threads} {{
  alloc As: shared f16[{rows}, {cols}]
  alloc p: fragment f32[{rows}, {cols}]
  alloc s: fragment f32[{cols}]
  fill s, 0.0f32
  pipelined ko in 0 .. m // {rows} stages {stages} {{
    copy A[ko * {rows} :+ {rows}, bx * {cols} :+ {cols}] -> As
    parallel i, j in {rows}, {cols} {{ p[i, j] = cast(f32, As[i, j]) }}
    reduce p -> s {{axis=0, accumulate}}
  }}
  copy s -> y[bx * {cols} :+ {cols}]
}}
"""

STREAM = """tl 1 program stream
dim m divisible {rows}
dim n divisible {cols}
tensor A: f16[m, n] readonly
tensor B: f16[m, n] readonly
tensor C: f16[m, n]
kernel k grid (by: ceildiv(m, {rows})) threads {threads} {{
  alloc As: shared f16[{rows}, {cols}]
  alloc Bs: shared f16[{rows}, {cols}]
  pipelined ko in 0 .. n // {cols} stages {stages} {{
    copy A[by * {rows} :+ {rows}, ko * {cols} :+ {cols}] -> As
    copy B[by * {rows} :+ {rows}, ko * {cols} :+ {cols}] -> Bs
    parallel i, j in {rows}, {cols} {{ C[by * {rows} + i, ko * {cols} + j] = As[i, j] * Bs[i, j] + As[i, j] }}
  }}
}}
"""

TRANSPOSE = """tl 1 program transpose
dim m divisible {rows}
dim n divisible {cols}
tensor A: f32[m, n] readonly
tensor C: f32[n, m]
kernel k grid (by: ceildiv(m, {rows})) threads {threads} {{
  alloc S: shared f32[{rows}, {cols}]
  alloc T: fragment f32[{cols}, {rows}]
  pipelined ko in 0 .. n // {cols} stages {stages} {{
    copy A[by * {rows} :+ {rows}, ko * {cols} :+ {cols}] -> S
    parallel j, i in {cols}, {rows} {{ T[j, i] = S[i, j] }}
    copy T -> C[ko * {cols} :+ {cols}, by * {rows} :+ {rows}]
  }}
}}
"""


# With rows of 128 bytes of both operands' types.
PRODUCT = """tl 1 program product
dim m divisible {rows}
dim n divisible {cols}
tensor A: TYPE[m, n] readonly
tensor B: TYPE[n, n] readonly
tensor C: TYPE[m, n]
kernel k grid (by: ceildiv(m, {rows}), bx: ceildiv(n, {cols})) threads {threads} {{
  alloc As: shared TYPE[{rows}, DEPTH]
  alloc Bs: shared TYPE[DEPTH, {cols}]
  alloc acc: fragment SUM[{rows}, {cols}]
  fill acc, 0.0SUM
  pipelined ko in 0 .. n // DEPTH stages {stages} {{
    copy A[by * {rows} :+ {rows}, ko * DEPTH :+ DEPTH] -> As
    copy B[ko * DEPTH :+ DEPTH, bx * {cols} :+ {cols}] -> Bs
    gemm As, Bs -> acc
  }}
  copy acc -> C[by * {rows} :+ {rows}, bx * {cols} :+ {cols}]
}}
"""


def product(operand, total, depth):
    return PRODUCT.replace("TYPE", operand).replace("SUM", total).replace("DEPTH", str(depth))


def random(shape, dtype):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def empty(shape, dtype):
    return torch.empty(*shape, device="cuda", dtype=dtype)


# form -> program, copies into tiles, inputs of rows m and columns n, what is wanted, bytes, or operations of products
FORMS = {
    "gemv": (GEMV, 2, lambda m, n: (random((m, n), HALF), random((n,), FLOAT), empty((m,), FLOAT)),
             lambda a, x, y: a.float() @ x, lambda m, n: 2 * m * n),
    "column_sums": (COLUMN_SUMS, 1, lambda m, n: (random((m, n), HALF), empty((n,), FLOAT)),
                    lambda a, y: a.float().sum(0), lambda m, n: 2 * m * n),
    "stream": (STREAM, 2, lambda m, n: (random((m, n), HALF), random((m, n), HALF), empty((m, n), HALF)),
               lambda a, b, c: a.float() * b.float() + a.float(), lambda m, n: 6 * m * n),
    "transpose": (TRANSPOSE, 1, lambda m, n: (random((m, n), FLOAT), empty((n, m), FLOAT)),
                  lambda a, c: a.t(), lambda m, n: 8 * m * n),
    "product_f16": (product("f16", "f32", 64), 2,
                    lambda m, n: (random((m, n), HALF), random((n, n), HALF), empty((m, n), HALF)),
                    lambda a, b, c: a.float() @ b.float(), lambda m, n: 2 * m * n * n),
    "product_f64": (product("f64", "f64", 16), 2,
                    lambda m, n: (random((m, n), DOUBLE), random((n, n), DOUBLE), empty((m, n), DOUBLE)),
                    lambda a, b, c: a @ b, lambda m, n: 2 * m * n * n)}

# form -> (rows, columns of a tile, threads, stages), size m, n
TILES = {"gemv": [((64, 512, 256, 2), SIZE, SIZE), ((64, 256, 256, 3), SIZE, SIZE), ((32, 512, 128, 3), SIZE, SIZE),
                  ((16, 1024, 256, 3), SIZE, SIZE), ((8, 1024, 128, 4), SIZE, SIZE), ((128, 128, 256, 4), SIZE, SIZE),
                  ((16, 512, 128, 4), 4096, 4096), ((8, 1024, 256, 3), 4096, 4096)],
         "column_sums": [((64, 64, 256, 4), SIZE, SIZE), ((64, 128, 256, 4), SIZE, SIZE), ((128, 64, 128, 3), SIZE, SIZE)],
         "stream": [((32, 256, 256, 3), SIZE, 8192), ((64, 128, 256, 3), SIZE, 8192), ((16, 256, 128, 4), SIZE, 8192)],
         "transpose": [((64, 64, 256, 2), SIZE, 8192), ((64, 64, 256, 3), SIZE, 8192), ((32, 64, 128, 3), SIZE, 8192)],
         "product_f16": [((128, 128, 256, 3), 4096, 4096), ((128, 128, 256, 4), 4096, 4096), ((128, 256, 256, 3), 4096, 4096)],
         "product_f64": [((128, 64, 256, 3), 2048, 2048), ((128, 64, 256, 4), 2048, 2048)]}

CASES = {f"{form}_{'x'.join(map(str, tile[:2]))}_{tile[2]}_{tile[3]}_{m}": (form, tile, m, n)
         for form, tiles in TILES.items() for tile, m, n in tiles}


def is_product(form):
    return form.startswith("product_")


def compiled(form, tile, engine):
    text, copies, *_ = FORMS[form]
    program = tg.Program.parse(text.format(rows=tile[0], cols=tile[1], threads=tile[2], stages=tile[3]))
    ops = [{"op": f"k/ko/copy#{i}", "engine": engine} for i in range(copies)]
    if is_product(form):
        ops.append({"op": "k/ko/gemm#0", "engine": "mma"})
    return program.compile("cuda", schedule={"kernels": [{"kernel": "k", "ops": ops}]}).load()


def measure(name, case, rounds):
    form, tile, m, n = case
    _, _, inputs, wanted, work = FORMS[form]
    unit, rate = ("operations", 5e14 if form == "product_f16" else 3e13) if is_product(form) else ("bytes", 4e12)
    sets = [inputs(m, n) for _ in range(rotations(work(m, n), 8) if unit == "bytes" else 4)]
    want = wanted(*sets[0]).float()
    launches = max(2, int(BURST / (work(m, n) / rate)))
    watch = lambda who: watched(f"program {form}, {name} {who}, on {torch.cuda.get_device_name()}")
    kernels, graphs, errors = [], {}, {}
    for who, engine in (("threads", "async_copy"), ("engine", "tensor_copy")):
        kernels.append(compiled(form, tile, engine))  # they live as long as the graphs
        bound = [kernels[-1].bind(*s) for s in sets]
        sets[0][-1].fill_(float("nan"))
        with watch(who):
            bound[0]()
            torch.cuda.synchronize()
        errors[who] = ((sets[0][-1].float() - want).abs().max() / want.abs().max()).item()
        if not errors[who] < 3e-3:
            print(f"{name}: {who} is wrong: {errors[who]}", flush=True)
            continue
        with watch(who):
            graphs[who] = captured(lambda i, bound=bound: bound[i](), len(sets), launches)
    times = samples(graphs, launches, rounds, watch)
    ms = medians(times)
    print(f"{name:30}", "  ".join(f"{who} {t * 1e3:8.1f} us {work(m, n) / t / 1e6:6.0f} G{unit}/s" for who, t in ms.items()),
          flush=True)
    return {"name": name, unit: work(m, n), "ms": times, "errors": errors}


table.main(CASES, measure)
