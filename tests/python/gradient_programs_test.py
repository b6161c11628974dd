"""attention_backward of bench/gpu against the definition of its gradients.   gradient_programs_test.py SOURCE"""
import itertools
import math
import pathlib
import random
import sys
import unittest

import tilegen as tg
from numbers_in_memory import Numbers
from references import EXECUTORS, ROUNDING, absolute, entries, flat, run, times, times_transposed, transposed, worst

if len(sys.argv) < 2:
    sys.exit(__doc__)
sys.path.append(str(pathlib.Path(sys.argv.pop(1)) / "bench" / "gpu"))
import gradient_programs  # noqa: E402
import programs  # noqa: E402

DIM = 64
SCALE = 1 / math.sqrt(DIM)


class Reference:
    """Gradients of one head of one sequence, and for each element the sum of its terms without their signs."""

    def __init__(self, q, k, v, g, causal):
        shift = len(k) - len(q)
        self.lse, p = [], []
        for i, row in enumerate(times_transposed(q, k)):
            seen = [x * SCALE if not causal or j <= i + shift else -math.inf for j, x in enumerate(row)]
            top = max(seen, default=-math.inf)
            weights = [math.exp(x - top) if top > -math.inf else 0.0 for x in seen]
            total = sum(weights)
            self.lse.append(top + math.log(total) if total else -math.inf)
            p.append([w / total if total else 0.0 for w in weights])
        self.o = times(p, v) if k else [[0.0] * DIM for _ in q]
        dp = times_transposed(g, v)
        delta = [sum(a * b for a, b in zip(*rows)) for rows in zip(self.o, g)]
        rough = [sum(abs(a * b) for a, b in zip(*rows)) for rows in zip(self.o, g)]
        slopes = [[w * (x - d) for w, x in zip(*rows)] for *rows, d in zip(p, dp, delta)]
        sizes = [[w * (x + d) for w, x in zip(*rows)] for *rows, d in zip(p, times_transposed(absolute(g), absolute(v)), rough)]
        scaled = lambda m: entries(lambda x: x * SCALE, m)
        self.found = {"dQ": scaled(times(slopes, k)), "dK": scaled(times(transposed(slopes), q)), "dV": times(transposed(p), g)}
        self.sizes = {"dQ": scaled(times(sizes, absolute(k))), "dK": scaled(times(transposed(sizes), absolute(q))),
                      "dV": times(transposed(p), absolute(g))}


def plus(a, b):
    return entries(lambda x, y: x + y, a, b)


class AttentionBackward(unittest.TestCase):
    def check(self, executors, dtype, lengths, heads=1, group=1, causal=False, tiles=(64, 64), packed=False):
        """`lengths`: (queries, keys) of each sequence."""
        random.seed(str(lengths))
        all_queries, all_keys = (sum(column) for column in zip(*lengths))
        batch, (queries, keys) = len(lengths), (max(column) for column in zip(*lengths))

        def make(total, longest, h):
            return Numbers(dtype, *((total, h, DIM) if packed else (batch, h, longest, DIM)))
        q, o, g, dq = (make(all_queries, queries, heads * group) for _ in range(4))
        k, v, dk, dv = (make(all_keys, keys, heads) for _ in range(4))
        for x in (q, k, v, g):
            x.random(-1.0, 1.0)

        def head_of(tensor, place, h):
            if not packed:
                return tensor.matrices()[place][h]
            of = 1 if tensor in (k, v) else 0
            first = sum(n[of] for n in lengths[:place])
            return [row[h] for row in tensor.matrices()[first : first + lengths[place][of]]]
        found = [[Reference(head_of(q, s, h), head_of(k, s, h // group), head_of(v, s, h // group), head_of(g, s, h), causal)
                  for h in range(heads * group)] for s in range(batch)]
        lse = Numbers("float32", *((heads * group, all_queries) if packed else (batch, heads * group, queries)))

        def laid(parts):
            """Of matrices [sequence][head] in the order of the tensors."""
            if not packed:
                return list(flat(parts))
            return [x for sequence in parts for rows in zip(*sequence) for x in flat(rows)]
        o.set(laid([[r.o for r in s] for s in found]))
        lse.set(flat([[r.lse for s in found for r in (s[h],)] for h in range(heads * group)]) if packed
                else flat([[r.lse for r in s] for s in found]))
        summed = lambda pick: [[self.sum_of(pick, s[h * group : (h + 1) * group]) for h in range(heads)] for s in found]
        expected, sizes = {"dQ": laid([[r.found["dQ"] for r in s] for s in found])}, {"dQ": laid([[r.sizes["dQ"] for r in s] for s in found])}
        for name in ("dK", "dV"):
            expected[name] = laid(summed(lambda r, name=name: r.found[name]))
            sizes[name] = laid(summed(lambda r, name=name: r.sizes[name]))
        made = lambda of_queries: gradient_programs.attention_backward(
            getattr(tg, {"float16": "f16", "bfloat16": "bf16"}[dtype]), DIM, (tiles, 128, 2), of_queries, causal, group, packed)
        programs = {"a kernel of queries": made((tiles, 128, 2)), "summed up": made(None)}
        for (form, program), executor in itertools.product(programs.items(), executors):
            with self.subTest(executor=executor, form=form):
                for x in (dq, dk, dv):
                    x.set([math.nan] * x.count)
                ends = [Numbers("int32", batch + 1).set([sum(n[i] for n in lengths[:s]) for s in range(batch + 1)])
                        for i in range(2)] if packed else []
                sizes_given = [batch, heads, all_queries, all_keys, queries, keys] if packed else [batch, heads, queries, keys]
                run(program, executor, *sizes_given, SCALE * math.log2(math.e), q, k, v, *ends, o, lse, g, dq, dk, dv)
                for name, got in (("dQ", dq), ("dK", dk), ("dV", dv)):
                    error = worst(got.numbers(), expected[name], sizes[name])
                    # Weights, slopes, O and the result are rounded once each.
                    self.assertLess(error, 4 * ROUNDING[dtype], name)

    @staticmethod
    def sum_of(pick, references):
        total = pick(references[0])
        for r in references[1:]:
            total = plus(total, pick(r))
        return total

    def test_round_and_ragged(self):
        self.check(EXECUTORS, "float16", [(64, 64)])
        self.check(EXECUTORS, "bfloat16", [(70, 90)], tiles=(32, 64))

    def test_causal_with_shared_heads(self):
        self.check(EXECUTORS, "float16", [(50, 80)], group=2, causal=True, tiles=(32, 32))
        self.check(EXECUTORS, "float16", [(90, 40)], causal=True)  # the first queries see no key

    def test_packed(self):
        self.check(EXECUTORS, "float16", [(40, 40), (0, 0), (70, 70)], causal=True, packed=True, tiles=(32, 64))

    def test_one_query_and_one_key(self):
        self.check(EXECUTORS, "bfloat16", [(1, 1)], causal=True)


unittest.main()
