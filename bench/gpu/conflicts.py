#!/usr/bin/env python3
"""Shared-memory wavefronts of programs as the simulator counts them; run under Nsight Compute, the same launches on the
device give the hardware's count.   conflicts.py [--device]

  ncu --csv --metrics l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum,... python3 conflicts.py --device
"""
import argparse
import ctypes
import json
import math

import programs
from tilegen import f16, f32
from tilegen.tensors import Described
from watch import watched

M = N = K = 256


def cases():
    yield "gemm nt 128x128x32", programs.gemm(f16, f32, f16, (128, 128, 32), 128, 3, True), "gemm"
    yield "gemm nn 128x128x32", programs.gemm(f16, f32, f16, (128, 128, 32), 128, 3, False), "gemm"
    yield "gemm nt 128x128x64", programs.gemm(f16, f32, f16, (128, 128, 64), 128, 3, True), "gemm"
    yield "gemm nn 128x128x64", programs.gemm(f16, f32, f16, (128, 128, 64), 128, 3, False), "gemm"
    yield "softmax", programs.softmax(1024), "rows"
    yield "rmsnorm", programs.rmsnorm(1024), "norm"


def simulated(program, kind):
    def half(*shape):
        memory = bytearray(2 * math.prod(shape))
        strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        return Described(address, shape, strides, f16, (1, 0), memory)
    kernel = program.compile("sim:sm_90").load()
    if kind == "gemm":
        kernel(half(M, K), half(N, K), half(M, N))
    elif kind == "rows":
        kernel(half(64, 1024), half(64, 1024))
    else:
        kernel(half(64, 1024), half(64, 1024), half(1024))
    report = json.loads(kernel.forms()[0]["log"])
    total = {}
    for k in report.get("kernels", [report]):
        for site in k.get("counters", k).get("accesses", []):
            if site["space"] == "shared":
                entry = total.setdefault(site["action"], [0, 0, 0])
                entry[0] += site["requests"]
                entry[1] += site["transactions"]
                entry[2] += site["least"]
    return total


def on_device(name, program, kind):
    import torch
    half = lambda *s: torch.randn(*s, device="cuda", dtype=torch.float16)
    kernel = program.compile("cuda").load()
    with watched(f"program {name}, on {torch.cuda.get_device_name()}"):
        if kind == "gemm":
            kernel(half(M, K), half(N, K), half(M, N))
        elif kind == "rows":
            kernel(half(64, 1024), half(64, 1024))
        else:
            kernel(half(64, 1024), half(64, 1024), half(1024))
        torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", action="store_true")
    args = parser.parse_args()
    for name, program, kind in cases():
        if args.device:
            on_device(name, program, kind)
        else:
            for action, (requests, wavefronts, least) in simulated(program, kind).items():
                print(f"  {name:22s} {action:14s} requests {requests:7d} wavefronts {wavefronts:7d} least {least:7d}")


if __name__ == "__main__":
    main()
