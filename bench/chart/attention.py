"""Attention on a GPU."""

from chart.family import Family, Table, bars, counted, fastest, figures, limit_of, limit_text, of_length
from chart.svg import Chart, Group, Panel

PEERS = (
    ("cuDNN", ["sdpa_cudnn"]),
    ("Triton", ["triton"]),
    ("FlashAttention-2", ["sdpa_flash2"]),
    ("memory-efficient", ["sdpa_efficient"]),
)


def panel_of(title, groups, limit):
    return Panel(title, "TFLOP/s", groups, limit, limit_text(limit))


def attention(results):
    limit, groups, rows = limit_of(results["limits"], "fp16"), [], []
    records = [r for r in results["h200"]["attention"]["records"] if r["ok"]]
    for name in dict.fromkeys(r["wl"] for r in records):
        chosen = [r for r in records if r["wl"] == name]
        shape, ours = chosen[0]["shape"], fastest(chosen, ["ours"])
        peers = {who: fastest(chosen, prefixes) for who, prefixes in PEERS}
        label = of_length(shape["s"], shape["causal"], shape["b"])
        rates = {"ours": ours["tflops"], **{who: r["tflops"] for who, r in peers.items()}}
        groups.append(Group(label, bars("TFLOP/s", rates)))
        ratio = figures(min(r["ms"] for r in peers.values()) / ours["ms"], digits=3)
        fraction = figures(ours["tflops"] / limit, digits=2)
        rows.append([label, f"{ours['ms'] * 1e3:.1f} us", *figures(*rates.values()), *ratio, *fraction])
    alt = (
        "TFLOP/s of attention on an H200 by length: ours, cuDNN, Triton and PyTorch's FlashAttention-2 and "
        "memory-efficient attention"
    )
    panel = panel_of("f16, 32 heads of 128; by length", groups, limit)
    chart = Chart("attention", "Attention forward on an H200", alt, [panel])
    names = [who for who, _ in PEERS]
    head = ["length", "ours, time", "ours", *names, "ratio to the fastest", "of the limit"]
    return Family("attention", chart, [Table(head, rows)])


def attention_heads(results):
    limit, groups, rows = limit_of(results["limits"], "fp16"), [], []
    for r in results["h200"]["attention_shapes"]["rows"]:
        rates = {"ours": r["tflops"], "cuDNN": r["tflops"] / r["ratio"]}
        label = f"{r['heads']} heads of {r['dim']}"
        label += "" if r["heads"] == r["kv_heads"] else f", {r['kv_heads']} of keys"
        label += ", causal" if r["causal"] else ""
        groups.append(Group(label, bars("TFLOP/s", rates)))
        ratio, fraction = figures(r["ratio"], digits=3), figures(r["tflops"] / limit, digits=2)
        rows.append([label, r["best"], *figures(*rates.values()), *ratio, *fraction])
    alt = "TFLOP/s of attention at length 8192 on an H200 for heads of 64 to 256: ours and cuDNN"
    panel = panel_of("f16, length 8192", groups, limit)
    chart = Chart("attention_heads", "Attention with other heads on an H200", alt, [panel])
    table = Table(["heads", "tile", "ours", "cuDNN", "ratio", "of the limit"], rows)
    return Family("attention_heads", chart, [table])


def host_attention(results):
    panels, rows = [], []
    for name in ("attention_host", "attention_host_amx"):
        rows_of_host(results[name], panels, rows)
    alt = "GFLOP/s of attention on the host, ours and PyTorch's"
    chart = Chart("host_attention", "Attention forward on the host", alt, panels)
    return Family("host_attention", chart, [Table(["attention", "ours", "PyTorch", "ratio"], rows)])


def rows_of_host(data, panels, rows):
    cores = counted(data["machine"]["cores"])
    for kind in dict.fromkeys(r["dtype"] for r in data["rows"]):
        groups = []
        for r in (r for r in data["rows"] if r["dtype"] == kind):
            rates, label = {"ours": r["gflops"]["ours"], "PyTorch": r["gflops"]["torch"]}, f"heads of {r['dim']}, length {r['length']}"
            groups.append(Group(label, bars("GFLOP/s", rates)))
            rows.append([f"{kind}, {label}, {cores}", *figures(*rates.values()), *figures(r["ratio"], digits=2)])
        panels.append(Panel(f"{kind}, {cores}", "GFLOP/s", groups))


def form_label(r):
    if len(r["lengths"]) > 1:
        return f"{len(r['lengths'])} packed sequences" + (", causal" if r["causal"] else "")
    text = str(r["lengths"][0]) + (" causal" if r["causal"] else "")
    if r["window"]:
        left, right = r["window"]
        text += f", {left} keys before, {right} after" if right else f", the last {left + 1} keys"
    text += {"cap": ", a cap", "row_sums": ", sums of rows"}.get(r["name"], "")
    return text + ("" if r["dim"] == 128 else f", heads of {r['dim']}")


def attention_forms(results):
    limit, groups, rows = limit_of(results["limits"], "fp16"), [], []
    for r in results["h200"]["attention_forms"]["rows"]:
        ours, theirs, label = r["tflops"]["ours"], r["tflops"].get("flash"), form_label(r)
        rates = {"ours": ours, "FlashAttention-2": theirs}
        groups.append(Group(label, bars("TFLOP/s", rates)))
        fractions = figures(ours / theirs if theirs else None, ours / limit, digits=2)
        rows.append([label, f"{r['ms']['ours'] * 1e3:.0f} us", *figures(*rates.values()), *fractions])
    alt = (
        "TFLOP/s of attention with windows, a cap, sums of rows and packed sequences on an H200: ours and "
        "FlashAttention-2"
    )
    panel = panel_of("f16, 32 heads of 128 unless named", groups, limit)
    chart = Chart("attention_forms", "Other forms of attention on an H200", alt, [panel])
    head = ["form", "ours, time", "ours", "FlashAttention-2", "ratio", "of the limit"]
    return Family("attention_forms", chart, [Table(head, rows)])


def attention_split(results):
    limit, groups, rows = results["limits"]["h200"]["read_gb_per_s"], [], []
    for r in results["h200"]["attention_split"]["rows"]:
        gbs = dict(r["gbs"])
        theirs = {"cuDNN": gbs.pop("cudnn"), "FlashAttention-2": gbs.pop("flash")}
        ours = max(gbs, key=gbs.get)
        rates = {"ours": gbs[ours], **theirs}
        label = ", ".join(map(str, r["shape"]))
        groups.append(Group(label, bars("GB/s", rates)))
        ratio = figures(gbs[ours] / max(theirs.values()), digits=3)
        fraction = figures(gbs[ours] / limit, digits=2)
        rows.append([label, f"{r['ms'][ours] * 1e3:.1f} us", *figures(*rates.values()), *ratio, *fraction])
    alt = "GB/s of keys and values read by split attention on an H200: ours, cuDNN and FlashAttention-2"
    what = "batch, heads, heads of keys, queries, keys"
    panel = Panel(f"{what}; f16, heads of 128", "GB/s", groups, limit, f"limit: {limit} GB/s of reading")
    chart = Chart("attention_split", "Few queries against many keys on an H200", alt, [panel])
    head = [what, "ours, time", "ours", "cuDNN", "FlashAttention-2", "ratio to the fastest", "of the limit"]
    return Family("attention_split", chart, [Table(head, rows)])


def flash_attention_3(results):
    lines = []
    for r in results["unsampled"]["flash_attention_3"]["rows"]:
        theirs = f"{r['us']} us" if "us" in r else f"{r['tflops']} TFLOP/s"
        cudnn = f"{r['cudnn_tflops']} TFLOP/s" if "cudnn_tflops" in r else ""
        label = of_length(r["length"], r["causal"], r["batch"])
        lines.append([label, theirs, cudnn, *figures(r["ratio"], digits=2)])
    table = Table(["length", "FlashAttention-3", "cuDNN beside it", "ours over FlashAttention-3"], lines)
    return Family("flash_attention_3", None, [table])
