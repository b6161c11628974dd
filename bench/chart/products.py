"""Matrix products, on a GPU and on the host."""

import math

from chart.family import Family, Table, bars, counted, fastest, figures, limit_of, limit_text
from chart.svg import Chart, Group, Panel

DTYPES = {"fp16": "f16", "bf16": "bf16", "fp8": "e4m3", "int8": "i8"}

PEERS = (
    ("cuBLAS", ("cublas_nt", "cublas_nn", "scaled_mm", "int_mm")),
    ("cuBLASLt", ("cublaslt",)),
    ("Triton", ("triton",)),
)


class Product:
    """The records of one product: ours and each peer at its fastest."""

    def __init__(self, records, limits):
        self.records, shape = records, records[0]["shape"]
        self.dtype = records[0]["dtype"]
        self.limit = limit_of(limits, self.dtype)
        self.ours = fastest(records, ["ours"])
        self.peers = {name: fastest(records, prefixes) for name, prefixes in PEERS}
        name = records[0]["wl"].split("_")[0].replace("big", "")
        self.name = f"{name} {DTYPES[self.dtype]}".strip()
        self.sizes = f"{shape['m']} x {shape['n']} x {shape['k']}"
        self.label = f"{self.name} {self.sizes}"

    def ratio(self, field="ms"):
        ours = fastest(self.records, ["ours"], field)
        theirs = fastest([r for r in self.records if not r["peer"].startswith("ours")], [""], field)
        return theirs[field] / ours[field]

    def rates(self):
        return {who: r["tflops"] if r else None for who, r in {"ours": self.ours, **self.peers}.items()}

    def group(self):
        return Group(f"{self.name}\n{self.sizes}", bars("TFLOP/s", self.rates()))

    def row(self):
        ratios = figures(self.ratio(), self.ratio("ms_sustained"), digits=3)
        fraction = figures(self.ours["tflops"] / self.limit, digits=2)
        return [self.label, *figures(*self.rates().values()), *ratios, *fraction]


def products_of(records, limits):
    names = list(dict.fromkeys(r["wl"] for r in records))
    return [Product([r for r in records if r["wl"] == name], limits) for name in names]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def gemm(results):
    h200, limits = results["h200"], results["limits"]
    products = products_of(h200["gemm"], limits)
    ampere = products_of(h200["ampere_form"]["gemm"], limits)
    two_bytes = [p for p in products if p.limit == limits["h200"]["tflops_16_bit"]]
    one_byte = [p for p in products if p not in two_bytes]
    panels = [
        Panel(title, "TFLOP/s", [p.group() for p in chosen], chosen[0].limit, limit_text(chosen[0].limit))
        for title, chosen in (
            ("f16 and bf16, f32 sums", two_bytes),
            ("e4m3 with bf16 results, i8 with i32 results", one_byte),
            ("Ampere form (target sm_90), a run of its own", ampere),
        )
    ]
    chart = Chart(
        "gemm",
        "Matrix products on an H200",
        "TFLOP/s of matrix products on an H200: ours, cuBLAS, cuBLASLt and Triton, "
        "with the fraction of the data sheet's limit",
        panels,
    )
    peers = [who for who, _ in PEERS]
    head = ["product", "ours", *peers, "ratio to the fastest", "ratio, sustained", "of the limit"]
    rows = [p.row() for p in products]
    listed = [p for p in products if p.name.startswith("M") and p.dtype == "fp16"]
    means = [geometric_mean([p.ratio(field) for p in listed]) for field in ("ms", "ms_sustained")]
    what = f"geometric mean of {listed[0].name} to {listed[-1].name}"
    rows.insert(len(listed), [what, "", *("" for _ in peers), *figures(*means, digits=3), ""])
    form = [[f"{p.label}, target `sm_90`", *p.row()[1:]] for p in ampere]
    return Family("gemm", chart, [Table(head, rows), Table(["Ampere form", *head[1:]], form)])


def gemm_shapes(results):
    limit, groups, rows = limit_of(results["limits"], "fp16"), [], []
    for r in results["h200"]["gemm_shapes"]:
        work, ours = 2 * r["m"] * r["n"] * r["k"] / 1e9, {True: [], False: []}
        for who, ms in r["ms"].items():
            if who != "cublas":
                ours[who.endswith("known sizes")].append(work / ms)
        known, any_, theirs = max(ours[True]), max(ours[False]), work / r["ms"]["cublas"]
        sizes = f"{r['m']} x {r['n']} x {r['k']}"
        rates = {"ours": known, "any sizes": any_, "cuBLAS": theirs}
        groups.append(Group(f"{sizes}\n{r['layout']}", bars("TFLOP/s", rates)))
        ratio, fraction = figures(r["ratio"], digits=3), figures(r["tflops"] / limit, digits=2)
        rows.append([f"{sizes} {r['layout']}", *figures(*rates.values()), *ratio, *fraction])
    alt = "TFLOP/s of f16 products of many shapes on an H200: ours for known and for any sizes, and cuBLAS"
    title = "f16, f32 sums; ours for these sizes and for any; n: stored as it is, t: transposed"
    panel = Panel(title, "TFLOP/s", groups, limit, limit_text(limit))
    chart = Chart("gemm_shapes", "Matrix products of other shapes on an H200", alt, [panel])
    head = ["product", "ours, sizes known", "ours, any sizes", "cuBLAS", "ratio", "of the limit"]
    return Family("gemm_shapes", chart, [Table(head, rows)])


def few_blocks(results):
    limits, rows = results["limits"], []
    ratios = ("ratio", "picked_ratio", "weights_ratio", "weights_picked_ratio")
    for r in results["few_blocks"]["rows"]:
        flops = 2 * r["m"] * r["n"] * r["k"]
        floor = max(r["reading_ms"], flops / limit_of(limits, "fp16") * 1e-9)
        ours, (tile, how) = r["ms"][r["best"]], r["best"].split(" ", 1)
        lt = min((who for who in r["ms"] if who.startswith("cublaslt")), key=r["ms"].get)
        times = [1e3 * ms for ms in (ours, r["ms"][r["picked"]], *(r["ms"][who] for who in ("cublas", lt, "triton")))]
        rows.append(
            [
                f"{r['m']} x {r['n']} x {r['k']}",
                *figures(*times, digits=1),
                tile,
                how.partition(" in ")[2] or "1",
                *figures(*(r[key] for key in ratios), digits=3),
                *figures(floor / ours, digits=2),
            ]
        )
    head = ["product", "ours, us", "the model's, us", "cuBLAS, us", "cuBLASLt", "Triton", "tile", "parts", "ratio", "the model's"]
    head += ["constant weights", "the model's", "of the limit"]
    few = [r for r in results["few_blocks"]["rows"] if r["name"].startswith("rows")]
    means = [geometric_mean([r[key] for r in few]) for key in ratios]
    rows.append(["geometric mean of those of few rows", *[""] * 7, *figures(*means, digits=3), ""])
    return Family("few_blocks", None, [Table(head, rows)])


def dynamic_rows(results):
    ways = ("parts", "eight", "measured", "one", "known")
    rows = []
    for r in results["dynamic_rows"]["rows"]:
        times = [1e3 * r["ms"][who] for who in ("parts", "cublas")]
        ratios = [r["ratio"].get(who) for who in ways]
        rows.append([f"{r['m']} x {r['n']} x {r['k']}", *figures(*times, digits=1), *figures(*ratios, digits=2)])
    means = [geometric_mean([r["ratio"][who] for r in results["dynamic_rows"]["rows"]]) for who in ways]
    rows.append(["geometric mean", "", "", *figures(*means, digits=3)])
    head = ["product", "four parts, us", "cuBLAS, us", "ratio", "eight parts", "eight, measured", "one", "for these rows"]
    return Family("dynamic_rows", None, [Table(head, rows)])


def default_stages(results):
    rows = []
    for r in results["default_stages"]["rows"]:
        for who, ms in r["ms"].items():
            tile, _, form = who.partition(" ")
            planned, four = r["plans"][who], r["plans"][f"{tile} four"]
            if form != "default" or planned.startswith("4 stages"):
                continue
            other = r["ms"][f"{tile} four"]
            times = figures(1e3 * ms, 1e3 * other, digits=1)
            sizes = f"{r['m']} x {r['n']} x {r['k']}"
            rows.append([sizes, tile, planned, times[0], four, times[1], *figures(ms / other, digits=2)])
    head = ["product", "tile", "planned", "us", "with four", "us", "ratio of times"]
    return Family("default_stages", None, [Table(head, rows)])


# Type, whose samples of ours, ratio, beside what, what the limit is.
YARDSTICKS = (
    ("f32", "f32", "f32_over_openblas", "OpenBLAS", "the micro-kernel alone"),
    ("bf16", "bf16_beside_onednn", "bf16_over_onednn", "oneDNN", "twice that in f32"),
    ("i8", "i8_beside_onednn", "i8_over_onednn", "oneDNN", "four times that in f32"),
)


def host_gemm(results):
    limits, panels, lines = results["limits"]["host"], [], []
    for name, with_limit in (("gemm_one_core", True), ("gemm_host_amx", False)):
        host_products(results[name], limits if with_limit else None, panels, lines)
    alt = "GFLOP/s of f32 products beside OpenBLAS and of bf16 and i8 products beside oneDNN"
    chart = Chart("host_gemm", "Matrix products on the host", alt, panels)
    return Family(
        "host_gemm", chart, [Table(["product", "ours", "yardstick", "ratio", "of the limit"], lines)]
    )


def host_products(data, limits, panels, lines):
    cores = data["machine"]["cores"]
    for kind, beside, key, peer, what in YARDSTICKS:
        limit, groups = limits and cores * limits[f"{kind}_gflops_per_core"], []
        for r in data["gemm"]:
            if key not in r:  # measured where there was no such peer
                continue
            ours, ratio, shape = r[beside]["gflops"], r[key], r["shape"].replace("x", " x ")
            theirs = ours / ratio  # of the samples beside ours
            groups.append(Group(shape, bars("GFLOP/s", {"ours": ours, peer: theirs})))
            fractions = figures(ratio, limit and ours / limit, digits=2)
            lines.append([f"{kind} {shape}, {counted(cores)}", *figures(ours), f"{peer} {theirs:.0f}", *fractions])
        limited = (limit, f"limit: {limit} GFLOP/s, {what}") if limit else ()
        panels.append(Panel(f"{kind}, {counted(cores)}", "GFLOP/s", groups, *limited))
