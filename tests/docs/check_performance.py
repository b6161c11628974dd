"""docs/performance.md and docs/charts are what bench/charts.py makes of bench/results, and the charts can be read:
no texts overlap, none is small or outside the picture.   check_performance.py SOURCE

The check is tried on copies with one fault each: a digit of a table, of a chart, of a result; a chart that is
missing or not linked; a table that no result is behind."""
import copy
import pathlib
import re
import sys
import xml.etree.ElementTree

source = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, str(source / "bench"))
import charts  # noqa: E402
from chart.svg import layout_faults  # noqa: E402

SMALLEST = 11

results = charts.read_results(source)
page = (source / "docs/performance.md").read_text(encoding="utf-8")
files = charts.read_charts(source)
found = charts.faults(page, files, results)
assert not found, "run bench/charts.py and read the difference:\n" + "\n".join(found)

for family in charts.families_of(results):
    if family.chart:
        assert not layout_faults(family.chart), "\n".join(layout_faults(family.chart))
for name, text in files.items():
    root = xml.etree.ElementTree.fromstring(text)
    sizes = [float(node.get("font-size")) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert sizes and min(sizes) >= SMALLEST, f"{name} has text of {min(sizes)} pixels"


def with_other_digit(text, at):
    return text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1:]


def last_digit(text):
    return max(match.start() for match in re.finditer(r"\d", text))


def must_find(what, page_, files_, results_):
    assert charts.faults(page_, files_, results_), f"the check does not see {what}"


blocks = list(charts.BLOCK.finditer(page))
for block in blocks:
    at = block.start(2) + last_digit(block.group(2))
    must_find(f"a digit of the table {block.group(1)}", with_other_digit(page, at), files, results)
for name, text in files.items():
    body = text[:text.rindex("</text>")]
    changed = {**files, name: with_other_digit(text, last_digit(body))}
    must_find(f"a digit of {name}", page, changed, results)
    must_find(f"that {name} is missing", page, {k: v for k, v in files.items() if k != name}, results)
    unlinked = page.replace(f"charts/{name}", "charts/other.svg")
    must_find(f"that {name} is not linked", unlinked, files, results)
slower = copy.deepcopy(results)
for record in slower["h200"]["gemm"]:
    record["tflops"] -= 1
must_find("a result of another rate", page, files, slower)
must_find("a table that no result is behind", page + "\n| a | b |\n", files, results)
print(f"{len(blocks)} blocks, {len(files)} charts")
