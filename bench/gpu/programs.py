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
