"""Command line of the benchmarks that measure cases by name."""
import argparse
import json
import re
import time

import torch

import tilegen


def driver():
    """Its version; empty where the system does not tell."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as f:
            found = re.search(r"\b\d+\.\d+(\.\d+)?\b", f.readline())
    except OSError:
        return ""
    return found.group(0) if found else ""


def machine():
    """What a result file says of where it was measured, and with what."""
    return {"date": time.strftime("%Y-%m-%d"), "gpu": torch.cuda.get_device_name(), "driver": driver(),
            "versions": {"torch": torch.__version__, "cuda": torch.version.cuda}, "library": tilegen.build_info()}


def main(cases, measure):
    """measure(name, case, rounds) of those whose name matches --only; what they return is written to --json."""
    p = argparse.ArgumentParser()
    p.add_argument("--json")
    p.add_argument("--only", default="")
    p.add_argument("--rounds", type=int, default=7)
    a = p.parse_args()
    rows = []
    for name, case in cases.items():
        if re.search(a.only, name):
            rows.append(measure(name, case, a.rounds))
            torch.cuda.empty_cache()
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({**machine(), "rows": rows}, f, indent=1)
