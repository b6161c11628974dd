#!/usr/bin/env python3
"""Every test is labelled `fast` or `slow` and has a cost, the slow ones by tests/test_costs.cmake, which names no test
twice.   check_labels.py SOURCE BUILD

With --measured the times of the last runs, which ctest keeps in BUILD, are added up too: those of the fast tests must
stay below a minute on two cores."""
import json
import pathlib
import re
import subprocess
import sys

BUDGET_S = 2 * 60.0  # of cores


def listed(source: pathlib.Path) -> dict:
    text = (source / "tests/test_costs.cmake").read_text()
    table = text[text.index("set(TILEGEN_TEST_SECONDS"):]
    rows = re.findall(r"^  ([\w.]+) (\d+)\)?$", table[:table.index(")") + 1], re.M)
    names = [name for name, _ in rows]
    assert len(names) == len(set(names)), "test_costs.cmake names a test twice"
    return {name: int(seconds) for name, seconds in rows}


def main() -> int:
    source, build = map(pathlib.Path, sys.argv[1:3])
    slow, bad = listed(source), []
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    tests = json.loads(shown.stdout)["tests"]
    for test in tests:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        kinds = {"fast", "slow"} & set(properties.get("LABELS", []))
        wanted = "slow" if test["name"] in slow else "fast"
        if kinds != {wanted}:
            bad.append(f"{test['name']} is labelled {sorted(kinds)}, not {wanted}: its folder lacks DEFER CALL label_tests")
        elif properties.get("COST", 0) != slow.get(test["name"], 1):
            bad.append(f"{test['name']} has the cost {properties.get('COST')}")
    if "--measured" in sys.argv[3:]:
        rows = [line.split() for line in (build / "Testing/Temporary/CTestCostData.txt").read_text().splitlines()]
        times = {row[0]: float(row[2]) for row in rows if len(row) == 3}
        fast = {t["name"]: times.get(t["name"], 0.0) for t in tests if t["name"] not in slow}
        total = sum(fast.values())
        print(f"fast tests: {total:.0f} s of {BUDGET_S:.0f}")
        for name in sorted(fast, key=fast.get, reverse=True)[:5]:
            print(f"  {fast[name]:6.1f} s  {name}")
        if total > BUDGET_S:
            bad.append("the fast tests are too slow: list some in tests/test_costs.cmake")
    print("\n".join(bad) if bad else f"{len(tests)} tests labelled, {sum(t['name'] in slow for t in tests)} of them slow")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
