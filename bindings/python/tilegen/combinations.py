"""Reductions, scans, sorting, functions and matrix instructions of a builder."""
import ctypes

from . import _header as h
from .annotations import layout_text, marked
from .arguments import choice
from .expressions import Buffer, Expr, Region, lib
from .program import bitcode_text
from .types import dtype_of

_REDUCE = {"sum": h.TL_REDUCE_SUM, "max": h.TL_REDUCE_MAX, "min": h.TL_REDUCE_MIN, "absmax": h.TL_REDUCE_ABSMAX,
           "product": h.TL_REDUCE_PRODUCT, "and": h.TL_REDUCE_AND, "or": h.TL_REDUCE_OR, "xor": h.TL_REDUCE_XOR,
           "abssum": h.TL_REDUCE_ABSSUM}


class Combinations:
    """What Builder has of them."""

    @marked
    def reduce(self, kind, src, dst, axis, accumulate=False):
        """kind: "sum", "max", "min", "absmax", "product", "and", "or", "xor" or "abssum"."""
        lib.tl_reduce(self.handle, self._region(src), self._region(dst), choice(_REDUCE, kind, "kind of reduction"), self._axis(axis, src),
                      h.TL_REDUCE_ACCUMULATE if accumulate else 0)

    @marked
    def cumsum(self, src, dst, axis, reverse=False):
        """dst = sums of src along axis, each up to its own element; with reverse from its own on."""
        lib.tl_cumsum(self.handle, self._region(src), self._region(dst), self._axis(axis, src),
                      h.TL_CUMSUM_REVERSE if reverse else 0)

    @marked
    def scan(self, kind, src, dst, axis, reverse=False, exclusive=False, carry=None):
        """dst = kind ("sum", "max", "min" or "product") of src along axis, each up to its own element; with reverse from
        its own on, with exclusive without it. carry, a tile without the axis, stands in front of all, with reverse behind
        them, and becomes the total: of an axis that goes on in the next tile of a loop."""
        flags = h.TL_SCAN_REVERSE * reverse | h.TL_SCAN_EXCLUSIVE * exclusive
        if carry is not None:
            lib.tl_scan_carry(self.handle, self._region(src), self._region(dst), self._region(carry),
                              choice(_REDUCE, kind, "kind of reduction"), self._axis(axis, src), flags)
            return
        lib.tl_scan(self.handle, self._region(src), self._region(dst), choice(_REDUCE, kind, "kind of reduction"), self._axis(axis, src), flags)

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

    def scan_by(self, combine, src, dst, axis, reverse=False, first=None, exclusive=False, carry=None):
        """The same of all elements up to each one; with reverse from each one on. `first`: a value, or a list of one for
        each tile, in front of all, with reverse behind them; exclusive: without the element itself, so that first is the
        first result. carry: a tile, or a list of one for each value, in the place of first, which becomes what all come to."""
        if exclusive and first is None and carry is None:
            raise ValueError("an exclusive scan by a combination is given what it begins with: first= or carry=")
        if first is not None and carry is not None:
            raise ValueError("a scan begins with first= or with what it carries, carry=; fill the tile with the first group")
        flags = (h.TL_SCAN_REVERSE if reverse else 0) | (h.TL_SCAN_EXCLUSIVE if exclusive else 0)
        call = lib.tl_scan_by if first is None else lib.tl_scan_by_from
        self._combine(call if carry is None else lib.tl_scan_by_carry, combine, src, dst, axis, flags, first, carry)

    def function(self, name, parameters, meaning, **texts):
        """A function of the program: parameters are types, meaning(a, b, ...) of expressions gives its result or a tuple of
        results. Texts make it one with native text, which code for the targets that take it has in the place of the meaning:
        ptx, gcn (instructions, operands $0, $1, ...: results, then parameters), llvm, llvm_ptx, llvm_gcn, llvm_host (LLVM
        IR that defines @name: text, or bitcode as bytes). Gives what calls it: f(a, b) is an expression, or a tuple of them."""
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
        lines = (ctypes.c_char_p * len(texts))(*(t.encode() if isinstance(t, str) else bitcode_text(t).encode()
                                                   for t in texts.values()))
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

    def _combine(self, call, combine, src, dst, axis, flags, first=None, carry=None):
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
        tiles = [src, dst]
        if carry is not None:
            tiles.append([carry] if isinstance(carry, (Region, Buffer)) else list(carry))
            if len(tiles[-1]) != len(src):
                raise ValueError(f"a scan of {len(src)} values carries {len(tiles[-1])}")
        regions = [(h.tl_region * len(src))(*(self._region(r) for r in g)) for g in tiles]
        call(self.handle, len(src), *regions, *exprs, self._axis(axis, src[0]), flags)

    def compress(self, src, values, meta):
        """values, meta = the two of each four neighbours along the last axis that have the greatest magnitude, and their places."""
        lib.tl_compress(self.handle, self._region(src), self._region(values), self._region(meta))

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
