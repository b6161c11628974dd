"""Sequences with a state, in chunks, as plain tile programs: Mamba-2 and linear attention (retention)."""
import math

import tilegen as tg
from programs import ceil_div
from tilegen import ds, f16, f32

LOG2E = math.log2(math.e)


class _Mamba:
    """Sizes and tensors of Mamba-2's chunks: one group of B and C, `heads` heads of `head` numbers, states of head x `state`.
    `known`: batch, chunks and heads, where the launch need not tell them."""

    def __init__(self, name, sizes, dtype=f16, group=1, known=None):
        self.chunk, self.head, self.state = sizes
        self.dtype, self.b = dtype, tg.Builder(name)
        self.batch, self.chunks, self.heads = known or (
            self.b.dim("batch", 1), self.b.dim("chunks", 1), self.b.dim("heads", 1, divisor=group))
        self.length = self.chunks * self.chunk

    def tensor(self, name, shape, dtype=None, read_only=True):
        return self.b.tensor(name, dtype or self.dtype, shape, read_only=read_only)

    def steps(self, name, **options):
        return self.tensor(name, [self.batch, self.heads, self.chunks, self.chunk], **options)

    def sequence(self, name, **options):
        return self.tensor(name, [self.batch, self.length, self.heads, self.head], **options)

    def states_shape(self):
        return [self.batch, self.chunks, self.heads, self.head, self.state]

    def vector(self, tensor, bc, h, first, count):
        return tensor[bc // self.chunks, h, bc % self.chunks, ds(first, count)]

    def rows(self, tensor, bc, first, count, *columns):
        return tensor[(bc // self.chunks, ds(bc % self.chunks * self.chunk + first, count), *columns)]


def _vectors(t, way, tiles, bc, h, first, count, DA, DT, ak, dt):
    """DA and DT of some places, in registers: through shared tiles, or directly."""
    b = t.b
    for tensor, tile, to in ((DA, tiles and tiles[0], ak), (DT, tiles and tiles[1], dt)):
        if way == "shared":
            b.copy(t.vector(tensor, bc, h, first, count), tile)
            b.copy(tile, to)
        else:
            b.copy(t.vector(tensor, bc, h, first, count), to)


def _scan_kernel(t, X, DT, DA, CB, C, S, D, O, bm, bk, threads, stages, way="shared"):
    """O = C S^T e^DA, what the states before the chunk give, + (CB, decayed) X, what the chunk itself does, + D X."""
    b, dtype, chunk, head, state = t.b, t.dtype, t.chunk, t.head, t.state
    grid = [t.batch * t.chunks, chunk // bm, t.heads]
    with b.kernel("scan", grid, threads=threads, names=["bc", "m", "h"]) as (bc, m, h):
        cbs, cb = b.shared("cbs", dtype, [bm, bk]), b.fragment("cb", dtype, [bm, bk])
        tiles = (b.shared("as", DA.dtype, [bk]), b.shared("ts", DT.dtype, [bk])) if way == "shared" else None
        ak, dt = b.fragment("ak", f32, [bk]), b.fragment("dt", f32, [bk])
        am, scale = b.fragment("am", f32, [bm]), b.fragment("scale", f32, [bm])
        xs, cs = b.shared("xs", dtype, [bk, head]), b.shared("cs", dtype, [bm, state])
        ss, out = b.shared("ss", dtype, [head, state]), b.fragment("out", f32, [bm, head])
        xr = b.fragment("xr", dtype, [bm, head])
        b.copy(t.vector(DA, bc, h, m * bm, bm), am)
        with b.parallel(bm) as i:
            b.store(scale, i, b.exp2(am(i) * LOG2E))
        b.copy(t.rows(C, bc, m * bm, bm, slice(0, state)), cs)
        b.copy(S[bc // t.chunks, bc % t.chunks, h, 0:head, 0:state], ss)
        b.gemm(cs, ss, out, transpose_b=True, clear=True)
        with b.parallel(bm, head) as (i, j):
            b.store(out, i, j, out(i, j) * scale(i))
        end = m * bm + bm  # keys after it are seen by no place of the tile
        with b.pipelined(0, end // bk if bm % bk == 0 else ceil_div(end, bk), stages=stages, name="k") as k:
            b.copy(CB[bc // t.chunks, bc % t.chunks, ds(m * bm, bm), ds(k * bk, bk)], cbs)
            b.copy(cbs, cb)
            _vectors(t, way, tiles, bc, h, k * bk, bk, DA, DT, ak, dt)
            with b.parallel(bm, bk) as (i, j):
                decay = b.exp2(am(i) * LOG2E - ak(j) * LOG2E)
                seen = b.select(k * bk + j <= m * bm + i, b.cast(cb(i, j), f32) * decay * dt(j), 0.0)
                b.store(cb, i, j, b.cast(seen, dtype))
            b.copy(t.rows(X, bc, k * bk, bk, h, slice(0, head)), xs)
            b.gemm(cb, xs, out)
        b.copy(t.rows(X, bc, m * bm, bm, h, slice(0, head)), xr)
        with b.parallel(bm, head) as (i, j):
            b.store(out, i, j, out(i, j) + b.cast(xr(i, j), f32) * b.cast(D(h), f32))
        b.copy(out, t.rows(O, bc, m * bm, bm, h, slice(0, head)))


def _state_kernel(t, X, DT, DA, B, O, bk, threads, stages, way="shared"):
    """O = (X, decayed to the end of the chunk)^T B."""
    b, dtype, chunk, head, state = t.b, t.dtype, t.chunk, t.head, t.state
    with b.kernel("states", [t.heads, t.batch * t.chunks], threads=threads, names=["h", "bc"]) as (h, bc):
        xs, x = b.shared("xs", dtype, [bk, head]), b.fragment("x", dtype, [bk, head])
        xw = b.shared("xw", dtype, [bk, head])
        tiles = (b.shared("as", DA.dtype, [bk]), b.shared("ts", DT.dtype, [bk])) if way == "shared" else None
        ak, dt = b.fragment("ak", f32, [bk]), b.fragment("dt", f32, [bk])
        bs, out = b.shared("bs", dtype, [bk, state]), b.fragment("out", f32, [head, state])
        b.fill(out, 0.0)
        with b.pipelined(0, chunk // bk, stages=stages, name="k") as k:
            b.copy(t.rows(X, bc, k * bk, bk, h, slice(0, head)), xs)
            _vectors(t, way, tiles, bc, h, k * bk, bk, DA, DT, ak, dt)
            b.copy(xs, x)
            with b.parallel(bk, head) as (i, j):
                last = b.cast(DA(bc // t.chunks, h, bc % t.chunks, chunk - 1), f32)
                b.store(x, i, j, b.cast(b.cast(x(i, j), f32) * b.exp2((last - ak(i)) * LOG2E) * dt(i), dtype))
            b.copy(x, xw)
            b.copy(t.rows(B, bc, k * bk, bk, slice(0, state)), bs)
            b.gemm(xw, bs, out, transpose_a=True)
        b.copy(out, O[bc // t.chunks, bc % t.chunks, h, 0:head, 0:state])


def chunk_scan(bm, bk, threads, stages, way="shared", sizes=(256, 64, 128), dtype=f16):
    """The output of Mamba-2 from the states before each chunk: X, O [batch, length, heads, head], DT and DA [batch, heads,
    chunks, chunk], CB [batch, chunks, chunk, chunk], C [batch, length, state], S [batch, chunks, heads, head, state], D [heads].
    DA are the sums of DT * A in each chunk. `sizes`: places of a chunk, numbers of a head and of a state's row. `way`: how the
    vectors of a chunk come to the threads that multiply by them."""
    t = _Mamba("chunk_scan", sizes, dtype)
    X, DT, DA = t.sequence("X"), t.steps("DT"), t.steps("DA")
    CB = t.tensor("CB", [t.batch, t.chunks, t.chunk, t.chunk])
    C, S, D = t.tensor("C", [t.batch, t.length, t.state]), t.tensor("S", t.states_shape()), t.tensor("D", [t.heads])
    O = t.sequence("O", read_only=False)
    _scan_kernel(t, X, DT, DA, CB, C, S, D, O, bm, bk, threads, stages, way)
    return t.b.finish()


def chunk_state(bk, threads, stages, way="shared", sizes=(256, 64, 128), dtype=f16):
    """What each chunk of Mamba-2 adds to its head's state: O [batch, chunks, heads, head, state] of X, DT, DA and B [batch,
    length, state]; as in `chunk_scan`."""
    t = _Mamba("chunk_state", sizes, dtype)
    X, DT, DA, B = t.sequence("X"), t.steps("DT"), t.steps("DA"), t.tensor("B", [t.batch, t.length, t.state])
    O = t.tensor("O", t.states_shape(), read_only=False)
    _state_kernel(t, X, DT, DA, B, O, bk, threads, stages, way)
    return t.b.finish()


def chunk_scan_by_heads(group, stages=2, sizes=(256, 64, 128), dtype=f16, known=None):
    """`chunk_scan` whose blocks walk over `group` heads, a divisor of their number, with a chunk's rows of C and CB, which heads
    share. DA must not rise along a chunk: what a row has of an earlier quarter of the chunk is weighted by a factor of the row and
    one of the place, each of 1 at most."""
    t = _Mamba("chunk_scan", sizes, dtype, group, known)
    b, head, state, half = t.b, t.head, t.state, t.chunk // 2
    part = half // 2  # a quarter: places that come and are multiplied at once
    X, DT, DA = t.sequence("X"), t.steps("DT"), t.steps("DA")
    CB = t.tensor("CB", [t.batch, t.chunks, t.chunk, t.chunk])
    C, S, D = t.tensor("C", [t.batch, t.length, state]), t.tensor("S", t.states_shape()), t.tensor("D", [t.heads])
    O = t.sequence("O", read_only=False)
    with b.kernel("scan", [t.heads // group, t.batch * t.chunks], threads=2 * half, names=["hg", "bc"]) as (hg, bc):
        ss, a, dt = b.shared("ss", dtype, [head, state]), b.shared("a", dtype, [t.chunk]), b.shared("dt", dtype, [t.chunk])
        until = b.shared("until", dtype, [t.chunk])  # the weight of a place at the end of its quarter
        cs = [b.shared(f"cs{m}", dtype, [half, state]) for m in (0, 1)]
        xs = [b.shared(f"x{k}", dtype, [part, head]) for k in range(4)]
        blocks = [(m, k) for m in (0, 1) for k in range(2 + 2 * m)]
        cb = {at: b.fragment("cb%d%d" % at, dtype, [half, part]) for at in blocks}
        w = {at: b.fragment("w%d%d" % at, dtype, [half, part]) for at in blocks}
        since = {at: b.fragment("since%d%d" % at, dtype, [half]) for at in blocks}  # of a row, since the end of a quarter
        am = [b.fragment(f"am{m}", f32, [half]) for m in (0, 1)]
        out = [b.fragment(f"out{m}", f32, [half, head]) for m in (0, 1)]
        for m in (0, 1):
            b.copy(t.rows(C, bc, m * half, half, slice(0, state)), cs[m])
        for m, k in blocks:
            b.copy(CB[bc // t.chunks, bc % t.chunks, ds(m * half, half), ds(k * part, part)], cb[m, k])
        with b.pipelined(0, group, stages=stages, name="g") as g:
            h = hg * group + g
            b.copy(S[bc // t.chunks, bc % t.chunks, h, 0:head, 0:state], ss)
            b.copy(t.vector(DA, bc, h, 0, t.chunk), a)
            b.copy(t.vector(DT, bc, h, 0, t.chunk), dt)
            for k, tile in enumerate(xs):
                b.copy(t.rows(X, bc, k * part, part, h, slice(0, head)), tile)
            log = lambda place: b.cast(a(place), f32) * LOG2E
            end = lambda k: k * part + part - 1  # of a quarter
            for m in (0, 1):
                with b.parallel(half) as i:
                    b.store(am[m], i, log(m * half + i))
                b.gemm(cs[m], ss, out[m], transpose_b=True, clear=True)
                if m == 0:
                    with b.parallel(t.chunk) as j:
                        b.store(until, j, b.cast(b.exp2(log(end(j // part)) - log(j)), dtype) * dt(j))
                for k in range(2 * m + 1):
                    with b.parallel(half) as i:
                        b.store(since[m, k], i, b.cast(b.exp2(am[m](i) - log(end(k))), dtype))
                for k in range(2 + 2 * m):
                    first = k * part - m * half  # a place of the same half; of the one before: less than 0
                    with b.parallel(half, part) as (i, j):
                        place, none = k * part + j, b.expr(0.0, dtype)
                        earlier = lambda: cb[m, k](i, j) * until(place) * since[m, k](i)
                        if first < 0:
                            b.store(w[m, k], i, j, earlier())
                        else:
                            decay = b.cast(b.exp2(am[m](i) - log(place)), dtype) * dt(place)
                            seen = b.select(first + j <= i, cb[m, k](i, j) * decay, none)
                            seen = seen + b.select(first + j == i, D(h), none)
                            b.store(w[m, k], i, j, b.select(i < part, seen, earlier()) if first == 0 else seen)
                    if k == 0:
                        with b.parallel(half, head) as (i, j):
                            b.store(out[m], i, j, out[m](i, j) * b.exp2(am[m](i)))
                    b.gemm(w[m, k], xs[k], out[m])
                b.copy(out[m], t.rows(O, bc, m * half, half, h, slice(0, head)))
    return b.finish()


def chunk_state_by_heads(group, threads=256, stages=2, sizes=(256, 64, 128), dtype=f16, known=None):
    """`chunk_state` whose blocks walk over `group` heads, a divisor of their number, with a chunk's rows of B, which heads share."""
    t = _Mamba("chunk_state", sizes, dtype, group, known)
    b, chunk, head, state = t.b, t.chunk, t.head, t.state
    X, DT, DA, B = t.sequence("X"), t.steps("DT"), t.steps("DA"), t.tensor("B", [t.batch, t.length, t.state])
    O = t.tensor("O", t.states_shape(), read_only=False)
    with b.kernel("states", [t.batch * t.chunks, t.heads // group], threads=threads, names=["bc", "hg"]) as (bc, hg):
        bs, out = b.shared("bs", dtype, [chunk, state]), b.fragment("out", f32, [head, state])
        xs, xw = b.shared("xs", dtype, [chunk, head]), b.shared("xw", dtype, [chunk, head])
        a, dt = b.shared("a", dtype, [chunk]), b.shared("dt", dtype, [chunk])
        b.copy(t.rows(B, bc, 0, chunk, slice(0, state)), bs)
        with b.pipelined(0, group, stages=stages, name="g") as g:
            h = hg * group + g
            b.copy(t.rows(X, bc, 0, chunk, h, slice(0, head)), xs)
            b.copy(t.vector(DA, bc, h, 0, chunk), a)
            b.copy(t.vector(DT, bc, h, 0, chunk), dt)
            with b.parallel(chunk, head) as (i, j):
                decay = b.exp2((b.cast(a(chunk - 1), f32) - b.cast(a(i), f32)) * LOG2E) * b.cast(dt(i), f32)
                b.store(xw, i, j, xs(i, j) * b.cast(decay, dtype))
            b.gemm(xw, bs, out, transpose_a=True, clear=True)
            b.copy(out, O[bc // t.chunks, bc % t.chunks, h, 0:head, 0:state])
    return b.finish()


def mamba(scan, state, sizes=(256, 64, 128), dtype=f16, passed=(8, 128)):
    """Mamba-2 from X, DT, A, B, C, D to O: y = C s + D x of the states s = e^(dt A) s + dt x B^T, in chunks. Kernels: the sums
    of dt A in each chunk, C B^T of each chunk, what each chunk adds to the state, the state before each chunk, the output.

    DT    f32 [batch, heads, chunks, chunk], not negative; A f32 [heads], negative; the others as in `chunk_scan`
    scan, state    arguments of `chunk_scan` and `chunk_state`
    passed         the tile of a head's state that a block carries through the chunks
    """
    t = _Mamba("mamba", sizes, dtype)
    b, chunk = t.b, t.chunk
    X, DT, A = t.sequence("X"), t.steps("DT", dtype=f32), t.tensor("A", [t.heads], dtype=f32)
    B, C = t.tensor("B", [t.batch, t.length, t.state]), t.tensor("C", [t.batch, t.length, t.state])
    D, O = t.tensor("D", [t.heads]), t.sequence("O", read_only=False)
    DA = b.workspace("DA", f32, [t.batch, t.heads, t.chunks, chunk])
    CB = b.workspace("CB", dtype, [t.batch, t.chunks, chunk, chunk])
    added = b.workspace("added", f32, t.states_shape())
    S = b.workspace("S", dtype, t.states_shape())
    with b.kernel("sums", [t.batch * t.chunks, t.heads], threads=128, names=["bc", "h"]) as (bc, h):
        steps = b.fragment("steps", f32, [1, chunk])
        place = (bc // t.chunks, h, bc % t.chunks, slice(0, chunk))
        b.copy(DT[place], steps)
        with b.parallel(1, chunk) as (i, j):
            b.store(steps, i, j, steps(i, j) * A(h))
        b.cumsum(steps, steps, axis=1)
        b.copy(steps, DA[place])
    bm = min(chunk, 128)
    with b.kernel("products", [t.batch * t.chunks, chunk // bm, chunk // bm], threads=2 * bm, names=["bc", "m", "n"]) as (bc, m, n):
        cs, bs, cb = b.shared("cs", dtype, [bm, t.state]), b.shared("bs", dtype, [bm, t.state]), b.fragment("cb", f32, [bm, bm])
        b.copy(t.rows(C, bc, m * bm, bm, slice(0, t.state)), cs)
        b.copy(t.rows(B, bc, n * bm, bm, slice(0, t.state)), bs)
        b.gemm(cs, bs, cb, transpose_b=True, clear=True)
        b.copy(cb, CB[bc // t.chunks, bc % t.chunks, ds(m * bm, bm), ds(n * bm, bm)])
    _state_kernel(t, X, DT, DA, B, added, **state)
    rows, columns = passed
    grid = [t.batch * t.heads, ceil_div(t.head, rows), ceil_div(t.state, columns)]
    with b.kernel("passing", grid, threads=128, names=["pair", "r", "c"]) as (pair, r, c):
        kept, more = b.fragment("kept", f32, [rows, columns]), b.fragment("more", f32, [rows, columns])
        bb, h = pair // t.heads, pair % t.heads
        b.fill(kept, 0.0)
        with b.pipelined(0, t.chunks, name="step") as step:
            place = (bb, step, h, ds(r * rows, rows), ds(c * columns, columns))
            b.copy(kept, S[place])
            b.copy(added[place], more)
            with b.parallel(rows, columns) as (i, j):
                b.store(kept, i, j, kept(i, j) * b.exp2(DA(bb, h, step, chunk - 1) * LOG2E) + more(i, j))
    _scan_kernel(t, X, DT, DA, CB, C, S, D, O, **scan)
    return b.finish()


def retention(dtype, tile, threads, stages, keys=128, values=128):
    """Linear attention with decay, causal: O[i] = sum over j <= i of decay^(i - j) * (Q[i] K[j]) V[j]. Q, K [batch, heads,
    length, keys], V, O [batch, heads, length, values]; `decay` f32 [heads], log2 of it, not above 0. A block walks along the chunks of
    a head with the state of some columns of V. `tile`: places of a chunk, columns of V."""
    tc, tv = tile
    b = tg.Builder("retention")
    batch, heads, length = b.dim("batch", 1), b.dim("heads", 1), b.dim("length")
    Q, K = (b.tensor(x, dtype, [batch, heads, length, keys], read_only=True) for x in "QK")
    V = b.tensor("V", dtype, [batch, heads, length, values], read_only=True)
    decay = b.tensor("decay", f32, [heads], read_only=True)
    O = b.tensor("O", dtype, [batch, heads, length, values])
    with b.kernel("retention", [batch, heads, ceil_div(values, tv)], threads=threads, names=["bb", "bh", "bv"]) as (bb, bh, bv):
        Qs, Ks, Vs = b.shared("Qs", dtype, [tc, keys]), b.shared("Ks", dtype, [tc, keys]), b.shared("Vs", dtype, [tc, tv])
        scores, weights = b.fragment("scores", f32, [tc, tc]), b.fragment("weights", dtype, [tc, tc])
        decayed, state = b.shared("decayed", dtype, [tc, keys]), b.fragment("state", f32, [keys, tv])
        before, out = b.shared("before", dtype, [keys, tv]), b.fragment("out", f32, [tc, tv])
        b.fill(state, 0.0)
        with b.pipelined(0, ceil_div(length, tc), stages=stages, name="chunk") as chunk:
            b.copy(Q[bb, bh, ds(chunk * tc, tc), 0:keys], Qs)
            b.copy(K[bb, bh, ds(chunk * tc, tc), 0:keys], Ks)
            b.copy(V[bb, bh, ds(chunk * tc, tc), ds(bv * tv, tv)], Vs)
            b.copy(state, before)
            b.gemm(Qs, before, out, clear=True)
            with b.parallel(tc, tv) as (i, j):
                b.store(out, i, j, out(i, j) * b.exp2(decay(bh) * b.cast(i + 1, f32)))
            b.gemm(Qs, Ks, scores, transpose_b=True, clear=True)
            with b.parallel(tc, tc) as (i, j):
                weight = scores(i, j) * b.exp2(decay(bh) * b.cast(i - j, f32))
                b.store(weights, i, j, b.cast(b.select(j <= i, weight, 0.0), dtype))
            b.gemm(weights, Vs, out)
            with b.parallel(tc, keys) as (i, j):
                b.store(decayed, i, j, b.cast(b.cast(Ks(i, j), f32) * b.exp2(decay(bh) * b.cast(tc - 1 - i, f32)), dtype))
            with b.parallel(keys, tv) as (i, j):
                b.store(state, i, j, state(i, j) * b.exp2(decay(bh) * float(tc)))
            b.gemm(decayed, Vs, state, transpose_a=True)
            b.copy(out, O[bb, bh, ds(chunk * tc, tc), ds(bv * tv, tv)])
    return b.finish()
