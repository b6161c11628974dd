#!/usr/bin/env python3
"""Writes the linker version script of libtilegen.so, or the plain list of its functions, from include/tilelang.h.

Every declaration that starts with TL_API is exported, nothing else. Standard library only.
"""
import argparse
import re
import sys


def exported(header: str) -> list[str]:
    code = re.sub(r"/\*.*?\*/", " ", header, flags=re.S)
    names = re.findall(r"^TL_API\b[^;(]*?\b(\w+)\s*\(", code, flags=re.M)
    count = len(re.findall(r"^TL_API\b", code, flags=re.M))
    if not names or len(names) != count:
        sys.exit(f"gen_symbols: {count} TL_API declarations, {len(names)} understood")
    if len(set(names)) != len(names):
        sys.exit("gen_symbols: a function is declared twice")
    for name in names:
        if not name.startswith(("tl_", "tilelang_")):
            sys.exit(f"gen_symbols: {name} has neither of the prefixes tl_ and tilelang_")
    return sorted(names)


def version_script(names: list[str], node: str) -> str:
    return "".join([node, " {\n  global:\n", *(f"    {n};\n" for n in names), "  local:\n    *;\n};\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("header")
    parser.add_argument("--format", choices=["map", "list", "c"], default="map")
    parser.add_argument("--node", default="TILEGEN_0.1")
    parser.add_argument("-o", "--output", help="default: standard output")
    args = parser.parse_args()
    with open(args.header, encoding="utf-8") as f:
        names = exported(f.read())
    if args.format == "map":
        text = version_script(names, args.node)
    elif args.format == "list":
        text = "".join(n + "\n" for n in names)
    else:  # a C table of addresses: whoever links it proves that every function exists
        rows = "".join(f'  {{"{n}", (tl_any_fn)&{n}}},\n' for n in names)
        text = ('#include "tilelang.h"\n\ntypedef void (*tl_any_fn)(void);\n'
                "struct tl_named_fn { const char *name; tl_any_fn address; };\n"
                f"const struct tl_named_fn tl_all_functions[] = {{\n{rows}  {{0, 0}}\n}};\n")
    if args.output:
        with open(args.output, "w", encoding="utf-8") as f:
            f.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
