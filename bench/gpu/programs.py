"""The tile programs that the GPU benchmarks measure, as a user would write them."""
import tilegen as tg
from tilegen import f16, f32


def ceil_div(a, b):
    return (a + b - 1) // b


def gemm(dtype, acc_dtype, out_dtype, tile, threads, stages, transpose_b=True, shape=None, transpose_a=False):
    """C[m,n] = A * B, A stored [k,m] and B stored [n,k] when transposed. `shape` fixes m, n, k; without it they are
    symbolic."""
    tm, tn, tk = tile
    b = tg.Builder("gemm")
    m, n, k = shape or (b.dim("m"), b.dim("n"), b.dim("k"))
    A = b.tensor("A", dtype, [k, m] if transpose_a else [m, k], read_only=True)
    B = b.tensor("B", dtype, [n, k] if transpose_b else [k, n], read_only=True)
    C = b.tensor("C", out_dtype, [m, n])
    with b.kernel("gemm", [ceil_div(m, tm), ceil_div(n, tn)], threads=threads, names=["by", "bx"]) as (by, bx):
        As = b.shared("As", dtype, [tk, tm] if transpose_a else [tm, tk])
        Bs = b.shared("Bs", dtype, [tn, tk] if transpose_b else [tk, tn])
        acc = b.fragment("acc", acc_dtype, [tm, tn])
        b.fill(acc, 0)
        with b.pipelined(0, ceil_div(k, tk), stages=stages, name="ko") as ko:
            b.copy(A[ko * tk : tk, by * tm : tm] if transpose_a else A[by * tm : tm, ko * tk : tk], As)
            b.copy(B[bx * tn : tn, ko * tk : tk] if transpose_b else B[ko * tk : tk, bx * tn : tn], Bs)
            b.gemm(As, Bs, acc, transpose_a=transpose_a, transpose_b=transpose_b)
        b.copy(acc, C[by * tm : tm, bx * tn : tn])
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
        b.copy(X[row:1, 0:cols], x)
        b.reduce("max", x, top, axis=1)
        with b.parallel(1, cols) as (i, j):
            b.store(x, i, j, b.exp(x(i, j) - top(i)))
        b.reduce("sum", x, total, axis=1)
        with b.parallel(1) as i:
            b.store(total, i, 1.0 / total(i))
        with b.parallel(1, cols) as (i, j):
            b.store(x, i, j, x(i, j) * total(i))
        b.copy(x, Y[row:1, 0:cols])
    return b.finish()


def layernorm(cols, threads=256, epsilon=1e-5):
    b = tg.Builder("layernorm")
    m, X, Y = _rows(b, "layernorm", cols, threads)
    gamma, beta = b.tensor("gamma", f16, [cols], read_only=True), b.tensor("beta", f16, [cols], read_only=True)
    with b.kernel("layernorm", [m], threads=threads) as row:
        x, square = b.fragment("x", f32, [1, cols]), b.fragment("square", f32, [1, cols])
        mean, scale = b.fragment("mean", f32, [1]), b.fragment("scale", f32, [1])
        b.copy(X[row:1, 0:cols], x)
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
        b.copy(x, Y[row:1, 0:cols])
    return b.finish()


def rmsnorm(cols, threads=256, epsilon=1e-5):
    b = tg.Builder("rmsnorm")
    m, X, Y = _rows(b, "rmsnorm", cols, threads)
    gamma = b.tensor("gamma", f16, [cols], read_only=True)
    with b.kernel("rmsnorm", [m], threads=threads) as row:
        x, square = b.fragment("x", f32, [1, cols]), b.fragment("square", f32, [1, cols])
        scale = b.fragment("scale", f32, [1])
        b.copy(X[row:1, 0:cols], x)
        with b.parallel(1, cols) as (i, j):
            b.store(square, i, j, x(i, j) * x(i, j))
        b.reduce("sum", square, scale, axis=1)
        with b.parallel(1) as i:
            b.store(scale, i, b.rsqrt(scale(i) * (1.0 / cols) + epsilon))
        with b.parallel(1, cols) as (i, j):
            b.store(x, i, j, x(i, j) * scale(i) * b.cast(gamma(j), f32))
        b.copy(x, Y[row:1, 0:cols])
    return b.finish()


def add(tile=4096, threads=256):
    """Z = X + Y over n elements."""
    b = tg.Builder("add")
    n = b.dim("n", divisor=8)
    X, Y = b.tensor("X", f16, [n], read_only=True), b.tensor("Y", f16, [n], read_only=True)
    Z = b.tensor("Z", f16, [n])
    with b.kernel("add", [ceil_div(n, tile)], threads=threads) as block:
        x, y = b.fragment("x", f16, [tile]), b.fragment("y", f16, [tile])
        b.copy(X[block * tile : tile], x)
        b.copy(Y[block * tile : tile], y)
        with b.parallel(tile) as i:
            b.store(x, i, x(i) + y(i))
        b.copy(x, Z[block * tile : tile])
    return b.finish()


def attention(dtype, dim, tile, threads, stages, causal=False, group=1):
    """O = softmax(Q K^T * scale) V per batch and head, tensors [batch, heads, length, dim]; `group` query heads share a
    head of K and V. Causal: query i sees the keys up to i + keys - queries. `scale` is given times log2(e)."""
    tq, tk = tile
    b = tg.Builder("attention")
    batch, heads, queries, keys = (b.dim(n, 1) for n in ("batch", "heads", "queries", "keys"))
    scale = b.scalar("scale", f32)
    Q = b.tensor("Q", dtype, [batch, heads * group, queries, dim], read_only=True)
    K = b.tensor("K", dtype, [batch, heads, keys, dim], read_only=True)
    V = b.tensor("V", dtype, [batch, heads, keys, dim], read_only=True)
    O = b.tensor("O", dtype, [batch, heads * group, queries, dim])
    grid = [batch, heads * group, ceil_div(queries, tq)]
    with b.kernel("attention", grid, threads=threads, names=["bb", "bh", "bq"]) as (bb, bh, bq):
        Qs, Ks, Vs = b.shared("Qs", dtype, [tq, dim]), b.shared("Ks", dtype, [tk, dim]), b.shared("Vs", dtype, [tk, dim])
        scores, weights = b.fragment("scores", f32, [tq, tk]), b.fragment("weights", dtype, [tq, tk])
        out = b.fragment("out", f32, [tq, dim])
        top, before = b.fragment("top", f32, [tq]), b.fragment("before", f32, [tq])
        part, total = b.fragment("part", f32, [tq]), b.fragment("total", f32, [tq])
        b.copy(Q[bb:1, bh:1, bq * tq : tq, 0:dim], Qs)
        b.fill(out, 0.0)
        b.fill(total, 0.0)
        b.fill(top, float("-inf"))
        blocks = ceil_div(keys, tk)
        if causal:
            blocks = b.min(blocks, ceil_div(bq * tq + tq + keys - queries, tk))
        with b.pipelined(0, blocks, stages=stages, name="kb") as kb:
            b.copy(K[bb:1, bh // group : 1, kb * tk : tk, 0:dim], Ks)
            b.gemm(Qs, Ks, scores, transpose_b=True, clear=True)
            with b.parallel(tq, tk) as (i, j):
                seen = kb * tk + j < keys
                if causal:
                    seen = seen & (kb * tk + j <= bq * tq + i + keys - queries)
                b.store(scores, i, j, b.select(seen, scores(i, j), float("-inf")))
            b.copy(top, before)
            b.reduce("max", scores, top, axis=1, accumulate=True)
            with b.parallel(tq, tk) as (i, j):
                b.store(scores, i, j, b.exp2(scores(i, j) * scale - top(i) * scale))
            with b.parallel(tq) as i:
                b.store(before, i, b.exp2(before(i) * scale - top(i) * scale))
            b.reduce("sum", scores, part, axis=1)
            with b.parallel(tq) as i:
                b.store(total, i, total(i) * before(i) + part(i))
            b.copy(scores, weights)
            with b.parallel(tq, dim) as (i, j):
                b.store(out, i, j, out(i, j) * before(i))
            b.copy(V[bb:1, bh // group : 1, kb * tk : tk, 0:dim], Vs)
            b.gemm(weights, Vs, out)
        with b.parallel(tq) as i:
            b.store(total, i, 1.0 / total(i))
        with b.parallel(tq, dim) as (i, j):
            b.store(out, i, j, out(i, j) * total(i))
        b.copy(out, O[bb:1, bh:1, bq * tq : tq, 0:dim])
    return b.finish()
