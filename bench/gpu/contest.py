"""Workloads measured side by side: our plain programs, with several tiles, and the peers of PyTorch and Triton.

A case is an object with
  inputs(device)     {name: tensor}, the results among them
  results            names of the tensors that are compared
  part(name, tensor) what the reference has of a result; all of it unless told otherwise
  reference(t)       {name: tensor} in float32 or more
  ours()             {who: (program, arguments)}, arguments(t) those of a launch
  peers(t)           {who: f}, f(t) gives {name: tensor} or writes the results; those that cannot run here may raise
  flops, nbytes      of one launch; what bounds it is the unit of the rate
  bound              the largest relative error, in the Euclidean norm
  sizes              of dims, for the estimate of the cost model
  small()            the same form at a size for the simulator

  --check    without a device: every program on the simulator, at the small size, against the reference
  --plans    without a device: what becomes of each program on sm_90a, and the cost model's estimate
"""
import argparse
import json
import pathlib
import re
import sys
import time
import traceback
import warnings

import torch

import table
import tilegen as tg
from timing import captured, medians, rotations, samples
from watch import watched

BURST = 0.008  # seconds
FLOPS, BYTES = 8e14, 4e12  # of a second, for the length of a burst


class Case:
    bound = 2e-3
    results = ("out",)
    sizes = ""
    workload = ""  # what it is a case of

    def part(self, name, tensor):
        return tensor

    def peers(self, t):
        return {}

    def rate(self, seconds):
        """(number, unit)."""
        if self.flops / FLOPS > self.nbytes / BYTES:
            return self.flops / seconds / 1e12, "TFLOP/s"
        return self.nbytes / seconds / 1e9, "GB/s"


def _ours(program, arguments, target, sets):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tg.PerformanceWarning)
        kernel = program.compile(target).load()
    bound = [kernel.bind(*arguments(t)) for t in sets]

    def run(i, kernel=kernel):
        bound[i]()
        return {}
    return run


def _contenders(case, target, sets):
    """{who: what makes f(i)}."""
    made = {who: lambda program=program, arguments=arguments: _ours(program, arguments, target, sets)
            for who, (program, arguments) in case.ours().items()}
    peers = case.peers(sets[0])
    return made | {who: lambda f=f: lambda i: f(sets[i]) or {} for who, f in peers.items()}


def _error(case, t, want, returned):
    errors = []
    for name in case.results:
        got = case.part(name, returned.get(name, t[name])).double()
        expected = want[name].double()
        errors.append(float((got - expected).norm() / expected.norm().clamp(min=1e-30)))
    return max(errors) if all(e == e for e in errors) else float("inf")


def _poison(case, t):
    for name in case.results:
        t[name].fill_(float("nan") if t[name].is_floating_point() else -1)


def check(name, case):
    """True if all of ours compute the reference on the simulator."""
    small, right = case.small(), True
    t = small.inputs("cpu")
    want = small.reference(t)
    for who, (program, arguments) in small.ours().items():
        try:
            _poison(small, t)
            _ours(program, arguments, "sim:sm_90a", [t])(0)
            error = _error(small, t, want, {})
        except tg.Error as refused:
            error, right = None, False
            print(f"{name}: {who}: {str(refused)[:300]}", flush=True)
        if error is not None:
            print(f"{name}: {who} error {error:.1e}" + ("" if error < small.bound else " WRONG"), flush=True)
            right &= error < small.bound
    for who, peer in small.peers(t).items():
        try:
            _poison(small, t)
            error = _error(small, t, want, peer(t) or {})
            print(f"{name}: {who} error {error:.1e}" + ("" if error < small.bound else " WRONG"), flush=True)
        except Exception as refused:  # noqa: BLE001 - most peers need a device
            print(f"{name}: {who} is not tried here: {str(refused).splitlines()[0][:150]}", flush=True)
    return right


def plans(name, case):
    for who, (program, _) in case.ours().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tg.PerformanceWarning)
            try:
                given = {"sizes": case.sizes} if any(p.kind == tg._header.TL_PARAM_DIM for p in program.parameters()) else {}
                made = program.compile("sm_90a", plan_only=True, **given)
            except tg.Error as refused:
                print(f"{name}: {who}: {str(refused)[:300]}")
                continue
        for kernel, cost in zip(made.schedule["kernels"], made.cost["kernels"]):
            engines = sorted({op["engine"] for op in kernel["ops"] if re.search("gemm(_sparse)?#", op["op"])})
            stages = [loop.get("num_stages", 1) for loop in kernel.get("loops", [])]
            print(f"{name}: {who}: {kernel['kernel']}: products {engines}, stages {stages}, {cost['us']:.1f} us, bound by {cost['bound']}")
        for warning in made.warnings:
            print(f"    {warning.op}: {warning.message} [{warning.code}]")


def measure(name, case, rounds):
    count = rotations(case.nbytes, 16)
    sets = [case.inputs("cuda") for _ in range(count)]
    want = case.reference(sets[0])
    seconds = case.flops / FLOPS + case.nbytes / BYTES + 3e-6
    launches = max(2, count, min(400, int(BURST / seconds)))
    watch = lambda who: watched(f"{name} {who}, on {torch.cuda.get_device_name()}")
    graphs, errors, failures, kept = {}, {}, [], []  # kept: what the graphs launch
    for who, make in _contenders(case, "cuda", sets).items():
        try:
            with watch(who):
                run = make()
                kept.append(run)
                _poison(case, sets[0])
                errors[who] = _error(case, sets[0], want, run(0))
                torch.cuda.synchronize()
            if not errors[who] < case.bound:
                failures.append(f"{name}: {who} is wrong: {errors[who]:.1e}")
                continue
            with watch(who):
                graphs[who] = captured(run, count, launches)
        except Exception as refused:  # noqa: BLE001 - the others are measured all the same
            failures.append(f"{name}: {who} does not run: {str(refused)[:300]}")
            graphs.pop(who, None)
    times = samples(graphs, launches, rounds, watch)
    ms = medians(times)
    peers = {who: t for who, t in ms.items() if not who.startswith("ours")}
    ours = {who: t for who, t in ms.items() if who.startswith("ours")}
    for who in sorted(ms, key=ms.get):
        rate, unit = case.rate(ms[who] * 1e-3)
        print(f"{name:28} {who:40} {ms[who] * 1e3:10.2f} us  {rate:8.1f} {unit}  error {errors[who]:.1e}", flush=True)
    ratio = min(peers.values()) / min(ours.values()) if peers and ours else None
    if ratio:
        print(f"{name:28} ratio {ratio:.3f}: {min(ours, key=ours.get)} to {min(peers, key=peers.get)}", flush=True)
    for failure in failures:
        print(failure, flush=True)
    rates = {who: case.rate(t * 1e-3)[0] for who, t in ms.items()}
    return {"name": name, "workload": case.workload, "unit": case.rate(1)[1], "ms": ms, "rates": rates, "errors": errors, "ratio": ratio, "failures": failures,
            "samples": {who: [round(t, 6) for t in found] for who, found in times.items()}}


def main(cases, description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--json")
    p.add_argument("--only", default="")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--check", action="store_true")
    p.add_argument("--plans", action="store_true")
    a = p.parse_args()
    torch.manual_seed(1)
    chosen = {name: case for name, case in cases.items() if re.search(a.only, name)}
    if a.check:
        raise SystemExit(0 if all([check(name, case) for name, case in chosen.items()]) else 1)
    rows, begin = [], time.time()
    for name, case in chosen.items():
        case.workload = case.workload or pathlib.Path(sys.argv[0]).stem  # of a script that runs by itself
        if a.plans:
            plans(name, case)
            continue
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                rows.append(measure(name, case, a.rounds))
        except Exception:  # noqa: BLE001 - the other cases are measured all the same
            print(f"{name} is left out:\n{traceback.format_exc()}", flush=True)
        torch.cuda.empty_cache()
        if a.json:  # what there is, also where the run is ended
            with open(a.json, "w", encoding="utf-8") as f:
                json.dump({**table.machine(), "rows": rows}, f, indent=1)
    if not a.plans:
        print(f"{len(rows)} of {len(chosen)} cases in {time.time() - begin:.0f} s")
