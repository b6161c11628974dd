#!/usr/bin/env python3
"""Rules of tilelang.h that no compiler checks: enum values agree with the tables of the sources, every function is
documented, and only plain C constructs are used. Standard library only."""
import pathlib
import re
import sys


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    header = (root / "include/tilelang.h").read_text()
    bad = []
    code = re.sub(r"/\*.*?\*/", " ", header, flags=re.S)
    values = {name: int(value) for name, value in re.findall(r"\b(TL_\w+) = (-?\d+)", code)}

    for name, value in re.findall(r"^TILEGEN_STATUS\((\w+), (\d+)", (root / "src/support/status.def").read_text(), re.M):
        if values.get("TL_" + name.upper()) != int(value):
            bad.append(f"status {name} = {value} is not TL_{name.upper()}")
    for name, value in re.findall(r"^TILEGEN_DTYPE\((\w+), (\d+)", (root / "src/ir/dtypes.def").read_text(), re.M):
        public = "TL_BOOL" if name == "boolean" else "TL_" + name.upper()
        if values.get(public) != int(value):
            bad.append(f"dtype {name} = {value} is not {public}")
    for body in re.findall(r"\benum \{(.*?)\}", code, flags=re.S):
        for entry in body.split(","):
            if not re.fullmatch(r"\s*TL_\w+ = \d+\s*", entry):
                bad.append(f"an enum entry without an explicit value: {entry.strip()!r}")
    for word in ("bool", "union", "long", "inline", "FILE", "va_list"):
        if re.search(rf"\b{word}\b", code):
            bad.append(f"'{word}' has no place in the header")
    if "//" in code:
        bad.append("a // comment is not C89")
    # A doc comment stands before a function or before the group that it opens; groups have no blank line inside.
    documented = False
    for line in re.sub(r"/\*\*.*?\*/", "@doc", header, flags=re.S).splitlines():
        if line.startswith("@doc"):
            documented = True
        elif not line.strip():
            documented = False
        elif line.startswith("TL_API") and not documented:
            bad.append(f"not documented: {line}")
    # Each operation of expressions has a macro of its own arguments.
    macros = (root / "include/tilelang_expressions.h").read_text()
    for kind, arguments in (("unary", "a"), ("binary", "a, b"), ("ternary", "a, b, c")):
        body = re.search(rf"typedef uint32_t tl_{kind}_op;\s*enum \{{(.*?)\}}", code, flags=re.S).group(1)
        for name in re.findall(r"TL_(\w+) =", body):
            call = ", ".join(f"({a})" for a in arguments.split(", "))
            if f"#define TLE_{name}({arguments}) tl_{kind}(TLE_BUILDER, TL_{name}, {call})\n" not in macros:
                bad.append(f"tilelang_expressions.h has no TLE_{name}({arguments}) of tl_{kind}")
    for number, line in enumerate((header + macros).splitlines(), 1):
        if len(line) > 110:
            bad.append(f"line {number} has {len(line)} columns")
    for line in bad:
        print("FAILED:", line)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
