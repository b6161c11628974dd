"""Every program of the test files through ptxas, where one is installed: a spilled register, or a C75xx line, fails.
   ptxas_test.py SOURCE          (exit status 77: no ptxas)"""
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tilegen as tg

TARGETS = ("sm_80", "sm_90", "sm_90a")


def findings(name, target, ptx, folder):
    file = pathlib.Path(folder) / f"{name}.{target}.ptx"
    file.write_text(ptx)
    done = subprocess.run(["ptxas", "-v", "-arch=" + target, str(file), "-o", str(file) + ".cubin"], capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode != 0:
        return [f"{name} {target}: ptxas refuses it: {said[:300]}"]
    bad = [line.strip() for line in said.splitlines() if re.search(r"\bC75\d\d\b", line)]
    bad += [line.strip() for line in said.splitlines()
            if re.search(r"[1-9]\d* bytes spill", line)]
    return [f"{name} {target}: {line}" for line in bad]


def main():
    if not shutil.which("ptxas"):
        print("skipped: no ptxas on this machine")
        sys.exit(77)
    source = pathlib.Path(sys.argv[1]) / "tests"
    files = sorted([*source.glob("files/*/*.tl"), *source.glob("differential/regressions/*.tl")])
    problems, refused, jobs = [], 0, []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for file in files:
            program = tg.Program.parse(file.read_text(), str(file))
            for target in TARGETS:
                try:
                    ptx = program.compile(target).section("ptx")
                except tg.Error as e:
                    if e.diagnostics[0].code != "target_unsupported":
                        problems.append(f"{file.stem} {target}: {e}")
                    refused += 1
                    continue
                jobs.append(pool.submit(findings, f"{file.parent.name}_{file.stem}", target, ptx, folder))
        for job in jobs:
            problems += job.result()
    print(f"{len(files)} programs, {len(jobs)} assembled, {refused} refused")
    if problems or not jobs:
        sys.exit("\n".join(problems) or "nothing was assembled")


if __name__ == "__main__":
    main()
