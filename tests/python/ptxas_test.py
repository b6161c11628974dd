"""Every program of the test files, and attention in the sizes that it is used in, through ptxas where one is installed: a
spilled register, or a C75xx line, fails.   ptxas_test.py SOURCE          (exit status 77: no ptxas)
Files are assembled for sm_90a, every other one for an older target by turns; TILEGEN_LONG=1: for all."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tilegen as tg

TARGETS = ("sm_80", "sm_90", "sm_90a")


def targets_of(number):
    """Of the program with that number."""
    if os.environ.get("TILEGEN_LONG") == "1":
        return TARGETS
    return ("sm_90a",) if number % 2 else (TARGETS[number // 2 % 2], "sm_90a")


# Bytes that may be spilled, at most, and why.
KNOWN_SPILLS = {
    # The thread that claims tiles also looks its launch's record up, and has a producer's few registers.
    ("attention_f16_128_causal", "sm_90a"): 4,
    # Two fragments of an operand are held beside the sums.
    ("regressions_operand_filled_by_two_copies", "sm_80"): 56,
    ("regressions_operand_filled_by_two_copies", "sm_90"): 76,
}


def spilled(line):
    return max((int(n) for n in re.findall(r"(\d+) bytes spill", line)), default=0)


def findings(name, target, ptx, folder):
    file = pathlib.Path(folder) / f"{name}.{target}.ptx"
    file.write_text(ptx)
    done = subprocess.run(["ptxas", "-v", "-arch=" + target, str(file), "-o", str(file) + ".cubin"], capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode != 0:
        return [f"{name} {target}: ptxas refuses it: {said[:300]}"]
    bad = [line.strip() for line in said.splitlines() if re.search(r"\bC75\d\d\b", line)]
    bad += [line.strip() for line in said.splitlines()
            if spilled(line) > KNOWN_SPILLS.get((name, target), 0)]
    return [f"{name} {target}: {line}" for line in bad]


# (size of a head, tile of queries and keys, threads) and options of bench/gpu/programs.py.
ATTENTION = [(64, (128, 128), 256, {}), (80, (128, 128), 256, {"causal": True}), (96, (128, 128), 256, {}),
             (128, (128, 128), 256, {}), (128, (128, 128), 256, {"causal": True, "heads_last": True, "group": 8}),
             (128, (128, 176), 256, {"causal": True}), (192, (128, 96), 256, {"causal": True}), (256, (128, 80), 256, {}),
             (256, (128, 64), 256, {"causal": True}), (128, (128, 128), 256, {"window": (300, 100)}),
             (128, (128, 128), 256, {"packed": True, "causal": True, "row_sums": True}), (64, (64, 128), 128, {"cap": True})]


# The same of attention_split; stages behind the threads.
SPLIT = [((64, 128), 128, 2, {"group": 4}), ((64, 128), 128, 2, {"group": 4, "causal": True, "row_sums": True}),
         ((64, 64), 128, 4, {}),
         ((64, 128), 128, 2, {"group": 8, "window": (300, 100), "passed": True}),
         ((64, 64), 128, 5, {"group": 8}), ((16, 64), 128, 6, {"group": 8}), ((16, 128), 128, 3, {})]


def attention_split(cases, problems):
    """Adds (name, program), and what is wrong with the plans."""
    import split_programs
    for tile, threads, stages, options in SPLIT:
        name = "_".join(["attention_split", *map(str, tile), *options])
        program = split_programs.attention_split(tg.f16, 128, tile, threads, stages, **options)
        split, combine = program.compile("sm_90a", plan_only=True).schedule["kernels"]
        engines = {op["op"]: op["engine"] for op in split["ops"]}
        moved = {engine for op, engine in engines.items() if "/kb/copy#" in op and engine.endswith(("tensor_copy", "async_copy"))}
        if tile[0] == 64 and (moved != {"tensor_copy"} or {engines[f"over_parts/kb/gemm#{i}"] for i in (0, 1)} != {"warpgroup_mma"}):
            problems.append(f"{name}: no copy engine, or products that are not warpgroups'")
        if next(op for op in combine["ops"] if op["op"] == "combine/step/copy#1").get("vector") != 4:
            problems.append(f"{name}: results are not combined 16 bytes at a time")
        cases.append((name, program))


def workloads(cases, problems):
    """Adds (name, program) of further benchmarks, whose products are warpgroups'."""
    import gradient_programs
    import product_programs
    import programs
    import scan_programs
    import split_programs
    mamba = scan_programs.mamba({"bm": 128, "bk": 128, "threads": 256, "stages": 2}, {"bk": 64, "threads": 128, "stages": 3})
    backward = lambda dim, keys, of_queries=((128, 128), 256, 2): gradient_programs.attention_backward(tg.f16, dim, (keys, 256, 2), of_queries)
    found = {"backward_64": backward(64, (128, 128)), "backward_128": backward(128, (64, 128)),
             "summed_64": backward(64, (128, 128), None), "summed_128": backward(128, (64, 128), None),
             "paged": split_programs.attention_split(tg.f16, 128, (64, 64), 128, 4, group=4, page=64),
             "latent": split_programs.latent_attention(tg.f16, (64, 64), 256, 2),
             "grouped": product_programs.grouped_gemm(tg.bf16, tg.bf16, (128, 256, 64), 256, 4),
             "block_scaled": product_programs.block_scaled_gemm(tg.e4m3, (128, 64), 256, 6),
             "sparse": product_programs.sparse_gemm(tg.f16, tg.f16, (128, 256, 128), 256, 2),
             "int4": product_programs.int4_gemm((16, 64, 128), 128, 4), "conv2d": product_programs.conv2d(tg.f16, ((1, 8, 16), 128, 64), 256, 4),
             "narrow": programs.attention(tg.e4m3, 128, (128, 128), 256, 2, out_dtype=tg.bf16), "mamba": mamba}
    for name, program in found.items():
        for kernel in program.compile("sm_90a", plan_only=True).schedule["kernels"]:
            problems += [f"{name}: {op['op']} is done by {op['engine']}" for op in kernel["ops"]
                         if re.search("gemm(_sparse)?#", op["op"]) and op["engine"] != "warpgroup_mma"]
    cases += found.items()


def attention(source):
    """(name, program), and what is wrong with the plans."""
    sys.path.append(str(source / "bench" / "gpu"))
    import programs
    cases, problems = [], []
    for dim, tile, threads, options in ATTENTION:
        for dtype in (tg.f16, tg.bf16) if not options else (tg.f16,):
            name = "_".join(["attention", str(dtype).split(".")[-1], str(dim), *options])
            program = programs.attention(dtype, dim, tile, threads, 2, **options)
            kernel = program.compile("sm_90a", plan_only=True).schedule["kernels"][0]
            engines = {op["op"]: op["engine"] for op in kernel["ops"]}
            stages = {s["op"]: s["stage"] for s in kernel["loops"][0]["stages"]}
            if engines["attention/kb/gemm#0"] != "warpgroup_mma" or engines["attention/kb/gemm#1"] != "warpgroup_mma":
                problems.append(f"{name}: its products are not done by warpgroups")
            elif stages["attention/kb/gemm#1"] != stages["attention/kb/gemm#0"] + 1:
                problems.append(f"{name}: the second product does not lag")
            cases.append((name, program))
    return cases, problems


def in_order(program):
    """The schedule of a program whose operations are issued as they stand in it: nothing lags."""
    schedule = program.compile("sm_90a", plan_only=True).schedule
    loop = schedule["kernels"][0]["loops"][0]
    stages = {s["op"]: s["stage"] for s in loop["stages"]}
    ahead = [s["op"] for s in loop["stages"] if s["stage"] == 0]
    rest = [op["op"] for op in schedule["kernels"][0]["ops"] if stages.get(op["op"], 0) > 0]
    loop["stages"] = [{"op": op, "stage": min(stages[op], 1)} for op in ahead + rest]
    for end in ("drained", "peek"):
        loop.pop(end, None)
    return schedule


def with_turns(program, turns):
    """The schedule of a program whose warpgroups take turns with the matrix units, or do not."""
    schedule = program.compile("sm_90a", plan_only=True).schedule
    schedule["kernels"][0]["loops"][0]["ping_pong"] = turns
    return schedule


def main():
    if not shutil.which("ptxas"):
        print("skipped: no ptxas on this machine")
        sys.exit(77)
    source = pathlib.Path(sys.argv[1])
    files = sorted([*source.glob("tests/files/*/*.tl"), *source.glob("tests/differential/regressions/*.tl")])
    refused, jobs = 0, []
    cases, problems = attention(source)
    attention_split(cases, problems)
    workloads(cases, problems)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number, file in enumerate(files):
            program = tg.Program.parse(file.read_text(), str(file), include=file.parent)
            for target in targets_of(number):
                try:
                    ptx = program.compile(target).section("ptx")
                except tg.Error as e:
                    if e.diagnostics[0].code != "target_unsupported":
                        problems.append(f"{file.stem} {target}: {e}")
                    refused += 1
                    continue
                jobs.append(pool.submit(findings, f"{file.parent.name}_{file.stem}", target, ptx, folder))
        for name, program in cases:
            jobs.append(pool.submit(findings, name, "sm_90a", program.compile("sm_90a").section("ptx"), folder))
        name, program = cases[0]
        ptx = program.compile("sm_90a", schedule=in_order(program)).section("ptx")
        jobs.append(pool.submit(findings, name + "_in_order", "sm_90a", ptx, folder))
        for name, program in cases:
            if not re.fullmatch("attention_f16_(64|128)", name):
                continue
            for turns in (False, True):
                ptx = program.compile("sm_90a", schedule=with_turns(program, turns)).section("ptx")
                if ("bar.arrive" in ptx) != turns:
                    problems.append(f"{name}: turns are {'missing' if turns else 'there unasked'}")
                jobs.append(pool.submit(findings, f"{name}_turns_{turns}", "sm_90a", ptx, folder))
        for job in jobs:
            problems += job.result()
    print(f"{len(files)} files, {len(cases)} programs of benchmarks, {len(jobs)} assembled, {refused} refused")
    if problems or not jobs:
        sys.exit("\n".join(problems) or "nothing was assembled")


if __name__ == "__main__":
    main()
