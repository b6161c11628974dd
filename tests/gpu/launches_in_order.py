#!/usr/bin/env python3
"""Kernels that begin before the one before them has ended: chains of launches, one reading what the one before wrote and
writing what it read, against the same with a wait for the device between any two. Needs PyTorch, a device, and
`programs` of the benchmarks on PYTHONPATH.   launches_in_order.py [--rounds 20]"""
import argparse
import sys

import torch

import programs
from tilegen import f16, f32

COLS = 4096


def normal(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


def load(program):
    return program.compile("cuda").load().prepare()


class Chain:
    """Launches in order, over tensors that `fresh` gives their first values."""

    def __init__(self, name, tensors, launches):
        self.name, self.tensors, self.launches = name, tensors, launches
        self.first = [t.clone() for t in tensors]

    def fresh(self):
        for t, value in zip(self.tensors, self.first):
            t.copy_(value)
        torch.cuda.synchronize()

    def run(self, wait=False):
        for launch in self.launches:
            launch()
            if wait:
                torch.cuda.synchronize()

    def result(self):
        torch.cuda.synchronize()
        return [t.clone() for t in self.tensors]


def products(size, tile, threads, stages, weights=False):
    """Each step's product is an operand of the next. With `weights` blocks begin to read the other early."""
    kernel, w = load(programs.gemm(f16, f32, f16, tile, threads, stages, weights=weights)), normal(size, size) / size**0.5
    x = [normal(size, size) for _ in range(3)]
    steps = [kernel.bind(x[k % 3], w, x[(k + 1) % 3]) for k in range(30)]
    return Chain(f"products of {size}, tile {tile}{', weights' if weights else ''}", [*x, w], steps)


def shared_loops(rows, parts, through, weights=False):
    """Blocks share a loop of sums, and each step's product is an operand of the next: memory in which they meet is that
    of the launch before."""
    program, w = programs.gemm(f16, f32, f16, (64, 64, 64), 128, 4, shape=(rows, 2048, 2048), weights=weights), normal(2048, 2048) / 2048**0.5
    given = {"version": 1, "kernels": [{"kernel": "gemm", "split": {"loop": "gemm/ko", "parts": parts, "through": through}}]}
    kernel = program.compile("cuda", schedule=given).load().prepare()
    x = [normal(rows, 2048) for _ in range(3)]
    steps = [kernel.bind(x[k % 3], w, x[(k + 1) % 3]) for k in range(30)]
    return Chain(f"products of {rows} rows in {parts} parts, through a {through}{', weights' if weights else ''}", [*x, w], steps)


def softmaxes(rows):
    """All meet in one tensor between: each is read by the next and overwritten by the one after it."""
    kernel = load(programs.softmax(COLS))
    x, y, between = [normal(rows, COLS) for _ in range(8)], [normal(rows, COLS) for _ in range(8)], normal(rows, COLS)
    steps = [step for a, b in zip(x, y) for step in (kernel.bind(a, between), kernel.bind(between, b))]
    return Chain(f"softmax of {rows} rows", [*x, *y, between], steps)


def row_programs(rows):
    """Norm of a sum, softmax, rotary embedding, and again."""
    norm, softmax, rotary = load(programs.residual_rmsnorm(COLS)), load(programs.softmax(COLS)), load(programs.rotary(COLS // 128, 128))
    x, other, total, y, z = (normal(rows, COLS) for _ in range(5))
    gamma, angles = normal(COLS), torch.rand(rows, 64, device="cuda")
    cosines, sines = angles.cos(), angles.sin()
    heads = lambda t: t.view(rows, COLS // 128, 128)
    steps = [norm.bind(x, other, gamma, total, y), rotary.bind(heads(y), heads(x), cosines, sines), softmax.bind(x, z),
             norm.bind(z, total, gamma, other, x)]
    return Chain(f"row programs of {rows} rows", [x, other, total, y, z], steps * 8)


def attentions(length):
    """Blocks claim their tiles; the result is the next query."""
    kernel = load(programs.attention(f16, 128, (128, 128), 256, 2, causal=True))
    q, o, k, v = (normal(1, 8, length, 128) for _ in range(4))
    steps = [kernel.bind(0.127, a, k, v, b) for a, b in ((q, o), (o, q))]
    return Chain(f"attention of {length}", [q, o], steps * 10)


def mixed(length):
    """Attention, norm and product: what one leaves the next one reads, of other kernels and other grids."""
    attend = load(programs.attention(f16, 128, (128, 128), 256, 2, causal=True))
    norm, product = load(programs.residual_rmsnorm(1024)), load(programs.gemm(f16, f32, f16, (128, 128, 64), 256, 4))
    q, o, total, y = (normal(1, length, 8, 128).transpose(1, 2).contiguous() for _ in range(4))
    w, gamma, k, v = normal(1024, 1024) / 32, normal(1024), normal(1, 8, length, 128), normal(1, 8, length, 128)
    flat = lambda t: t.view(length, 1024)
    steps = [attend.bind(0.127, q, k, v, o), norm.bind(flat(o), flat(q), gamma, flat(total), flat(y)), product.bind(flat(y), w, flat(q))]
    return Chain(f"attention, norm, product of {length}", [q, o, total, y], steps * 8)


def side_by_side(length):
    """A graph whose two branches launch the same kernel, which claims its tiles, and join."""
    kernel = load(programs.attention(f16, 128, (128, 128), 256, 2, causal=True))
    k, v = normal(1, 8, length, 128), normal(1, 8, length, 128)
    pairs = [(normal(1, 8, length, 128), normal(1, 8, length, 128)) for _ in range(2)]
    steps = [[kernel.bind(0.127, a, k, v, b) for a, b in (pair, pair[::-1])] * 5 for pair in pairs]
    chain = Chain(f"attention of {length} in two branches", [t for pair in pairs for t in pair], steps[0] + steps[1])
    other = torch.cuda.Stream()

    def branches():
        other.wait_stream(torch.cuda.current_stream())
        for launch in steps[0]:
            launch()
        with torch.cuda.stream(other):
            for launch in steps[1]:
                launch()
        torch.cuda.current_stream().wait_stream(other)
    chain.run_captured = branches
    return chain


def differences(chain, rounds):
    """How many of the runs, launched one by one and as a graph, differ from the one with waits."""
    chain.fresh()
    chain.run(wait=True)
    want = chain.result()
    if not all(bool(t.isfinite().all()) for t in want) or all(torch.equal(a, b) for a, b in zip(want, chain.first)):
        return f"{chain.name}: the launches with waits leave nothing to compare"
    same = lambda: all(torch.equal(a, b) for a, b in zip(want, chain.result()))
    launched = captured = 0
    for _ in range(rounds):
        chain.fresh()
        chain.run()
        launched += not same()
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        getattr(chain, "run_captured", chain.run)()
    for _ in range(rounds):
        chain.fresh()
        graph.replay()
        captured += not same()
    print(f"{chain.name}: {launched} of {rounds} runs differ, {captured} of {rounds} of its graph", flush=True)
    return f"{chain.name} differs" if launched or captured else ""


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=20)
    a = p.parse_args()
    torch.manual_seed(1)
    makers = []
    for w in (False, True):
        makers += [lambda s=s, w=w: products(s, (64, 64, 64), 128, 4, w) for s in (64, 200, 1000)]
        makers += [lambda s=s, w=w: products(s, (128, 256, 64), 256, 4, w) for s in (256, 1000, 4096)]
        makers += [lambda s=s, w=w: shared_loops(*s, w) for s in ((64, 4, "workspace"), (130, 3, "workspace"), (64, 4, "cluster"))]
    makers += [lambda s=s: softmaxes(s) for s in (7, 130, 5000)] + [lambda s=s: row_programs(s) for s in (9, 264, 4096)]
    makers += [lambda s=s: attentions(s) for s in (130, 777)] + [lambda s=s: mixed(s) for s in (128, 1000)]
    makers += [lambda s=s: side_by_side(s) for s in (300, 1500)]
    wrong = [found for make in makers if (found := differences(make(), a.rounds))]
    print("\n".join(wrong) if wrong else "all launches are in order")
    sys.exit(bool(wrong))


main()
