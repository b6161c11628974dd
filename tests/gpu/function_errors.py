#!/usr/bin/env python3
"""Functions of f32 on a device: the largest error over all numbers of a range, in units of the last place, against the bounds that
docs/numerics.md states. Needs PyTorch and a device.   function_errors.py"""
import sys

import torch

import tilegen as tg
from tilegen import ds, f32

STEP = 1 << 26  # numbers at once
TILE = 4096

# name -> bound, the function in f64, signs, ranges of magnitudes. Below 2^-126 exp2 counts as 0.
LARGE = 3e38
FUNCTIONS = {
    "exp": (2.5, torch.exp, (1, -1), [(1e-38, 87.0)]),
    "exp2": (2.5, torch.exp2, (1, -1), [(1e-38, 125.9)]),
    "log": (1.0, torch.log, (1,), [(1e-38, LARGE)]),
    "log2": (1.5, torch.log2, (1,), [(1e-38, LARGE)]),
    "sqrt": (0.5001, torch.sqrt, (1,), [(1e-38, LARGE)]),
    "rsqrt": (1.5, torch.rsqrt, (1,), [(1e-38, LARGE)]),
    "tanh": (2.0, torch.tanh, (1, -1), [(1e-38, 100.0)]),
    "erf": (1.5, torch.erf, (1, -1), [(1e-37, 100.0)]),
    "sigmoid": (4.0, torch.sigmoid, (1, -1), [(1e-38, 87.0)]),
    "sin": (1.25, torch.sin, (1, -1), [(1e-37, LARGE)]),
    "cos": (1.25, torch.cos, (1, -1), [(1e-38, LARGE)]),
    "tan": (2.5, torch.tan, (1, -1), [(1e-37, LARGE)]),
    "asin": (1.5, torch.asin, (1, -1), [(1e-37, 1.0)]),
    "acos": (1.5, torch.acos, (1, -1), [(1e-38, 1.0)]),
    "atan": (2.0, torch.atan, (1, -1), [(1e-37, LARGE)]),
    "exp10": (1.5, lambda x: torch.pow(10.0, x), (1, -1), [(1e-38, 37.9)]),
    "expm1": (1.5, torch.expm1, (1, -1), [(1e-37, 88.0)]),
    "log1p": (1.5, torch.log1p, (1,), [(1e-37, LARGE)]),
    "cbrt": (1.0, lambda x: x.sign() * torch.pow(x.abs(), 1.0 / 3), (1, -1), [(1e-38, LARGE)]),
    "erfc": (5.0, torch.special.erfc, (1, -1), [(1e-38, 9.0)]),
}
# Fast forms of f32: name -> bound at x, of which the error is relative or, where True stands, absolute.
relative = lambda bound: (lambda x: torch.full_like(x, bound), False)
absolute = lambda bound: (lambda x: torch.full_like(x, bound), True)
growing = lambda constant, slope: (lambda x: constant + slope * x.abs(), False)
NORMAL = 1.2e-38
FAST = {
    "fast_exp2": (relative(2.0**-22), torch.exp2, (1, -1), [(NORMAL, 125.9)]),
    "fast_exp": (growing(2.0**-22, 2.0**-22), torch.exp, (1, -1), [(NORMAL, 87.0)]),
    "fast_exp10": (growing(2.0**-22, 2.0**-22), lambda x: torch.pow(10.0, x), (1, -1), [(NORMAL, 37.9)]),
    "fast_log2": (relative(2.0**-21), torch.log2, (1,), [(NORMAL, 0.5), (2.0, LARGE)]),
    "fast_log": (relative(2.0**-21), torch.log, (1,), [(NORMAL, 0.5), (2.0, LARGE)]),
    "fast_log2 near 1": (absolute(2.0**-21), torch.log2, (1,), [(0.5, 2.0)]),
    "fast_log near 1": (absolute(2.0**-21), torch.log, (1,), [(0.5, 2.0)]),
    "fast_sin": (absolute(2.0**-20), torch.sin, (1, -1), [(NORMAL, 6.283)]),
    "fast_cos": (absolute(2.0**-20), torch.cos, (1, -1), [(NORMAL, 6.283)]),
    "fast_sin far": (absolute(2.0**-14), torch.sin, (1, -1), [(6.283, 314.0)]),
    "fast_cos far": (absolute(2.0**-14), torch.cos, (1, -1), [(6.283, 314.0)]),
    "fast_tanh": (relative(2.0**-10.9), torch.tanh, (1, -1), [(NORMAL, 100.0)]),
    "fast_sigmoid": (growing(2.0**-20, 2.0**-22), torch.sigmoid, (1, -1), [(NORMAL, 87.0)]),
    "fast_sqrt": (relative(2.0**-22), torch.sqrt, (1,), [(NORMAL, LARGE)]),
    "fast_rsqrt": (relative(2.0**-22), torch.rsqrt, (1,), [(NORMAL, LARGE)]),
}
# What they make of zeros, infinities and NaN.
SPECIAL = [0.0, -0.0, float("inf"), -float("inf"), float("nan")]


def program(name):
    b = tg.Builder("errors")
    n = b.dim("n")
    x, y = b.tensor("X", f32, [n], read_only=True), b.tensor("Y", f32, [n])
    with b.kernel("k", [(n + TILE - 1) // TILE], threads=256) as block:
        t = b.fragment("t", f32, [TILE])
        b.copy(x[ds(block * TILE, TILE)], t)
        with b.parallel(TILE) as i:
            b.store(t, i, getattr(b, name.split()[0])(t(i)))
        b.copy(t, y[ds(block * TILE, TILE)])
    return b.finish()


def bits(value):
    return torch.tensor([value], dtype=torch.float32).view(torch.int32).item()


def in_units(exact, x):
    """The last place of the exact result."""
    return torch.exp2(torch.floor(torch.log2(exact.abs())).clamp(min=-126) - 23)


def of_bound(bound, is_absolute):
    return lambda exact, x: bound(x.double()) * (1.0 if is_absolute else exact.abs().clamp(min=2.0**-126))


def worst(kernel, function, signs, ranges, unit=in_units):
    """(error in units, where)"""
    found = (0.0, 0.0)
    for sign in signs:
        for low, high in ranges:
            for first in range(bits(low), bits(high), STEP):
                x = sign * torch.arange(first, min(first + STEP, bits(high)), device="cuda", dtype=torch.int32).view(torch.float32)
                y = torch.full_like(x, float("nan"))
                kernel(x, y)
                exact = function(x.double())
                error = ((y.double() - exact).abs() / unit(exact, x)).nan_to_num(nan=float("inf"))
                at = int(error.argmax())
                found = max(found, (float(error[at]), float(x[at])))
    return found


def main():
    failed = False
    for name, (bound, function, signs, ranges) in FUNCTIONS.items():
        kernel = program(name).compile("cuda").load()
        error, at = worst(kernel, function, signs, ranges)
        x = torch.tensor(SPECIAL, device="cuda")
        y = torch.empty_like(x)
        kernel(x, y)
        limits = torch.equal(y.nan_to_num(nan=7.0), function(x.double()).float().nan_to_num(nan=7.0))
        bad = not error <= bound or not limits
        failed = failed or bad
        print(f"{name:8} {error:7.3f} units at {at!r}, bound {bound}{'' if limits else f', limits {y.tolist()}'}{'  WRONG' if bad else ''}",
              flush=True)
    for name, ((bound, is_absolute), function, signs, ranges) in FAST.items():
        error, at = worst(program(name).compile("cuda").load(), function, signs, ranges, of_bound(bound, is_absolute))
        failed = failed or not error <= 1
        print(f"{name:16} {error:7.3f} of the bound at {at!r}{'' if error <= 1 else '  WRONG'}", flush=True)
    print("a bound is not kept" if failed else "all bounds are kept")
    sys.exit(failed)


main()
