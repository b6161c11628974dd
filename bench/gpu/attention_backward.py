#!/usr/bin/env python3
"""Gradients of attention against cuDNN's and FlashAttention-2's of PyTorch, f16: 16384 queries in all, heads of 2048 numbers in all.
  attention_backward.py [--json FILE] [--only REGEX] [--rounds 7] [--check] [--plans]
"""
import math

import torch

import contest
import gradient_programs
from tilegen import f16

# size of a head -> what is tried: kernel of dK and dV, kernel of dQ, each (queries, keys) of a tile, threads, stages; None:
# the first adds up dQ too
TILES = {64: [(((128, 128), 256, 2), None), (((64, 128), 256, 2), ((128, 128), 256, 2)), (((128, 128), 256, 2), ((128, 128), 256, 2)),
              (((64, 128), 256, 3), ((128, 64), 256, 3))],
         128: [(((64, 128), 256, 2), None), (((80, 128), 256, 2), None), (((64, 128), 256, 2), ((128, 128), 256, 2)),
               (((64, 128), 256, 2), ((128, 64), 256, 2)), (((48, 128), 256, 2), ((128, 96), 256, 2)), (((64, 64), 128, 2), ((64, 64), 128, 2))]}


def _by_name(op, **values):
    """The call of an operator of PyTorch by the names of its schema."""
    schema = op.default._schema
    given = [values[a.name] for a in schema.arguments if not a.kwarg_only]
    return op(*given, **{a.name: values[a.name] for a in schema.arguments if a.kwarg_only and a.name in values})


class Backward(contest.Case):
    results = ("dq", "dk", "dv")

    def __init__(self, dim, length, causal, batch=None, heads=None):
        self.dim, self.length, self.causal = dim, length, causal
        self.batch, self.heads = batch or max(16384 // length, 1), heads or 2048 // dim
        self.scale = 1 / math.sqrt(dim)
        pairs = length * (length + 1) / 2 if causal else length * length
        self.flops = 10.0 * self.batch * self.heads * dim * pairs
        self.nbytes = 8 * 2 * self.batch * self.heads * length * dim
        self.sizes = f"batch={self.batch},heads={self.heads},queries={length},keys={length}"

    def small(self):
        return Backward(self.dim, 130, self.causal, 1, 2)

    def _head(self, t, b, h):
        q, k, v = (t[x][b, h].float() for x in "qkv")
        scores = q @ k.t() * self.scale
        if self.causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
        return q, k, v, scores

    def inputs(self, device):
        shape = (self.batch, self.heads, self.length, self.dim)
        t = {x: torch.randn(shape, device=device).to(torch.float16) for x in "qkvg"}
        t |= {x: torch.empty_like(t["q"]) for x in ("o", *self.results)}
        t["l"] = torch.empty(shape[:-1], device=device, dtype=torch.float32)
        for b in range(self.batch):
            for h in range(self.heads):
                _, _, v, scores = self._head(t, b, h)
                t["l"][b, h] = torch.logsumexp(scores, -1)
                t["o"][b, h] = torch.softmax(scores, -1) @ v
        return t

    def part(self, name, tensor):
        return tensor[-1, -1]

    def reference(self, t):
        q, k, v, scores = self._head(t, -1, -1)
        weights, g = torch.softmax(scores, -1), t["g"][-1, -1].float()
        slopes = weights * (g @ v.t() - ((weights @ v) * g).sum(-1, keepdim=True)) * self.scale
        return {"dq": slopes @ k, "dk": slopes.t() @ q, "dv": weights.t() @ g}

    def ours(self):
        scale = self.scale * math.log2(math.e)
        arguments = lambda t: (scale, t["q"], t["k"], t["v"], t["o"], t["l"], t["g"], t["dq"], t["dk"], t["dv"])
        name = lambda tile, threads, stages: f"{tile[0]}x{tile[1]} {stages}"
        return {f"ours {name(*of_keys)}" + (f", {name(*of_queries)}" if of_queries else " summed up"):
                (gradient_programs.attention_backward(f16, self.dim, of_keys, of_queries, self.causal), arguments)
                for of_keys, of_queries in TILES[self.dim]}

    def peers(self, t):
        aten, kept = torch.ops.aten, {}

        def forward(who, t):
            """(output, sums of rows, what the backward operator takes of the forward one), once for a set of tensors."""
            key = (who, id(t))
            if key not in kept:
                if who == "cudnn":
                    found = aten._scaled_dot_product_cudnn_attention(t["q"], t["k"], t["v"], None, True, 0.0, self.causal, False,
                                                                     scale=self.scale)
                else:
                    found = aten._scaled_dot_product_flash_attention(t["q"], t["k"], t["v"], 0.0, self.causal, False, scale=self.scale)
                kept[key] = found
            return kept[key]

        def backward(who, op, bias):
            def run(t):
                out, sums, ends_q, ends_k, most_q, most_k, seed, offset = forward(who, t)[:8]
                values = dict(grad_out=t["g"], query=t["q"], key=t["k"], value=t["v"], out=out, logsumexp=sums, philox_seed=seed,
                              philox_offset=offset, cum_seq_q=ends_q, cum_seq_k=ends_k, max_q=most_q, max_k=most_k, dropout_p=0.0,
                              is_causal=self.causal, scale=self.scale)
                return dict(zip(self.results, _by_name(op, **values, **bias)))
            return run
        return {"cudnn": backward("cudnn", aten._scaled_dot_product_cudnn_attention_backward, {"attn_bias": None}),
                "flash": backward("flash", aten._scaled_dot_product_flash_attention_backward, {})}


CASES = {f"backward_d{dim}_{length}_{'causal' if causal else 'full'}": Backward(dim, length, causal)
         for dim in (64, 128) for length in (1024, 2048, 4096, 8192, 16384) for causal in (True, False)}

if __name__ == "__main__":
    contest.main(CASES, __doc__)
