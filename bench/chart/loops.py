"""Programs under other forms of loops than one pipelined loop, and products beside other work, beside PyTorch; tiles that
threads read, by their own copies and by the copy engine."""

import statistics

from chart.family import Family, Table, bars, figures, limit_of, limit_text
from chart.svg import Chart, Group, Panel

WORDS = {
    "serial": "serial loop",
    "pipelined": "pipelined loop",
    "nested": "loop in a loop",
    "lone": "no loop",
    "transpose": "transposition, f32",
}


def loop_forms(results):
    data = results["loop_forms"]["rows"]
    tensor, copy = limit_of(results["limits"], "fp16"), results["h200"]["rows"]["copy_gb_per_s"]
    groups, rows = {"TFLOP/s": [], "GB/s": []}, []
    for r in data:
        middle = {who: statistics.median(ms) for who, ms in r["ms"].items()}
        theirs = middle.pop("torch")
        ours = min(middle.values())
        m, n, k, e = r["m"], r["n"], r["k"], r["experts"]
        of_memory = r["form"] in ("lone", "transpose")
        work = (8 * m * n if not k else 2 * (m * n + k * (m + n))) / 1e6 if of_memory else 2 * m * n * k * e / 1e9
        unit, limit, digits = ("GB/s", copy, 0) if of_memory else ("TFLOP/s", tensor, 0)
        sizes = f"{m} x {n}" + (f" x {k}" if k else "") + (f", {e} times" if e > 1 else "")
        rates = {"ours": work / ours, "PyTorch": work / theirs}
        groups[unit].append(Group(f"{WORDS[r['form']]}\n{sizes}", bars(unit, rates, digits)))
        ratio, fraction = figures(theirs / ours, digits=3), figures(work / ours / limit, digits=2)
        cells = [f"{rate:.0f} {unit}" for rate in rates.values()]
        rows.append([f"{WORDS[r['form']]}, {sizes}", *cells, *ratio, *fraction])
    panels = [
        Panel("f16 products, f32 sums", "TFLOP/s", groups["TFLOP/s"], tensor, limit_text(tensor)),
        Panel("bound by memory", "GB/s", groups["GB/s"], copy, f"limit: {copy:.0f} GB/s, best copy"),
    ]
    alt = "rates of products in serial, nested and no loops, and of a transposition, on an H200 beside PyTorch"
    chart = Chart("loop_forms", "Other forms of loops on an H200", alt, panels)
    return Family("loop_forms", chart, [Table(["program", "ours", "PyTorch", "ratio", "of the limit"], rows)])


WORK = {"alone": "product alone", "decoded": "i8 operand decoded into registers", "scaled": "product scaled, then added"}
SIZE, QUERIES, KEYS, WIDTH = 4096, 16896, 4096, 64


def overlap(results):
    data = results["overlap"]["rows"]
    tensor = limit_of(results["limits"], "fp16")
    groups, products, chains = [], [], []
    for r in data:
        middle = {who: statistics.median(ms) for who, ms in r["ms"].items()}
        tile, ours = f"{r['rows']}x{r['columns']}", middle["ours"]
        if r["form"] == "chain":
            work = 2 * QUERIES * KEYS * WIDTH * 2 + 2 * QUERIES * (KEYS // r["columns"]) * WIDTH * WIDTH
            chains.append([f"tiles of {tile}", f"{work / 1e9 / ours:.0f} TFLOP/s", *figures(work / 1e9 / ours / tensor, digits=2)])
            continue
        work = 2 * SIZE ** 3 / 1e9
        rates = {"ours": work / ours, "PyTorch": work / middle["torch"]}
        groups.append(Group(f"{WORK[r['form']]}\n{tile}", bars("TFLOP/s", rates, 0)))
        cells = [f"{rate:.0f} TFLOP/s" for rate in rates.values()]
        products.append([f"{WORK[r['form']]}, tiles of {tile}", *cells, *figures(middle["torch"] / ours, digits=3),
                         *figures(work / ours / tensor, digits=2)])
    alt = "rates of products beside work of the threads, on an H200 beside PyTorch's product of operands that are ready"
    chart = Chart("overlap", "Products beside work of the threads on an H200", alt,
                  [Panel("f16 products of 4096 cubed", "TFLOP/s", groups, tensor, limit_text(tensor))])
    return Family("overlap", chart, [
        Table(["program", "ours", "PyTorch's product alone", "ratio", "of the limit"], products),
        Table(["three products with exponentials between", "ours", "of the limit"], chains)])


FORMS = {"gemv": "product with a vector", "column_sums": "sums of columns", "stream": "a * b + a", "transpose": "transposition, f32",
         "product_f16": "f16, sums in f32", "product_f64": "f64"}

MEMORY = 4800  # GB/s, NVIDIA H200 data sheet


def tiles(results):
    rows, products = [], []
    for r in results["tiles"]["rows"]:
        middle = {who: statistics.median(ms) for who, ms in r["ms"].items()}
        form, tile, threads, stages, size = r["name"].rsplit("_", 4)
        what = f"{FORMS[form]}, {size} rows, tiles of {tile}, {threads} threads, {stages} stages"
        ratio = figures(middle["threads"] / middle["engine"], digits=3)
        if "operations" in r:
            products.append([what, *(f"{r['operations'] / 1e9 / middle[who]:.1f} TFLOP/s" for who in ("threads", "engine")), *ratio])
            continue
        rates = [r["bytes"] / 1e6 / middle[who] for who in ("threads", "engine")]
        rows.append([what, *(f"{rate:.0f} GB/s" for rate in rates), *ratio, *figures(rates[0] / MEMORY, digits=2)])
    return Family("tiles", None, [
        Table(["program", "threads", "copy engine", "ratio", "threads, of 4.8 TB/s"], rows),
        Table(["product by `mma`", "threads", "copy engine", "ratio"], products)])
