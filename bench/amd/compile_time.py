"""How long programs take to become HSACO in a warm process: user CPU time, so that other work of the machine does not count.

    TILEGEN_LIBRARY=build/libtilegen.so PYTHONPATH=bindings/python python3 bench/amd/compile_time.py [FILE.tl ...] [--target gfx942]
"""
import argparse
import pathlib
import resource

import tilegen

ROUNDS, WARM = 9, 3
PROGRAMS = pathlib.Path(__file__).parents[2] / "tests" / "files" / "text"


def compile_ms(text, target, rounds=ROUNDS):
    """Of `rounds` compilations the least and the middle one, in ms, after some that warm the process up."""
    times = []
    for _ in range(WARM + rounds):
        program = tilegen.Program.parse(text)
        before = resource.getrusage(resource.RUSAGE_SELF)
        program.compile(target)
        after = resource.getrusage(resource.RUSAGE_SELF)
        times.append(1e3 * (after.ru_utime - before.ru_utime))
    times = sorted(times[WARM:])
    return times[0], times[len(times) // 2]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("files", nargs="*", default=[PROGRAMS / "gemm.tl", PROGRAMS / "gemm_nt.tl", PROGRAMS / "flash_attention.tl"])
    arguments.add_argument("--target", default="gfx942")
    asked = arguments.parse_args()
    for file in map(pathlib.Path, asked.files):
        least, middle = compile_ms(file.read_text(), asked.target)
        print(f"{file.name}: {least:.0f} ms at least, {middle:.0f} in the middle, for {asked.target}")


if __name__ == "__main__":
    main()
