"""No line of a C or C++ file is wider than the ColumnLimit of .clang-format. Text within a raw string literal
may be, and so may the rows of .def tables.   check_columns.py SOURCE"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
limit = int(re.search(r"^ColumnLimit: (\d+)$", (source / ".clang-format").read_text(), re.M).group(1))
FOLDERS = ("include", "src", "bindings", "tests", "samples", "bench", "tools")
KINDS = {".c", ".h", ".cpp", ".hpp"}


def too_wide(text):
    """Numbers of the lines that are wider than the limit, but for those that a raw string literal is in."""
    closing = None
    for number, line in enumerate(text.split("\n"), 1):
        begins_raw = closing is not None
        while True:
            if closing is None:
                opened = re.search(r'R"([^()\\ ]{0,16})\(', line)
                if not opened:
                    break
                closing, rest, begins_raw = f'){opened.group(1)}"', line[opened.end():], True
            else:
                rest = line
            if closing not in rest:
                break
            line = rest[rest.index(closing) + len(closing):]
            closing = None
        if not begins_raw and len(line) > limit:
            yield number


files = sorted(path for folder in FOLDERS for path in (source / folder).rglob("*") if path.suffix in KINDS)
assert len(files) > 800, f"only {len(files)} files in {source}"
wide = [f"{path.relative_to(source)}:{number}" for path in files for number in too_wide(path.read_text())]
assert not wide, f"wider than {limit} columns: {', '.join(wide)}"
assert list(too_wide("x" * (limit + 1))) == [1] and not list(too_wide('a = R"(' + "x" * limit + ')";\n b')), "the check"
print(f"{len(files)} files within {limit} columns")
