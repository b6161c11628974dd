"""Products of matrices as plain tile programs: with a vector, by groups, with scales of blocks, of packed weights, and
convolutions."""
import tilegen as tg
from programs import ceil_div
from tilegen import bf16, ds, f16, f32, i32, i64, u8, u16


def gemv(dtype, tile, threads, out_dtype=f32):
    """y[n] = W x, W stored [n, k]."""
    rows, tk = tile
    b = tg.Builder("gemv")
    n, k = b.dim("n"), b.dim("k")
    W, x, y = b.tensor("W", dtype, [n, k], constant=True), b.tensor("x", dtype, [k], read_only=True), b.tensor("y", out_dtype, [n])
    with b.kernel("gemv", [ceil_div(n, rows)], threads=threads, names=["by"]) as by:
        w, part = b.fragment("w", dtype, [rows, tk]), b.fragment("part", dtype, [tk])
        sums, total = b.fragment("sums", f32, [rows, tk]), b.fragment("total", f32, [rows])
        b.fill(sums, 0.0)
        with b.pipelined(0, ceil_div(k, tk), name="ko") as ko:
            b.copy(W[ds(by * rows, rows), ds(ko * tk, tk)], w)
            b.copy(x[ds(ko * tk, tk)], part)
            with b.parallel(rows, tk) as (i, j):
                b.store(sums, i, j, sums(i, j) + b.cast(w(i, j), f32) * b.cast(part(j), f32))
        b.reduce("sum", sums, total, axis=1)
        b.copy(total, y[ds(by * rows, rows)])
    return b.finish()


def sparse_gemm(dtype, out_dtype, tile, threads, stages, sums=f32, shape=None):
    """Y = W X^T of a W of which two of each four neighbours along k are kept: V [m, k / 2] their values, P [m, k / 16] their
    places (docs/language.md, gemm_sparse); X [n, k]. `shape`: known sizes."""
    tm, tn, tk = tile
    b = tg.Builder("sparse_gemm")
    m, n, k = shape or (b.dim("m"), b.dim("n"), b.dim("k"))
    blocks = ceil_div(k, tk)
    V = b.tensor("V", dtype, [m, blocks * (tk // 2)], constant=True)
    P = b.tensor("P", u16, [m, blocks * (tk // 16)], constant=True)
    X, Y = b.tensor("X", dtype, [n, k], read_only=True), b.tensor("Y", out_dtype, [m, n])
    with b.kernel("sparse_gemm", [ceil_div(m, tm), ceil_div(n, tn)], threads=threads, names=["by", "bx"]) as (by, bx):
        v, p = b.shared("v", dtype, [tm, tk // 2]), b.shared("p", u16, [tm, tk // 16])
        x, acc = b.shared("x", dtype, [tn, tk]), b.fragment("acc", sums, [tm, tn])
        b.fill(acc, 0)
        with b.pipelined(0, blocks, stages=stages, name="ko") as ko:
            b.copy(V[ds(by * tm, tm), ds(ko * (tk // 2), tk // 2)], v)
            b.copy(P[ds(by * tm, tm), ds(ko * (tk // 16), tk // 16)], p)
            b.copy(X[ds(bx * tn, tn), ds(ko * tk, tk)], x)
            b.gemm_sparse(v, p, x, acc, transpose_b=True)
        b.copy(acc, Y[ds(by * tm, tm), ds(bx * tn, tn)])
    return b.finish()


def grouped_gemm(dtype, out_dtype, tile, threads, stages, transpose_b=True):
    """The rows of A in groups, each times a matrix of its own: C[i] = A[i] B[g] for offsets[g] <= i < offsets[g + 1].

    A [total, k], B [groups, n, k] ([groups, k, n] when not transposed), offsets i32 [groups + 1], C [total, n]; `most`, a
    dimension after `total` that no tensor tells, is at least the rows of the largest group
    """
    tm, tn, tk = tile
    b = tg.Builder("grouped_gemm")
    groups, total, most = b.dim("groups", 1), b.dim("total"), b.dim("most")
    n, k = b.dim("n"), b.dim("k")
    A = b.tensor("A", dtype, [total, k], read_only=True)
    B = b.tensor("B", dtype, [groups, n, k] if transpose_b else [groups, k, n], constant=True)
    offsets = b.tensor("offsets", i32, [groups + 1], read_only=True)
    C = b.tensor("C", out_dtype, [total, n])
    grid = [groups, ceil_div(most, tm), ceil_div(n, tn)]
    with b.kernel("grouped_gemm", grid, threads=threads, names=["g", "by", "bx"]) as (g, by, bx):
        As, Bs = b.shared("As", dtype, [tm, tk]), b.shared("Bs", dtype, [tn, tk] if transpose_b else [tk, tn])
        acc = b.fragment("acc", f32, [tm, tn])
        begin = b.max(b.cast(offsets(g), i64), b.expr(0))  # not before the tensor: known, for the copy engine
        rows = b.cast(offsets(g + 1), i64) - begin
        at = by * tm
        b.fill(acc, 0.0)
        with b.pipelined(0, ceil_div(b.select(at < rows, k, 0), tk), stages=stages, name="ko") as ko:
            b.copy(A[ds(begin + at, tm), ds(ko * tk, tk)], As)
            b.copy(B[g, ds(bx * tn, tn), ds(ko * tk, tk)] if transpose_b else B[g, ds(ko * tk, tk), ds(bx * tn, tn)], Bs)
            b.gemm(As, Bs, acc, transpose_b=transpose_b)
        with b.branch(at + tm <= rows) as otherwise:  # rows after the end are of the next group
            b.copy(acc, C[ds(begin + at, tm), ds(bx * tn, tn)])
            otherwise()
            with b.parallel(tm, tn) as (i, j):
                with b.branch(at + i < rows):
                    b.store(C, begin + at + i, bx * tn + j, b.cast(acc(i, j), out_dtype))
    return b.finish()


def block_scaled_gemm(dtype, tile, threads, stages, out_dtype=bf16, block=128, shape=None):
    """C[m, n] = A B of 8-bit floats, A stored [m, k] and B [n, k], whose scales are one for each row and `block` columns of A
    and one for each block * block of B: SA f32 [ceildiv(k, block), m], SB f32 [ceildiv(n, block), ceildiv(k, block)]. Each block's
    products are summed by themselves, then scaled and added up in f32. `shape` fixes m, n, k."""
    tm, tn = tile
    b = tg.Builder("block_scaled_gemm")
    m, n, k = shape or (b.dim("m"), b.dim("n"), b.dim("k"))
    A, B = b.tensor("A", dtype, [m, k], read_only=True), b.tensor("B", dtype, [n, k], constant=True)
    SA = b.tensor("SA", f32, [ceil_div(k, block), m], read_only=True)
    SB = b.tensor("SB", f32, [ceil_div(n, block), ceil_div(k, block)], constant=True)
    C = b.tensor("C", out_dtype, [m, n])
    with b.kernel("block_scaled_gemm", [ceil_div(m, tm), ceil_div(n, tn)], threads=threads, names=["by", "bx"]) as (by, bx):
        As, Bs = b.shared("As", dtype, [tm, block]), b.shared("Bs", dtype, [tn, block])
        scales = b.shared("scales", f32, [tm])
        part, acc = b.fragment("part", f32, [tm, tn]), b.fragment("acc", f32, [tm, tn])
        b.fill(acc, 0.0)
        with b.pipelined(0, ceil_div(k, block), stages=stages, name="ko") as ko:
            b.copy(A[ds(by * tm, tm), ds(ko * block, block)], As)
            b.copy(B[ds(bx * tn, tn), ds(ko * block, block)], Bs)
            b.copy(SA[ko, ds(by * tm, tm)], scales)
            b.gemm(As, Bs, part, transpose_b=True, clear=True)
            with b.parallel(tm, tn) as (i, j):
                # One number for the tile where it lies in one block.
                column = bx * tn // block if block % tn == 0 else (bx * tn + j) // block
                b.store(acc, i, j, acc(i, j) + part(i, j) * (scales(i) * SB(column, ko)))
        b.copy(acc, C[ds(by * tm, tm), ds(bx * tn, tn)])
    return b.finish()


def int4_gemm(tile, threads, stages, word=u8, group=128, dtype=f16, shape=None):
    """C[m, n] = X W^T, X stored [m, k]; W's elements are (q - 8) * scale, their codes q of 4 bits packed along k into words of
    `word`, u8 or i32, the first in the lowest bits: W [n, k / codes of a word]. Or `word` is u4, and W [n, k]. One scale for
    `group` codes: S [k / group, n]. `shape` fixes m, n, k."""
    tm, tn, tk = tile
    codes = word.bits // 4  # of an element of W
    if group % tk and tk % group:
        raise ValueError(f"groups of {group} codes and tiles of {tk} do not divide one another")
    b = tg.Builder("int4_gemm")
    m, n, k = shape or (b.dim("m"), b.dim("n"), b.dim("k", divisor=group))
    X = b.tensor("X", dtype, [m, k], read_only=True)
    W = b.tensor("W", word, [n, k // codes], constant=True)
    S = b.tensor("S", dtype, [k // group, n], constant=True)
    C = b.tensor("C", dtype, [m, n])
    groups = max(tk // group, 1)
    with b.kernel("int4_gemm", [ceil_div(m, tm), ceil_div(n, tn)], threads=threads, names=["by", "bx"]) as (by, bx):
        Xs, packed = b.shared("Xs", dtype, [tm, tk]), b.shared("packed", word, [tn, tk // codes])
        Ws, scales = b.fragment("Ws", dtype, [tn, tk]), b.shared("scales", dtype, [groups, tn])
        acc = b.fragment("acc", f32, [tm, tn])
        b.fill(acc, 0.0)
        with b.pipelined(0, ceil_div(k, tk), stages=stages, name="ko") as ko:
            b.copy(X[ds(by * tm, tm), ds(ko * tk, tk)], Xs)
            b.copy(W[ds(bx * tn, tn), ds(ko * (tk // codes), tk // codes)], packed)
            b.copy(S[ds(ko * tk // group, groups), ds(bx * tn, tn)], scales)
            with b.parallel(tn, tk) as (j, p):
                q = b.cast(packed(j, p // codes), i32)
                if codes > 1:
                    q = (q >> b.cast(p % codes * 4, i32)) & 15
                b.store(Ws, j, p, b.cast(q - 8, dtype) * scales(p // group, j))
            b.gemm(Xs, Ws, acc, transpose_b=True)
        b.copy(acc, C[ds(by * tm, tm), ds(bx * tn, tn)])
    return b.finish()


def conv2d(dtype, tile, threads, stages, kernel=(3, 3), pad=(1, 1), out_dtype=None):
    """Y[b, y, x, f] = sum over r, s, c of X[b, y + r - pad, x + s - pad, c] * W[f, r, s, c], with zeros outside X. A tile is a
    box of pixels; `tile` is ((images, rows, columns) of pixels, f, c)."""
    (ti, th, tw), tf, tc = tile
    kh, kw = kernel
    b = tg.Builder("conv2d")
    batch, channels, filters = b.dim("batch"), b.dim("channels"), b.dim("filters")
    height, width = b.dim("height", max(kh - 2 * pad[0], 0)), b.dim("width", max(kw - 2 * pad[1], 0))
    out_h, out_w = height + (2 * pad[0] - kh + 1), width + (2 * pad[1] - kw + 1)
    X = b.tensor("X", dtype, [batch, height, width, channels], read_only=True)
    W = b.tensor("W", dtype, [filters, kh, kw, channels], constant=True)
    Y = b.tensor("Y", out_dtype or dtype, [batch, out_h, out_w, filters])
    boxes = ceil_div(out_w, tw)
    grid = [ceil_div(batch, ti), ceil_div(out_h, th) * boxes, ceil_div(filters, tf)]
    with b.kernel("conv2d", grid, threads=threads, names=["image", "box", "bf"]) as (image, box, bf):
        Xs, Ws = b.shared("Xs", dtype, [ti * th * tw, tc]), b.shared("Ws", dtype, [tf, tc])
        acc = b.fragment("acc", f32, [ti * th * tw, tf])
        y, x = box // boxes * th, box % boxes * tw
        steps = ceil_div(channels, tc)
        b.fill(acc, 0.0)
        with b.pipelined(0, steps * (kh * kw), stages=stages, name="step") as step:
            r, s, c = step // steps // kw, step // steps % kw, step % steps * tc
            b.copy(X[ds(image * ti, ti), ds(y + r - pad[0], th), ds(x + s - pad[1], tw), ds(c, tc)], Xs)
            b.copy(W[ds(bf * tf, tf), r, s, ds(c, tc)], Ws)
            b.gemm(Xs, Ws, acc, transpose_b=True)
        b.copy(acc, Y[ds(image * ti, ti), ds(y, th), ds(x, tw), ds(bf * tf, tf)])
    return b.finish()
