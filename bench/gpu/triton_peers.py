"""Kernels in Triton for what PyTorch has no operator of, as one would write them there; tiles are tuned by Triton."""
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def _tuned(configurations, key):
    """The fastest of the configurations; of Triton's interpreter, which has no times, the first."""
    return triton.autotune(configurations[:1] if triton.knobs.runtime.interpret else configurations, key=key)


_WARPS = [triton.Config({}, num_warps=w, num_stages=s) for w in (4, 8) for s in (2, 3, 4)]


def _tiles(*shapes, warps=(4, 8), stages=(2, 3, 4), names=("BM", "BN", "BK")):
    return [triton.Config(dict(zip(names, shape)), num_warps=w, num_stages=s) for shape in shapes for w in warps for s in stages]


@_tuned(_WARPS, key=["dim", "page"])
@triton.jit
def _paged_part(q, k, v, table, lengths, partial, sums, scale, parts, most, heads: tl.constexpr, group: tl.constexpr,
                rows: tl.constexpr, dim: tl.constexpr, page: tl.constexpr):
    pair, part = tl.program_id(0), tl.program_id(1)
    bb, bh = pair // heads, pair % heads
    length = tl.load(lengths + bb)
    pages = (length + page - 1) // page
    r, d, n = tl.arange(0, rows), tl.arange(0, dim), tl.arange(0, page)
    queries = tl.load(q + (pair * group + r[:, None]) * dim + d[None, :], mask=r[:, None] < group, other=0.0)
    top, total = tl.full([rows], -1e30, tl.float32), tl.zeros([rows], tl.float32)
    out = tl.zeros([rows, dim], tl.float32)
    for i in range(part * pages // parts, (part + 1) * pages // parts):
        at = tl.load(table + bb * most + i).to(tl.int64)
        place = ((at * page + n[:, None]) * heads + bh) * dim + d[None, :]
        scores = tl.dot(queries, tl.trans(tl.load(k + place))) * scale
        scores = tl.where(i * page + n[None, :] < length, scores, float("-inf"))
        new = tl.maximum(top, tl.max(scores, 1))
        weights, before = tl.exp2(scores - new[:, None]), tl.exp2(top - new)
        total, top = total * before + tl.sum(weights, 1), new
        out = out * before[:, None] + tl.dot(weights.to(v.dtype.element_ty), tl.load(v + place))
    out = out / tl.where(total > 0, total, 1.0)[:, None]
    base = (pair * parts + part) * group + r
    tl.store(partial + base[:, None] * dim + d[None, :], out, mask=r[:, None] < group)
    tl.store(sums + base, tl.where(total > 0, top + tl.log2(total), float("-inf")), mask=r < group)


@triton.jit
def _combine(partial, sums, out, parts, group, together: tl.constexpr, dim: tl.constexpr):
    pair, row = tl.program_id(0), tl.program_id(1)
    p, d = tl.arange(0, together), tl.arange(0, dim)
    share = tl.load(sums + (pair * parts + p) * group + row, mask=p < parts, other=float("-inf"))
    share = tl.exp2(share - tl.maximum(tl.max(share, 0), -1e30))
    found = tl.load(partial + ((pair * parts + p[:, None]) * group + row) * dim + d[None, :], mask=p[:, None] < parts, other=0.0)
    total = tl.sum(share, 0)
    result = tl.sum(found * share[:, None], 0) / tl.where(total > 0, total, 1.0)
    tl.store(out + (pair * group + row) * dim + d, result.to(out.dtype.element_ty))


def paged_decode(q, k, v, table, lengths, out, scale, parts, between):
    """q, out [batch, heads, group, dim]; k, v [pages, page, heads, dim]; `between`: f32 [pairs, parts, group, dim] and sums."""
    batch, heads, group, dim = q.shape
    _paged_part[(batch * heads, parts)](q, k, v, table, lengths, *between, scale, parts, table.shape[1], heads, group,
                                        max(16, triton.next_power_of_2(group)), dim, k.shape[1])
    _combine[(batch * heads, group)](*between, out, parts, group, triton.next_power_of_2(parts), dim)


@_tuned(_tiles((128, 128), (128, 64), (64, 64), (64, 32), names=("BM", "BN")), key=["keys", "values"])
@triton.jit
def _retention(q, k, v, decay, out, length, heads, keys: tl.constexpr, values: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    pair, columns = tl.program_id(0), tl.program_id(1) * BN + tl.arange(0, BN)
    rate = tl.load(decay + pair % heads)
    i, c = tl.arange(0, BM), tl.arange(0, keys)
    base = pair.to(tl.int64) * length
    mask = tl.where(i[:, None] >= i[None, :], tl.exp2(rate * (i[:, None] - i[None, :]).to(tl.float32)), 0.0)
    state = tl.zeros([keys, BN], tl.float32)
    for chunk in range(0, tl.cdiv(length, BM)):
        rows = chunk * BM + i
        inside = rows[:, None] < length
        qs = tl.load(q + (base + rows[:, None]) * keys + c[None, :], mask=inside, other=0.0)
        ks = tl.load(k + (base + rows[:, None]) * keys + c[None, :], mask=inside, other=0.0)
        vs = tl.load(v + (base + rows[:, None]) * values + columns[None, :], mask=inside, other=0.0)
        result = tl.dot(qs, state.to(q.dtype.element_ty)) * tl.exp2(rate * (i + 1).to(tl.float32))[:, None]
        weights = tl.dot(qs, tl.trans(ks)) * mask
        result += tl.dot(weights.to(v.dtype.element_ty), vs)
        kept = (ks.to(tl.float32) * tl.exp2(rate * (BM - 1 - i).to(tl.float32))[:, None]).to(k.dtype.element_ty)
        state = state * tl.exp2(rate * BM) + tl.dot(tl.trans(kept), vs)
        tl.store(out + (base + rows[:, None]) * values + columns[None, :], result.to(out.dtype.element_ty), mask=inside)


def retention(q, k, v, decay, out):
    batch, heads, length, keys = q.shape
    values = v.shape[-1]
    _retention[lambda c: (batch * heads, triton.cdiv(values, c["BN"]))](q, k, v, decay, out, length, heads, keys, values)


_PRODUCTS = [triton.Config(dict(BM=m, BN=n, BK=k), num_warps=w, num_stages=s)
             for m, n, k, w, s in ((16, 32, 256, 4, 4), (16, 64, 128, 4, 5), (16, 64, 256, 4, 4), (16, 128, 128, 4, 4),
                                   (32, 32, 256, 4, 4), (32, 64, 128, 4, 5), (32, 128, 128, 4, 4), (64, 32, 128, 4, 5),
                                   (64, 64, 128, 4, 4), (64, 64, 64, 4, 6), (64, 128, 64, 4, 5), (64, 128, 128, 4, 3),
                                   (64, 256, 64, 4, 4), (128, 64, 64, 4, 5), (128, 64, 128, 4, 3), (128, 128, 64, 4, 4),
                                   (128, 128, 64, 8, 4), (128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 3))]


def _no_taller(configurations, arguments, **_):
    """Tiles of no more rows than the next power of two of the product's."""
    most = max(16, triton.next_power_of_2(arguments["m"]))
    return [c for c in configurations if c.kwargs["BM"] <= most]


def _boxes(arguments):
    """Descriptors move tiles of the configuration's sizes."""
    rows, columns, depth = arguments["BM"], arguments["BN"], arguments["BK"]
    for name, box in (("a", [rows, depth]), ("b", [columns, depth]), ("c", [rows, columns])):
        arguments[name].block_shape = box


for _configuration in _PRODUCTS:
    _configuration.pre_hook = _boxes


@triton.autotune(_PRODUCTS, key=["m", "n", "k"], prune_configs_by={"early_config_prune": _no_taller},
                 do_bench=lambda fn, quantiles: triton.testing.do_bench(fn, warmup=3, rep=12, quantiles=quantiles))
@triton.jit
def _product(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    at, down, across = tl.program_id(0), tl.cdiv(m, BM), tl.cdiv(n, BN)
    first = at // (8 * across) * 8  # eight rows of tiles, column by column
    tall = tl.minimum(down - first, 8)
    row, column = (first + at % (8 * across) % tall) * BM, at % (8 * across) // tall * BN
    acc = tl.zeros([BM, BN], tl.float32)
    for step in range(0, tl.cdiv(k, BK)):
        acc = tl.dot(a.load([row, step * BK]), b.load([column, step * BK]).T, acc)
    c.store([row, column], acc.to(tl.float16))


def product(a, b, c):
    """c = a b^T of f16 by the copy engine: a [m, k], b [n, k], c [m, n]."""
    (m, k), n = a.shape, b.shape[0]
    described = [TensorDescriptor.from_tensor(x, [1, 1]) for x in (a, b, c)]
    _product[lambda t: (triton.cdiv(m, t["BM"]) * triton.cdiv(n, t["BN"]),)](*described, m, n, k)


@_tuned(_tiles((128, 64), (128, 128), (64, 64), names=("BM", "BN")), key=["length", "dim"])
@triton.jit
def _attention(q, k, v, out, scale, length, dim: tl.constexpr, causal: tl.constexpr, up: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    at, pair = tl.program_id(0) * BM, tl.program_id(1).to(tl.int64)
    i, j, d = at + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, dim)
    base = pair * length * dim
    qs = tl.load(q + base + i[:, None] * dim + d[None, :], mask=i[:, None] < length, other=0.0)
    top, total = tl.full([BM], -1e30, tl.float32), tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, dim], tl.float32)
    for n in range(0, tl.minimum(at + BM, length) if causal else length, BN):
        key = n + j
        ks = tl.load(k + base + key[None, :] * dim + d[:, None], mask=key[None, :] < length, other=0.0)
        scores = tl.dot(qs, ks) * scale
        seen = key[None, :] < length
        if causal:
            seen = seen & (key[None, :] <= i[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        new = tl.maximum(top, tl.max(scores, 1))
        weights, before = tl.exp2(scores - new[:, None] + up), tl.exp2(top - new)
        total, top = total * before + tl.sum(weights, 1), new
        vs = tl.load(v + base + d[None, :] * length + key[:, None], mask=key[:, None] < length, other=0.0)
        acc = tl.dot(weights.to(v.dtype.element_ty), vs, acc * before[:, None])
    tl.store(out + base + i[:, None] * dim + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty), mask=i[:, None] < length)


def narrow_attention(q, k, v, out, scale, causal):
    """q, k, out [batch, heads, length, dim], v [batch, heads, dim, length], e4m3; scale times log2(e)."""
    batch, heads, length, dim = q.shape
    _attention[lambda c: (triton.cdiv(length, c["BM"]), batch * heads)](q, k, v, out, scale, length, dim, causal, 8.0)


@_tuned(_tiles((128, 128), (64, 128), (128, 64), (64, 64), names=("BM", "BN")), key=["m", "n", "k"])
@triton.jit
def _block_scaled(a, b, sa, sb, c, m, n, k, blocks, BM: tl.constexpr, BN: tl.constexpr):
    by, bx = tl.program_id(0), tl.program_id(1)
    i, j, d = by * BM + tl.arange(0, BM), bx * BN + tl.arange(0, BN), tl.arange(0, 128)
    acc = tl.zeros([BM, BN], tl.float32)
    for step in range(0, blocks):
        at = step * 128 + d
        left = tl.load(a + i[:, None] * k + at[None, :], mask=(i[:, None] < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + j[None, :] * k + at[:, None], mask=(j[None, :] < n) & (at[:, None] < k), other=0.0)
        scales = tl.load(sa + step * m + i, mask=i < m, other=0.0)
        acc += tl.dot(left, right) * (scales * tl.load(sb + (bx * BN // 128) * blocks + step))[:, None]
    tl.store(c + i[:, None] * n + j[None, :], acc.to(c.dtype.element_ty), mask=(i[:, None] < m) & (j[None, :] < n))


def block_scaled_gemm(a, b, sa, sb, c):
    (m, k), n = a.shape, b.shape[0]
    _block_scaled[lambda t: (triton.cdiv(m, t["BM"]), triton.cdiv(n, t["BN"]))](a, b, sa, sb, c, m, n, k, triton.cdiv(k, 128))


@_tuned(_tiles((16, 64), (16, 32), (32, 32), (64, 32), stages=(1, 2, 3), names=("BM", "BN")), key=["heads"])
@triton.jit
def _latent(q, kv, out, scale, keys, heads, latent: tl.constexpr, turned: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    bb, h = tl.program_id(0), tl.program_id(1) * BM + tl.arange(0, BM)
    width: tl.constexpr = latent + turned
    l, t, n = tl.arange(0, latent), tl.arange(0, turned), tl.arange(0, BN)
    qs = tl.load(q + (bb * heads + h[:, None]) * width + l[None, :], mask=h[:, None] < heads, other=0.0)
    qt = tl.load(q + (bb * heads + h[:, None]) * width + latent + t[None, :], mask=h[:, None] < heads, other=0.0)
    top, total = tl.full([BM], -1e30, tl.float32), tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, latent], tl.float32)
    base = bb.to(tl.int64) * keys * width
    for at in range(0, keys, BN):
        key = at + n
        ks = tl.load(kv + base + key[:, None] * width + l[None, :], mask=key[:, None] < keys, other=0.0)
        kt = tl.load(kv + base + key[:, None] * width + latent + t[None, :], mask=key[:, None] < keys, other=0.0)
        scores = (tl.dot(qs, tl.trans(ks)) + tl.dot(qt, tl.trans(kt))) * scale
        scores = tl.where(key[None, :] < keys, scores, float("-inf"))
        new = tl.maximum(top, tl.max(scores, 1))
        weights, before = tl.exp2(scores - new[:, None]), tl.exp2(top - new)
        total, top = total * before + tl.sum(weights, 1), new
        acc = tl.dot(weights.to(kv.dtype.element_ty), ks, acc * before[:, None])
    tl.store(out + (bb * heads + h[:, None]) * latent + l[None, :], (acc / total[:, None]).to(out.dtype.element_ty),
             mask=h[:, None] < heads)


def latent_attention(q, kv, out, scale, latent):
    batch, heads, width = q.shape
    _latent[lambda c: (batch, triton.cdiv(heads, c["BM"]))](q, kv, out, scale, kv.shape[1], heads, latent, width - latent)


def peer(call):
    """A peer of contest.Case; outside of a device only Triton's interpreter runs it."""
    def run(t):
        if not t["out"].is_cuda and not triton.knobs.runtime.interpret:
            raise RuntimeError("Triton needs a device, or TRITON_INTERPRET=1")
        call(t)
    return run
