"""Builds tile programs. The same statements as the C interface, with operators and `with` blocks.

    b = Builder("scale")
    n = b.dim("n")
    x, y = b.tensor("X", f32, [n]), b.tensor("Y", f32, [n])
    with b.kernel("scale", [(n + 1023) // 1024]) as block:
        tile = b.fragment("tile", f32, [1024])
        b.copy(x[block * 1024 : 1024], tile)
        with b.parallel(1024) as i:
            b.store(tile, i, tile(i) * 2.0)
        b.copy(tile, y[block * 1024 : 1024])
    program = b.finish()

A box of a buffer is written buffer[offset : extent, ...]; the slice's second part is the extent, not the end. A plain
index takes one row of the dimension. buffer(i, j) is one element.
"""
import contextlib
import ctypes
import math
import numbers
import os
import sys

from . import _header as h
from ._library import call, lib as _lib
from .annotations import annotations_text, layout_text, marked
from .program import Program, int64_of
from .types import boolean, dtype_of, f32, i64, u64, ALL, FLOATS

_OWN_FILES = (os.path.dirname(os.path.abspath(__file__)), os.path.abspath(contextlib.__file__))


def _user_line():
    """File and line of the code that builds the program: the innermost frame that is none of this package's."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(_OWN_FILES):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


class _Located:
    """The library's functions of a builder; each tells it first where in the user's code it is called."""

    def __init__(self):
        self._told = {}  # per builder, what it was told last

    def __getattr__(self, name):
        function = getattr(_lib, name)

        def located(handle, *arguments):
            here = _user_line()
            if self._told.get(handle.value) != here:
                self._told[handle.value] = here
                _lib.tl_builder_set_location(handle, here[0].encode("utf-8", "replace"), here[1], 0)
            return function(handle, *arguments)

        setattr(self, name, located)
        return located

    def forget(self, handle):
        self._told.pop(handle.value, None)


lib = _Located()

_ATOMIC = {"add": h.TL_ATOMIC_ADD, "min": h.TL_ATOMIC_MIN, "max": h.TL_ATOMIC_MAX, "and": h.TL_ATOMIC_AND,
           "or": h.TL_ATOMIC_OR, "xor": h.TL_ATOMIC_XOR, "exchange": h.TL_ATOMIC_EXCHANGE}


_POLICY = {"square": h.TL_POLICY_SQUARE, "full_row": h.TL_POLICY_FULL_ROW, "full_col": h.TL_POLICY_FULL_COL}
_REDUCE = {"sum": h.TL_REDUCE_SUM, "max": h.TL_REDUCE_MAX, "min": h.TL_REDUCE_MIN, "absmax": h.TL_REDUCE_ABSMAX,
           "product": h.TL_REDUCE_PRODUCT, "and": h.TL_REDUCE_AND, "or": h.TL_REDUCE_OR, "xor": h.TL_REDUCE_XOR,
           "abssum": h.TL_REDUCE_ABSSUM}


class Expr:
    """A scalar of the program: a constant, a dimension, a loop variable, or what is computed from them. Every operator,
    == and != too, gives an Expr; as keys of a dict, or in a set, expressions are told apart by identity."""
    __array_ufunc__ = None  # a number of NumPy on the left leaves the operator to this class

    def __init__(self, builder, raw):
        self.builder, self.raw = builder, raw

    @property
    def dtype(self):
        value = _lib.tl_expr_dtype(self.builder.handle, self.raw)
        return next((t for t in ALL if t.value == value), None)

    def _binary(self, op, other, swapped=False):
        other = self.builder.expr(other, self.dtype)
        a, b = (other, self) if swapped else (self, other)
        return Expr(self.builder, lib.tl_binary(self.builder.handle, op, a.raw, b.raw))

    def _unary(self, op):
        return Expr(self.builder, lib.tl_unary(self.builder.handle, op, self.raw))

    def __add__(self, o): return self._binary(h.TL_ADD, o)
    def __radd__(self, o): return self._binary(h.TL_ADD, o, True)
    def __sub__(self, o): return self._binary(h.TL_SUB, o)
    def __rsub__(self, o): return self._binary(h.TL_SUB, o, True)
    def __mul__(self, o): return self._binary(h.TL_MUL, o)
    def __rmul__(self, o): return self._binary(h.TL_MUL, o, True)
    def __truediv__(self, o): return self._binary(h.TL_DIV, o)
    def __rtruediv__(self, o): return self._binary(h.TL_DIV, o, True)
    def __floordiv__(self, o): return self._binary(h.TL_FLOORDIV, o)
    def __rfloordiv__(self, o): return self._binary(h.TL_FLOORDIV, o, True)
    def __mod__(self, o): return self._binary(h.TL_FLOORMOD, o)
    def __rmod__(self, o): return self._binary(h.TL_FLOORMOD, o, True)
    def __rand__(self, o): return self & o
    def __ror__(self, o): return self | o
    def __rxor__(self, o): return self ^ o
    def __rlshift__(self, o): return self._binary(h.TL_SHL, o, True)
    def __rrshift__(self, o): return self._binary(h.TL_SHR, o, True)
    def __pow__(self, o): return self._binary(h.TL_POW, o)
    def __rpow__(self, o): return self._binary(h.TL_POW, o, True)
    def __lt__(self, o): return self._binary(h.TL_LT, o)
    def __le__(self, o): return self._binary(h.TL_LE, o)
    def __gt__(self, o): return self._binary(h.TL_GT, o)
    def __ge__(self, o): return self._binary(h.TL_GE, o)
    def __eq__(self, o): return self._binary(h.TL_EQ, o)
    def __ne__(self, o): return self._binary(h.TL_NE, o)
    __hash__ = object.__hash__
    def __and__(self, o): return self._binary(h.TL_AND if self.dtype is boolean else h.TL_BIT_AND, o)
    def __or__(self, o): return self._binary(h.TL_OR if self.dtype is boolean else h.TL_BIT_OR, o)
    def __xor__(self, o): return self._binary(h.TL_BIT_XOR, o)
    def __lshift__(self, o): return self._binary(h.TL_SHL, o)
    def __rshift__(self, o): return self._binary(h.TL_SHR, o)
    def __neg__(self): return self._unary(h.TL_NEG)
    def __abs__(self): return self._unary(h.TL_ABS)
    def __invert__(self): return self._unary(h.TL_NOT if self.dtype is boolean else h.TL_BIT_NOT)
    def equals(self, o): return self == o
    def differs(self, o): return self != o

    def __bool__(self):
        raise TypeError("an expression of a tile program has no truth value while the program is built; choose with "
                        "Builder.select or Builder.branch, join conditions with & | ~ instead of and, or, not, and ask "
                        "whether two names mean the same expression with `is`")


class _Memory:
    """What is no scalar: a comparison meant for elements must not give Python's answer about identity."""
    __array_ufunc__ = None

    def _comparison(self, other):
        raise TypeError(f"a {type(self).__name__.lower()} of a tile program cannot be compared; buffer(i, j) is one element, "
                        "and `is` asks whether two names mean the same object")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _comparison
    __hash__ = object.__hash__


class Region(_Memory):
    """A box of a buffer."""

    def __init__(self, raw, shape):
        self.raw, self.shape = raw, shape


class Buffer(_Memory):
    """A tensor parameter or an on-chip tile."""

    def __init__(self, builder, raw, shape, dtype):
        self.builder, self.raw, self.shape, self.dtype = builder, raw, list(shape), dtype

    def __getitem__(self, box):
        b, box = self.builder, box if isinstance(box, tuple) else (box,)
        offsets, extents = [], []
        for part in box:
            if isinstance(part, slice):
                offsets.append(b.expr(0 if part.start is None else part.start, i64))
                extents.append(part.stop)
            else:
                offsets.append(b.expr(part, i64))
                extents.append(1)
        if not all(isinstance(e, int) for e in extents):
            raise TypeError("a box is written [offset : extent] with constant extents")
        n = len(offsets)
        raw = lib.tl_region_of(b.handle, self.raw, n, (h.tl_expr * n)(*(o.raw for o in offsets)),
                               (ctypes.c_int64 * n)(*extents))
        return Region(raw, extents)

    def __call__(self, *indices):
        return self.builder.load(self, *indices)

    def reshape(self, *shape):
        """The elements of a tile in another shape, in row-major order and without a copy; one extent may be -1."""
        shape = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else list(shape)
        if shape.count(-1) == 1:
            known, count = -math.prod(shape), math.prod(self.shape)
            shape[shape.index(-1)] = count // known if known > 0 and count % known == 0 else 1
        raw = lib.tl_view_reshape(self.builder.handle, self.raw, len(shape), (ctypes.c_int64 * len(shape))(*shape))
        return Buffer(self.builder, raw, shape, self.dtype)

    def transpose(self, *order):
        """The elements of a tile with its dimensions in another order, reversed unless one is given; no copy."""
        order = [d % len(self.shape) if -len(self.shape) <= d < 0 else d for d in order] or list(range(len(self.shape)))[::-1]
        raw = lib.tl_view_transpose(self.builder.handle, self.raw, len(order), (ctypes.c_int64 * len(order))(*order))
        return Buffer(self.builder, raw, [self.shape[d] if 0 <= d < len(self.shape) else 1 for d in order], self.dtype)

    T = property(transpose)

    def view(self, *box):
        """tile.view(slice(offset, extent), ...), or tile.view(region): a box of a tile as a buffer whose indices begin at
        0."""
        region = box[0] if len(box) == 1 and isinstance(box[0], Region) else self[tuple(box)]
        return Buffer(self.builder, lib.tl_view_slice(self.builder.handle, region.raw), region.shape, self.dtype)


    def reinterpret(self, dtype):
        """The elements of a tile as values of another type of as many bits, without a copy."""
        dtype = dtype_of(dtype)
        raw = lib.tl_view_reinterpret(self.builder.handle, self.raw, dtype.value)
        return Buffer(self.builder, raw, self.shape, dtype)


class Builder:
    def __init__(self, name, context=None, params=None):
        """`params`: {name: value} of the compile-time parameters that `param` declares."""
        handle = ctypes.c_void_p()
        from .program import default_context
        self.context = context or default_context()
        call("tl_builder_create", self.context.handle, name.encode(), ctypes.byref(handle))
        self.handle = handle
        for key, value in (params or {}).items():
            _lib.tl_builder_bind(self.handle, key.encode(), int64_of(value))

    def __del__(self):
        if getattr(self, "handle", None):
            lib.forget(self.handle)
            _lib.tl_builder_destroy(self.handle)

    def finish(self):
        """Checks the program and returns it; raises Error with every diagnostic."""
        program = ctypes.c_void_p()
        call("tl_builder_finish", self.handle, ctypes.byref(program))
        return Program(program, self.context)

    # Expressions.

    def expr(self, value, dtype=None):
        """An Expr of an Expr or a number; numbers take `dtype`, else i64 or f32. A number that an integer type does not
        have is refused."""
        if isinstance(value, Expr):
            return value
        if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
            raise TypeError(f"{type(value).__name__} is neither an expression of a tile program nor a number"
                            + ("; buffer(i, j) is one element" if isinstance(value, _Memory) else ""))
        dtype = dtype or (boolean if isinstance(value, bool) else i64 if isinstance(value, numbers.Integral) else f32)
        if dtype in FLOATS:
            return Expr(self, lib.tl_const_f64(self.handle, dtype.value, float(value)))
        if not isinstance(value, numbers.Integral) and not float(value).is_integer():
            raise TypeError(f"{value} is no {dtype.name}; cast the expression to a float type first")
        if dtype is u64 and 2**63 <= value < 2**64:
            return Expr(self, lib.tl_cast(self.handle, u64.value, self.expr(int(value) - 2**64, i64).raw))
        return Expr(self, lib.tl_const_i64(self.handle, dtype.value, int(value)))

    def exp(self, a): return a._unary(h.TL_EXP)
    def exp2(self, a): return a._unary(h.TL_EXP2)
    def log(self, a): return a._unary(h.TL_LOG)
    def log2(self, a): return a._unary(h.TL_LOG2)
    def sqrt(self, a): return a._unary(h.TL_SQRT)
    def rsqrt(self, a): return a._unary(h.TL_RSQRT)
    def tanh(self, a): return a._unary(h.TL_TANH)
    def erf(self, a): return a._unary(h.TL_ERF)
    def sigmoid(self, a): return a._unary(h.TL_SIGMOID)
    def floor(self, a): return a._unary(h.TL_FLOOR)
    def ceil(self, a): return a._unary(h.TL_CEIL)
    def sin(self, a): return a._unary(h.TL_SIN)
    def cos(self, a): return a._unary(h.TL_COS)
    def tan(self, a): return a._unary(h.TL_TAN)
    def asin(self, a): return a._unary(h.TL_ASIN)
    def acos(self, a): return a._unary(h.TL_ACOS)
    def atan(self, a): return a._unary(h.TL_ATAN)
    def exp10(self, a): return a._unary(h.TL_EXP10)
    def expm1(self, a): return a._unary(h.TL_EXPM1)
    def log1p(self, a): return a._unary(h.TL_LOG1P)
    def cbrt(self, a): return a._unary(h.TL_CBRT)
    def erfc(self, a): return a._unary(h.TL_ERFC)
    def round(self, a): return a._unary(h.TL_ROUND)
    def rint(self, a): return a._unary(h.TL_RINT)
    def trunc(self, a): return a._unary(h.TL_TRUNC)
    def isnan(self, a): return a._unary(h.TL_ISNAN)
    def isinf(self, a): return a._unary(h.TL_ISINF)
    def popcount(self, a): return a._unary(h.TL_POPCOUNT)
    def clz(self, a): return a._unary(h.TL_CLZ)
    def ctz(self, a): return a._unary(h.TL_CTZ)
    def pow(self, a, b): return self._of_two(h.TL_POW, a, b)
    def atan2(self, y, x): return self._of_two(h.TL_ATAN2, y, x)
    def fmod(self, a, b): return self._of_two(h.TL_FMOD, a, b)
    def copysign(self, a, b): return self._of_two(h.TL_COPYSIGN, a, b)
    def mulhi(self, a, b): return self._of_two(h.TL_MULHI, a, b)
    def min(self, a, b): return a._binary(h.TL_MIN, b)
    def max(self, a, b): return a._binary(h.TL_MAX, b)

    def _of_two(self, op, a, b):
        return a._binary(op, b) if isinstance(a, Expr) else b._binary(op, a, True)

    def fma(self, a, b, c):
        dtype = next(e.dtype for e in (a, b, c) if isinstance(e, Expr))
        a, b, c = (self.expr(e, dtype) for e in (a, b, c))
        return Expr(self, lib.tl_ternary(self.handle, h.TL_FMA, a.raw, b.raw, c.raw))

    def philox(self, seed, offset, lane):
        """A random u32: word lane % 4 of Philox 4x32-10 with key seed and counter offset + 2^64 * (lane // 4)."""
        seed, offset, lane = (self.expr(e) for e in (seed, offset, lane))
        return Expr(self, lib.tl_ternary(self.handle, h.TL_PHILOX, seed.raw, offset.raw, lane.raw))

    def uniform(self, word):
        """An f32 of at least 0 and below 1 of the upper 24 bits of a u32."""
        return Expr(self, lib.tl_uniform(self.handle, word.raw))

    def select(self, condition, a, b):
        a, b = (self.expr(a, b.dtype), b) if isinstance(b, Expr) else (a, self.expr(b, a.dtype))
        return Expr(self, lib.tl_select(self.handle, condition.raw, a.raw, b.raw))

    def cast(self, a, dtype):
        return Expr(self, lib.tl_cast(self.handle, dtype_of(dtype).value, a.raw))

    def bitcast(self, a, dtype):
        """The bits of a as a value of another type of as many bits."""
        return Expr(self, lib.tl_bitcast(self.handle, dtype_of(dtype).value, a.raw))

    def load(self, buffer, *indices):
        raw = [self.expr(i, i64).raw for i in indices]
        return Expr(self, lib.tl_load(self.handle, buffer.raw, len(raw), (h.tl_expr * len(raw))(*raw)))

    # Parameters.

    def param(self, name, values):
        """Declares a compile-time parameter with a domain; gives the int that this build uses, the domain's first unless
        the builder was given another."""
        values = [int64_of(v) for v in values]
        return lib.tl_param(self.handle, name.encode(), (ctypes.c_int64 * len(values))(*values), len(values))

    def dim(self, name, lower=0, upper=2**63 - 1, divisor=1):
        """A symbolic extent, with what is known of it."""
        e = Expr(self, lib.tl_dim(self.handle, name.encode()))
        if (lower, upper, divisor) != (0, 2**63 - 1, 1):
            lib.tl_dim_fact(self.handle, e.raw, lower, upper, divisor)
        return e

    def scalar(self, name, dtype):
        return Expr(self, lib.tl_scalar(self.handle, name.encode(), dtype_of(dtype).value))

    def tensor(self, name, dtype, shape, strides=None, read_only=False, codes=None):
        """Global memory. `codes`: the packed type whose codes the bytes of a u8 tensor are."""
        dtype, n = dtype_of(dtype), len(shape)
        exprs = lambda list_: (h.tl_expr * n)(*(self.expr(e, i64).raw for e in list_))
        raw = lib.tl_tensor(self.handle, name.encode(), dtype.value, n, exprs(shape), exprs(strides) if strides else None,
                            h.TL_TENSOR_READ_ONLY if read_only else 0)
        if codes is not None:
            lib.tl_tensor_codes(self.handle, raw, dtype_of(codes).value)
        return Buffer(self, raw, shape, dtype)

    def workspace(self, name, dtype, shape):
        """A tensor that each launch has of its own and no argument gives: what a program's kernels leave for each other."""
        dtype, n = dtype_of(dtype), len(shape)
        raw = lib.tl_tensor(self.handle, name.encode(), dtype.value, n, (h.tl_expr * n)(*(self.expr(e, i64).raw for e in shape)),
                            None, h.TL_TENSOR_WORKSPACE)
        return Buffer(self, raw, shape, dtype)

    # Scopes.

    @contextlib.contextmanager
    def _scope(self, raw, value):
        yield value
        lib.tl_end(self.handle, raw)

    def kernel(self, name, grid, threads=0, names=None, **annotations):
        """Opens a kernel; gives its block index, or a list of them for a grid of several dimensions. What else is given are
        annotations: raster="grouped", group=8."""
        n = len(grid)
        blocks = (h.tl_expr * n)()
        given = (ctypes.c_char_p * n)(*(s.encode() for s in names)) if names else None
        raw = lib.tl_begin_kernel(self.handle, name.encode(), n, (h.tl_expr * n)(*(self.expr(g, i64).raw for g in grid)),
                                  threads, given, blocks)
        if annotations:
            lib.tl_annotate_kernel(self.handle, annotations_text(annotations).encode())
        out = [Expr(self, h.tl_expr(b.bits)) for b in blocks]
        return self._scope(raw, out[0] if n == 1 else out)

    def _loop(self, kind, begin, end, stages, name):
        var = h.tl_expr()
        raw = lib.tl_begin_loop(self.handle, kind, self.expr(begin, i64).raw, self.expr(end, i64).raw, stages,
                                name.encode() if name else None, ctypes.byref(var))
        return self._scope(raw, Expr(self, var))

    @marked
    def serial(self, begin, end, name=None, condition=None):
        """Opens a loop; with a condition, which is the same for the block, its first iteration where that does not hold
        ends it."""
        if condition is None:
            return self._loop(h.TL_LOOP_SERIAL, begin, end, 0, name)
        var, begin = h.tl_expr(), self.expr(begin, i64)
        raw = lib.tl_begin_counted_loop(self.handle, h.TL_LOOP_SERIAL, begin.raw, (self.expr(end, i64) - begin).raw,
                                        condition.raw, 0, name.encode() if name else None, ctypes.byref(var))
        return self._scope(raw, Expr(self, var))

    @marked
    def unroll(self, begin, end, name=None):
        return self._loop(h.TL_LOOP_UNROLL, begin, end, 0, name)

    @marked
    def vectorized(self, begin, end, name=None):
        return self._loop(h.TL_LOOP_VECTORIZED, begin, end, 0, name)

    @marked
    def loop_while(self, condition):
        """Opens a loop that runs while the condition, which is the same for the block, holds."""
        return self._scope(lib.tl_begin_while(self.handle, condition.raw), None)

    def leave_loop(self): lib.tl_break(self.handle)
    def next_iteration(self): lib.tl_continue(self.handle)
    def leave_kernel(self): lib.tl_return(self.handle)

    @marked
    def pipelined(self, begin, end, stages=0, name=None):
        return self._loop(h.TL_LOOP_PIPELINED, begin, end, stages, name)

    @marked
    def parallel(self, *extents, names=None):
        n = len(extents)
        variables = (h.tl_expr * n)()
        given = (ctypes.c_char_p * n)(*(s.encode() for s in names)) if names else None
        raw = lib.tl_begin_parallel(self.handle, n, (ctypes.c_int64 * n)(*extents), given, variables)
        out = [Expr(self, h.tl_expr(v.bits)) for v in variables]
        return self._scope(raw, out[0] if n == 1 else out)

    @marked
    def branch(self, condition):
        """with b.branch(c) as otherwise: ...; otherwise() begins the other branch."""
        raw = lib.tl_begin_if(self.handle, condition.raw)
        return self._scope(raw, lambda: lib.tl_begin_else(self.handle, raw))

    @contextlib.contextmanager
    def switch(self, value):
        """with b.switch(v) as case: with case(0, 3): ...; with case(): ... is taken where no other is, and is the last."""
        raw = lib.tl_begin_switch(self.handle, value.raw)

        def case(*values):
            values = [int64_of(v) for v in values]
            return self._scope(lib.tl_begin_case(self.handle, raw, len(values), (ctypes.c_int64 * len(values))(*values)), None)

        yield case
        lib.tl_end(self.handle, raw)

    # Tiles and statements.

    def _label(self, name): lib.tl_label(self.handle, name.encode())
    def _annotate(self, text): lib.tl_annotate(self.handle, text.encode())

    def alloc(self, name, scope, dtype, shape, **annotations):
        """A tile of the kernel; what else is given are annotations: swizzle=128, padding=8, layout=lambda i, j: i * 72 + j."""
        dtype, n = dtype_of(dtype), len(shape)
        raw = lib.tl_alloc(self.handle, name.encode(), scope, dtype.value, n, (ctypes.c_int64 * n)(*shape))
        if annotations:
            lib.tl_annotate_tile(self.handle, raw, annotations_text(annotations).encode())
        return Buffer(self, raw, shape, dtype)

    def shared(self, name, dtype, shape, **annotations): return self.alloc(name, h.TL_SCOPE_SHARED, dtype, shape, **annotations)
    def fragment(self, name, dtype, shape, **annotations): return self.alloc(name, h.TL_SCOPE_FRAGMENT, dtype, shape, **annotations)
    def local(self, name, dtype, shape, **annotations): return self.alloc(name, h.TL_SCOPE_LOCAL, dtype, shape, **annotations)

    def _axis(self, axis, region):
        """Axes from the last on are -1, -2, ..."""
        rank = len(region.shape)
        if not -rank <= axis < rank:
            raise ValueError(f"axis {axis} of a region of {rank} dimensions")
        return axis % rank

    def _region(self, r):
        return r.raw if isinstance(r, Region) else lib.tl_whole(self.handle, r.raw)

    @marked
    def copy(self, src, dst):
        lib.tl_copy(self.handle, self._region(src), self._region(dst))

    @marked
    def fill(self, dst, value):
        dtype = dst.dtype if isinstance(dst, Buffer) else None
        lib.tl_fill(self.handle, self._region(dst), self.expr(value, dtype).raw)

    @marked
    def gemm(self, a, b, c, transpose_a=False, transpose_b=False, clear=False, policy=h.TL_POLICY_DEFAULT,
             tf32=False, promote=False):
        """c += a * b; policy: "square", "full_row" or "full_col"; with tf32 the f32 operands may be reduced to that; with promote the sums of
        matrix instructions on 8-bit floats are added to c in f32 after 128 products each."""
        policy = _POLICY[policy] if isinstance(policy, str) else policy
        flags = (h.TL_GEMM_TRANSPOSE_A * transpose_a | h.TL_GEMM_TRANSPOSE_B * transpose_b | h.TL_GEMM_CLEAR * clear
                 | h.TL_GEMM_TF32 * tf32 | h.TL_GEMM_PROMOTE * promote)
        lib.tl_gemm(self.handle, self._region(a), self._region(b), self._region(c), flags, policy)

    @marked
    def reduce(self, kind, src, dst, axis, accumulate=False):
        """kind: "sum", "max", "min", "absmax", "product", "and", "or", "xor" or "abssum"."""
        lib.tl_reduce(self.handle, self._region(src), self._region(dst), _REDUCE[kind], self._axis(axis, src),
                      h.TL_REDUCE_ACCUMULATE if accumulate else 0)

    @marked
    def cumsum(self, src, dst, axis, reverse=False):
        """dst = sums of src along axis, each up to its own element; with reverse from its own on."""
        lib.tl_cumsum(self.handle, self._region(src), self._region(dst), self._axis(axis, src),
                      h.TL_CUMSUM_REVERSE if reverse else 0)

    @marked
    def scan(self, kind, src, dst, axis, reverse=False, exclusive=False):
        """dst = kind ("sum", "max", "min" or "product") of src along axis, each up to its own element; with reverse from
        its own on, with exclusive without it."""
        flags = h.TL_SCAN_REVERSE * reverse | h.TL_SCAN_EXCLUSIVE * exclusive
        lib.tl_scan(self.handle, self._region(src), self._region(dst), _REDUCE[kind], self._axis(axis, src), flags)

    def argmax(self, src, value, index, axis):
        """value = the largest element along axis, index (i32 or i64) = where the first such stands."""
        lib.tl_arg_reduce(self.handle, self._region(src), self._region(value), self._region(index), h.TL_REDUCE_MAX,
                          self._axis(axis, src))

    def argmin(self, src, value, index, axis):
        lib.tl_arg_reduce(self.handle, self._region(src), self._region(value), self._region(index), h.TL_REDUCE_MIN,
                          self._axis(axis, src))

    def reduce_by(self, combine, src, dst, axis, accumulate=False):
        """Reduces several tiles together: combine(a, b), of two tuples of a value of each, gives the tuple that they are
        combined to; a is before b along the axis. It is associative. Lists of tiles, or one tile each."""
        self._combine(lib.tl_reduce_by, combine, src, dst, axis, h.TL_REDUCE_ACCUMULATE if accumulate else 0)

    def scan_by(self, combine, src, dst, axis, reverse=False, first=None, exclusive=False):
        """The same of all elements up to each one; with reverse from each one on. `first`: a value, or a list of one for
        each tile, in front of all, with reverse behind them; exclusive: without the element itself, so that first is the
        first result."""
        if exclusive and first is None:
            raise ValueError("an exclusive scan by a combination is given what it begins with: first=")
        flags = (h.TL_SCAN_REVERSE if reverse else 0) | (h.TL_SCAN_EXCLUSIVE if exclusive else 0)
        self._combine(lib.tl_scan_by if first is None else lib.tl_scan_by_from, combine, src, dst, axis, flags, first)

    def function(self, name, parameters, meaning, **texts):
        """A function of the program: parameters are types, meaning(a, b, ...) of expressions gives its result or a tuple of
        results. Texts make it one with native text, which code for the targets that take it has in the place of the meaning:
        ptx, gcn (instructions, operands $0, $1, ...: results, then parameters), llvm, llvm_ptx, llvm_gcn, llvm_host (LLVM
        IR that defines @name). Gives what calls it: f(a, b) is an expression, or a tuple of them."""
        forms = []
        for key in texts:
            form = getattr(h, "TL_NATIVE_" + key.upper(), None)
            if form is None:
                raise ValueError(f"there is no native text '{key}'; it is one of ptx, gcn, llvm, llvm_ptx, llvm_gcn, llvm_host")
            forms.append(form)
        operands = [Expr(self, lib.tl_operand(self.handle, dtype_of(t).value, None)) for t in parameters]
        results = meaning(*operands)
        single = not isinstance(results, (tuple, list))
        results = [results] if single else list(results)
        raw = [(h.tl_expr * len(g))(*(e.raw for e in g)) for g in (operands, results)]
        lines = (ctypes.c_char_p * len(texts))(*(t.encode() for t in texts.values()))
        lib.tl_function(self.handle, name.encode(), len(operands), raw[0], len(results), raw[1], len(texts),
                        (ctypes.c_uint32 * len(texts))(*forms), lines)
        types = [o.dtype for o in operands]

        def of(*arguments):
            if len(arguments) != len(types):
                raise TypeError(f"{name} takes {len(types)} arguments, found {len(arguments)}")
            given = [self.expr(a, t).raw for a, t in zip(arguments, types)]
            made = [Expr(self, lib.tl_call(self.handle, name.encode(), len(given), (h.tl_expr * len(given))(*given), i))
                    for i in range(len(results))]
            return made[0] if single else tuple(made)

        return of

    def matrix_atom(self, name, a, b, c, meaning=None, cycles=0, **text):
        """A matrix instruction of the program's own, which products annotated {atom = "name"} are made of. a, b and c are
        (type, rows, columns, layout): the layout is a function of the element's indices that gives
        lane * registers + register, as text or as lambda i, k: ..., or the text of a fragment. One text, ptx= or gcn=: an instruction whose operands are the registers of the sum,
        of A, of B and of C. meaning(a, b, c) of elements, c + a * b where it is None, is what the simulator computes."""
        matrices = [a, b, c]
        if any(len(m) != 4 for m in matrices):
            raise ValueError("an operand of a matrix atom is (type, rows, columns, layout)")
        if len(text) != 1 or not set(text) <= {"ptx", "gcn"}:
            raise ValueError("a matrix atom has one text, ptx= or gcn=")
        if a[1] != c[1] or a[2] != b[1] or b[2] != c[2]:
            raise ValueError(f"A is m x k, B is k x n, C is m x n; given {a[1:3]}, {b[1:3]}, {c[1:3]}")
        (form, line), = text.items()
        types = [dtype_of(m[0]).value for m in matrices]
        operands, result = None, h.tl_expr(0)
        if meaning is not None:
            made = [Expr(self, lib.tl_operand(self.handle, t, None)) for t in types]
            result = self.expr(meaning(*made), dtype_of(c[0])).raw
            operands = (h.tl_expr * 3)(*(e.raw for e in made))
        lib.tl_matrix_atom(self.handle, name.encode(), (ctypes.c_int64 * 3)(a[1], b[2], a[2]), (ctypes.c_uint32 * 3)(*types),
                           (ctypes.c_char_p * 3)(*(layout_text(m[3]).encode() for m in matrices)), cycles, operands, result,
                           getattr(h, "TL_NATIVE_" + form.upper()), line.encode())

    def _combine(self, call, combine, src, dst, axis, flags, first=None):
        src, dst = ([r] if isinstance(r, (Region, Buffer)) else list(r) for r in (src, dst))
        if not src or len(src) != len(dst):
            raise ValueError(f"{len(src)} tiles are combined into {len(dst)}")
        groups = [tuple(Expr(self, lib.tl_operand(self.handle, r.dtype.value, None)) for r in src) for _ in range(2)]
        results = combine(*groups)
        results = results if isinstance(results, (tuple, list)) else [results]
        if len(results) != len(src):
            raise ValueError(f"a combination of {len(src)} values gives {len(results)}")
        results = [self.expr(r, s.dtype) for r, s in zip(results, src)]
        lists = [*groups, results]
        if first is not None:
            first = first if isinstance(first, (tuple, list)) else [first]
            if len(first) != len(src):
                raise ValueError(f"a scan of {len(src)} values begins with {len(first)}")
            lists.append([self.expr(f, s.dtype) for f, s in zip(first, src)])
        exprs = [(h.tl_expr * len(src))(*(e.raw for e in g)) for g in lists]
        regions = [(h.tl_region * len(src))(*(self._region(r) for r in g)) for g in (src, dst)]
        call(self.handle, len(src), *regions, *exprs, self._axis(axis, src[0]), flags)

    def sort(self, src, dst, axis, index=None, descending=False):
        """dst = the elements along axis in order, equal ones by their places; index (i32 or i64) = where they stood."""
        places = h.tl_region(0) if index is None else self._region(index)
        lib.tl_sort(self.handle, self._region(src), self._region(dst), places, self._axis(axis, src),
                    h.TL_SORT_DESCENDING if descending else 0)

    def top_k(self, src, value, axis, index=None, smallest=False):
        """value = the greatest (with smallest the least) elements along axis, in order, as many as value has there."""
        places = h.tl_region(0) if index is None else self._region(index)
        lib.tl_top_k(self.handle, self._region(src), self._region(value), places, self._axis(axis, src),
                     h.TL_TOP_K_SMALLEST if smallest else 0)

    @marked
    def atomic(self, kind, src, dst):
        """dst = kind of dst and src, element by element, on a tensor; kind: "add", "min", "max", "and", "or" or "xor"."""
        lib.tl_atomic(self.handle, self._region(src), self._region(dst), _ATOMIC[kind])

    def store_atomic(self, kind, buffer, *indices_and_value):
        """The same of one element of a tensor or shared tile, in a parallel loop: store_atomic("add", buffer, i, j, value);
        kind "exchange" stores the value."""
        *indices, value = indices_and_value
        raw = [self.expr(i, i64).raw for i in indices]
        lib.tl_store_atomic(self.handle, buffer.raw, len(raw), (h.tl_expr * len(raw))(*raw),
                            self.expr(value, buffer.dtype).raw, _ATOMIC[kind])

    def _indices(self, indices):
        return len(indices), (h.tl_expr * len(indices))(*(self.expr(i, i64).raw for i in indices))

    def fetch_atomic(self, kind, buffer, *indices_and_value, name=None, to=None):
        """The same; gives what the element was before: old = fetch_atomic("add", buffer, i, j, value). With
        to=(tile, i, j) an element of a shared tile becomes it."""
        *indices, value = indices_and_value
        raw = [self.expr(i, i64).raw for i in indices]
        if to is not None:
            return lib.tl_fetch_atomic_to(self.handle, buffer.raw, *self._indices(indices),
                                          self.expr(value, buffer.dtype).raw, _ATOMIC[kind], to[0].raw,
                                          *self._indices(to[1:]))
        return Expr(self, lib.tl_fetch_atomic(self.handle, buffer.raw, len(raw), (h.tl_expr * len(raw))(*raw),
                                              self.expr(value, buffer.dtype).raw, _ATOMIC[kind], name and name.encode()))

    def compare_exchange(self, buffer, *indices_expected_desired, name=None, to=None):
        """Stores desired where the element, an integer, is expected; gives what it was before:
        old = compare_exchange(buffer, i, j, expected, desired). `to` as of fetch_atomic."""
        *indices, expected, desired = indices_expected_desired
        raw = [self.expr(i, i64).raw for i in indices]
        if to is not None:
            return lib.tl_compare_exchange_to(self.handle, buffer.raw, *self._indices(indices),
                                              self.expr(expected, buffer.dtype).raw,
                                              self.expr(desired, buffer.dtype).raw, to[0].raw, *self._indices(to[1:]))
        return Expr(self, lib.tl_compare_exchange(self.handle, buffer.raw, len(raw), (h.tl_expr * len(raw))(*raw),
                                                  self.expr(expected, buffer.dtype).raw,
                                                  self.expr(desired, buffer.dtype).raw, name and name.encode()))

    def check(self, condition, message):
        """Asserts: a launch fails with the message and the first place where condition does not hold."""
        lib.tl_assert(self.handle, self.expr(condition).raw, message.encode())

    def print(self, text, *values):
        """A launch prints the text and the values, for each iteration of a parallel loop around."""
        raw = [self.expr(v).raw for v in values]
        lib.tl_print(self.handle, text.encode(), len(raw), (h.tl_expr * len(raw))(*raw))

    def print_tile(self, text, region):
        """A launch prints each element of the region."""
        lib.tl_print_tile(self.handle, text.encode(), self._region(region))

    def let(self, value, name=None):
        """What the value of an expression is at this place, whatever is stored later."""
        return Expr(self, lib.tl_let(self.handle, name.encode() if name else None, self.expr(value).raw))

    def var(self, value, name=None, dtype=None):
        """The same inside a parallel loop, for a value that assign() changes."""
        return Expr(self, lib.tl_var(self.handle, name.encode() if name else None, self.expr(value, dtype).raw))

    def assign(self, var, value):
        lib.tl_assign(self.handle, var.raw, self.expr(value, var.dtype).raw)

    @marked
    def store(self, buffer, *indices_and_value):
        *indices, value = indices_and_value
        raw = [self.expr(i, i64).raw for i in indices]
        lib.tl_store(self.handle, buffer.raw, len(raw), (h.tl_expr * len(raw))(*raw), self.expr(value, buffer.dtype).raw)
