"""Attention on the host beside PyTorch's scaled_dot_product_attention of the CPU, forward, not causal.
    python3 bench/attention_host.py [results.json]
Both use all cores that the process may use; where it may use one, time is the processor's. Needs PyTorch."""
import datetime
import json
import math
import os
import platform
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "gpu"), os.path.join(HERE, "..", "bindings", "python")]

import torch  # noqa: E402

import programs  # noqa: E402
import tilegen as tg  # noqa: E402

BATCH, HEADS, ROUNDS, REST = 1, 4, 11, 0.02  # rest: seconds until the other's idle threads have stopped spinning
TILE = (256, 128)
TYPES = {"f32": (tg.f32, torch.float32, 1e-5), "bf16": (tg.bf16, torch.bfloat16, 1e-2)}


def processor():
    with open("/proc/cpuinfo") as lines:
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
    name = next((v.strip() for k, v in fields.items() if k.strip() == "model name"), platform.processor())
    return {"processor": name, "cores": len(os.sched_getaffinity(0)), "torch": torch.__version__,
            "tilegen": tg.build_info()}


CLOCK = time.process_time if len(os.sched_getaffinity(0)) == 1 else time.perf_counter


def seconds(run):
    start = CLOCK()
    run()
    return CLOCK() - start


def measure(name, dim, length):
    ours_type, type_, allowed = TYPES[name]
    q, k, v = (torch.randn(BATCH, HEADS, length, dim).to(type_) for _ in range(3))
    out = torch.empty_like(q)
    kernel = programs.attention(ours_type, dim, TILE, 0, 0).compile("host").load()
    ours = kernel.bind(math.log2(math.e) / math.sqrt(dim), q, k, v, out)

    def theirs():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    ours()
    error = (out.double() - theirs().double()).abs().max().item()
    if not error <= allowed:
        sys.exit(f"attention {name} {dim} {length}: results differ by {error}")
    samples = {"ours": [], "torch": []}
    for _ in range(ROUNDS):
        for who, run in (("ours", ours), ("torch", theirs)):
            time.sleep(REST)
            run()
            samples[who].append(seconds(run))
    work = 4e-9 * BATCH * HEADS * length * length * dim
    rates = {who: work / statistics.median(s) for who, s in samples.items()}
    ratio = statistics.median(t / o for o, t in zip(samples["ours"], samples["torch"], strict=True))
    print(f"{name:5} d {dim:3} {length:5}: ours {rates['ours']:6.1f} torch {rates['torch']:6.1f} GFLOP/s, ratio {ratio:.2f}")
    return {"dtype": name, "dim": dim, "length": length, "gflops": rates, "ratio": ratio, "error": error, "samples_s": samples}


def main():
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    rows = [measure(name, dim, length) for name in TYPES for dim in (64, 128) for length in (2048, 4096)]
    if len(sys.argv) > 1:
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        shape = {"batch": BATCH, "heads": HEADS, "tile": "x".join(map(str, TILE))}
        with open(sys.argv[1], "w") as file:
            json.dump({"date": now, "machine": processor(), **shape, "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
