#!/usr/bin/env python3
"""The paper's further workloads, one after the other: what docs/performance.md has of them.
  workloads.py [--json FILE] [--only REGEX] [--rounds 7] [--check] [--plans]
"""
import importlib

import contest

NAMES = ("attention_backward", "narrow_attention", "block_scaled_gemm", "latent_attention", "paged_decode", "int4_gemm", "sparse_gemm",
         "grouped_gemm", "conv2d", "linear_attention")


def cases():
    """{name: case} of all; a case's name says whose it is."""
    found = {}
    for name in NAMES:
        for case, made in importlib.import_module(name).CASES.items():
            made.workload = name
            found[case] = made
    return found


if __name__ == "__main__":
    contest.main(cases(), __doc__)
