#!/usr/bin/env python3
"""What a new process pays from nothing to a product that is ready to launch: the first process on a machine, and those after
it, for which the driver has the code compiled in its own cache.   fresh_load.py [--json FILE] [--processes 9] [--target cuda]

Each process is timed from within, step by step; the driver is started before, so that no step pays for it:
  open     the library is mapped and its functions are looked up
  devices  the library lists the machine's devices
  build    the program (128x256x64, f16, symbolic sizes) through the Python builder
  compile  program to PTX
  load     tl_kernel_load
  prepare  tl_kernel_prepare: `driver` is the driver's cuModuleLoadDataEx alone, `ours` the rest
`ours again` is load and prepare without the driver: what a second process pays for code that is known already.

The driver's cache is a folder of this run (CUDA_CACHE_PATH). TILEGEN_CUDA_DRIVER names another driver, with which the
library's own part can be looked at on any machine.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

STEPS = ("open", "devices", "build", "compile", "load", "prepare", "driver", "ours again")


class Clock:
    def __init__(self):
        self.ms, self.last = {}, time.perf_counter()

    def step(self, name):
        now = time.perf_counter()
        self.ms[name], self.last = (now - self.last) * 1e3, now


def start_driver():
    """A context on the first device, current in this thread, as a program that uses CUDA already has one."""
    driver = ctypes.CDLL(os.environ.get("TILEGEN_CUDA_DRIVER") or "libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    for name, *arguments in (("cuInit", 0), ("cuDeviceGet", ctypes.byref(device), 0),
                             ("cuDevicePrimaryCtxRetain", ctypes.byref(context), device), ("cuCtxPushCurrent_v2", context)):
        result = getattr(driver, name)(*arguments)
        if result != 0:
            sys.exit(f"fresh_load: {name} failed with {result}")


def measure(target):
    """The steps of this process, in milliseconds."""
    start_driver()
    clock = Clock()
    import tilegen
    clock.step("open")
    tilegen.devices()
    clock.step("devices")
    import programs
    clock.last = time.perf_counter()
    program = programs.gemm(tilegen.f16, tilegen.f32, tilegen.f16, (128, 256, 64), 256, 4)
    clock.step("build")
    artifact = program.compile(target)
    clock.step("compile")
    kernel = artifact.load()
    clock.step("load")
    kernel.prepare()
    clock.step("prepare")
    clock.ms["driver"] = kernel.forms()[0]["load_ms"]
    clock.ms["ours again"] = clock.ms["load"] + clock.ms["prepare"] - clock.ms["driver"]
    return clock.ms


def processes(target, count):
    """The steps of `count` processes, one after the other; the first finds the driver's cache empty."""
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, CUDA_CACHE_PATH=cache, CUDA_CACHE_DISABLE="0")
        for _ in range(count):
            command = [sys.executable, os.path.abspath(__file__), "--child", "--target", target]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
            rows.append(json.loads(done.stdout))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="write all samples to this file")
    parser.add_argument("--processes", type=int, default=9)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(arguments.target)))
        return
    rows = processes(arguments.target, max(2, arguments.processes))
    print(f"{'ms':12}{'first':>10}{'later':>10}{'least':>10}{'most':>10}")
    for step in STEPS:
        later = [row[step] for row in rows[1:]]
        print(f"{step:12}{rows[0][step]:10.2f}{statistics.median(later):10.2f}{min(later):10.2f}{max(later):10.2f}")
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump({"processes": rows}, out, indent=1)


if __name__ == "__main__":
    main()
