"""The tile programs that the GPU benchmarks measure, as a user would write them."""
import math

import tilegen as tg
from tilegen import ds, e4m3, e5m2, f16, f32, i32, i64


def ceil_div(a, b):
    return (a + b - 1) // b


def gemm(dtype, acc_dtype, out_dtype, tile, threads, stages, transpose_b=True, shape=None, transpose_a=False,
         weights=False):
    """C[m,n] = A * B, A stored [k,m] and B stored [n,k] when transposed. `shape` fixes m, n, k; without it they are
    symbolic. `weights`: B is constant."""
    tm, tn, tk = tile
    b = tg.Builder("gemm")
    m, n, k = shape or (b.dim("m"), b.dim("n"), b.dim("k"))
    A = b.tensor("A", dtype, [k, m] if transpose_a else [m, k], read_only=True)
    B = b.tensor("B", dtype, [n, k] if transpose_b else [k, n], read_only=True, constant=weights)
    C = b.tensor("C", out_dtype, [m, n])
    with b.kernel("gemm", [ceil_div(m, tm), ceil_div(n, tn)], threads=threads, names=["by", "bx"]) as (by, bx):
        As = b.shared("As", dtype, [tk, tm] if transpose_a else [tm, tk])
        Bs = b.shared("Bs", dtype, [tn, tk] if transpose_b else [tk, tn])
        acc = b.fragment("acc", acc_dtype, [tm, tn])
        b.fill(acc, 0)
        with b.pipelined(0, ceil_div(k, tk), stages=stages, name="ko") as ko:
            b.copy(A[ds(ko * tk, tk), ds(by * tm, tm)] if transpose_a else A[ds(by * tm, tm), ds(ko * tk, tk)], As)
            b.copy(B[ds(bx * tn, tn), ds(ko * tk, tk)] if transpose_b else B[ds(ko * tk, tk), ds(bx * tn, tn)], Bs)
            b.gemm(As, Bs, acc, transpose_a=transpose_a, transpose_b=transpose_b)
        b.copy(acc, C[ds(by * tm, tm), ds(bx * tn, tn)])
    return b.finish()


def _rows(b, name, cols, threads):
    m = b.dim("m")
    X = b.tensor("X", f16, [m, cols], read_only=True)
    return m, X, b.tensor("Y", f16, [m, cols])


def softmax(cols, threads=256):
    b = tg.Builder("softmax")
    m, X, Y = _rows(b, "softmax", cols, threads)
    with b.kernel("softmax", [m], threads=threads) as row:
        x = b.fragment("x", f32, [1, cols])
        top, total = b.fragment("top", f32, [1]), b.fragment("total", f32, [1])
        b.copy(X[row, 0:cols], x)
        b.reduce("max", x, top, axis=1)
        with b.parallel(1, cols) as (i, j):
            b.store(x, i, j, b.exp(x(i, j) - top(i)))
        b.reduce("sum", x, total, axis=1)
        with b.parallel(1) as i:
            b.store(total, i, 1.0 / total(i))
        with b.parallel(1, cols) as (i, j):
            b.store(x, i, j, x(i, j) * total(i))
        b.copy(x, Y[row, 0:cols])
    return b.finish()


def layernorm(cols, threads=256, epsilon=1e-5):
    b = tg.Builder("layernorm")
    m, X, Y = _rows(b, "layernorm", cols, threads)
    gamma, beta = b.tensor("gamma", f16, [cols], read_only=True), b.tensor("beta", f16, [cols], read_only=True)
    with b.kernel("layernorm", [m], threads=threads) as row:
        x, square = b.fragment("x", f32, [1, cols]), b.fragment("square", f32, [1, cols])
        mean, scale = b.fragment("mean", f32, [1]), b.fragment("scale", f32, [1])
        b.copy(X[row, 0:cols], x)
        b.reduce("sum", x, mean, axis=1)
        with b.parallel(1, cols) as (i, j):
            b.store(x, i, j, x(i, j) - mean(i) * (1.0 / cols))
        with b.parallel(1, cols) as (i, j):
            b.store(square, i, j, x(i, j) * x(i, j))
        b.reduce("sum", square, scale, axis=1)
        with b.parallel(1) as i:
            b.store(scale, i, b.rsqrt(scale(i) * (1.0 / cols) + epsilon))
        with b.parallel(1, cols) as (i, j):
            b.store(x, i, j, x(i, j) * scale(i) * b.cast(gamma(j), f32) + b.cast(beta(j), f32))
        b.copy(x, Y[row, 0:cols])
    return b.finish()


def _rms_norm(b, x, square, scale, gamma, cols, epsilon):
    """The row x over the root of its squares' mean, times gamma."""
    with b.parallel(1, cols) as (i, j):
        b.store(square, i, j, x(i, j) * x(i, j))
    b.reduce("sum", square, scale, axis=1)
    with b.parallel(1) as i:
        b.store(scale, i, b.rsqrt(scale(i) * (1.0 / cols) + epsilon))
    with b.parallel(1, cols) as (i, j):
        b.store(x, i, j, x(i, j) * scale(i) * b.cast(gamma(j), f32))


def rmsnorm(cols, threads=256, epsilon=1e-5):
    b = tg.Builder("rmsnorm")
    m, X, Y = _rows(b, "rmsnorm", cols, threads)
    gamma = b.tensor("gamma", f16, [cols], read_only=True)
    with b.kernel("rmsnorm", [m], threads=threads) as row:
        x, square = b.fragment("x", f32, [1, cols]), b.fragment("square", f32, [1, cols])
        scale = b.fragment("scale", f32, [1])
        b.copy(X[row, 0:cols], x)
        _rms_norm(b, x, square, scale, gamma, cols, epsilon)
        b.copy(x, Y[row, 0:cols])
    return b.finish()


def residual_rmsnorm(cols, threads=256, epsilon=1e-5):
    """S = X + R, and Y the rms norm of S."""
    b = tg.Builder("residual_rmsnorm")
    m = b.dim("m")
    X, R = b.tensor("X", f16, [m, cols], read_only=True), b.tensor("R", f16, [m, cols], read_only=True)
    gamma = b.tensor("gamma", f16, [cols], read_only=True)
    S, Y = b.tensor("S", f16, [m, cols]), b.tensor("Y", f16, [m, cols])
    with b.kernel("residual_rmsnorm", [m], threads=threads) as row:
        x, r, square = b.fragment("x", f32, [1, cols]), b.fragment("r", f16, [1, cols]), b.fragment("square", f32, [1, cols])
        scale = b.fragment("scale", f32, [1])
        b.copy(X[row, 0:cols], x)
        b.copy(R[row, 0:cols], r)
        with b.parallel(1, cols) as (i, j):
            b.store(x, i, j, x(i, j) + b.cast(r(i, j), f32))
        b.copy(x, S[row, 0:cols])
        _rms_norm(b, x, square, scale, gamma, cols, epsilon)
        b.copy(x, Y[row, 0:cols])
    return b.finish()


def rotary(heads, dim, threads=256):
    """Rotary position embedding: of each head the pairs (j, j + dim / 2) are turned by the token's angle j, whose cosines and
    sines are given."""
    b = tg.Builder("rotary")
    m, half = b.dim("m"), dim // 2
    X, Y = b.tensor("X", f16, [m, heads, dim], read_only=True), b.tensor("Y", f16, [m, heads, dim])
    cosines, sines = b.tensor("cosines", f32, [m, half], read_only=True), b.tensor("sines", f32, [m, half], read_only=True)
    with b.kernel("rotary", [m], threads=threads) as row:
        low, high, turned = (b.fragment(name, f32, [heads, half]) for name in ("low", "high", "turned"))
        c, s = b.fragment("c", f32, [half]), b.fragment("s", f32, [half])
        b.copy(X[row, 0:heads, 0:half], low)
        b.copy(X[row, 0:heads, ds(half, half)], high)
        b.copy(cosines[row, 0:half], c)
        b.copy(sines[row, 0:half], s)
        with b.parallel(heads, half) as (h, j):
            b.store(turned, h, j, low(h, j) * c(j) - high(h, j) * s(j))
        b.copy(turned, Y[row, 0:heads, 0:half])
        with b.parallel(heads, half) as (h, j):
            b.store(high, h, j, high(h, j) * c(j) + low(h, j) * s(j))
        b.copy(high, Y[row, 0:heads, ds(half, half)])
    return b.finish()


def add(tile=4096, threads=256):
    """Z = X + Y over n elements."""
    b = tg.Builder("add")
    n = b.dim("n", divisor=8)
    X, Y = b.tensor("X", f16, [n], read_only=True), b.tensor("Y", f16, [n], read_only=True)
    Z = b.tensor("Z", f16, [n])
    with b.kernel("add", [ceil_div(n, tile)], threads=threads) as block:
        x, y = b.fragment("x", f16, [tile]), b.fragment("y", f16, [tile])
        b.copy(X[ds(block * tile, tile)], x)
        b.copy(Y[ds(block * tile, tile)], y)
        with b.parallel(tile) as i:
            b.store(x, i, x(i) + y(i))
        b.copy(x, Z[ds(block * tile, tile)])
    return b.finish()


def weigh_scores(b, scores, weights, out, top, before, sums, total, weigh, log2_scale=0):
    """The weights of a block's scores beside the largest of each row so far; what was summed up before is scaled to it. All
    weights are 2^log2_scale times those of softmax. `out`: a fragment, or several of some columns each."""
    tq, tk = scores.shape
    b.copy(top, before)
    b.reduce("max", scores, top, axis=1, accumulate=True)
    with b.parallel(tq, tk) as (i, j):
        least = weigh(top(i)) - float(log2_scale) if log2_scale else weigh(top(i))
        b.store(scores, i, j, b.exp2(weigh(scores(i, j)) - least))
    with b.parallel(tq) as i:
        b.store(before, i, b.exp2(weigh(before(i) - top(i))))
    b.reduce("sum", scores, sums, axis=1)
    with b.parallel(tq) as i:
        b.store(total, i, total(i) * before(i) + sums(i))
    b.copy(scores, weights)
    for part in out if isinstance(out, list) else [out]:
        with b.parallel(tq, part.shape[1]) as (i, j):
            b.store(part, i, j, part(i, j) * before(i))


def attention(dtype, dim, tile, threads, stages, causal=False, group=1, window=None, cap=False, packed=False,
              heads_last=False, row_sums=False, out_dtype=None):
    """O = softmax(Q K^T * scale) V per batch and head, tensors [batch, heads, length, dim]; `group` query heads share a
    head of K and V. `scale` is given times log2(e) and is positive. A query without a key to see gives zeros. Of 8-bit floats
    V is given transposed, [batch, heads, dim, keys], and the result is `out_dtype`, times what the operands were divided by.

    causal      query i sees the keys up to i + keys - queries, its own position when both lengths end together
    window      (left, right): only keys that many places before and after that position; None for no limit
    cap         scores are capped smoothly, cap * tanh(score / cap); `cap`, after scale, is given times log2(e) too
    heads_last  tensors [batch, length, heads, dim]
    packed      sequences of any lengths after one another: tensors [length of all, heads, dim], and where each begins,
                and the last ends, in query_ends and key_ends, i32[batch + 1]; `queries` is at least the longest
    row_sums    also L = log(sum(exp(scores * scale / log2(e)))), f32 [batch, heads, queries] ([heads, length] when packed)
    """
    tq, tk = tile
    narrow = dtype in (e4m3, e5m2)
    if narrow and (packed or heads_last):
        raise ValueError("attention of 8-bit floats has V transposed, which packed sequences and heads last have not")
    log2_scale = 8 if dtype is e4m3 else 0  # weights up to 256: few are below the least normal number
    b = tg.Builder("attention")
    batch, heads = b.dim("batch", 1), b.dim("heads", 1)
    if packed:
        all_queries, all_keys, queries = b.dim("all_queries"), b.dim("all_keys"), b.dim("queries")
    else:
        queries, keys = b.dim("queries"), b.dim("keys")
    scale = b.scalar("scale", f32)
    limit = b.scalar("cap", f32) if cap else None
    if packed:
        shape = lambda length, h: [all_queries if length is queries else all_keys, h, dim]
        keys = all_keys
    elif heads_last:
        shape = lambda length, h: [batch, length, h, dim]
    else:
        shape = lambda length, h: [batch, h, length, dim]
    Q = b.tensor("Q", dtype, shape(queries, heads * group), read_only=True)
    K = b.tensor("K", dtype, shape(keys, heads), read_only=True)
    V = b.tensor("V", dtype, [batch, heads, dim, keys] if narrow else shape(keys, heads), read_only=True)
    if packed:
        query_ends = b.tensor("query_ends", i32, [batch + 1], read_only=True)
        key_ends = b.tensor("key_ends", i32, [batch + 1], read_only=True)
    O = b.tensor("O", out_dtype or dtype, shape(queries, heads * group))
    if row_sums:
        L = b.tensor("L", f32, [heads * group, all_queries] if packed else [batch, heads * group, queries])
    grid = [batch, heads * group, ceil_div(queries, tq)]
    with b.kernel("attention", grid, threads=threads, names=["bb", "bh", "bq"]) as (bb, bh, bq):
        Qs, Ks = b.shared("Qs", dtype, [tq, dim]), b.shared("Ks", dtype, [tk, dim])
        Vs = b.shared("Vs", dtype, [dim, tk] if narrow else [tk, dim])
        scores, weights = b.fragment("scores", f32, [tq, tk]), b.fragment("weights", dtype, [tq, tk])
        out = b.fragment("out", f32, [tq, dim])
        top, before = b.fragment("top", f32, [tq]), b.fragment("before", f32, [tq])
        part, total = b.fragment("part", f32, [tq]), b.fragment("total", f32, [tq])
        first_query = first_key = 0
        if packed:
            # Not before the tensor: known, results may leave through the copy engine.
            first_query, end = b.max(b.cast(query_ends(bb), i64), b.expr(0)), b.cast(query_ends(bb + 1), i64)
            queries = end - first_query
            first_key, end = b.cast(key_ends(bb), i64), b.cast(key_ends(bb + 1), i64)
            keys = end - first_key
        at = bq * tq  # the first query of the tile

        def box(tensor, first, rows, head):
            if packed:
                return tensor[ds(first, rows), head, 0 : dim]
            return tensor[bb, ds(first, rows), head, 0 : dim] if heads_last else tensor[bb, head, ds(first, rows), 0 : dim]

        # The keys that some query of the tile sees.
        left, right = window or (None, None)
        if causal:
            right = 0
        first, end = 0, keys
        if right is not None:
            end = b.min(end, at + tq + keys - queries + right)
        if left is not None:
            first = b.max(at + keys - queries - left, b.expr(0)) // tk
        if packed:
            end = b.select(at < queries, end, 0)
        weigh = (lambda x: x) if cap else (lambda x: x * scale)
        b.copy(box(Q, first_query + at, tq, bh), Qs)
        b.fill(out, 0.0)
        b.fill(total, 0.0)
        b.fill(top, -1e30)  # below every score, and finite: -inf less -inf is no number
        with b.pipelined(first, ceil_div(end, tk), stages=stages, name="kb") as kb:
            b.copy(box(K, first_key + kb * tk, tk, bh // group), Ks)
            b.gemm(Qs, Ks, scores, transpose_b=True, clear=True)
            with b.parallel(tq, tk) as (i, j):
                key = kb * tk + j
                seen = key < keys
                if right is not None:
                    seen = seen & (key <= at + i + keys - queries + right)
                if left is not None:
                    seen = seen & (key >= at + i + keys - queries - left)
                score = b.tanh(scores(i, j) * (scale / limit)) * limit if cap else scores(i, j)
                b.store(scores, i, j, b.select(seen, score, float("-inf")))
            weigh_scores(b, scores, weights, out, top, before, part, total, weigh, log2_scale)
            b.copy(V[bb, bh // group, 0:dim, ds(kb * tk, tk)] if narrow else box(V, first_key + kb * tk, tk, bh // group), Vs)
            b.gemm(weights, Vs, out, transpose_b=narrow)
        if row_sums:
            with b.parallel(tq) as i:
                row = (bh, first_query + at + i) if packed else (bb, bh, at + i)
                with b.branch(at + i < queries):
                    log2_total = b.log2(total(i)) - float(log2_scale) if log2_scale else b.log2(total(i))
                    b.store(L, *row, (weigh(top(i)) + log2_total) * math.log(2))
        with b.parallel(tq) as i:
            b.store(total, i, b.select(total(i) > 0.0, 1.0 / total(i), 0.0))
        with b.parallel(tq, dim) as (i, j):
            b.store(out, i, j, out(i, j) * total(i))
        if not packed:
            b.copy(out, box(O, at, tq, bh))
        else:  # rows after the end are of the next sequence
            with b.branch(at + tq <= queries) as otherwise:
                b.copy(out, box(O, first_query + at, tq, bh))
                otherwise()
                with b.parallel(tq, dim) as (i, j):
                    with b.branch(at + i < queries):
                        b.store(O, first_query + at + i, bh, j, b.cast(out(i, j), dtype))
    return b.finish()
