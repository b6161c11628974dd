#!/usr/bin/env python3
"""A launch that never ends, on the stand-in for the driver: its test is killed and named with program, target, kernel and
sizes, and the tests after it run; a test that a checker has findings on fails.   check_watch.py RUN_GPU_TESTS GPU_TESTS FAKE_CUDA"""
import os
import subprocess
import sys
import tempfile
import time


def main():
    script, tests, driver = sys.argv[1:]
    # Nothing is computed on the stand-in: what runs on needs no device, and takes one of capability 8.0 for none.
    environment = dict(os.environ, TILEGEN_CUDA_DRIVER=driver, TILEGEN_FAKE_CUDA="endless=shuffles,capability=80",
                       TILEGEN_GPU_TIMEOUT="1")
    hangs, runs = "Instructions.Shuffles", "Transactions.WarpsThatArriveAndDoNotWait"
    start = time.time()
    done = subprocess.run([sys.executable, "-B", script, tests, "--target", "host", "--filter", f"{hangs}:{runs}", "--jobs", "1",
                           "--limit", "60"], env=environment, capture_output=True, text=True, timeout=120)
    out = done.stdout + done.stderr
    wanted = ["not finished after 1 seconds", "program shuffles", "sm_80", "kernel shuffles of 1 blocks of 32 threads",
              f"FAILED {hangs} (124", "2 tests, 1 passed"]
    missing = [text for text in wanted if text not in out]
    if missing or done.returncode != 1 or time.time() - start > 45:
        print(out, f"status {done.returncode}, {time.time() - start:.0f} s; lacking: {missing}", sep="\n")
        sys.exit(1)
    check_checker(script, tests, environment, runs)


# A checker that reports as compute-sanitizer does, and ends with the status of what ran under it.
def check_checker(script, tests, environment, test):
    with tempfile.TemporaryDirectory() as folder:
        checker = os.path.join(folder, "checker")
        with open(checker, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\n"${@}" || exit\necho "========= ERROR SUMMARY: $FOUND errors"\n')
        os.chmod(checker, 0o755)
        for found, summary in (("0", "1 tests, 1 passed"), ("3", "1 tests, 0 passed")):
            done = subprocess.run([sys.executable, "-B", script, tests, "--target", "host", "--filter", test, "--under", checker],
                                  env=dict(environment, FOUND=found), capture_output=True, text=True, timeout=60)
            if summary not in done.stdout:
                print(done.stdout + done.stderr, f"under a checker that finds {found}: lacking '{summary}'", sep="\n")
                sys.exit(1)


main()
