"""The programs of the benchmarks keep the plan that is made first: no check of their code rejects it.
first_plans_test.py SOURCE
For sm_90a, every other one for an older target by turns; TILEGEN_LONG=1: for all."""
import pathlib
import sys

import ptxas_test
import tilegen as tg


def cases(source):
    """(name, program) of all that is measured."""
    attention, problems = ptxas_test.attention(source)
    ptxas_test.attention_split(attention, problems)
    ptxas_test.workloads(attention, problems)
    yield from attention
    import programs
    for dtype in (tg.f16, tg.bf16):
        for tile, threads in (((128, 128, 64), 128), ((128, 256, 64), 256), ((256, 128, 64), 256), ((64, 64, 32), 128)):
            yield f"gemm {dtype} {tile}", programs.gemm(dtype, tg.f32, dtype, tile, threads, 3)
    for make in (programs.softmax, programs.layernorm, programs.rmsnorm, programs.residual_rmsnorm):
        yield make.__name__, make(4096)
    yield "add", programs.add()


def main():
    source = pathlib.Path(sys.argv[1])
    found, compiled = [], 0
    for number, (name, program) in enumerate(cases(source)):
        for target in ptxas_test.targets_of(number):
            try:
                schedule = program.compile("sim:" + target).schedule
            except tg.Error as e:  # a tile that this generation has no room for
                if "passes the checks" in str(e):
                    found.append(f"{name} {target}: {e}")
                continue
            compiled += 1
            found += [f"{name} {target}: {note}" for kernel in schedule["kernels"] for note in kernel.get("notes", [])
                      if "as first planned it was rejected" in str(note)]
    print(f"{compiled} plans")
    for line in found:
        print("FAILED:", line)
    return bool(found) or compiled < 60 * len(ptxas_test.targets_of(0)) // 3


if __name__ == "__main__":
    sys.exit(main())
