"""Products of matrices in float64, and running a program by one of its executors, for tests of programs."""
import math
import operator
import warnings

import tilegen as tg

EXECUTORS = ("interpreter", "host", "sim:sm_80", "sim:sm_90a")

# The largest relative error of one rounding.
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float8_e4m3fn": 2.0**-4}


def run(program, executor, *arguments):
    if executor == "interpreter":
        return program.interpret(*arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tg.PerformanceWarning)
        artifact = program.compile(executor)
    rejected = [n for k in artifact.schedule["kernels"] for n in k.get("notes", []) if "as first planned it was rejected" in str(n)]
    assert not rejected, rejected
    return artifact.load()(*arguments)


def transposed(a):
    return [list(column) for column in zip(*a)]


def times_transposed(a, b):
    """a b^T."""
    return [[sum(map(operator.mul, row, other)) for other in b] for row in a]


def times(a, b):
    return times_transposed(a, transposed(b)) if b else [[] for _ in a]


def absolute(a):
    return [[abs(x) for x in row] for row in a]


def entries(f, *matrices):
    """f of the elements of matrices of one shape."""
    return [[f(*elements) for elements in zip(*rows)] for rows in zip(*matrices)]


def flat(nested):
    for x in nested:
        if isinstance(x, (list, tuple)):
            yield from flat(x)
        else:
            yield x


def worst(got, want, scale, least=2.0**-20):
    """The largest error of `got`, as a part of the scale of its element: what its terms sum up to without their signs. Errors
    below `least` are those of numbers near 0, which f16 has few of."""
    got, want, scale = list(got), list(want), list(scale)
    assert len(got) == len(want) == len(scale) and got, (len(got), len(want), len(scale))
    if not all(map(math.isfinite, got)):
        return math.inf
    return max(max(abs(g - w) - least, 0.0) / max(s, 1e-30) for g, w, s in zip(got, want, scale))
