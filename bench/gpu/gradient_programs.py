"""The gradients of attention as a plain tile program."""
import math

import tilegen as tg
from programs import ceil_div
from tilegen import ds, f32, i32, i64


class _Heads:
    """Tensors of sequences: [batch, heads, length, dim], or [length of all, heads, dim] when packed, with where each
    sequence begins."""

    def __init__(self, b, dtype, dim, group, packed):
        self.b, self.dim, self.packed = b, dim, packed
        self.batch, self.heads = b.dim("batch", 1), b.dim("heads", 1)
        if packed:
            self.all_queries, self.all_keys = b.dim("all_queries"), b.dim("all_keys")
        self.queries, self.keys = b.dim("queries"), b.dim("keys")
        self.scale = b.scalar("scale", f32)
        ours, theirs = self.heads * group, self.heads
        self.Q = self.tensor("Q", dtype, ours, True, True)
        self.K = self.tensor("K", dtype, theirs, False, True)
        self.V = self.tensor("V", dtype, theirs, False, True)
        if packed:
            self.query_ends = b.tensor("query_ends", i32, [self.batch + 1], read_only=True)
            self.key_ends = b.tensor("key_ends", i32, [self.batch + 1], read_only=True)
        self.O = self.tensor("O", dtype, ours, True, True)
        self.row_shape = [ours, self.all_queries] if packed else [self.batch, ours, self.queries]
        self.L = b.tensor("L", f32, self.row_shape, read_only=True)
        self.G = self.tensor("G", dtype, ours, True, True)
        self.dQ = self.tensor("dQ", dtype, ours, True, False)
        self.dK = self.tensor("dK", dtype, theirs, False, False)
        self.dV = self.tensor("dV", dtype, theirs, False, False)

    def tensor(self, name, dtype, heads, of_queries, read_only):
        if self.packed:
            shape = [self.all_queries if of_queries else self.all_keys, heads, self.dim]
        else:
            shape = [self.batch, heads, self.queries if of_queries else self.keys, self.dim]
        return self.b.tensor(name, dtype, shape, read_only=read_only)

    def sequence(self, bb):
        """The first query and the number of them, and the same of the keys."""
        if not self.packed:
            return 0, self.queries, 0, self.keys
        first, end = (lambda ends, i: self.b.cast(ends(i), i64)), []
        for ends in (self.query_ends, self.key_ends):
            begin = self.b.max(first(ends, bb), self.b.expr(0))  # not before the tensor: known, for the copy engine
            end += [begin, first(ends, bb + 1) - begin]
        return end

    def box(self, tensor, bb, head, first, rows):
        if self.packed:
            return tensor[ds(first, rows), head, 0 : self.dim]
        return tensor[bb, head, ds(first, rows), 0 : self.dim]

    def rows(self, tensor, bb, head, first, rows):
        """Of what is one number a query."""
        return tensor[head, ds(first, rows)] if self.packed else tensor[bb, head, ds(first, rows)]

    def store(self, tile, tensor, bb, head, begin, at, length):
        """The rows of a tile from `at` on, those of the sequence."""
        b, (rows, dim) = self.b, tile.shape
        if not self.packed:
            b.copy(tile, self.box(tensor, bb, head, at, rows))
            return
        with b.branch(at + rows <= length) as otherwise:  # rows after the end are of the next sequence
            b.copy(tile, self.box(tensor, bb, head, begin + at, rows))
            otherwise()
            with b.parallel(rows, dim) as (i, j):
                with b.branch(at + i < length):
                    b.store(tensor, begin + at + i, head, j, b.cast(tile(i, j), tensor.dtype))


def _deltas(b, t, delta, dim, tile=64):
    """delta = the sum of O * G of each row: what the weights of a row have in common."""
    def body(heads_of, place, boxed):
        o, g, d = b.fragment("o", f32, [tile, dim]), b.fragment("g", f32, [tile, dim]), b.fragment("d", f32, [tile])
        b.copy(boxed(t.O), o)
        b.copy(boxed(t.G), g)
        with b.parallel(tile, dim) as (i, j):
            b.store(o, i, j, o(i, j) * g(i, j))
        b.reduce("sum", o, d, axis=1)
        b.copy(d, delta[(*heads_of, ds(place, tile))])
    heads, rows = t.row_shape[-2:]
    if t.packed:
        with b.kernel("deltas", [heads, ceil_div(rows, tile)], threads=128, names=["bh", "bq"]) as (bh, bq):
            body((bh,), bq * tile, lambda x: t.box(x, None, bh, bq * tile, tile))
    else:
        with b.kernel("deltas", [t.batch, heads, ceil_div(rows, tile)], threads=128, names=["bb", "bh", "bq"]) as (bb, bh, bq):
            body((bb, bh), bq * tile, lambda x: t.box(x, bb, bh, bq * tile, tile))


def _of_keys(b, t, delta, dtype, dim, tiles, threads, stages, causal, group):
    """dK and dV of a tile of keys, over all queries that see some of it. Products are those of the transposed scores, so that
    weights and slopes are the first operand of the next product as they come."""
    tq, tk = tiles
    with b.kernel("of_keys", [t.batch, t.heads, ceil_div(t.keys, tk)], threads=threads, names=["bb", "bh", "bk"]) as (bb, bh, bk):
        Ks, Vs = b.shared("Ks", dtype, [tk, dim]), b.shared("Vs", dtype, [tk, dim])
        Qs, Gs = b.shared("Qs", dtype, [tq, dim]), b.shared("Gs", dtype, [tq, dim])
        sums, means = b.shared("sums", f32, [tq]), b.shared("means", f32, [tq])
        scores, slopes = b.fragment("scores", f32, [tk, tq]), b.fragment("slopes", f32, [tk, tq])
        weights, steps = b.fragment("weights", dtype, [tk, tq]), b.fragment("steps", dtype, [tk, tq])
        dk, dv = b.fragment("dk", f32, [tk, dim]), b.fragment("dv", f32, [tk, dim])
        first_query, queries, first_key, keys = t.sequence(bb)
        at = bk * tk  # the first key of the tile
        first, end = 0, ceil_div(queries, tq)
        if causal:
            first = b.max(at + queries - keys, b.expr(0)) // tq
        if t.packed:
            end = b.select(at < keys, end, 0)
        blocks = b.max(end - first, b.expr(0))
        b.copy(t.box(t.K, bb, bh, first_key + at, tk), Ks)
        b.copy(t.box(t.V, bb, bh, first_key + at, tk), Vs)
        b.fill(dk, 0.0)
        b.fill(dv, 0.0)
        with b.pipelined(0, blocks * group, stages=stages, name="step") as step:
            head = bh if group == 1 else bh * group + step // blocks
            place = (first + (step if group == 1 else step % blocks)) * tq
            b.copy(t.box(t.Q, bb, head, first_query + place, tq), Qs)
            b.copy(t.rows(t.L, bb, head, first_query + place, tq), sums)
            b.copy(t.box(t.G, bb, head, first_query + place, tq), Gs)
            b.copy(t.rows(delta, bb, head, first_query + place, tq), means)
            b.gemm(Ks, Qs, scores, transpose_b=True, clear=True)
            with b.parallel(tk, tq) as (i, j):
                weight = b.exp2(scores(i, j) * t.scale - sums(j) * math.log2(math.e))
                seen = None
                if causal:
                    seen = at + i <= place + j + keys - queries
                if t.packed:
                    seen = (place + j < queries) if seen is None else seen & (place + j < queries)
                b.store(scores, i, j, weight if seen is None else b.select(seen, weight, 0.0))
            b.copy(scores, weights)
            b.gemm(weights, Gs, dv)
            b.gemm(Vs, Gs, slopes, transpose_b=True, clear=True)
            with b.parallel(tk, tq) as (i, j):
                b.store(slopes, i, j, scores(i, j) * (slopes(i, j) - means(j)))
            b.copy(slopes, steps)
            b.gemm(steps, Qs, dk)
        with b.parallel(tk, dim) as (i, j):
            b.store(dk, i, j, dk(i, j) * (t.scale * math.log(2)))
        t.store(dk, t.dK, bb, bh, first_key, at, keys)
        t.store(dv, t.dV, bb, bh, first_key, at, keys)


def _of_queries(b, t, delta, dtype, dim, tiles, threads, stages, causal, group):
    """dQ of a tile of queries, over all keys that it sees."""
    tq, tk = tiles
    grid = [t.batch, t.heads * group, ceil_div(t.queries, tq)]
    with b.kernel("of_queries", grid, threads=threads, names=["bb", "bh", "bq"]) as (bb, bh, bq):
        Qs, Gs = b.shared("Qs", dtype, [tq, dim]), b.shared("Gs", dtype, [tq, dim])
        Ks, Vs = b.shared("Ks", dtype, [tk, dim]), b.shared("Vs", dtype, [tk, dim])
        sums, means = b.fragment("sums", f32, [tq]), b.fragment("means", f32, [tq])
        scores, slopes = b.fragment("scores", f32, [tq, tk]), b.fragment("slopes", f32, [tq, tk])
        steps, dq = b.fragment("steps", dtype, [tq, tk]), b.fragment("dq", f32, [tq, dim])
        first_query, queries, first_key, keys = t.sequence(bb)
        at = bq * tq  # the first query of the tile
        end = keys
        if causal:
            end = b.min(end, at + tq + keys - queries)
        if t.packed:
            end = b.select(at < queries, end, 0)
        b.copy(t.box(t.Q, bb, bh, first_query + at, tq), Qs)
        b.copy(t.box(t.G, bb, bh, first_query + at, tq), Gs)
        b.copy(t.rows(t.L, bb, bh, first_query + at, tq), sums)
        b.copy(t.rows(delta, bb, bh, first_query + at, tq), means)
        b.fill(dq, 0.0)
        with b.pipelined(0, ceil_div(end, tk), stages=stages, name="kb") as kb:
            b.copy(t.box(t.K, bb, bh // group, first_key + kb * tk, tk), Ks)
            b.copy(t.box(t.V, bb, bh // group, first_key + kb * tk, tk), Vs)
            b.gemm(Qs, Ks, scores, transpose_b=True, clear=True)
            b.gemm(Gs, Vs, slopes, transpose_b=True, clear=True)
            with b.parallel(tq, tk) as (i, j):
                key = kb * tk + j
                seen = key < keys
                if causal:
                    seen = seen & (key <= at + i + keys - queries)
                weight = b.exp2(scores(i, j) * t.scale - sums(i) * math.log2(math.e))
                b.store(scores, i, j, b.select(seen, weight, 0.0) * (slopes(i, j) - means(i)))
            b.copy(scores, steps)
            b.gemm(steps, Ks, dq)
        with b.parallel(tq, dim) as (i, j):
            b.store(dq, i, j, dq(i, j) * (t.scale * math.log(2)))
        t.store(dq, t.dQ, bb, bh, first_query, at, queries)


def _summed_up(b, t, dtype, dim, tiles, threads, stages, causal, group, tile=64):
    """dK, dV and dQ with each weight and slope computed once: tiles of keys go over the queries, and add what they have of dQ
    to sums in memory. Three kernels: what a row of queries needs, and zeros; the tiles of keys; the sums scaled."""
    tq, tk = tiles
    rows = b.workspace("rows", f32, [*t.row_shape[:-1], 2, t.row_shape[-1]])  # L in bits, and the sum of O * G
    sums = b.workspace("sums", f32, [*t.row_shape, dim])  # of dQ

    def of_rows(name, body):
        grid = [*t.row_shape[:-1], ceil_div(t.row_shape[-1], tile)]
        with b.kernel(name, grid, threads=128, names=["bb", "bh", "bq"][-len(grid):]) as (*batch, bh, bq):
            body(tuple(batch), bh, bq * tile)

    def prepare(batch, bh, at):
        o, g = b.fragment("o", f32, [tile, dim]), b.fragment("g", f32, [tile, dim])
        d, l = b.fragment("d", f32, [tile]), b.fragment("l", f32, [tile])
        boxed = lambda x: t.box(x, batch[0] if batch else None, bh, at, tile)
        b.copy(boxed(t.O), o)
        b.copy(boxed(t.G), g)
        with b.parallel(tile, dim) as (i, j):
            b.store(o, i, j, o(i, j) * g(i, j))
        b.reduce("sum", o, d, axis=1)
        b.copy(t.L[(*batch, bh, ds(at, tile))], l)
        with b.parallel(tile) as i:
            b.store(l, i, l(i) * math.log2(math.e))
        b.copy(l, rows[(*batch, bh, 0, ds(at, tile))])
        b.copy(d, rows[(*batch, bh, 1, ds(at, tile))])
        b.fill(g, 0.0)
        b.copy(g, sums[(*batch, bh, ds(at, tile), slice(0, dim))])

    def finish(batch, bh, at):
        d = b.fragment("d", f32, [tile, dim])
        b.copy(sums[(*batch, bh, ds(at, tile), slice(0, dim))], d)
        with b.parallel(tile, dim) as (i, j):
            b.store(d, i, j, d(i, j) * (t.scale * math.log(2)))
        b.copy(d, t.box(t.dQ, batch[0] if batch else None, bh, at, tile))

    of_rows("prepare", prepare)
    with b.kernel("of_keys", [t.batch, t.heads, ceil_div(t.keys, tk)], threads=threads, names=["bb", "bh", "bk"]) as (bb, bh, bk):
        Ks, Vs = b.shared("Ks", dtype, [tk, dim]), b.shared("Vs", dtype, [tk, dim])
        Qs, Gs, of_row = b.shared("Qs", dtype, [tq, dim]), b.shared("Gs", dtype, [tq, dim]), b.shared("of_row", f32, [2, tq])
        scores, slopes = b.fragment("scores", f32, [tk, tq]), b.fragment("slopes", f32, [tk, tq])
        weights, steps = b.fragment("weights", dtype, [tk, tq]), b.fragment("steps", dtype, [tk, tq])
        shared_steps = b.shared("shared_steps", dtype, [tk, tq])
        dk, dv, dq = b.fragment("dk", f32, [tk, dim]), b.fragment("dv", f32, [tk, dim]), b.fragment("dq", f32, [tq, dim])
        first_query, queries, first_key, keys = t.sequence(bb)
        at = bk * tk  # the first key of the tile
        first, end = 0, ceil_div(queries, tq)
        if causal:
            first = b.max(at + queries - keys, b.expr(0)) // tq
        if t.packed:
            end = b.select(at < keys, end, 0)
        blocks = b.max(end - first, b.expr(0))
        b.copy(t.box(t.K, bb, bh, first_key + at, tk), Ks)
        b.copy(t.box(t.V, bb, bh, first_key + at, tk), Vs)
        b.fill(dk, 0.0)
        b.fill(dv, 0.0)
        with b.pipelined(0, blocks * group, stages=stages, name="step") as step:
            head = bh if group == 1 else bh * group + step // blocks
            place = (first + (step if group == 1 else step % blocks)) * tq
            batch = () if t.packed else (bb,)
            b.copy(t.box(t.Q, bb, head, first_query + place, tq), Qs)
            b.copy(rows[(*batch, head, slice(0, 2), ds(first_query + place, tq))], of_row)
            b.copy(t.box(t.G, bb, head, first_query + place, tq), Gs)
            b.gemm(Ks, Qs, scores, transpose_b=True, clear=True)
            with b.parallel(tk, tq) as (i, j):
                # A key after the end meets zeros, or when packed another sequence's key.
                seen = (at + i <= place + j + keys - queries) if causal else (at + i < keys)
                if t.packed:
                    seen = seen & (at + i < keys) & (place + j < queries)
                b.store(scores, i, j, b.select(seen, b.exp2(scores(i, j) * t.scale - of_row(0, j)), 0.0))
            b.copy(scores, weights)
            b.gemm(weights, Gs, dv)
            b.gemm(Vs, Gs, slopes, transpose_b=True, clear=True)
            with b.parallel(tk, tq) as (i, j):
                b.store(slopes, i, j, scores(i, j) * (slopes(i, j) - of_row(1, j)))
            b.copy(slopes, steps)
            b.copy(steps, shared_steps)
            b.gemm(steps, Qs, dk)
            b.gemm(shared_steps, Ks, dq, transpose_a=True, clear=True)
            b.atomic("add", dq, sums[(*batch, head, ds(first_query + place, tq), slice(0, dim))])
        with b.parallel(tk, dim) as (i, j):
            b.store(dk, i, j, dk(i, j) * (t.scale * math.log(2)))
        t.store(dk, t.dK, bb, bh, first_key, at, keys)
        t.store(dv, t.dV, bb, bh, first_key, at, keys)
    of_rows("finish", finish)


def attention_backward(dtype, dim, of_keys, of_queries, causal=False, group=1, packed=False):
    """The gradients dQ, dK and dV of `programs.attention`, from its operands and results O and L (`row_sums`) and the
    gradient G of O. Parameters and options are those of `attention`; when packed, `keys` is at least the longest sequence of
    keys. Three kernels: the sums of O * G; dK and dV; dQ.

    of_keys, of_queries    ((queries, keys) of a tile, threads, stages) of the kernels of dK and dV, and of dQ. Without
                           `of_queries` the kernel of keys adds up dQ too, by atomic operations: five products for seven,
                           in an order that launches do not repeat
    """
    b = tg.Builder("attention_backward")
    t = _Heads(b, dtype, dim, group, packed)
    if of_queries is None:
        _summed_up(b, t, dtype, dim, *of_keys, causal, group)
        return b.finish()
    delta = b.workspace("delta", f32, t.row_shape)
    _deltas(b, t, delta, dim)
    _of_keys(b, t, delta, dtype, dim, *of_keys, causal, group)
    _of_queries(b, t, delta, dtype, dim, *of_queries, causal, group)
    return b.finish()
