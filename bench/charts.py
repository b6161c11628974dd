#!/usr/bin/env python3
"""Makes the charts of docs/charts and the tables of docs/performance.md from bench/results.

The document holds a block for each family, between `<!-- NAME: ... -->` and `<!-- /NAME -->`. What stands
between is written here, the rest of the document by hand. The test docs.performance fails where it differs.
    charts.py            writes the charts and the blocks
    charts.py --check    says what differs, and writes nothing
"""

import json
import pathlib
import re
import sys

from chart import attention, host_time, loops, machines, products, rows, states, workloads
from chart.svg import drawn

SOURCE = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = (
    machines.machines,
    products.gemm,
    products.gemm_shapes,
    products.few_blocks,
    products.dynamic_rows,
    products.default_stages,
    loops.loop_forms,
    loops.overlap,
    loops.tiles,
    states.states,
    workloads.workloads,
    attention.attention,
    attention.attention_heads,
    attention.attention_forms,
    attention.attention_split,
    rows.rows,
    host_time.launch,
    host_time.launch_idle,
    host_time.compile_time,
    products.host_gemm,
    attention.host_attention,
    rows.host_rows,
    attention.flash_attention_3,
)
RESULTS = ("h200", "few_blocks", "dynamic_rows", "default_stages", "loop_forms", "overlap", "tiles", "mamba", "workloads", "gemm_host", "gemm_one_core", "gemm_host_amx", "attention_host", "attention_host_amx", "rows_host", "limits", "unsampled")
BLOCK = re.compile(r"^<!-- (\w+): written by bench/charts\.py -->\n(.*?)^<!-- /\1 -->\n", re.M | re.S)


def read_results(source):
    return {
        name: json.loads((source / f"bench/results/{name}.json").read_text(encoding="utf-8"))
        for name in RESULTS
    }


def families_of(results):
    return [make(results) for make in FAMILIES]


def charts_of(families):
    """{file name: its text} of docs/charts."""
    return {f"{f.chart.name}.svg": drawn(f.chart)[0] for f in families if f.chart}


def table_text(table):
    lines = [table.head, ["---"] * len(table.head), *table.rows]
    assert all(len(line) == len(table.head) for line in lines), table.head
    return "".join("|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|\n" for line in lines)


def block_of(family):
    image = f"![{family.chart.alt}](charts/{family.chart.name}.svg)\n\n" if family.chart else ""
    return image + "\n".join(map(table_text, family.tables))


def written(page, families):
    """The document with its blocks written anew."""
    blocks = {f.name: block_of(f) for f in families}

    def block(match):
        whole, begin = match.group(0), match.start()
        new = blocks.get(match.group(1), match.group(2))
        return whole[: match.start(2) - begin] + new + whole[match.end(2) - begin :]

    return BLOCK.sub(block, page)


def faults_of_blocks(page, families):
    blocks, found = dict(BLOCK.findall(page)), []
    for f in families:
        if f.name not in blocks:
            found.append(f"no block '{f.name}'")
            continue
        lines, want = blocks[f.name].splitlines(), block_of(f).splitlines()
        found += [f"block '{f.name}': '{a}' should be '{b}'" for a, b in zip(lines, want) if a != b]
        if len(lines) != len(want):
            found.append(f"block '{f.name}' has {len(lines)} lines, not {len(want)}")
    known = {f.name for f in families}
    found += [f"block '{name}' is of no family" for name in blocks if name not in known]
    rest = BLOCK.sub("", page).splitlines()
    return found + [f"a table outside the blocks: '{line}'" for line in rest if line.startswith("|")]


def faults(page, charts, results):
    """What is not as the results have it, in the document and in {file name: text} of docs/charts."""
    families = families_of(results)
    found, wanted = faults_of_blocks(page, families), charts_of(families)
    for name, text in wanted.items():
        if name not in charts:
            found.append(f"{name} is not there")
        elif charts[name] != text:
            found.append(f"{name} is not what the results make")
    found += [f"{name} is of no family" for name in charts if name not in wanted]
    return found + [f"{name} is not linked" for name in wanted if f"](charts/{name})" not in page]


def read_charts(source):
    return {
        path.name: path.read_text(encoding="utf-8") for path in sorted((source / "docs/charts").glob("*"))
    }


def main():
    page, results = SOURCE / "docs/performance.md", read_results(SOURCE)
    if "--check" not in sys.argv[1:]:
        families = families_of(results)
        (SOURCE / "docs/charts").mkdir(exist_ok=True)
        for name, text in charts_of(families).items():
            (SOURCE / "docs/charts" / name).write_text(text, encoding="utf-8")
        page.write_text(written(page.read_text(encoding="utf-8"), families), encoding="utf-8")
    charts = read_charts(SOURCE)
    found = faults(page.read_text(encoding="utf-8"), charts, results)
    print("\n".join(found or [f"{len(charts)} charts and the tables are what bench/results makes"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
