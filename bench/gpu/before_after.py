#!/usr/bin/env python3
"""All programs of the benchmarks by two builds of the library, side by side in one process: the one that is measured, and
another as "before". Each pair of graphs is replayed in random order, in short bursts after a rest.

  before_after.py LIBRARY BINDINGS [--json FILE] [--only SCRIPT,SCRIPT] [--rounds 7]

LIBRARY is the other build's libtilegen.so, BINDINGS the folder with its Python package. Peers are launched once and not timed."""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import random
import statistics
import sys
import time
import types

import torch

HERE = pathlib.Path(__file__).parent
PRODUCTS = {"M0": (4096, 1024, 8192), "M1": (4096, 8192, 8192), "M2": (4096, 28672, 8192), "M3": (4096, 8192, 28672),
            "M4": (8192, 1024, 8192), "M5": (8192, 8192, 8192), "M6": (8192, 28672, 8192), "M7": (8192, 8192, 28672)}
SCRIPTS = ("gemm_shapes", "attention_shapes", "attention_forms", "attention_split", "loop_forms", "overlap", "tiles", "rows", "mamba",
           "attention_backward", "narrow_attention", "block_scaled_gemm", "latent_attention", "paged_decode", "int4_gemm", "sparse_gemm",
           "grouped_gemm", "conv2d", "linear_attention", "sort_rows")


def before(library, bindings):
    """The Python package of the other build, which no import finds."""
    os.environ["TILEGEN_LIBRARY"], own = library, os.environ.get("TILEGEN_LIBRARY")
    sys.path.insert(0, bindings)
    import tilegen as package
    sys.path.pop(0)
    for name in [n for n in sys.modules if n.split(".")[0] == "tilegen"]:
        del sys.modules[name]
    del os.environ["TILEGEN_LIBRARY"]
    if own:
        os.environ["TILEGEN_LIBRARY"] = own
    return package


class Turn:
    """Which build launches; whether one did, and whether the other has the program."""
    old = False
    launched = False
    has_both = True


class Launch:
    def __init__(self, new, old):
        self.new, self.old = new, old

    def __call__(self):
        Turn.launched = True
        Turn.has_both = self.old is not None
        (self.old if Turn.old else self.new)()


class Kernel:
    """A kernel of both builds; `old` is None where the other refuses the program."""

    def __init__(self, new, old):
        self.new, self.old = new, old

    def load(self):
        return Kernel(self.new.load(), self.old and self.old.load())

    def prepare(self):
        return Kernel(self.new.prepare(), self.old and self.old.prepare())

    def bind(self, *arguments, **options):
        return Launch(self.new.bind(*arguments, **options), self.old and self.old.bind(*arguments, **options))

    def __call__(self, *arguments, **options):
        return self.new(*arguments, **options)

    def __getattr__(self, name):
        return getattr(self.new, name)


def compile_both(package, other):
    own = package.Program.compile

    def both(self, target=None, **options):
        if target != "cuda":
            return own(self, target, **options)
        new = own(self, target, **options)
        text = str(self)
        for spelled in (text, text.replace(" constant\n", " readonly\n")):  # a word that the other may not know
            try:
                return Kernel(new, other.Program.parse(spelled).compile(target, **options))
            except other.Error as error:
                refused = str(error)
        print(f"  before: {refused.splitlines()[0][:150]}", flush=True)
        return Kernel(new, None)
    package.Program.compile = both


class Measured:
    """Pairs of graphs in place of graphs, and what their replays took."""

    def __init__(self, rounds):
        self.rows, self.case, self.script, self.rounds = [], "", "", rounds

    def captured(self, fn, sets, launches):
        import timing_of_one
        Turn.launched = Turn.old = False
        fn(0)
        torch.cuda.synchronize()
        if not Turn.launched:
            return None
        return self.pair(lambda: timing_of_one.captured(fn, sets, launches))

    @staticmethod
    def pair(capture):
        """Graphs of the measured build and, where it has the program, of the other."""
        graphs = [capture()]
        if Turn.has_both:
            Turn.old = True
            graphs.append(capture())
            Turn.old = False
        return graphs

    def replay_pair(self, who, pair, launches):
        import timing_of_one
        names = ["new", "before"][:len(pair)]
        row = {"script": self.script, "case": self.case, "program": who, "ms": {n: [] for n in names}}
        for _ in range(self.rounds):
            for n in random.sample(range(len(pair)), len(pair)):
                time.sleep(0.01)
                if self.script == "rows":
                    timing_of_one.replay_ms(pair[n], launches)
                row["ms"][names[n]].append(timing_of_one.replay_ms(pair[n], launches))
        self.rows.append(row)
        return row["ms"]["new"]

    def samples(self, graphs, launches, rounds, watch):
        times = {}
        for who, pair in graphs.items():
            with watch(who):
                times[who] = self.replay_pair(who, pair, launches) if pair else [1.0] * rounds
        return times


def executed(name, *arguments):
    """The script as a module; rows.py alone is not run by that."""
    spec = importlib.util.spec_from_file_location(name if name == "rows" else "__main__", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.argv = [name, *arguments]
    spec.loader.exec_module(module)
    return module


def run_script(name, measured, rounds):
    import contest
    import table
    measured.script = name

    def main(cases, measure):
        for case, what in cases.items():
            measured.case = case
            try:
                measure(case, what, rounds)
            except Exception as refused:  # noqa: BLE001, the others are measured all the same
                print(f"{name} {case}: {str(refused)[:200]}", flush=True)
            torch.cuda.empty_cache()
    table.main = main
    contest.main = lambda cases, _: main(cases, contest.measure)
    if name == "attention_split":  # its cases are those of its command line
        for case in executed(name, "--only", "^$").SHAPES:
            measured.case = case
            executed(name, "--only", f"^{case}$", "--rounds", str(rounds))
        return
    module = executed(name)
    if name != "rows":
        return
    torch.manual_seed(1)
    with torch.cuda.stream(torch.cuda.Stream()):
        found, sets, y = module.cases(16384, 8192)
        for case in found:
            if not case.who.startswith("ours"):
                continue
            measured.case = case.name
            case.fn(0)
            torch.cuda.synchronize()
            assert case.check() <= case.tolerance, case.name
            pair = measured.pair(lambda fn=case.fn: module.capture(fn, sets, 2 * sets))
            measured.replay_pair(case.who, pair, 2 * sets)


def run_products(measured, rounds):
    import ours
    measured.script = "gemm"
    cases = {f"{name} fp16": (shape, "fp16") for name, shape in PRODUCTS.items()}
    cases |= {f"M5 {kind}": (PRODUCTS["M5"], kind) for kind in ("bf16", "fp8", "int8")}
    make = {"fp16": lambda *s: torch.randn(*s, device="cuda").half(), "bf16": lambda *s: torch.randn(*s, device="cuda").bfloat16(),
            "fp8": lambda *s: torch.randn(*s, device="cuda").to(torch.float8_e4m3fn),
            "int8": lambda *s: torch.randint(-8, 8, s, device="cuda", dtype=torch.int8)}
    result = {"fp16": torch.half, "bf16": torch.bfloat16, "fp8": torch.bfloat16, "int8": torch.int32}
    for case, ((m, n, k), kind) in cases.items():
        measured.case = case
        sets = [{"A": make[kind](m, k), "W": make[kind](n, k), "Wkn": make[kind](k, n),
                 "out": torch.empty(m, n, device="cuda", dtype=result[kind])} for _ in range(2)]
        launches = max(2, int(0.008 / (2.0 * m * n * k / 7e14)))
        for who, fn in ours._gemm({"dtype": kind}, sets).items():
            measured.replay_pair(who, measured.captured(fn, len(sets), launches), launches)
        torch.cuda.empty_cache()


def best_of_each(rows):
    """{(script, case): ratio of the best programs' medians}, before to new."""
    cases = {}
    for r in rows:
        best = cases.setdefault((r["script"], r["case"]), {})
        for who, times in r["ms"].items():
            best[who] = min(best.get(who, math.inf), statistics.median(times))
    return {case: (best["before"] / best["new"], best) for case, best in cases.items() if "before" in best}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("library")
    p.add_argument("bindings")
    p.add_argument("--json")
    p.add_argument("--only", default="gemm," + ",".join(SCRIPTS))
    p.add_argument("--rounds", type=int, default=7)
    a = p.parse_args()
    other = before(a.library, a.bindings)
    sys.path.insert(0, str(HERE))
    import timing
    sys.modules["timing_of_one"] = timing
    measured = Measured(a.rounds)
    both = type(sys)("timing")
    both.__dict__.update(timing.__dict__)
    both.captured, both.samples = measured.captured, measured.samples
    both.graphs_of_right = types.FunctionType(timing.graphs_of_right.__code__, both.__dict__)
    sys.modules["timing"] = both
    import tilegen
    compile_both(tilegen, other)
    for script in a.only.split(","):
        begin = time.time()
        try:
            run_products(measured, a.rounds) if script == "gemm" else run_script(script, measured, a.rounds)
        except Exception as failed:  # noqa: BLE001
            print(f"{script}: {type(failed).__name__} {str(failed)[:300]}", flush=True)
        print(f"{script}: {time.time() - begin:.0f} s", flush=True)
        if a.json:
            with open(a.json, "w", encoding="utf-8") as f:
                json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": measured.rows}, f)
    ratios = best_of_each(measured.rows)
    for (script, case), (ratio, best) in sorted(ratios.items(), key=lambda r: r[1][0]):
        print(f"{script:18} {case:34} before {best['before'] * 1e3:9.2f} us  new {best['new'] * 1e3:9.2f} us  ratio {ratio:.3f}")


main()
