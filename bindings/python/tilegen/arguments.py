"""What a caller of the builder gives, checked where ctypes would only say that it cannot convert it."""
import operator


def listed(value):
    """A list of what may be given as one value where there is one: a grid, a shape."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def choice(table, key, what):
    """The constant of a name; constants are taken as they are."""
    if isinstance(key, str):
        if key not in table:
            raise ValueError(f"there is no {what} '{key}'; it is one of {', '.join(table)}")
        return table[key]
    return key


def constants(values, what, way_out):
    """Integers that are known while the program is built."""
    out = []
    for value in values:
        if hasattr(value, "sum"):
            raise TypeError(f"{what} is a constant, and {value.sum} is known at launch only; {way_out}")
        try:
            out.append(operator.index(value))
        except TypeError:
            raise TypeError(f"{what} is an integer, not {type(value).__name__}") from None
    return out
