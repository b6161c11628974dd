"""Row programs, on a GPU and on the host."""

from chart.family import Family, Table, bars, figures
from chart.svg import Chart, Group, Panel

ROWS = {
    "softmax": "softmax",
    "layernorm": "layer norm",
    "rmsnorm": "rms norm",
    "residual": "rms norm of a sum, which is stored too",
    "rotary": "rotary embedding, 64 heads of 128",
    "add": "add",
}


def rows(results):
    data, groups, lines = results["h200"]["rows"], [], []
    limit = data["copy_gb_per_s"]
    for program, name in ROWS.items():
        records = [r for r in data["records"] if r["program"] == program]
        ours = max(r["gb_per_s"] for r in records if r["who"].startswith("ours"))
        torch = next((r["gb_per_s"] for r in records if r["who"] == "torch"), None)
        rates = {"ours": ours, "PyTorch": torch, "copy": limit}
        groups.append(Group(name, bars("GB/s", rates)))
        ratio, fraction = figures(ours / torch if torch else None, digits=2), figures(ours / limit, digits=3)
        lines.append([name, *figures(*rates.values()), *ratio, *fraction])
    alt = "GB/s of row programs on an H200: ours, PyTorch and a copy"
    limit_name = f"limit: {limit:.0f} GB/s, the copy rate"
    panel = Panel(f"f16, {data['rows']} x {data['cols']}", "GB/s", groups, limit, limit_name)
    chart = Chart("rows", "Row programs on an H200", alt, [panel])
    head = ["program", "ours", "PyTorch", "copy", "ratio to PyTorch", "of the copy rate"]
    return Family("rows", chart, [Table(head, lines)])


def host_rows(results):
    panels, lines = [], []
    for r in results["rows_host"]["rows"]:
        name = f"{ROWS[r['name']]} {r['shape'].replace('x', ' x ')}"
        rates = {"ours": r["ours"]["gb_per_s"], "memcpy": r["memcpy"]["gb_per_s"]}
        limit, group = rates["memcpy"], Group(ROWS[r["name"]], bars("GB/s", rates, 1))
        panels.append(Panel(name, "GB/s", [group], limit, f"limit: {limit:.1f} GB/s, memcpy beside it"))
        fraction = figures(r["ours_over_memcpy"], digits=2)
        lines.append([name, *figures(*rates.values(), digits=1), *fraction])
    alt = "GB/s of softmax and layer norm on two cores beside memcpy"
    chart = Chart("host_rows", "Row programs on the host", alt, panels)
    return Family("host_rows", chart, [Table(["program", "ours", "memcpy", "of memcpy, the limit"], lines)])
