#!/usr/bin/env python3
"""tilelang.h compiles alone, twice, in every language level of C and C++, without a warning."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = '#include "tilelang.h"\n#include "tilelang.h"\nint answer(void);\nint answer(void) { return (int)sizeof(tl_arg); }\n'
FLAGS = ["-fsyntax-only", "-pedantic-errors", "-Wall", "-Wextra", "-Werror"]
LEVELS = [("c", std) for std in ("c89", "c99", "c11", "c17")] + [
    ("c++", std) for std in ("c++98", "c++11", "c++14", "c++17", "c++20")]


def main() -> int:
    include = sys.argv[1]
    compilers = [pair for pair in (("gcc", "g++"), ("clang", "clang++")) if all(map(shutil.which, pair))]
    if not compilers:
        print("no compiler found")
        return 1
    bad = 0
    with tempfile.TemporaryDirectory() as directory:
        for c, cxx in compilers:
            for language, std in LEVELS:
                path = pathlib.Path(directory, "once.c" if language == "c" else "once.cpp")
                path.write_text(SOURCE)
                command = [c if language == "c" else cxx, f"-std={std}", *FLAGS, f"-I{include}", str(path)]
                result = subprocess.run(command, capture_output=True, text=True)
                if result.returncode != 0:
                    bad += 1
                    print("FAILED:", " ".join(command), result.stderr, sep="\n")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
