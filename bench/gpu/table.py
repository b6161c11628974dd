"""Command line of the benchmarks that measure cases by name."""
import argparse
import json
import re

import torch


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
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, f, indent=1)
