"""docs/language.md: the example program runs right, and every word of the tables is named. docs/attention.md: its program
runs right.

check_language.py SOURCE WORK TILEGEN"""
import pathlib
import re
import subprocess
import sys

source, work, tilegen = (pathlib.Path(argument) for argument in sys.argv[1:4])
page = (source / "docs/language.md").read_text()

for table, row in (("ops.def", r'^TILEGEN_TILE_OP\(\w+, "(\w+)"'),
                   ("expr_ops.def", r'^TILEGEN_EXPR_OP\(\w+, \d, \w+, "(\w+)"\)'),
                   ("annotations.def", r'^TILEGEN_ANNOTATION\(\w+, "(\w+)"'),
                   ("dtypes.def", r'^TILEGEN_DTYPE\(\w+, \d+, "(\w+)"')):
    for word in re.findall(row, (source / "src/ir" / table).read_text(), re.M):
        assert re.search(rf"\b{word}\b", page), f"'{word}' of {table} is not in docs/language.md"


def runs_right(name, text, result, *arguments):
    programs = re.findall(r"^```\n(tl 1 .*?)^```", text, re.M | re.S)
    assert len(programs) == 1, f"{len(programs)} programs in {name}"
    work.mkdir(parents=True, exist_ok=True)
    path = work / f"{name}_example.tl"
    path.write_text(programs[0])
    run = subprocess.run([tilegen, "run", path, *arguments], capture_output=True, text=True)
    print(run.stdout, run.stderr)
    assert run.returncode == 0 and re.search(rf"^{result} +right", run.stdout, re.M)


runs_right("language", page, "C", "--m", "50", "--n", "40", "--k", "70")
runs_right("attention", (source / "docs/attention.md").read_text(), "O", "--batch", "1", "--heads", "2", "--queries", "70",
           "--keys", "130", "--scale", "0.1")
