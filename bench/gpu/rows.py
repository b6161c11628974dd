#!/usr/bin/env python3
"""Row programs and element-wise add on a GPU against the bandwidth of a large copy, measured in the same run: the best of
PyTorch's copy (timed by events, a graph makes a slower copy of it) and a Triton copy kernel.

CUDA graphs of back-to-back launches over input sets that rotate past the L2, short bursts after a rest, shuffled
order, medians. Every program is checked against float64 first.   rows.py [--json FILE] [--rows 16384] [--cols 8192]
"""
import argparse
import json
import random
import statistics
import time

import torch
import triton
import triton.language as tl

import programs
import tilegen
from timing import copy_by_events, replay_ms
from watch import watched

ROTATE = 480e6  # bytes of input sets: several times the L2
HEAD = 128      # of the rotary embedding


@triton.jit
def _triton_copy(source, target, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at))


def capture(fn, sets, n):
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        for j in range(n):
            fn(j % sets)
    graph.replay()
    torch.cuda.synchronize()
    return graph


def error(out, want):
    return float((out.double() - want).abs().max())


class Case:
    def __init__(self, name, who, nbytes, fn, check, tolerance):
        self.name, self.who, self.nbytes, self.fn, self.check, self.tolerance = name, who, nbytes, fn, check, tolerance
        self.ms = []

    def watched(self, rows, cols):
        return watched(f"program {self.name}, kernel {self.name} {self.who}, {rows} rows of {cols}, on {torch.cuda.get_device_name()}")


def cases(rows, cols):
    size = rows * cols * 2
    sets = max(2, int(ROTATE // (2 * size)) + 1)
    x = [torch.randn(rows, cols, device="cuda", dtype=torch.float16) for _ in range(sets)]
    other = [torch.randn(rows, cols, device="cuda", dtype=torch.float16) for _ in range(sets)]
    y = [torch.empty_like(t) for t in x]
    gamma, beta = (torch.randn(cols, device="cuda", dtype=torch.float16) for _ in range(2))
    wide, g, bt = x[0][:512].double(), gamma.double(), beta.double()
    want = {"softmax": torch.softmax(wide, 1), "layernorm": torch.nn.functional.layer_norm(wide, (cols,), g, bt, 1e-5),
            "rmsnorm": wide * torch.rsqrt((wide * wide).mean(1, keepdim=True) + 1e-5) * g,
            "add": wide + other[0][:512].double(), "copy": wide}
    total = want["add"]
    want["residual"] = total * torch.rsqrt((total * total).mean(1, keepdim=True) + 1e-5) * g
    tolerance = {"softmax": 1e-4, "layernorm": 2e-2, "rmsnorm": 2e-2, "residual": 2e-2, "rotary": 1e-2, "add": 1e-2, "copy": 0}
    out = []

    def add(name, who, nbytes, fn):
        check = lambda: error(y[0][:512], want[name])
        out.append(Case(name, who, nbytes, fn, check, tolerance[name]))

    for block, warps in ((2048, 4), (4096, 8), (8192, 8)):
        add("copy", f"triton {block}", 2 * size,
            lambda i, b=block, w=warps: _triton_copy[(rows * cols // b,)](x[i], y[i], BLOCK=b, num_warps=w))
    add("softmax", "torch", 2 * size, lambda i: torch.softmax(x[i], 1, out=y[i]))
    mean, rstd = (torch.empty(rows, 1, device="cuda", dtype=torch.float32) for _ in range(2))
    add("layernorm", "torch", 2 * size,
        lambda i: torch.ops.aten.native_layer_norm.out(x[i], [cols], gamma, beta, 1e-5, out0=y[i], out1=mean, out2=rstd))
    add("add", "torch", 3 * size, lambda i: torch.add(x[i], other[i], out=y[i]))
    for threads in (128, 256, 512):
        for name, tensors in (("softmax", []), ("layernorm", [gamma, beta]), ("rmsnorm", [gamma])):
            kernel = getattr(programs, name)(cols, threads).compile("cuda").load()
            show_forms(kernel, f"{name} {threads}")
            order = (lambda i: [x[i], y[i], *tensors])
            bound = [kernel.bind(*order(i)) for i in range(sets)]
            add(name, f"ours {threads}", 2 * size, lambda i, bound=bound: bound[i]())
    sums = [torch.empty_like(t) for t in x]
    heads, half = cols // HEAD, HEAD // 2
    angles = torch.rand(rows, half, device="cuda") * 6.3
    cosines, sines = torch.cos(angles), torch.sin(angles)
    pairs, c, s = wide.view(512, heads, 2, half), cosines[:512, None].double(), sines[:512, None].double()
    low, high = pairs[:, :, 0], pairs[:, :, 1]
    want["rotary"] = torch.stack((low * c - high * s, high * c + low * s), 2).view(512, cols)
    for threads in (128, 256, 512):
        kernel = programs.residual_rmsnorm(cols, threads).compile("cuda").load()
        show_forms(kernel, f"residual_rmsnorm {threads}")
        bound = [kernel.bind(x[i], other[i], gamma, sums[i], y[i]) for i in range(sets)]
        add("residual", f"ours {threads}", 4 * size, lambda i, bound=bound: bound[i]())
        kernel = programs.rotary(heads, HEAD, threads).compile("cuda").load()
        show_forms(kernel, f"rotary {threads}")
        tokens = lambda t: t.view(rows, heads, HEAD)
        bound = [kernel.bind(tokens(x[i]), tokens(y[i]), cosines, sines) for i in range(sets)]
        add("rotary", f"ours {threads}", 2 * size + cosines.nbytes + sines.nbytes, lambda i, bound=bound: bound[i]())
    for tile, threads in ((2048, 256), (4096, 256), (8192, 256)):
        kernel = programs.add(tile, threads).compile("cuda").load()
        flat = lambda t: t.view(-1)
        bound = [kernel.bind(flat(x[i]), flat(other[i]), flat(y[i])) for i in range(sets)]
        add("add", f"ours {tile}", 3 * size, lambda i, bound=bound: bound[i]())
    return out, sets, y


def show_forms(kernel, label):
    for form in kernel.prepare().forms():
        print(f"    {label}: {form['name']} registers {form['registers']} local {form['local_bytes']} shared "
              f"{form['dynamic_shared_bytes']} blocks {form['blocks_per_multiprocessor']} load {form['load_ms']:.0f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--cols", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    torch.manual_seed(1)
    with torch.cuda.stream(torch.cuda.Stream()):
        measured, sets, y = cases(args.rows, args.cols)
        live = []
        for case in measured:
            try:
                y[0].fill_(float("nan"))
                with case.watched(args.rows, args.cols):
                    case.fn(0)
                    torch.cuda.synchronize()
                    case.error = case.check()
                if not case.error <= case.tolerance:
                    print(f"  {case.name:10s} {case.who:10s} WRONG error {case.error:.3e}", flush=True)
                    continue
                case.n = 2 * sets
                with case.watched(args.rows, args.cols):
                    case.graph = capture(case.fn, sets, case.n)
                live.append(case)
            except Exception as e:  # noqa: BLE001
                print(f"  {case.name:10s} {case.who:10s} failed: {str(e)[:300]}", flush=True)
        for _ in range(args.rounds):
            random.shuffle(live)
            for case in live:
                time.sleep(0.015)
                with case.watched(args.rows, args.cols):
                    replay_ms(case.graph, case.n)
                    case.ms += [replay_ms(case.graph, case.n) for _ in range(2)]
    by_events = copy_by_events(args.rounds)
    copy_rate = max([by_events] + [c.nbytes / statistics.median(c.ms) * 1e-6 for c in live if c.name == "copy"])
    print(f"  copy by events {by_events:.0f} GB/s, best copy {copy_rate:.0f} GB/s")
    records = []
    for case in sorted(live, key=lambda c: (c.name, c.who)):
        ms = statistics.median(case.ms)
        rate = case.nbytes / ms * 1e-6
        print(f"  {case.name:10s} {case.who:10s} {ms * 1e3:9.2f} us {rate:7.0f} GB/s {rate / copy_rate:6.3f} of copy, error {case.error:.1e}")
        records.append({"program": case.name, "who": case.who, "us": ms * 1e3, "gb_per_s": rate, "of_copy": rate / copy_rate,
                        "error": case.error, "samples_us": [round(m * 1e3, 3) for m in case.ms]})
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"gpu": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": torch.version.cuda,
                       "library": tilegen.build_info(), "rows": args.rows, "cols": args.cols, "copy_gb_per_s": copy_rate, "copy_by_events_gb_per_s": by_events,
                       "date": time.strftime("%Y-%m-%d"), "records": records}, f, indent=1)


if __name__ == "__main__":
    main()
