"""Atomic operations of a builder."""
from . import _header as h
from .annotations import marked
from .arguments import choice
from .expressions import Expr, lib, sides_of
from .types import i64

_ATOMIC = {"add": h.TL_ATOMIC_ADD, "min": h.TL_ATOMIC_MIN, "max": h.TL_ATOMIC_MAX, "and": h.TL_ATOMIC_AND,
           "or": h.TL_ATOMIC_OR, "xor": h.TL_ATOMIC_XOR, "exchange": h.TL_ATOMIC_EXCHANGE}
_ORDER = {"relaxed": h.TL_ORDER_RELAXED, "acquire": h.TL_ORDER_ACQUIRE, "release": h.TL_ORDER_RELEASE,
          "acq_rel": h.TL_ORDER_ACQ_REL}


class Atomics:
    """What Builder has of them."""

    @marked
    def atomic(self, kind, src, dst, old=None):
        """dst = kind of dst and src, element by element, on a tensor; kind: "add", "min", "max", "and", "or", "xor", or "exchange":
        src itself. Boxes as of copy. old: a tile on chip that gets what the elements were before; dst may then be a
        shared tile."""
        src, dst = sides_of(src, dst)
        if old is not None:
            return lib.tl_atomic_fetch(self.handle, self._region(src), self._region(dst), self._region(old),
                                       choice(_ATOMIC, kind, "kind of atomic operation"))
        lib.tl_atomic(self.handle, self._region(src), self._region(dst), choice(_ATOMIC, kind, "kind of atomic operation"))

    def _order(self, order):
        order = choice(_ORDER, order, "memory order")
        if order != h.TL_ORDER_RELAXED:
            lib.tl_atomic_order(self.handle, order)

    def store_atomic(self, kind, buffer, *indices_and_value, order="relaxed"):
        """The same of one element of a tensor or shared tile, in a parallel loop: store_atomic("add", buffer, i, j, value);
        kind "exchange" stores the value. order: "acquire", "release" or "acq_rel"; of a tensor it orders what
        blocks do to tensors before and behind it, of a shared tile what iterations do to elements by atomic operations."""
        *indices, value = indices_and_value
        raw = [self.expr(i, i64).raw for i in indices]
        self._order(order)
        lib.tl_store_atomic(self.handle, buffer.raw, len(raw), (h.tl_expr * len(raw))(*raw),
                            self.expr(value, buffer.dtype).raw, choice(_ATOMIC, kind, "kind of atomic operation"))

    def _indices(self, indices):
        return len(indices), (h.tl_expr * len(indices))(*(self.expr(i, i64).raw for i in indices))

    def fetch_atomic(self, kind, buffer, *indices_and_value, name=None, to=None, order="relaxed"):
        """The same; gives what the element was before: old = fetch_atomic("add", buffer, i, j, value). With
        to=(tile, i, j) an element of a shared tile becomes it."""
        *indices, value = indices_and_value
        raw = [self.expr(i, i64).raw for i in indices]
        self._order(order)
        if to is not None:
            return lib.tl_fetch_atomic_to(self.handle, buffer.raw, *self._indices(indices),
                                          self.expr(value, buffer.dtype).raw, choice(_ATOMIC, kind, "kind of atomic operation"), to[0].raw,
                                          *self._indices(to[1:]))
        return Expr(self, lib.tl_fetch_atomic(self.handle, buffer.raw, len(raw), (h.tl_expr * len(raw))(*raw),
                                              self.expr(value, buffer.dtype).raw, choice(_ATOMIC, kind, "kind of atomic operation"), name and name.encode()))

    def compare_exchange(self, buffer, *indices_expected_desired, name=None, to=None, order="relaxed"):
        """Stores desired where the element, an integer, is expected; gives what it was before:
        old = compare_exchange(buffer, i, j, expected, desired). `to` as of fetch_atomic."""
        *indices, expected, desired = indices_expected_desired
        raw = [self.expr(i, i64).raw for i in indices]
        self._order(order)
        if to is not None:
            return lib.tl_compare_exchange_to(self.handle, buffer.raw, *self._indices(indices),
                                              self.expr(expected, buffer.dtype).raw,
                                              self.expr(desired, buffer.dtype).raw, to[0].raw, *self._indices(to[1:]))
        return Expr(self, lib.tl_compare_exchange(self.handle, buffer.raw, len(raw), (h.tl_expr * len(raw))(*raw),
                                                  self.expr(expected, buffer.dtype).raw,
                                                  self.expr(desired, buffer.dtype).raw, name and name.encode()))
