#!/usr/bin/env python3
"""Tensors of more than 2^31 elements and rows further apart than that: index arithmetic must not wrap. Needs PyTorch and a
device with 12 GB free.   large_tensors.py"""
import torch

import tilegen as tg
from tilegen import ds, i8


def add_one(tile=8192):
    b = tg.Builder("add_one")
    n = b.dim("n")
    x, y = b.tensor("X", i8, [n], read_only=True), b.tensor("Y", i8, [n])
    with b.kernel("add_one", [(n + tile - 1) // tile], threads=256) as block:
        t = b.fragment("t", i8, [tile])
        b.copy(x[ds(block * tile, tile)], t)
        with b.parallel(tile) as i:
            b.store(t, i, t(i) + 1)
        b.copy(t, y[ds(block * tile, tile)])
    return b.finish()


def copy_rows(tile=64):
    b = tg.Builder("copy_rows")
    m, n, s = b.dim("m"), b.dim("n"), b.dim("s")
    x, y = b.tensor("X", i8, [m, n], strides=[s, 1], read_only=True), b.tensor("Y", i8, [m, n])
    with b.kernel("copy_rows", [(n + tile - 1) // tile], threads=128) as column:
        t = b.shared("t", i8, [4, tile])
        b.copy(x[0:4, ds(column * tile, tile)], t)
        b.copy(t, y[0:4, ds(column * tile, tile)])
    return b.finish()


def main():
    torch.manual_seed(1)
    n = 2**31 + 12345
    x = torch.randint(-100, 100, (n,), device="cuda", dtype=torch.int8)
    y = torch.zeros_like(x)
    add_one().compile("cuda").load()(x, y)
    for begin in range(0, n, 1 << 28):
        end = min(n, begin + (1 << 28))
        assert torch.equal(y[begin:end], x[begin:end] + 1), begin
    apart = 2**30 + 64
    rows = x[: apart + 1000].as_strided((2, 1000), (apart, 1))
    far = x.as_strided((3, 1000), (apart, 1)) if n >= 2 * apart + 1000 else rows
    for view in (rows, far):
        out = torch.zeros(view.shape, device="cuda", dtype=torch.int8)
        copy_rows().compile("cuda").load()(view, out)
        assert torch.equal(out, view)
    print("large tensors: right")


if __name__ == "__main__":
    main()
