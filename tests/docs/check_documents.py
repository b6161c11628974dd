"""The documents say what is true: the README's example compiles and runs, its test command is what CI runs,
links lead somewhere, the tree of docs/design.md is the tree.

check_documents.py SOURCE WORK COMPILER LIBRARY"""
import os
import pathlib
import re
import subprocess
import sys

source, work, compiler, library = (pathlib.Path(argument) for argument in sys.argv[1:5])
readme = (source / "README.md").read_text()

commands = re.findall(r"^    (bash scripts/\S+)$", readme, re.M)
assert commands == ["bash scripts/run_main_job", "bash scripts/test"], f"the two commands are {commands}"
ci = (source / ".ci/run").read_text()
assert f"exec {commands[1]} " in ci, ".ci/run does not call the README's test command"

for page in [source / "README.md", source / "CONTRIBUTING.md", *sorted((source / "docs").glob("*.md"))]:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / link).exists(), f"{page.name} links to {link}, which is not there"

pinned = set(re.findall(r"`(\w+)\.tl`", (source / "docs/testing.md").read_text()))
regressions = {path.stem for path in (source / "tests/differential/regressions").glob("*.tl")}
assert pinned == regressions, f"docs/testing.md lists {pinned - regressions} too much and {regressions - pinned} not"

table = re.findall(r"^\| `src/(\w+)` \|", (source / "docs/design.md").read_text(), re.M)
listed = set(table)
present = {path.relative_to(source / "src").parts[0] for path in (source / "src").rglob("*.[ch]*")}
assert listed == present, \
    f"docs/design.md lists {listed - present} too much and {present - listed} not"
road = re.search(r"kRoad = \{(.*?)\}", (source / "tests/unit/support/include_graph_test.cpp").read_text(), re.S)
order = [folder for folder in re.findall(r'"(\w+)"', road.group(1)) if folder in listed]
assert table == order, f"docs/design.md has another order than the include test: {table} and {order}"

examples = re.findall(r"^```c\n(.*?)^```", readme, re.M | re.S)
assert len(examples) == 1, f"{len(examples)} C examples"
work.mkdir(parents=True, exist_ok=True)
(work / "readme_example.c").write_text(examples[0])
subprocess.run(
    [compiler, "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", *sys.argv[5:],
     f"-I{source / 'include'}", work / "readme_example.c", "-o", work / "readme_example", library, f"-Wl,-rpath,{library.parent}"],
    check=True)
# The example ends without releasing what it made; a sanitizer build must not take that for a defect.
environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
output = subprocess.run([work / "readme_example"], check=True, env=environment, capture_output=True, text=True).stdout
assert output == "c[0] = 100, expected 100\n", output
print(output, end="")
