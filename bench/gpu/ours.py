"""Our side of a comparison harness that calls candidates(section, workload, sets) -> {name: fn}: fn(i) launches on
PyTorch's current stream with the tensors of sets[i] and returns the output."""
import math

import torch

import programs
from tilegen import bf16, e4m3, f16, f32, i32, i8

# (tile m, n, k in bytes of a row), threads, stages: the shapes worth trying; the best is what a tuner would keep.
GEMM_TILES = [((128, 256, 64), 256, 3), ((128, 256, 64), 256, 4), ((256, 128, 64), 256, 4), ((128, 128, 64), 128, 4),
              ((128, 256, 128), 256, 3)]
# With matrix instructions of warpgroups and a copy engine, rows of 128 bytes.
GEMM_TILES_HOPPER = [((128, 256, 128), 256, 4), ((256, 128, 128), 256, 4), ((128, 128, 128), 256, 6)]

# dtype of the workload -> ours: operands, sum, result, layouts
TYPES = {"fp16": (f16, f32, f16, ("nt", "nn")), "bf16": (bf16, f32, bf16, ("nt", "nn")), "fp8": (e4m3, f32, bf16, ("nt",)),
         "int8": (i8, i32, i32, ("nt",))}


def _gemm(workload, sets):
    hopper = torch.cuda.get_device_capability() == (9, 0)
    operand, total, result, layouts = TYPES[workload["dtype"]]
    if not hopper and operand is e4m3:
        return {}
    out = {}
    for layout in layouts:
        for (tm, tn, row), threads, stages in GEMM_TILES_HOPPER if hopper else GEMM_TILES:
            tile = (tm, tn, row // sets[0]["A"].element_size())
            kernel = programs.gemm(operand, total, result, tile, threads, stages, layout == "nt").compile("cuda").load()
            launches = [kernel.bind(s["A"], s["W" if layout == "nt" else "Wkn"], s["out"]) for s in sets]

            def run(i, launches=launches):
                launches[i]()
                return sets[i]["out"]
            out[f"{layout} {'x'.join(map(str, tile))} {stages}"] = run
    return out


# (tile of queries, keys), threads, stages
ATTENTION_TILES = [((128, 128), 256, 2), ((64, 64), 128, 2), ((128, 64), 256, 3)]


def _attention(workload, sets):
    if torch.cuda.get_device_capability() != (9, 0):
        return {}
    q = sets[0]["q"]
    scale = math.log2(math.e) / math.sqrt(q.shape[-1])
    out = {}
    for tile, threads, stages in ATTENTION_TILES:
        program = programs.attention(f16, q.shape[-1], tile, threads, stages, workload["causal"])
        kernel = program.compile("cuda").load()
        launches = [kernel.bind(scale, s["q"], s["k"], s["v"], s["out"]) for s in sets]

        def run(i, launches=launches):
            launches[i]()
            return sets[i]["out"]
        out[f"{'x'.join(map(str, tile))} {stages}"] = run
    return out


def candidates(section, workload, sets):
    return {"gemm": _gemm, "attn": _attention}.get(section, lambda *_: {})(workload, sets)
