"""Tensors of numbers for tests, with the standard library alone."""
import array
import random
import struct


def _e4m3(code):
    sign, exponent, mantissa = -1 if code & 0x80 else 1, code >> 3 & 15, code & 7
    return sign * (mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10))


_E4M3 = [_e4m3(code) if code & 0x7F != 0x7F else float("nan") for code in range(256)]
_E4M3_CODES = {value: code for code, value in reversed(list(enumerate(_E4M3)))}
# Letters of the struct module; types without one are kept as their bits.
_FORMATS = {"float16": "e", "bfloat16": "H", "float32": "f", "int32": "i", "uint16": "H", "uint8": "B", "float8_e4m3fn": "B"}


def _bfloat16(value):
    bits = struct.unpack("I", struct.pack("f", value))[0]
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16  # to nearest, ties to even


class Numbers:
    """Numbers in memory, as PyTorch describes them. `dtype` is a name of PyTorch's."""

    class device:
        type, index = "cpu", None

    def __init__(self, dtype, *shape):
        self.kind, self.dtype, self.shape, self.count = dtype, "torch." + dtype, shape, 1
        for extent in shape:
            self.count *= extent
        self.data = array.array("B", bytes(self.count * struct.calcsize(_FORMATS[dtype])))

    def set(self, values):
        """The numbers in order, rounded to the type; those of an 8-bit float must be of the type."""
        if self.kind == "bfloat16":
            values = map(_bfloat16, values)
        elif self.kind == "float8_e4m3fn":
            values = map(_E4M3_CODES.__getitem__, values)
        self.data = array.array("B", struct.pack(f"{self.count}{_FORMATS[self.kind]}", *values))
        return self

    def random(self, low=-2.0, high=2.0):
        """Evenly distributed numbers, of 8-bit floats the type's numbers in these bounds."""
        if self.kind == "float8_e4m3fn":
            return self.set(random.choices([v for v in _E4M3 if low <= v <= high], k=self.count))
        if self.kind in ("int32", "uint8"):
            return self.set(random.randint(low, high) for _ in range(self.count))
        return self.set(random.uniform(low, high) for _ in range(self.count))

    def viewed(self, *shape):
        view = Numbers(self.kind, 0)
        view.shape, view.count, view.data = shape, self.count, self.data
        return view

    def data_ptr(self): return self.data.buffer_info()[0]

    def stride(self):
        steps = [1]
        for extent in reversed(self.shape[1:]):
            steps.append(steps[-1] * extent)
        return tuple(reversed(steps))

    def numbers(self):
        values = struct.unpack(f"{self.count}{_FORMATS[self.kind]}", self.data.tobytes())
        if self.kind == "bfloat16":
            return struct.unpack(f"{self.count}f", struct.pack(f"{self.count}I", *(v << 16 for v in values)))
        return tuple(_E4M3[v] for v in values) if self.kind == "float8_e4m3fn" else values

    def matrices(self):
        """The numbers as lists of the shape."""
        found = list(self.numbers())
        for extent in reversed(self.shape[1:]):
            found = [found[i : i + extent] for i in range(0, len(found), extent)] if extent else []
        return found


class Halves(Numbers):
    """f16 numbers."""

    def __init__(self, *shape):
        super().__init__("float16", *shape)


def floats(*shape):
    count = 1
    for extent in shape:
        count *= extent
    data = array.array("f", bytes(4 * count))
    return data, memoryview(data).cast("B").cast("f", shape)
