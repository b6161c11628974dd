"""Scalars of a program, its tensors and tiles, boxes and views of these."""
import contextlib
import ctypes
import functools
import math
import os
import sys

from . import _header as h
from ._library import lib as _lib
from .boxes import Sum, box_of
from .types import boolean, dtype_of, i64, ALL

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


class Expr:
    """A scalar of the program: a constant, a dimension, a loop variable, or what is computed from them. Every operator,
    == and != too, gives an Expr; as keys of a dict, or in a set, expressions are told apart by identity."""
    __array_ufunc__ = None  # a number of NumPy on the left leaves the operator to this class
    is_open = False  # its type is its own (open_values.py)

    def __init__(self, builder, raw, text=None, sum=None):
        self.builder, self.raw, self._sum = builder, raw, sum
        self.text = text or "(an unnamed value)"  # what messages of this package call it

    @property
    def sum(self):
        """As a sum, by which slices tell their extents."""
        return Sum({self.raw.bits: (1, self)}) if self._sum is None else self._sum

    @property
    def dtype(self):
        value = _lib.tl_expr_dtype(self.builder.handle, self.raw)
        return next((t for t in ALL if t.value == value), None)

    def of(self, dtype):
        """What it is where a value of the type is asked for."""
        return self

    def _binary(self, op, other, swapped=False):
        dtype = self.dtype
        other = self.builder.expr(other, dtype)
        a, b = (other, self) if swapped else (self, other)
        return Expr(self.builder, lib.tl_binary(self.builder.handle, op, a.raw, b.raw), sum=a._sum_with(op, b) if dtype is i64 else None)

    def _sum_with(self, op, other):
        """The sum that an operator on i64 makes, or None for what is a term of its own."""
        a, b = self.sum, other.sum
        if op == h.TL_MUL and a.terms and b.terms or max(len(a.terms), len(b.terms)) >= Sum.MOST:
            return None
        if op in (h.TL_ADD, h.TL_SUB):
            return a.plus(b, 1 if op == h.TL_ADD else -1)
        return (a.times(b.constant) if a.terms else b.times(a.constant)) if op == h.TL_MUL else None

    def _unary(self, op):
        sum = self.sum.times(-1) if op == h.TL_NEG and self.dtype is i64 else None
        return Expr(self.builder, lib.tl_unary(self.builder.handle, op, self.raw), sum=sum)

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

    def _arithmetic(self, *_):
        raise TypeError(f"a {type(self).__name__.lower()} of a tile program has no arithmetic of its own; compute on its elements in a "
                        "parallel loop, where buffer(i, j) is one")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _arithmetic
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __matmul__ = __rmatmul__ = _arithmetic

    def __setitem__(self, *_):
        raise TypeError("buffer[...] = value is no statement of a tile program; an element is stored by b.store(buffer, i, j, value) in a "
                        "parallel loop, a box is filled by b.fill and copied to by b.copy")

    def __iter__(self):
        raise TypeError(f"a {type(self).__name__.lower()} of a tile program is not iterated over while it is built; loop with b.parallel, "
                        "b.serial or b.unroll")


class Region(_Memory):
    """A box of a buffer. `ranges`: which dimensions are no single indices; where none is, it may be where a larger box begins."""

    def __init__(self, buffer, starts, shape, ranges):
        self.buffer, self.starts, self.shape, self.ranges = buffer, starts, shape, ranges
        n, at = buffer._exprs(starts)
        self.raw = lib.tl_region_of(buffer.builder.handle, buffer.raw, n, at, (ctypes.c_int64 * n)(*shape))

    def with_extents(self, extents):
        """The box that begins here. Its last dimensions have the extents; those in front are of one element."""
        rank = len(self.shape)
        while len(extents) > rank and extents[0] == 1:
            extents = extents[1:]
        if len(extents) > rank:
            raise ValueError(f"{self.buffer.title} is indexed with {rank} numbers, which say where a box begins; the extents of the other "
                             f"side, {' x '.join(map(str, extents))}, are {len(extents)}: write its extents, ds(start, size)")
        return Region(self.buffer, self.starts, [1] * (rank - len(extents)) + extents, [True] * rank)


def sides_of(src, dst):
    """The sides of a copy. Where one has indices alone, X[k * 64, 0], it is the box there of the extents of the other's ranges."""
    extents = [[e for e, ranged in zip(side.shape, side.ranges) if ranged] if isinstance(side, Region) else
               list(side.shape) if isinstance(side, Buffer) else [] for side in (src, dst)]
    constant = [found if found and all(isinstance(e, int) for e in found) else None for found in extents]
    if isinstance(src, Region) and not extents[0] and constant[1]:
        return src.with_extents(constant[1]), dst
    if isinstance(dst, Region) and not extents[1] and constant[0]:
        return src, dst.with_extents(constant[0])
    return src, dst


class Buffer(_Memory):
    """A tensor parameter or an on-chip tile."""

    def __init__(self, builder, raw, shape, dtype, name=None):
        self.builder, self.raw, self.shape, self.dtype, self.name = builder, raw, list(shape), dtype, name

    @property
    def title(self):
        """What messages of this package call it."""
        return f"'{self.name}'" if self.name else "a view"

    def __getitem__(self, box):
        """X[k * 64 : k * 64 + 64], X[ds(k * 64, 64)] and X[k] are boxes; start, stop, `:` and `...` are Python's, an index is of
        extent 1. A slice's extent, stop - start, is a constant. The box may hang over the edge of a tensor. Where all are indices,
        X[k * 64, 0], a copy takes the extents of its other side."""
        return Region(self, *box_of(self, box))

    def __call__(self, *indices):
        return self.builder.load(self, *indices)

    def reshape(self, *shape):
        """The elements of a tile or a tensor in another shape, in row-major order and without a copy; one extent may be -1.
        Extents of a tensor's view may be expressions of its dims."""
        shape = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else list(shape)
        if any(isinstance(e, Expr) for e in [*shape, *self.shape]):
            return self._reshape_tensor(shape)
        if shape.count(-1) == 1:
            known, count = -math.prod(shape), math.prod(self.shape)
            shape[shape.index(-1)] = count // known if known > 0 and count % known == 0 else 1
        raw = lib.tl_view_reshape(self.builder.handle, self.raw, len(shape), (ctypes.c_int64 * len(shape))(*shape))
        return Buffer(self.builder, raw, shape, self.dtype)

    def _reshape_tensor(self, shape):
        unknown = [d for d, e in enumerate(shape) if isinstance(e, int) and e == -1]
        if len(unknown) == 1:
            known = [e for e in shape if not (isinstance(e, int) and e == -1)]
            shape[unknown[0]] = self._quotient(list(self.shape), known)
        return Buffer(self.builder, lib.tl_view_reshape_to(self.builder.handle, self.raw, *self._exprs(shape)), shape, self.dtype)

    def _quotient(self, extents, known):
        """The product of the extents over that of the known ones, without those that both have."""
        same = lambda a, b: a is b or (isinstance(a, int) and isinstance(b, int) and a == b)
        product = lambda list_: functools.reduce(lambda a, b: a * b, list_, 1)
        below = []
        for e in known:
            at = next((i for i, x in enumerate(extents) if same(x, e)), None)
            below.append(e) if at is None else extents.pop(at)
        whole = product(extents)
        return self.builder.expr(whole, i64) // product(below) if below else whole

    def _exprs(self, values):
        return len(values), (h.tl_expr * len(values))(*(self.builder.expr(v, i64).raw for v in values))

    def transpose(self, *order):
        """The elements of a tile or a tensor with its dimensions in another order, reversed unless one is given; no copy."""
        order = [d % len(self.shape) if -len(self.shape) <= d < 0 else d for d in order] or list(range(len(self.shape)))[::-1]
        raw = lib.tl_view_transpose(self.builder.handle, self.raw, len(order), (ctypes.c_int64 * len(order))(*order))
        return Buffer(self.builder, raw, [self.shape[d] if 0 <= d < len(self.shape) else 1 for d in order], self.dtype)

    T = property(transpose)

    def view(self, *box):
        """tile.view(k % 2, slice(0, 64)), or tile.view(region): a box of a tile or a tensor as a buffer whose indices begin at 0,
        of slices, ds(start, size) and indices as between brackets. Extents of a tensor's view may be expressions."""
        if len(box) == 1 and isinstance(box[0], Region):
            region = box[0]
        else:
            starts, extents, _ = box_of(self, box, constant=False)
            if any(isinstance(e, Expr) for e in extents):
                n, at = self._exprs(starts)
                raw = lib.tl_view_box(self.builder.handle, self.raw, n, at, self._exprs(extents)[1])
                return Buffer(self.builder, raw, extents, self.dtype)
            region = self[box]
        return Buffer(self.builder, lib.tl_view_slice(self.builder.handle, region.raw), region.shape, self.dtype)

    def reinterpret(self, dtype):
        """The elements of a tile or a tensor as values of another type, without a copy; of more bits neighbours of the last
        dimension together, of fewer several of each, which are read, not written."""
        dtype, shape = dtype_of(dtype), list(self.shape)
        raw = lib.tl_view_reinterpret(self.builder.handle, self.raw, dtype.value)
        if dtype.bits > self.dtype.bits and shape:
            shape[-1] = shape[-1] // (dtype.bits // self.dtype.bits)
        elif dtype.bits < self.dtype.bits and shape:
            shape[-1] = shape[-1] * (self.dtype.bits // dtype.bits)
        return Buffer(self.builder, raw, shape, dtype)
