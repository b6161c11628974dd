#!/usr/bin/env python3
"""Checks that the binaries of a package need only glibc, of a version that Debian 12 has, and find their library beside
themselves.   check_package.py FOLDER"""
import pathlib
import re
import subprocess
import sys

ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "libtilegen.so.0"}
NEWEST_GLIBC = (2, 36)


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, capture_output=True, text=True).stdout


def problems(path):
    dynamic = readelf("-d", path)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*?)\]", dynamic))
    for name in sorted(needed - ALLOWED):
        yield f"needs {name}"
    if "libtilegen.so.0" in needed and "$ORIGIN/../lib" not in "".join(re.findall(r"\((?:RUNPATH|RPATH)\).*", dynamic)):
        yield "does not look for libtilegen.so.0 in $ORIGIN/../lib"
    for version in sorted(set(re.findall(r"GLIBC_(\d+)\.(\d+)", readelf("--version-info", path)))):
        if tuple(map(int, version)) > NEWEST_GLIBC:
            yield f"needs glibc {'.'.join(version)}"


def main():
    folder = pathlib.Path(sys.argv[1])
    binaries = [p for p in folder.rglob("*") if p.is_file() and not p.is_symlink() and p.read_bytes()[:4] == b"\x7fELF"]
    found = [f"{p.relative_to(folder)}: {text}" for p in binaries for text in problems(str(p))]
    if found or not binaries:
        sys.exit("check_package: " + ("; ".join(found) or "no binaries"))
    print(f"check_package: {len(binaries)} binaries need nothing but glibc {'.'.join(map(str, NEWEST_GLIBC))}")


if __name__ == "__main__":
    main()
