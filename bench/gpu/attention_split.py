#!/usr/bin/env python3
"""Attention of few queries to many keys, split over the keys, against torch's scaled_dot_product_attention, f16.

Every program is checked against float64 first. What counts is reading K and V once: GB/s of these, and the share of what the
memory gives. Each of our tiles is the same plain program, with so many parts; `passed`: what its kernels leave for each other is given
by tensors, not allocated by each launch.
  attention_split.py [--json FILE] [--only REGEX] [--rounds 7] [--peak 4600] [--parts N]
  attention_split.py --plans      without a device: schedules, and what ptxas says where there is one
"""
import argparse
import json
import math
import re
import shutil
import subprocess
import tempfile

import split_programs
import tilegen as tg
from programs import ceil_div

DIM = 128
BURST = 0.008  # seconds

# name -> batch, query heads, heads of keys and values, queries, keys
SHAPES = {"b1_32_8_q1_8k": (1, 32, 8, 1, 8192), "b1_32_8_q1_128k": (1, 32, 8, 1, 131072), "b8_32_8_q1_8k": (8, 32, 8, 1, 8192),
          "b1_32_32_q16_16k": (1, 32, 32, 16, 16384), "b4_64_8_q1_32k": (4, 64, 8, 1, 32768)}
# Tile of queries and keys, threads, stages.
TILES = [((64, 128), 128, 2), ((64, 64), 128, 4), ((64, 64), 128, 5), ((16, 128), 128, 3), ((16, 64), 128, 6)]


def name_of(tile, threads, stages):
    return f"{tile[0]}x{tile[1]} {stages}"


def program_of(tile, threads, stages, group, passed=False):
    return split_programs.attention_split(tg.f16, DIM, tile, threads, stages, group=group, passed=passed)


def parts_of(shape, tile, processors):
    batch, heads, kv_heads, queries, keys = shape
    tiles = batch * kv_heads * ceil_div(queries * (heads // kv_heads), tile[0])
    return split_programs.split_parts(tiles, ceil_div(keys, tile[1]), processors)


def reference(torch, s, group):
    """The last two heads of keys of the last batch, in float64."""
    rows = []
    for h in range(s["q"].shape[1] - 2 * group, s["q"].shape[1]):
        k, v = s["k"][-1, h // group].double(), s["v"][-1, h // group].double()
        rows.append(torch.softmax(s["q"][-1, h].double() @ k.t() / math.sqrt(DIM), -1) @ v)
    return torch.stack(rows)


def contenders(torch, sets, shape, parts, processors):
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    batch, heads, kv_heads, queries, keys = shape
    group = heads // kv_heads

    def theirs(backend):
        def run(i):
            with sdpa_kernel(backend):
                sets[i]["out"] = F.scaled_dot_product_attention(*(sets[i][x] for x in "qkv"), enable_gqa=group > 1)
            return sets[i]["out"]
        return run
    found = {"flash": theirs(SDPBackend.FLASH_ATTENTION), "cudnn": theirs(SDPBackend.CUDNN_ATTENTION)}
    rows, scale = group * queries, math.log2(math.e) / math.sqrt(DIM)
    packed = lambda t: t.view(batch, kv_heads, rows, DIM)
    for tile, threads, stages, passed in [(*t, False) for t in TILES] + [(*TILES[0], True)]:
        n = parts or parts_of(shape, tile, processors)
        kernel = program_of(tile, threads, stages, group, passed).compile("cuda").load().prepare()
        sizes, between = [None] * 4 + [n], []
        if passed:
            between = [torch.empty(batch * kv_heads, n, rows, *width, device="cuda", dtype=torch.float32) for width in ([DIM], [])]
        launches = [kernel.bind(*sizes, scale, packed(s["q"]), s["k"], s["v"], packed(s["ours"]), *between) for s in sets]

        def run(i, launches=launches):
            launches[i]()
            return sets[i]["ours"]
        found[f"{name_of(tile, threads, stages)} / {n}{' passed' if passed else ''}"] = run
    return found


def measure(torch, name, shape, a):
    from timing import captured, medians, rotations, samples
    from watch import watched
    batch, heads, kv_heads, queries, keys = shape
    group = heads // kv_heads
    nbytes = 2 * 2 * batch * kv_heads * keys * DIM
    sizes = {"q": (heads, queries), "k": (kv_heads, keys), "v": (kv_heads, keys), "ours": (heads, queries)}
    sets = [{x: torch.randn(batch, *size, DIM, device="cuda", dtype=torch.float16) for x, size in sizes.items()}
            for _ in range(rotations(nbytes, 16))]
    want = reference(torch, sets[0], group)
    launches = max(2, len(sets), int(BURST / max(nbytes / 4e12, 1e-5)))
    watch = lambda who: watched(f"program attention_split, {name} {who}, on {torch.cuda.get_device_name()}")
    graphs, errors, failures = {}, {}, []
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    found = contenders(torch, sets, shape, a.parts, processors)  # a graph's kernels live as long as it is launched
    for who, fn in found.items():
        sets[0]["ours"].fill_(float("nan"))
        try:
            with watch(who):
                got = fn(0)
                torch.cuda.synchronize()
            errors[who] = float((got[-1, -2 * group:].double() - want).norm() / want.norm())
            if not errors[who] < 1e-3:
                failures.append(f"{name}: {who} is wrong: {errors[who]}")
                continue
            with watch(who):
                graphs[who] = captured(fn, len(sets), launches)
        except (RuntimeError, tg.Error) as refused:  # the others are measured all the same
            failures.append(f"{name}: {who} does not run: {str(refused).splitlines()[0]}")
            graphs.pop(who, None)
    times = samples(graphs, launches, a.rounds, watch)
    ms = medians(times)
    rate = {who: nbytes / t / 1e6 for who, t in ms.items()}
    for who in sorted(ms, key=ms.get):
        print(f"{name:18} {who:22} {ms[who] * 1e3:9.2f} us  {rate[who]:7.1f} GB/s  {rate[who] / a.peak:6.1%}  error {errors[who]:.1e}",
              flush=True)
    for failure in failures:
        print(failure, flush=True)
    return {"name": name, "shape": shape, "failures": failures, "ms": ms, "samples": times, "errors": errors, "gbs": rate}


def plans():
    """What becomes of each program on sm_90a."""
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    for group in sorted({heads // kv_heads for _, heads, kv_heads, _, _ in SHAPES.values()}):
        for tile in TILES:
            artifact = program_of(*tile, group).compile("sm_90a")
            first = artifact.schedule["kernels"][0]
            engines = [op["engine"] for op in first["ops"] if "gemm#" in op["op"]]
            print(f"group {group}, {name_of(*tile)}: products {engines}, blocks walk: {first['persistence']['persistent']}")
            if ptxas is None:
                continue
            with tempfile.TemporaryDirectory() as folder:
                with open(folder + "/x.ptx", "w", encoding="utf-8") as f:
                    f.write(artifact.section("ptx"))
                said = subprocess.run([ptxas, "-v", "-arch=sm_90a", folder + "/x.ptx", "-o", folder + "/x.cubin"], check=True,
                                      capture_output=True, text=True).stderr
            for line in said.splitlines():
                if re.search("Compiling entry|Used|spill|C75", line):
                    print("  ", line.removeprefix("ptxas info    : ").strip())
    for name, shape in SHAPES.items():
        print(name, {name_of(*tile): parts_of(shape, tile[0], 132) for tile in TILES})


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--json")
    p.add_argument("--only", default="")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--peak", type=float, default=4600, help="GB/s that the memory gives")
    p.add_argument("--parts", type=int, default=0, help="in place of what split_programs.split_parts says")
    p.add_argument("--plans", action="store_true")
    a = p.parse_args()
    if a.plans:
        return plans()
    import torch
    rows = []
    for name, shape in SHAPES.items():
        if re.search(a.only, name):
            rows.append(measure(torch, name, shape, a))
            torch.cuda.empty_cache()
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, f, indent=1)


main()
