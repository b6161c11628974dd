#!/usr/bin/env python3
"""Runs every test of gpu_tests in a process of its own, several at once, each watched by a time limit: a kernel that hangs
or breaks its context takes down only its own test. Within it a launch that takes longer than TILEGEN_GPU_TIMEOUT seconds
(60) ends the process and says what was launched.   run_gpu_tests.py GPU_TESTS [--target sm_90a] [--filter PATTERN]

`--target device` is the target of this machine's first CUDA device; without one nothing runs and the exit status is 77. Under
ctest these are the tests with the label "gpu": ctest -L gpu.

--under COMMAND runs each process under a checker, such as "compute-sanitizer --tool racecheck": a test fails where the summary
of its findings has another number than 0. What a tool of compute-sanitizer is known not to see is listed in BLIND_SPOTS: these
tests are named, and do not fail.

Further programs of the random test are spread over processes with --random COUNT, and mutated ones with --mutated COUNT. Ends
on a summary; exit status 1 when anything failed. Standard library only.
"""
import argparse
import concurrent.futures
import ctypes
import os
import re
import shlex
import subprocess
import sys
import time

# Findings of tools of compute-sanitizer that are none: tool, pattern of tests, what the tool does not see.
BLIND_SPOTS = (
    ("racecheck", r"Transactions\.PhasesOfOneAndMoreArrivals", "one thread's arrival at an mbarrier stands for those that it met at a "
     "named barrier before"),
    ("racecheck", r"Claims\..*", "the same, of the threads that read a claimed tile's number"),
    ("racecheck", r"Transactions\.WarpsThatArriveAndDoNotWait", "barrier.arrive orders what its thread read before"),
    ("synccheck", r"Transactions\.PhasesAskedAhead", "warps of a block may meet at a barrier from two places of the code"),
    ("initcheck", r"AttentionSplit\..*", "the copy engine's stores write global memory"),
)


def tests_of(program, pattern):
    out = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={pattern}"], check=True, capture_output=True,
                         text=True).stdout
    suite, names = "", []
    for line in out.splitlines():
        if not line.startswith(" "):
            suite = line.split()[0] if line.strip() else ""
        elif line.strip():
            names.append(suite + line.split()[0])
    return [n for n in names if "." in n]


def device_target():
    """Target of the first CUDA device, or None."""
    try:
        cuda = ctypes.CDLL(os.environ.get("TILEGEN_CUDA_DRIVER", "libcuda.so.1"))
    except OSError:
        return None
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGet(ctypes.byref(device), 0) != 0:
        return None
    for value, attribute in ((major, 75), (minor, 76)):  # compute capability
        if cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device) != 0:
            return None
    capability = major.value * 10 + minor.value
    if capability == 90:
        return "sm_90a"
    return next((f"sm_{c}" for c in (90, 89, 80) if capability >= c), None)


def blind_spot(name, command):
    return next((why for tool, tests, why in BLIND_SPOTS if tool in command and re.fullmatch(tests, name)), None)


def judged(name, command, status, text):
    """The status of a test, 0 if it passed and what a checker says of it, if anything, is no finding."""
    passed = "[  PASSED  ]" in text and "[  FAILED  ]" not in text
    if passed and "Target application terminated before first instrumented API call" in text:
        return 0  # the test uses no device
    if re.search(r"^=+ (?:ERROR|RACECHECK) SUMMARY: .*[1-9]", text, re.MULTILINE):
        return "blind spot" if blind_spot(name, command) else status or "findings"
    return status


def run(job):
    name, command, environment, limit = job
    start = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=environment, errors="replace")
        text = done.stdout + done.stderr
        status = judged(name, command, done.returncode, text)
    except subprocess.TimeoutExpired as e:
        partial = e.stdout or b""
        status, text = "time limit", partial.decode(errors="replace") if isinstance(partial, bytes) else partial
    return name, status, text, time.time() - start


def seeded_jobs(args, base, word, test, count):
    """Programs made from seeds, a chunk of them for each process."""
    for seed in range(args.first, args.first + count, args.chunk):
        size = min(args.chunk, args.first + count - seed)
        environment = dict(base, TILEGEN_SEED=str(seed), TILEGEN_COUNT=str(size), TILEGEN_ALL_TARGETS="1")
        yield f"{word} {seed}..{seed + size - 1}", [args.program, "--gtest_filter=" + test], environment, args.limit


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--filter", default="*-RandomPrograms.*:MutatedPrograms.*")
    parser.add_argument("--random", type=int, default=0, help="random programs to run")
    parser.add_argument("--mutated", type=int, default=0, help="mutated programs to run")
    parser.add_argument("--under", default="", help="command of a checker that each process runs under")
    parser.add_argument("--chunk", type=int, default=50, help="random or mutated programs of one process")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--limit", type=float, default=150, help="seconds of one process")
    parser.add_argument("--lines", type=int, default=25, help="lines shown of a failure")
    parser.add_argument("--log", help="file for the whole output")
    args = parser.parse_args()
    if args.target == "device":
        args.target = device_target()
        if args.target is None:
            print("skipped: no CUDA device that the library has a target for")
            sys.exit(77)
    base = dict(os.environ, TILEGEN_TARGETS=args.target)
    under = shlex.split(args.under)
    jobs = [(name, [args.program, "--gtest_filter=" + name], base, args.limit) for name in tests_of(args.program, args.filter)]
    jobs += seeded_jobs(args, base, "random", "RandomPrograms.ExecutorsAgree", args.random)
    jobs += seeded_jobs(args, base, "mutated", "MutatedPrograms.ExecutorsAgree", args.mutated)
    jobs = [(name, under + command, environment, limit) for name, command, environment, limit in jobs]
    failed, blind, skipped, start = [], [], 0, time.time()
    log = open(args.log, "w", encoding="utf-8") if args.log else None
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, status, text, seconds in pool.map(run, jobs):
            if log:
                log.write(f"==== {name}: {status}, {seconds:.1f} s\n{text}\n")
            skipped += "[  SKIPPED ]" in text
            if status == "blind spot":
                blind.append(name)
            elif status != 0:
                failed.append(name)
                shown = [line for line in text.splitlines() if line.strip() and not line.startswith(("[---", "[===", "Note:",
                                                                                                     "Running main"))]
                print(f"FAILED {name} ({status}, {seconds:.1f} s)", *("    " + line[:300] for line in shown[:args.lines]), sep="\n",
                      flush=True)
    print(f"{len(jobs)} tests, {len(jobs) - len(failed)} passed ({skipped} of them skipped), {len(failed)} failed, "
          f"{time.time() - start:.0f} s")
    for name in blind:
        print(f"  findings of {name} that are none: {blind_spot(name, under)}")
    for name in failed:
        print("  failed:", name)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
