"""Boxes of buffers as Python's slices name them, ds for a start and a size, and the sums that tell a slice's extent."""
import operator


class Sum:
    """An i64 expression as the sum of a constant and multiples of other expressions, {bits of the handle: (factor, expression)}.
    The library gives equal expressions one handle, so equal terms of two sums meet."""
    MOST = 32  # terms; what is longer counts as one

    def __init__(self, terms, constant=0):
        self.terms, self.constant = {key: term for key, term in terms.items() if term[0]}, constant

    def plus(self, other, factor=1):
        terms = dict(self.terms)
        for key, (times, expr) in other.terms.items():
            terms[key] = (terms.get(key, (0, expr))[0] + factor * times, expr)
        return Sum(terms, self.constant + factor * other.constant)

    def times(self, factor):
        return Sum({}).plus(self, factor)

    @staticmethod
    def of(value):
        return value.sum if hasattr(value, "sum") else Sum({}, value)

    def value(self):
        """An int where nothing but the constant is left, else an expression."""
        total = None
        for factor, expr in sorted(self.terms.values(), key=lambda term: term[0] < 0):
            if total is None:
                total = expr if factor == 1 else expr * factor
            else:
                part = expr if abs(factor) == 1 else expr * abs(factor)
                total = total + part if factor > 0 else total - part
        if total is None or self.constant == 0:
            return self.constant if total is None else total
        return total + self.constant if self.constant > 0 else total - -self.constant

    def __str__(self):
        words = []
        for factor, expr in [*self.terms.values(), (self.constant, None)]:
            if factor == 0:
                continue
            size = "" if expr is not None and abs(factor) == 1 else str(abs(factor))
            word = " * ".join(w for w in (size, "" if expr is None else expr.text) if w)
            words.append((" - " if factor < 0 else " + ") + word if words else ("-" if factor < 0 else "") + word)
        return "".join(words) or "0"


class ds:
    """A start and a size along one dimension, a "dynamic slice": X[ds(k * 64, 64), 0:32]. The size of a tensor's view may be an
    expression. Unlike a slice's, a start below 0 stays where it is, in front of the buffer."""

    def __init__(self, start, size):
        self.start, self.size = _scalar(start, "the start of a ds"), _scalar(size, "the size of a ds")

    def __repr__(self):
        return f"ds({Sum.of(self.start)}, {Sum.of(self.size)})"


def _scalar(value, what):
    """An int, or an expression as it is."""
    if hasattr(value, "sum"):
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is an integer or an expression of a tile program, not {type(value).__name__}") from None


def _from_the_end(value, extent, where):
    """A constant below 0 counts from the end, as in Python."""
    if not isinstance(value, int) or value >= 0:
        return value
    if isinstance(extent, int) and value + extent < 0:
        raise IndexError(f"{value} counts from the end of {where}, whose extent is {extent}; a box that begins in front of a tensor is "
                         f"written ds({value}, size)")
    return extent - -value


def _range(part, extent, where, constant):
    """Start and extent of one dimension's part."""
    if isinstance(part, ds):
        start, size = part.start, part.size
        if constant and not isinstance(size, int):
            raise TypeError(f"{part!r} of {where} has a size that is no constant; a box's is: give views of tensors such an extent, "
                            "or take a box of constant size, which may hang over a tensor's end")
        if isinstance(size, int) and size < 1:
            raise ValueError(f"{part!r} of {where} is empty; a size is at least 1")
        return start, size
    if not isinstance(part, slice):
        return _from_the_end(_scalar(part, f"an index of {where}"), extent, where), 1
    if part.step is not None and not (isinstance(part.step, int) and part.step == 1):
        raise ValueError(f"the slice of {where} has a step; a box has every element between its ends: read the elements that you want in "
                         "a parallel loop, buffer(2 * i), or reshape the buffer and index the new dimension")
    ends = [given if given is None else _scalar(given, f"an end of the slice of {where}") for given in (part.start, part.stop)]
    start = 0 if ends[0] is None else _from_the_end(ends[0], extent, where)
    stop = extent if ends[1] is None else _from_the_end(ends[1], extent, where)
    if any(0 in Sum.of(end).terms for end in (start, stop)):  # the builder has failed, and tells why when it finishes
        return start, 1
    size = Sum.of(stop).plus(Sum.of(start), -1)
    written = "[" + " : ".join("" if end is None else str(Sum.of(end)) for end in ends) + "]"
    if constant and size.terms:
        raise TypeError(f"the slice {written} of {where} has the extent stop - start = {size}, which is no constant; a box's is: write "
                        f"ds(start, size), as ds({Sum.of(start)}, 64), or a stop that is the start and a constant. A box may hang over a "
                        "tensor's end")
    size = size.value()
    if isinstance(size, int) and size < 1:
        raise ValueError(f"the slice {written} of {where} is empty: stop - start = {size}; its second number is the end, and "
                         f"ds({Sum.of(start)}, size) is a start and a size")
    return start, size


def box_of(buffer, parts, constant=True):
    """Starts and extents of what stands between a buffer's brackets: slices, ds, indices, and `...` for whole dimensions, which
    those that are left out at the end are, too; and which are no indices. With constant, extents are ints."""
    rank = len(buffer.shape)
    parts = list(parts) if isinstance(parts, tuple) else [parts]
    gaps = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(gaps) > 1:
        raise IndexError(f"{buffer.title} is indexed with '...' twice")
    if len(parts) - len(gaps) > rank:
        raise IndexError(f"{buffer.title} has {rank} dimensions; {len(parts) - len(gaps)} are indexed")
    at = gaps[0] if gaps else len(parts)
    parts[at:at + 1] = [slice(None)] * (rank - len(parts) + len(gaps))
    found = [_range(part, extent, f"dimension {d} of {buffer.title}", constant)
             for d, (part, extent) in enumerate(zip(parts, buffer.shape))]
    return [start for start, _ in found], [extent for _, extent in found], [isinstance(part, (slice, ds)) for part in parts]
