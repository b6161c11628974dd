#!/usr/bin/env python3
"""What the built libtilegen.so shows to a linker: symbols, needed libraries, SONAME, hardening. Standard library only."""
import pathlib
import re
import subprocess
import sys
import tempfile

MOST_BYTES = 64_000_000
ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> int:
    library, source = sys.argv[1], pathlib.Path(sys.argv[2])
    bad = []
    declared = run(sys.executable, str(source / "scripts/gen_symbols.py"), str(source / "include/tilelang.h"),
                   "--format", "list").split()
    rows = [line.split() for line in run("nm", "-D", "--defined-only", library).splitlines()]
    names = {row[-1] for row in rows} - {"TILEGEN_0.1"}
    exported = {name.split("@")[0] for name in names}
    versions = {name.split("@@")[1] for name in names if "@@" in name}
    if exported != set(declared):
        bad.append(f"not exported: {sorted(set(declared) - exported)}; not declared: {sorted(exported - set(declared))}")
    if versions != {"TILEGEN_0.1"}:
        bad.append(f"version nodes {sorted(versions)}, expected TILEGEN_0.1")
    if any(row[-2] in "uVW" for row in rows):
        bad.append("a weak or unique symbol is exported")
    dynamic = run("readelf", "-dW", library)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    if not needed <= ALLOWED:
        bad.append(f"needs {sorted(needed - ALLOWED)}")
    if re.findall(r"\(SONAME\).*\[(.*)\]", dynamic) != ["libtilegen.so.0"]:
        bad.append("SONAME is not libtilegen.so.0")
    for flag in ("NODELETE", "NOW"):
        if not re.search(rf"FLAGS.*\b{flag}\b", dynamic) and f"({flag})" not in dynamic:
            bad.append(f"flag {flag} is missing")
    if rebound := sorted(set(re.findall(r"\b((?:tl_|tilelang_)\w+)", run("readelf", "-rW", library)))):
        bad.append(f"calls of its own functions can be taken over by another library: {rebound}")
    if re.search(r"RPATH|RUNPATH|TEXTREL", dynamic):
        bad.append("has a RPATH, RUNPATH or TEXTREL")
    segments = run("readelf", "-lW", library)
    if "GNU_RELRO" not in segments or re.search(r"GNU_STACK.*RWE", segments):
        bad.append("no RELRO, or an executable stack")
    # Thread-local memory that is not there when a thread first asks for it would have to be allocated then, and a failure
    # ends the process. The system keeps a little room for libraries loaded late.
    tls = re.search(r"TLS(?:\s+0x[0-9a-f]+){4}\s+(0x[0-9a-f]+)", segments)
    if "STATIC_TLS" not in dynamic or (tls and int(tls[1], 16) > 512):
        bad.append(f"thread-local memory is not static, or too much: {tls and tls[1]}")
    if "Build ID" not in run("readelf", "-n", library):
        bad.append("no build id")
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder) / "stripped.so"
        run("strip", "-o", str(stripped), library)
        if (size := stripped.stat().st_size) > MOST_BYTES:
            bad.append(f"has {size} bytes without symbols, {MOST_BYTES} are allowed")
    for line in bad:
        print("FAILED:", line)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
