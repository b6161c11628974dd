"""Time of the processor: launches, and the way from a program to a loaded kernel."""

from decimal import ROUND_HALF_UP, Decimal

from chart.family import Family, Table
from chart.svg import Bar, Chart, Group, Panel

LAUNCHES = (
    ("add_pointers_us", "add, raw pointers"),
    ("add_dlpack_us", "add, three DLPack tensors checked"),
    ("gemm_same_us", "product, three tensor maps, the same tensors"),
    ("gemm_4_places_us", "product, four sets of tensors in turn"),
    ("gemm_64_places_us", "product, other tensors each time"),
    ("attention_us", "attention: maps, divisors, claims"),
)


def hundredths(us):
    """Of a difference of figures with three digits: halves go up."""
    return str(Decimal(f"{us:.6f}").quantize(Decimal("0.01"), ROUND_HALF_UP))


def launch_panel(number, run):
    def bar(who, key):
        over = f" (+{hundredths(run[key] - run['raw_us'])})"
        return [Bar(who, run[key], f"{hundredths(run[key])} us{over}")]

    groups = [Group(name, bar("ours", key)) for key, name in LAUNCHES]
    groups.append(Group("raw launch that depends on none", bar("the driver", "raw_plain_us")))
    title = f"Run {number}, microseconds a launch; less is better"
    limit_name = f"raw dependent launch: {hundredths(run['raw_us'])} us; in brackets what is added to it"
    return Panel(title, "us", groups, run["raw_us"], limit_name, False)


def launch(results):
    runs = results["h200"]["launch"]["runs"]
    chart = Chart(
        "launch",
        "Cost of a launch on an H200's host",
        "Microseconds of queueing a launch: ours for six kinds of arguments, and the raw call; two runs",
        [launch_panel(number, run) for number, run in enumerate(runs, 1)],
    )
    head, lines = ["launch"], []
    for number in range(1, len(runs) + 1):
        head += [f"run {number}", f"run {number}, over the raw call"]
    names = (
        *LAUNCHES,
        ("raw_us", "raw dependent launch"),
        ("raw_plain_us", "raw launch that depends on none"),
    )
    for key, name in names:
        line = [name]
        for run in runs:
            over = "" if key == "raw_us" else f"+{hundredths(run[key] - run['raw_us'])} us"
            line += [f"{hundredths(run[key])} us", over]
        lines.append(line)
    return Family("launch", chart, [Table(head, lines)])


def launch_idle(results):
    idle = results["unsampled"]["launch_idle"]
    panels = [
        Panel(
            "Nanoseconds a launch; less is better",
            "ns",
            [Group(r["name"], [Bar("ours", r["ns"], f"{r['ns']} ns")]) for r in idle["rows"]],
        ),
        Panel(
            "Instructions a launch; less is better",
            "instructions",
            [
                Group(r["name"], [Bar("ours", r["instructions"], f"{r['instructions']}")])
                for r in idle["rows"]
            ],
        ),
    ]
    chart = Chart(
        "launch_idle",
        "The library's own part of a launch",
        f"Nanoseconds and instructions of a launch on a driver that does nothing, {idle['processor']}",
        panels,
    )
    lines = [
        [r["name"], f"{r['driver_calls']} and the launch", str(r["instructions"]), f"{r['ns']} ns"]
        for r in idle["rows"]
    ]
    return Family(
        "launch_idle", chart, [Table(["launch", "calls of the driver", "instructions", "time"], lines)]
    )


STAGES = (
    ("plan", "plan"),
    ("lower", "lower"),
    ("generate.emit", "emit LLVM IR"),
    ("generate.optimise", "optimise"),
    ("generate.codegen", "select instructions"),
)
STEPS = (
    ("open_ms", "open the library"),
    ("build_ms", "build the program"),
    ("compile_ms", "compile to PTX"),
    ("load_ms", "`tl_kernel_load`"),
    ("prepare_ms", "`tl_kernel_prepare`"),
    ("prepare_in_driver_ms", "of which the driver's `cuModuleLoadDataEx`"),
    ("first_process_prepare_ms", "`tl_kernel_prepare` of PTX that the driver does not know"),
)


def milliseconds(name, ms, digits=2):
    return Group(name.replace("`", ""), [Bar("ours", ms, f"{ms:.{digits}f} ms")])


def product_in_a_warm_process(results):
    totals, budget = (
        results["h200"]["compile"]["total_ms"],
        results["limits"]["budgets"]["gpu_program_to_kernel_ms"],
    )
    groups = [milliseconds(f"run {i}", ms, 1) for i, ms in enumerate(totals, 1)]
    title = "GPU product 128x256x64, program to loaded kernel, warm process"
    lines = [[f"run {i}", f"{ms:.1f} ms", f"{ms / budget:.2f}"] for i, ms in enumerate(totals, 1)]
    table = Table(["GPU product, warm process", "ours", f"of the budget of {budget} ms"], lines)
    return Panel(title, "ms", groups, budget, f"budget: {budget} ms", False), table


def product_in_a_new_process(results):
    fresh = results["h200"]["fresh_process"]
    groups = [milliseconds(name, fresh[key]) for key, name in STEPS[:5]]
    lines = [[name, f"{fresh[key]:.{2 if fresh[key] < 100 else 1}f} ms"] for key, name in STEPS]
    table = Table(["GPU product, new process", "ours"], lines)
    return Panel("The same in a new process, of PTX that the driver knows", "ms", groups), table


def host_product(results):
    host, budgets = results["gemm_host"], results["limits"]["budgets"]
    stages, total = host["compile"]["stages_ms"], host["compile"]["program_to_kernel"]["median_s"] * 1e3
    budget, most = budgets["host_program_to_kernel_ms"], budgets["host_added_mb"]
    groups = [milliseconds("in all", total, 1), *(milliseconds(name, stages[key]) for key, name in STAGES)]
    title = "Host product with bias and ReLU, program to loaded kernel, warm process"
    added = host["memory"]["added_bytes"] / 1e6
    lines = [["in all", f"{total:.1f} ms", f"{total / budget:.2f} of {budget} ms"]]
    lines += [[f"of which {name}", f"{stages[key]:.2f} ms", ""] for key, name in STAGES]
    lines += [["memory that the first one adds", f"{added:.1f} MB", f"{added / most:.2f} of {most} MB"]]
    table = Table(["host product, warm process", "ours", "of the budget"], lines)
    return Panel(title, "ms", groups, budget, f"budget: {budget} ms", False), table


def compile_time(results):
    parts = [part(results) for part in (product_in_a_warm_process, product_in_a_new_process, host_product)]
    chart = Chart(
        "compile",
        "From program to loaded kernel",
        "Milliseconds from a program to a loaded kernel: a GPU product in a warm and in a new process, "
        "a host product by stages",
        [panel for panel, _ in parts],
    )
    return Family("compile", chart, [table for _, table in parts])
