#!/usr/bin/env python3
"""Random programs by many processes: on the host all agree; on the stand-in for the driver, which computes nothing, those that
differ and those whose kernel never ends are told and kept as text, and the rest is judged; so it is behind a process that dies,
says nothing or cannot begin.   check_random_programs.py RANDOM_PROGRAMS GPU_TESTS FAKE_CUDA"""
import os
import re
import subprocess
import sys
import tempfile

# In the place of gpu_tests: its seventh program dies, its ninth says nothing, its twelfth cannot begin.
STUB = """#!/usr/bin/env python3
import os, sys, time
first = int(os.environ["TILEGEN_SEED"])
for seed in range(first, first + int(os.environ["TILEGEN_COUNT"])):
    if seed == 12:
        sys.exit("no device")
    print("program", seed, "begins", flush=True)
    if seed == 7:
        print("illegal address", file=sys.stderr, flush=True)
        os.kill(os.getpid(), 9)
    if seed == 9:
        time.sleep(600)
    print("program", seed, "agree ", flush=True)
"""


def run(script, program, environment, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.join(folder, "kept")
        done = subprocess.run([sys.executable, "-B", script, program, "--failures", kept, "--jobs", "2", *arguments],
                              env=dict(os.environ, **environment), capture_output=True, text=True, timeout=200)
        texts = {}
        for name in sorted(os.listdir(kept)) if os.path.isdir(kept) else []:
            with open(os.path.join(kept, name), encoding="utf-8") as f:
                texts[name] = f.read()
        return done.returncode, done.stdout + done.stderr, texts


def expect(condition, what, out):
    if not condition:
        sys.exit(f"{out}\nexpected: {what}")


def on_the_host(script, program):
    status, out, texts = run(script, program, {}, "--target", "host", "--count", "24", "--seed", "1")
    expect(status == 0 and "24 of 24 random programs for host from seed 1" in out and not texts, "24 of 24 programs agree", out)


def on_the_stand_in(script, program, driver):
    environment = {"TILEGEN_CUDA_DRIVER": driver, "TILEGEN_FAKE_CUDA": "endless=k1,capability=80", "TILEGEN_GPU_TIMEOUT": "1"}
    status, out, texts = run(script, program, environment, "--target", "device", "--count", "16", "--seed", "1", "--shard", "4")
    expect(status == 1 and "16 of 16 random programs for sm_80" in out, "all are judged, and some fail", out)
    failed = set(re.findall(r"^FAILED program (\d+)", out, re.MULTILINE))
    expect(set(texts) == {f"random_{seed}.tl" for seed in failed} and failed, "a text of each that failed", out)
    for name, text in texts.items():
        hangs = "\n; hung: " in text
        expect(text.startswith("; launch") and (hangs or "\n; differ: sm_80: " in text), f"{name} says what is wrong", text)
        expect(hangs == ("kernel k1 " in text.split("\n; ")[0]) or not hangs, f"{name} hangs by its kernel", text)
    expect(any("not finished after 1 seconds" in text for text in texts.values()), "a launch that does not end is named", out)


def of_a_stub(script):
    with tempfile.TemporaryDirectory() as folder:
        stub = os.path.join(folder, "stub")
        with open(stub, "w", encoding="utf-8") as f:
            f.write(STUB)
        os.chmod(stub, 0o755)
        status, out, _ = run(script, stub, {}, "--target", "host", "--count", "20", "--shard", "20", "--limit", "3")
        expect(status == 1 and "17 agree, 2 ended, 1 hung" in out, "17 agree beside those that do not end well", out)
        for text in ("program 7 (ended): illegal address", "program 9 (hung): no word for 3 seconds", "program 12 (ended): no device"):
            expect(text in out, text, out)
        status, out, _ = run(script, stub, {}, "--target", "host", "--count", "20", "--shard", "20", "--limit", "3", "--seconds", "0")
        expect(status == 1 and "not judged in 0 s" in out, "what was not judged in the time is said", out)


def main():
    script, program, driver = sys.argv[1:]
    on_the_host(script, program)
    on_the_stand_in(script, program, driver)
    of_a_stub(script)


main()
