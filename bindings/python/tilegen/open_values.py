"""Values of numbers alone, as select(c, 1, 0): like a number they have the type of where they are used."""
from . import _header as h
from .expressions import Expr
from .types import f32, i64

_TRUTHS = {h.TL_LT, h.TL_LE, h.TL_GT, h.TL_GE, h.TL_EQ, h.TL_NE}


class OpenValue(Expr):
    """make(*values) of numbers and such values: of the type of what it is combined with or stored to. Where nothing says one, i64,
    or f32 where one of the numbers is no integer."""
    is_open = True

    def __init__(self, builder, values, make):
        self.builder, self.text = builder, "(a value of numbers)"
        self._values, self._make, self._made = values, make, {}
        types = [v.dtype if isinstance(v, Expr) else builder.type_of_number(v) for v in values]
        self._default = f32 if f32 in types else i64

    dtype = property(lambda self: self._default)
    raw = property(lambda self: self.of(self._default).raw)
    sum = property(lambda self: self.of(self._default).sum)

    def of(self, dtype):
        if dtype is None:
            return self
        if dtype not in self._made:
            self._made[dtype] = self._make(*(self.builder.expr(v, dtype) for v in self._values))
        return self._made[dtype]

    def _binary(self, op, other, swapped=False):
        if isinstance(other, Expr) and not other.is_open:
            return self.of(other.dtype)._binary(op, other, swapped)
        both = OpenValue(self.builder, (self, other), lambda a, b: a._binary(op, b, swapped))
        return both.of(both.dtype) if op in _TRUTHS else both

    def _unary(self, op):
        if op in (h.TL_NEG, h.TL_ABS):
            return OpenValue(self.builder, (self,), lambda a: a._unary(op))
        return self.of(self.dtype)._unary(op)
