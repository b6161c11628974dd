#!/usr/bin/env python3
"""Writes bindings/python/tilegen/_header.py, the raw ctypes declarations, from include/tilelang.h.

The header is plain C89 in one style, so a few regular expressions read it; whatever they do not understand ends the
run. Standard library only.   gen_python.py include/tilelang.h -o bindings/python/tilegen/_header.py
"""
import argparse
import re
import sys

SCALARS = {
    "void": None, "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64", "uint64_t": "c_uint64",
    "size_t": "c_size_t", "double": "c_double", "float": "c_float", "char": "c_char", "int": "c_int",
}


class Header:
    def __init__(self, text: str):
        code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        self.defines = re.findall(r"^#define (TL_\w+) (\d+)\s*$", code, flags=re.M)
        code = re.sub(r"^\s*#.*?(?<!\\)$", "", code, flags=re.M)
        self.code = re.sub(r'extern "C" \{', "", code)
        self.handles = re.findall(r"typedef struct (\w+) \1;", self.code)
        self.aliases = dict((name, kind) for kind, name in re.findall(r"typedef (u?int\d+_t) (\w+);", self.code))
        self.callbacks = re.findall(r"typedef ([\w ]+?[ *])\(\*(\w+)\)\((.*?)\);", self.code, flags=re.S)
        self.structs = re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", self.code, flags=re.S)
        self.enums = re.findall(r"enum \{(.*?)\};", self.code, flags=re.S)
        self.functions = re.findall(r"TL_API\s+([\w ]+?[ *]+)(\w+)\s*\((.*?)\);", self.code, flags=re.S)
        if len(self.functions) != len(re.findall(r"\bTL_API\b", self.code)):
            sys.exit("gen_python: a TL_API declaration was not understood")

    def ctype(self, text: str) -> str:
        words = text.replace("*", " * ").replace("const", " ").replace("struct", " ").split()
        stars, name = words.count("*"), next(w for w in words if w != "*")
        if name == "char" and stars >= 1:
            stars, base = stars - 1, "c_char_p"
        elif (name in self.handles or name == "void") and stars >= 1:
            stars, base = stars - 1, "c_void_p"
        elif name == "DLTensor":
            base = "DLTensor"
        elif name in SCALARS:
            base = SCALARS[name]
        elif name in self.aliases:
            base = SCALARS[self.aliases[name]]
        elif name in {n for n, _ in self.structs} | {n for _, n, _ in self.callbacks}:
            base = name
        else:
            sys.exit(f"gen_python: unknown type in '{text.strip()}'")
        if base is None:
            return "None"
        return "POINTER(" * stars + base + ")" * stars

    def variable(self, text: str) -> tuple[str, str]:
        """'const char *const *names' -> (type, name)"""
        match = re.fullmatch(r"(.*?[ *])(\w+)", " ".join(text.split()))
        if not match:
            sys.exit(f"gen_python: '{text.strip()}' is no declaration")
        return self.ctype(match.group(1)), match.group(2)

    def arguments(self, text: str) -> list[tuple[str, str]]:
        text = " ".join(text.split())
        return [] if text in ("", "void") else [self.variable(a) for a in text.split(",")]


def generate(header: Header) -> str:
    out = ['"""Raw declarations of libtilegen, one to one from include/tilelang.h by scripts/gen_python.py."""',
           "from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint8,",
           "                    c_uint16, c_uint32, c_uint64, c_void_p)", "", ""]
    out += ["class DLDevice(Structure):", '    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]', "", "",
            "class DLDataType(Structure):", '    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]',
            "", "", "class DLTensor(Structure):",
            '    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType),',
            '                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]', ""]
    out += [""] + [f"{name} = {value}" for name, value in header.defines]
    for body in header.enums:
        out.append("")
        value = -1
        for entry in (e.strip() for e in body.split(",")):
            if not entry:
                continue
            name, _, number = (p.strip() for p in entry.partition("="))
            value = int(number, 0) if number else value + 1
            out.append(f"{name} = {value}")
    written = {}  # structs and callbacks, which name each other, by their place in the header
    for name, body in header.structs:
        lines = ["", "", f"class {name}(Structure):", "    _fields_ = ["]
        for field in (f for f in body.split(";") if f.strip()):
            kind, field_name = header.variable(field)
            lines.append(f'        ("{field_name}", {kind}),')
        written[header.code.index(f"typedef struct {name} {{")] = lines + ["    ]"]
    for result, name, args in header.callbacks:
        types = [header.ctype(result), *(t for t, _ in header.arguments(args))]
        written[header.code.index(f"(*{name})(")] = ["", "", f"{name} = CFUNCTYPE({', '.join(types)})"]
    out += [line for place in sorted(written) for line in written[place]]
    out += ["", "", "# name: (result, (argument types...))", "FUNCTIONS = {"]
    for result, name, args in header.functions:
        types = [t for t, _ in header.arguments(args)]
        out.append(f'    "{name}": ({header.ctype(result)}, ({"".join(t + ", " for t in types).rstrip(" ")})),')
    out += ["}", ""]
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("header")
    parser.add_argument("-o", "--output", help="default: standard output")
    args = parser.parse_args()
    with open(args.header, encoding="utf-8") as f:
        text = generate(Header(f.read()))
    if args.output:
        with open(args.output, "w", encoding="utf-8") as f:
            f.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
