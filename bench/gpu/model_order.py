#!/usr/bin/env python3
"""The cost model's order of configurations against the measured one; needs no device.

  model_order.py MEASURED.json [--only REGEX] [--verbose] [--part N] [--least-picks SHARE] [--least-order SHARE]

MEASURED.json is of configurations.py. For each shape: by how much the configuration that the model picks is slower than the best,
and how many pairs that differ by over 5 % it orders right. --part: of each shape every N-th configuration. Below the least shares
of picks within 5 %, or of pairs in order, the status is 1."""
import argparse
import itertools
import json
import re
import statistics
import sys
import warnings

import configurations
import tilegen as tg

TARGET = "sm_90a"
NEAR = 1.05


class Model:
    def __init__(self):
        self.programs, self.kernels, self.ms = {}, {}, []

    def us(self, family, configuration, sizes):
        """None where the plan is refused."""
        key = family, json.dumps(configuration)
        if key not in self.programs:
            text = configurations.FAMILIES[family][0](configuration)
            self.programs[key] = tg.Program.parse(text)
            self.kernels[key] = configurations.kernels_of(text)
        try:
            # As they were measured: for any sizes, with a block for each point of the grid, and only of rows that no
            # tile divides with last tiles that overlap; long sums as the configuration says.
            whole = {"split": {"parts": 1}, "overlap": {"last_tiles": family.startswith("rows")}}
            kernels = [{"kernel": k, **(configurations.split_of(configuration, k) or whole)} for k in self.kernels[key]]
            artifact = self.programs[key].compile(TARGET, plan_only=True, schedule={"version": 1, "kernels": kernels},
                                                  sizes=",".join(f"{n}={v}" for n, v in sizes.items()))
        except tg.Error:
            return None
        self.ms.append(sum(artifact.stages().values()))
        return artifact.cost["us"]


def judge(model, row, part, verbose):
    """(loss of the pick, pairs in order, pairs)."""
    found = [(us, model.us(row["family"], c, row["sizes"]), c) for c, us in row["us"][::part]]
    found = [f for f in found if f[1] is not None]
    picked, best = min(found, key=lambda f: f[1]), min(f[0] for f in found)
    right = of = 0
    for a, b in itertools.combinations(found, 2):
        if max(a[0], b[0]) > NEAR * min(a[0], b[0]):
            of += 1
            right += (a[0] < b[0]) == (a[1] < b[1])
    if verbose:
        for us, estimate, c in sorted(found, key=lambda f: f[0]):
            print(f"    {us:9.1f} us, model {estimate:9.1f} ({estimate / us:5.2f})  " + " ".join(f"{k}{v}" for k, v in c.items()))
    print(f"{row['family']:22} {' '.join(f'{k}={v}' for k, v in row['sizes'].items()):28} pick {picked[0] / best:5.2f}  "
          f"order {right / max(of, 1):.2f}  best {best:8.1f} us, picked {picked[0]:8.1f} (model {picked[1]:8.1f}) {picked[2]}", flush=True)
    return picked[0] / best, right, of


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("measured")
    p.add_argument("--only", default="")
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--part", type=int, default=1)
    p.add_argument("--least-picks", type=float, default=0)
    p.add_argument("--least-order", type=float, default=0)
    a = p.parse_args()
    warnings.simplefilter("ignore")
    with open(a.measured, encoding="utf-8") as f:
        rows = [r for r in json.load(f)["rows"] if re.search(a.only, r["family"])]
    model = Model()
    judged = [judge(model, row, a.part, a.verbose) for row in rows]
    near = sum(loss <= NEAR for loss, _, _ in judged)
    pairs = max(1, sum(of for _, _, of in judged))
    order = sum(right for _, right, _ in judged) / pairs
    print(f"{near} of {len(rows)} picks within 5 %, {100 * order:.1f} % of {pairs} pairs in order; a plan takes "
          f"{statistics.median(model.ms):.2f} ms (median)")
    return 1 if near < a.least_picks * len(rows) or order < a.least_order else 0


if __name__ == "__main__":
    sys.exit(main())
