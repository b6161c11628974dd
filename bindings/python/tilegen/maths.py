"""Functions of expressions that no operator of Python's is."""
from . import _header as h
from .arguments import choice
from .expressions import Expr, lib
from .open_values import OpenValue
from .types import boolean, dtype_of, f32, u32

_ROUNDINGS = {"nearest": h.TL_CAST_NEAREST, "zero": h.TL_CAST_ZERO, "down": h.TL_CAST_DOWN, "up": h.TL_CAST_UP}
_ENDS = {"saturate": h.TL_CAST_SATURATE, "overflow": h.TL_CAST_OVERFLOW}


class Maths:
    """What Builder has of them. Numbers may stand for expressions."""

    def exp(self, a): return self.expr(a)._unary(h.TL_EXP)
    def exp2(self, a): return self.expr(a)._unary(h.TL_EXP2)
    def log(self, a): return self.expr(a)._unary(h.TL_LOG)
    def log2(self, a): return self.expr(a)._unary(h.TL_LOG2)
    def sqrt(self, a): return self.expr(a)._unary(h.TL_SQRT)
    def rsqrt(self, a): return self.expr(a)._unary(h.TL_RSQRT)
    def tanh(self, a): return self.expr(a)._unary(h.TL_TANH)
    def erf(self, a): return self.expr(a)._unary(h.TL_ERF)
    def sigmoid(self, a): return self.expr(a)._unary(h.TL_SIGMOID)
    def floor(self, a): return self.expr(a)._unary(h.TL_FLOOR)
    def ceil(self, a): return self.expr(a)._unary(h.TL_CEIL)
    def sin(self, a): return self.expr(a)._unary(h.TL_SIN)
    def cos(self, a): return self.expr(a)._unary(h.TL_COS)
    def tan(self, a): return self.expr(a)._unary(h.TL_TAN)
    def asin(self, a): return self.expr(a)._unary(h.TL_ASIN)
    def acos(self, a): return self.expr(a)._unary(h.TL_ACOS)
    def atan(self, a): return self.expr(a)._unary(h.TL_ATAN)
    def exp10(self, a): return self.expr(a)._unary(h.TL_EXP10)
    def expm1(self, a): return self.expr(a)._unary(h.TL_EXPM1)
    def log1p(self, a): return self.expr(a)._unary(h.TL_LOG1P)
    def cbrt(self, a): return self.expr(a)._unary(h.TL_CBRT)
    def erfc(self, a): return self.expr(a)._unary(h.TL_ERFC)
    def round(self, a): return self.expr(a)._unary(h.TL_ROUND)
    def rint(self, a): return self.expr(a)._unary(h.TL_RINT)
    def trunc(self, a): return self.expr(a)._unary(h.TL_TRUNC)
    def isnan(self, a): return self.expr(a)._unary(h.TL_ISNAN)
    def isinf(self, a): return self.expr(a)._unary(h.TL_ISINF)
    def popcount(self, a): return self.expr(a)._unary(h.TL_POPCOUNT)
    def clz(self, a): return self.expr(a)._unary(h.TL_CLZ)
    def ctz(self, a): return self.expr(a)._unary(h.TL_CTZ)
    def pow(self, a, b): return self._of_two(h.TL_POW, a, b)
    def atan2(self, y, x): return self._of_two(h.TL_ATAN2, y, x)
    def fmod(self, a, b): return self._of_two(h.TL_FMOD, a, b)
    def copysign(self, a, b): return self._of_two(h.TL_COPYSIGN, a, b)
    def mulhi(self, a, b): return self._of_two(h.TL_MULHI, a, b)
    def min(self, a, b): return self._of_two(h.TL_MIN, a, b)
    def max(self, a, b): return self._of_two(h.TL_MAX, a, b)

    # Forms of f32 that are an instruction or a few where the target has them; their bounds are in docs/numerics.md.
    def fast_exp(self, a): return self._of_library("fast_exp", f32, a)
    def fast_exp2(self, a): return self._of_library("fast_exp2", f32, a)
    def fast_exp10(self, a): return self._of_library("fast_exp10", f32, a)
    def fast_log(self, a): return self._of_library("fast_log", f32, a)
    def fast_log2(self, a): return self._of_library("fast_log2", f32, a)
    def fast_sin(self, a): return self._of_library("fast_sin", f32, a)
    def fast_cos(self, a): return self._of_library("fast_cos", f32, a)
    def fast_tanh(self, a): return self._of_library("fast_tanh", f32, a)
    def fast_sigmoid(self, a): return self._of_library("fast_sigmoid", f32, a)
    def fast_sqrt(self, a): return self._of_library("fast_sqrt", f32, a)
    def fast_rsqrt(self, a): return self._of_library("fast_rsqrt", f32, a)
    def fast_div(self, a, b): return self._of_library("fast_div", f32, a, b)
    def fast_pow(self, a, b): return self._of_library("fast_pow", f32, a, b)

    def byte_permute(self, a, b, selector):
        """A u32 whose byte i is the one of the bytes of a, 0 to 3, and b, 4 to 7, that digit i of the selector names; 8 more: its sign."""
        return self._of_library("byte_permute", u32, a, b, selector)

    def _of_library(self, name, dtype, *arguments):
        raw = [self.expr(a, dtype).raw for a in arguments]
        return Expr(self, lib.tl_call(self.handle, name.encode(), len(raw), (h.tl_expr * len(raw))(*raw), 0))

    def ceildiv(self, a, b):
        """(a + b - 1) // b."""
        return self._alike(lambda a, b: (a + (b - 1)) // b, a, b)

    def _alike(self, make, *values):
        """make(*expressions) of expressions and numbers, which take the type of the first that has one; of numbers alone the
        result takes its own where it is used."""
        dtype = next((v.dtype for v in values if isinstance(v, Expr) and not v.is_open), None)
        if dtype is None and not any(isinstance(v, bool) for v in values):
            return OpenValue(self, values, make)
        return make(*(self.expr(v, dtype) for v in values))

    def _of_two(self, op, a, b):
        return self._alike(lambda a, b: a._binary(op, b), a, b)

    def fma(self, a, b, c):
        return self._alike(lambda a, b, c: Expr(self, lib.tl_ternary(self.handle, h.TL_FMA, a.raw, b.raw, c.raw)), a, b, c)

    def philox(self, seed, offset, lane):
        """A random u32: word lane % 4 of Philox 4x32-10 with key seed and counter offset + 2^64 * (lane // 4)."""
        seed, offset, lane = (self.expr(e) for e in (seed, offset, lane))
        return Expr(self, lib.tl_ternary(self.handle, h.TL_PHILOX, seed.raw, offset.raw, lane.raw))

    def uniform(self, word):
        """An f32 of at least 0 and below 1 of the upper 24 bits of a u32."""
        return Expr(self, lib.tl_uniform(self.handle, word.raw))

    def select(self, condition, a, b):
        """a where the condition holds, else b: select(c, 1, 0) has the type of what it is combined with or stored to."""
        condition = self.expr(condition, boolean)
        return self._alike(lambda a, b: Expr(self, lib.tl_select(self.handle, condition.raw, a.raw, b.raw)), a, b)

    def cast(self, a, dtype, rounding=None, end=None):
        """rounding: "nearest", "zero", "down" or "up"; end: "saturate", or "overflow" of 8-bit floats, whose casts saturate."""
        if rounding is None and end is None:
            return Expr(self, lib.tl_cast(self.handle, dtype_of(dtype).value, self.expr(a).raw))
        mode = (choice(_ROUNDINGS, rounding, "rounding") if rounding else 0) | (choice(_ENDS, end, "end of a cast") if end else 0)
        return Expr(self, lib.tl_cast_by(self.handle, dtype_of(dtype).value, self.expr(a).raw, mode))

    def bitcast(self, a, dtype):
        """The bits of a as a value of another type of as many bits."""
        return Expr(self, lib.tl_bitcast(self.handle, dtype_of(dtype).value, self.expr(a).raw))
