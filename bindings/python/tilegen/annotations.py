"""Labels and annotations as keywords: b.copy(x, tile, label="load", vector=8), b.shared("A", f16, [128, 64], swizzle=128),
b.kernel("k", grid, raster="grouped", group=8). A layout may be a function of the indices: layout=lambda i, j: i * 72 + j."""
import functools
import inspect
import re


class _Offset:
    """An expression of indices, as text."""

    def __init__(self, text):
        self.text = text

    def _with(op):
        def forward(self, other):
            return _Offset(f"({self.text} {op} {_text_of(other)})")

        def backward(self, other):
            return _Offset(f"({_text_of(other)} {op} {self.text})")

        return forward, backward

    __add__, __radd__ = _with("+")
    __sub__, __rsub__ = _with("-")
    __mul__, __rmul__ = _with("*")
    __floordiv__, __rfloordiv__ = _with("//")
    __mod__, __rmod__ = _with("%")
    __and__, __rand__ = _with("&")
    __or__, __ror__ = _with("|")
    __xor__, __rxor__ = _with("^")
    __lshift__, __rlshift__ = _with("<<")
    __rshift__, __rrshift__ = _with(">>")


def _text_of(value):
    if isinstance(value, _Offset):
        return value.text
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"a layout's offset is made of the indices and integers, not of {type(value).__name__}")
    return str(value.__index__())


def _function_text(function):
    names = [f"d{i}" for i in range(len(inspect.signature(function).parameters))]
    return f"({', '.join(names)}) -> {_text_of(function(*map(_Offset, names)))}"


def layout_text(layout):
    """Of a function of the indices, or the text that it is already."""
    return layout if isinstance(layout, str) else _function_text(layout)


def _value_text(value):
    if callable(value):
        return _function_text(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value_text, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        plain = re.fullmatch(r"[A-Za-z_]\w*", value) or re.fullmatch(r"\([\w, ]*\) *->[^\[]*", value)
        return value if plain else f'"{value}"'
    return str(value.__index__())


def annotations_text(annotations):
    return ", ".join(f"{key} = {_value_text(value)}" for key, value in annotations.items())


def marked(method):
    """A statement of the builder that may have a label, and annotations: keywords that are no parameters of its own."""
    own = set(inspect.signature(method).parameters)

    @functools.wraps(method)
    def statement(self, *arguments, label=None, **keywords):
        annotations = {key: value for key, value in keywords.items() if key not in own}
        if label is not None:
            self._label(label)
        if annotations:
            self._annotate(annotations_text(annotations))
        return method(self, *arguments, **{key: value for key, value in keywords.items() if key in own})

    return statement
