"""Attention of few queries to many keys as plain tile programs: keys in parts, in pages, and latent heads."""
import math

import tilegen as tg
from programs import ceil_div, weigh_scores
from tilegen import ds, f32, i32, i64


def split_parts(tiles, blocks, processors=132):
    """How many parts of `blocks` blocks of keys keep the processors busy, for so many tiles of queries, of all heads: that
    with which the last of them is done first, if beginning a part costs as much as a block of keys."""
    rounds = lambda parts: ceil_div(tiles * parts, processors)
    return min(range(1, max(min(blocks, 256), 1) + 1), key=lambda parts: rounds(parts) * (ceil_div(blocks, parts) + 1))


def check_pages(page, keys):
    if page and page % keys and keys % page:
        raise ValueError(f"pages of {page} keys are no whole number of tiles of {keys}, nor parts of them")


def pages_of(b, table, sequence, most, first, keys, page):
    """The rows of a tile of `keys` keys from `first` on, page by page: the row of the tile, how many, and in which page they
    lie, from which row on. The last tile may reach beyond the last page."""
    rows = min(keys, page)
    for row in range(0, keys, rows):
        entry = (first + row) // page
        if rows < keys:
            entry = b.min(entry, most - 1)
        yield row, rows, b.cast(table(sequence, entry), i64), (first + row) % page


def attention_split(dtype, dim, tile, threads, stages, causal=False, group=1, window=None, cap=False, row_sums=False,
                    together=16, passed=False, page=0):
    """`attention` for few queries and many keys: the keys of a head are split into `parts`, each the work of other blocks,
    and a second kernel combines what they found. The `group` query heads that share a head of K and V are rows of the same
    tile, so that it is read once. Options and parameters are those of `attention`, but for

    parts       a dimension after `keys`, which no tensor tells
    Q, O, L     [batch, heads, group * queries(, dim)]: the memory of [batch, heads * group, queries(, dim)]

    together    parts that the second kernel reads at once
    passed      what the kernels leave for each other is no workspace but tensors after the others: f32 [batch * heads,
                parts, group * queries, dim] and [batch * heads, parts, group * queries]
    page        K and V lie in pages of so many keys, a multiple of the tile's or a part of them: [pages, page, heads, dim];
                the dimensions `pages` and `most` take the place of `keys`, and after V stand table, i32 [batch, most], the
                pages of each sequence in order, and lengths, i32 [batch], the number of its keys
    """
    tq, tk = tile
    check_pages(page, tk)
    b = tg.Builder("attention_split")
    batch, heads, queries = b.dim("batch", 1), b.dim("heads", 1), b.dim("queries")
    pages, most = (b.dim("pages"), b.dim("most")) if page else (None, None)
    keys = None if page else b.dim("keys")
    parts, rows = b.dim("parts", 1), queries * group
    scale = b.scalar("scale", f32)
    limit = b.scalar("cap", f32) if cap else None
    Q = b.tensor("Q", dtype, [batch, heads, rows, dim], read_only=True)
    kept = [pages, page, heads, dim] if page else [batch, heads, keys, dim]
    K, V = b.tensor("K", dtype, kept, read_only=True), b.tensor("V", dtype, kept, read_only=True)
    if page:
        table = b.tensor("table", i32, [batch, most], read_only=True)
        lengths = b.tensor("lengths", i32, [batch], read_only=True)
    O = b.tensor("O", dtype, [batch, heads, rows, dim])
    if row_sums:
        L = b.tensor("L", f32, [batch, heads, rows])
    between = b.tensor if passed else b.workspace
    partial = between("partial", f32, [batch * heads, parts, rows, dim])  # the result over each part of the keys
    sums = between("sums", f32, [batch * heads, parts, rows])  # log2 of the sum of its weights; -inf: no key is seen
    left, right = window or (None, None)
    if causal:
        right = 0
    weigh = (lambda x: x) if cap else (lambda x: x * scale)
    with b.kernel("over_parts", [batch * heads, parts, ceil_div(rows, tq)], threads=threads, names=["pair", "part", "br"]) as (
            pair, part, br):
        bb, bh, at = pair // heads, pair % heads, br * tq
        Qs, Ks, Vs = b.shared("Qs", dtype, [tq, dim]), b.shared("Ks", dtype, [tk, dim]), b.shared("Vs", dtype, [tk, dim])
        scores, weights = b.fragment("scores", f32, [tq, tk]), b.fragment("weights", dtype, [tq, tk])
        out = b.fragment("out", f32, [tq, dim])
        top, before = b.fragment("top", f32, [tq]), b.fragment("before", f32, [tq])
        piece, total = b.fragment("piece", f32, [tq]), b.fragment("total", f32, [tq])
        keys = b.cast(lengths(bb), i64) if page else keys

        def bring(tensor, block, tile):
            if not page:
                return b.copy(tensor[bb, bh, ds(block * tk, tk), 0:dim], tile)
            for row, rows, number, first in pages_of(b, table, bb, most, block * tk, tk, page):
                b.copy(tensor[number, ds(first, rows), bh, 0:dim], tile[ds(row, rows), 0:dim])

        # Blocks of keys that some query sees: there are few queries, so these differ little from row to row.
        first, end = 0, ceil_div(keys, tk)
        if right is not None and right < 0:
            end = ceil_div(b.max(keys + right, b.expr(0)), tk)
        if left is not None:
            first = b.max(keys - queries - left, b.expr(0)) // tk
        blocks = end - first
        b.copy(Q[bb, bh, ds(at, tq), 0:dim], Qs)
        b.fill(out, 0.0)
        b.fill(total, 0.0)
        b.fill(top, -1e30)  # below every score, and finite: -inf less -inf is no number
        with b.pipelined(first + part * blocks // parts, first + (part + 1) * blocks // parts, stages=stages, name="kb") as kb:
            bring(K, kb, Ks)
            b.gemm(Qs, Ks, scores, transpose_b=True, clear=True)
            with b.parallel(tq, tk) as (i, j):
                key = kb * tk + j
                place = (at + i) % b.max(queries, b.expr(1)) + keys - queries  # of the query beside the keys
                seen = key < keys
                if right is not None:
                    seen = seen & (key <= place + right)
                if left is not None:
                    seen = seen & (key >= place - left)
                score = b.tanh(scores(i, j) * (scale / limit)) * limit if cap else scores(i, j)
                b.store(scores, i, j, b.select(seen, score, float("-inf")))
            weigh_scores(b, scores, weights, out, top, before, piece, total, weigh)
            bring(V, kb, Vs)
            b.gemm(weights, Vs, out)
        with b.parallel(tq) as i:
            with b.branch(at + i < rows):
                b.store(sums, pair, part, at + i, weigh(top(i)) + b.log2(total(i)))
        with b.parallel(tq) as i:
            b.store(total, i, b.select(total(i) > 0.0, 1.0 / total(i), 0.0))
        with b.parallel(tq, dim) as (i, j):
            b.store(out, i, j, out(i, j) * total(i))
        b.copy(out, partial[pair, part, ds(at, tq), 0:dim])
    with b.kernel("combine", [batch, heads, rows], threads=min(dim, 128), names=["bb", "bh", "row"]) as (bb, bh, row):
        pair = bb * heads + bh
        share, found = b.fragment("share", f32, [together]), b.fragment("found", f32, [together, dim])
        top, before = b.fragment("top", f32, [1]), b.fragment("before", f32, [1])
        piece, total = b.fragment("piece", f32, [1]), b.fragment("total", f32, [1])
        out, more = b.fragment("out", f32, [dim]), b.fragment("more", f32, [dim])
        b.fill(out, 0.0)
        b.fill(total, 0.0)
        b.fill(top, -1e30)
        with b.serial(0, ceil_div(parts, together), name="step") as step:
            b.copy(sums[pair, ds(step * together, together), row], share)
            b.copy(partial[pair, ds(step * together, together), row, 0:dim], found)
            with b.parallel(together) as i:
                b.store(share, i, b.select(step * together + i < parts, share(i), float("-inf")))
            b.copy(top, before)
            b.reduce("max", share, top, axis=0, accumulate=True)
            with b.parallel(together) as i:
                b.store(share, i, b.exp2(share(i) - top(0)))
            with b.parallel(1) as i:
                b.store(before, i, b.exp2(before(i) - top(i)))
            b.reduce("sum", share, piece, axis=0)
            with b.parallel(1) as i:
                b.store(total, i, total(i) * before(i) + piece(i))
            with b.parallel(together, dim) as (i, j):
                b.store(found, i, j, found(i, j) * share(i))
            b.reduce("sum", found, more, axis=0)
            with b.parallel(dim) as i:
                b.store(out, i, out(i) * before(0) + more(i))
        if row_sums:
            with b.parallel(1) as i:
                b.store(L, bb, bh, row, (top(i) + b.log2(total(i))) * math.log(2))
        with b.parallel(1) as i:
            b.store(total, i, b.select(total(i) > 0.0, 1.0 / total(i), 0.0))
        with b.parallel(dim) as i:
            b.store(out, i, out(i) * total(0))
        b.copy(out, O[bb, bh, row, 0:dim])
    return b.finish()


def latent_attention(dtype, tile, threads, stages, latent=512, turned=64, page=0, pieces=1, cluster=1):
    """Attention of one query a sequence over heads that share latent keys (MLA, decoding): O = softmax(Q KV^T * scale) times
    the first `latent` columns of KV. `scale` is given times log2(e) and is positive.

    Q [batch, heads, latent + turned], KV [batch, keys, latent + turned], O [batch, heads, latent]
    page    KV lies in pages of so many keys, a multiple of the tile's or a part of them: [pages, page, latent + turned]; the
            dimensions `pages` and `most` take the place of `keys`, and after KV stand table, i32 [batch, most], and lengths,
            i32 [batch]
    pieces  tiles that the first `latent` columns are in: each comes and is given back by itself
    cluster blocks of as many tiles of heads that read the keys for each other
    """
    th, tk = tile
    check_pages(page, tk)
    wide = latent // pieces
    named = lambda name, i: name if pieces == 1 else f"{name}{i}"
    b = tg.Builder("latent_attention")
    batch, heads, width = b.dim("batch", 1), b.dim("heads", 1), latent + turned
    pages, most = (b.dim("pages"), b.dim("most")) if page else (None, None)
    keys = None if page else b.dim("keys")
    scale = b.scalar("scale", f32)
    Q = b.tensor("Q", dtype, [batch, heads, width], read_only=True)
    KV = b.tensor("KV", dtype, [pages, page, width] if page else [batch, keys, width], read_only=True)
    if page:
        table = b.tensor("table", i32, [batch, most], read_only=True)
        lengths = b.tensor("lengths", i32, [batch], read_only=True)
    O = b.tensor("O", dtype, [batch, heads, latent])
    together = {"cluster": cluster, "cluster_along": "bh"} if cluster > 1 else {}
    with b.kernel("latent_attention", [batch, ceil_div(heads, th)], threads=threads, names=["bb", "bh"], **together) as (bb, bh):
        Qs = [b.shared(named("Qs", i), dtype, [th, wide]) for i in range(pieces)]
        Ks = [b.shared(named("Ks", i), dtype, [tk, wide]) for i in range(pieces)]
        Qt, Kt = b.fragment("Qt", dtype, [th, turned]), b.shared("Kt", dtype, [tk, turned])
        weights = b.shared("weights", dtype, [th, tk])  # the warpgroups share the columns of the result
        scores = b.fragment("scores", f32, [th, tk])
        out = [b.fragment(named("out", i), f32, [th, wide]) for i in range(pieces)]
        top, before = b.fragment("top", f32, [th]), b.fragment("before", f32, [th])
        piece, total = b.fragment("piece", f32, [th]), b.fragment("total", f32, [th])
        keys = b.cast(lengths(bb), i64) if page else keys

        def bring(block, first, columns, tile):
            if not page:
                return b.copy(KV[bb, ds(block * tk, tk), ds(first, columns)], tile)
            for row, rows, number, at in pages_of(b, table, bb, most, block * tk, tk, page):
                b.copy(KV[number, ds(at, rows), ds(first, columns)], tile[ds(row, rows), 0:columns])

        for i, tile in enumerate(Qs):
            b.copy(Q[bb, ds(bh * th, th), ds(i * wide, wide)], tile)
        b.copy(Q[bb, ds(bh * th, th), ds(latent, turned)], Qt)
        for part in out:
            b.fill(part, 0.0)
        b.fill(total, 0.0)
        b.fill(top, -1e30)  # below every score, and finite: -inf less -inf is no number
        with b.pipelined(0, ceil_div(keys, tk), stages=stages, name="kb") as kb:
            bring(kb, latent, turned, Kt)
            for i, tile in enumerate(Ks):
                bring(kb, i * wide, wide, tile)
            b.gemm(Qt, Kt, scores, transpose_b=True, clear=True)
            for i in range(pieces):
                b.gemm(Qs[i], Ks[i], scores, transpose_b=True)
            with b.parallel(th, tk) as (i, j):
                b.store(scores, i, j, b.select(kb * tk + j < keys, scores(i, j), float("-inf")))
            weigh_scores(b, scores, weights, out, top, before, piece, total, lambda x: x * scale)
            for i in range(pieces):
                b.gemm(weights, Ks[i], out[i])
        with b.parallel(th) as i:
            b.store(total, i, b.select(total(i) > 0.0, 1.0 / total(i), 0.0))
        for p, part in enumerate(out):
            with b.parallel(th, wide) as (i, j):
                b.store(part, i, j, part(i, j) * total(i))
            b.copy(part, O[bb, ds(bh * th, th), ds(p * wide, wide)])
    return b.finish()
