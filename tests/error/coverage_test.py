#!/usr/bin/env python3
"""Every row of diagnostics.def has a golden text in tests/error, or a reason why a caller cannot raise it there."""
import pathlib
import re
import sys

# Where else the row is held, by a test that names it.
ELSEWHERE = {
    "internal_error": "a defect: no input raises it",
    "io_failure": "tools",
}


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    rows = re.findall(r"^TILEGEN_DIAGNOSTIC\((\w+),", (root / "src/support/diagnostics.def").read_text(), re.M)
    goldens = sorted(p.name for p in (root / "tests/error").glob("*.golden"))
    held = {name.split(".")[0] for name in goldens}
    tests = "\n".join(p.read_text(errors="replace") for p in (root / "tests").rglob("*_test.cpp"))
    bad = [f"golden without a row: {h}" for h in sorted(held - set(rows))]
    for row in rows:
        if row not in held and row not in ELSEWHERE and not re.search(rf"\b{row}\b", tests):
            bad.append(f"diagnostic without a golden or a test: {row}")
    for name in goldens:
        if f'"{name.removesuffix(".golden")}"' not in tests:
            bad.append(f"golden that no test names: {name}")
    for line in bad:
        print("FAILED:", line)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
