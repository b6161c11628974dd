"""Our side of a comparison harness that calls candidates(section, workload, sets) -> {name: fn}: fn(i) launches on
PyTorch's current stream with the tensors of sets[i] and returns the output."""
import programs
from tilegen import bf16, f16, f32

# (tile m, n, k), threads, stages: the shapes worth trying; the best is what a tuner would keep.
GEMM_TILES = [((128, 256, 32), 256, 3), ((128, 256, 32), 256, 4), ((256, 128, 32), 256, 4), ((128, 128, 32), 128, 4),
              ((128, 256, 64), 256, 3)]


def _gemm(workload, sets):
    dtype = {"fp16": f16, "bf16": bf16}.get(workload["dtype"])
    if dtype is None:
        return {}
    out = {}
    for layout, weight, transposed in (("nt", "W", True), ("nn", "Wkn", False)):
        for tile, threads, stages in GEMM_TILES:
            kernel = programs.gemm(dtype, f32, dtype, tile, threads, stages, transposed).compile("cuda").load()
            launches = [kernel.bind(s["A"], s[weight], s["out"]) for s in sets]

            def run(i, launches=launches):
                launches[i]()
                return sets[i]["out"]
            out[f"{layout} {'x'.join(map(str, tile))} {stages}"] = run
    return out


def candidates(section, workload, sets):
    return _gemm(workload, sets) if section == "gemm" else {}
