"""Tensors of f16 and f32 numbers for tests, with the standard library alone."""
import array
import random
import struct


class Halves:
    """f16 numbers in memory, as PyTorch describes them."""
    dtype = "torch.float16"

    class device:
        type, index = "cpu", None

    def __init__(self, *shape):
        self.shape, self.count = shape, 1
        for extent in shape:
            self.count *= extent
        self.data = array.array("H", bytes(2 * self.count))

    def random(self):
        numbers = (random.uniform(-2, 2) for _ in range(self.count))
        self.data = array.array("H", struct.pack(f"{self.count}e", *numbers))
        return self

    def viewed(self, *shape):
        view = Halves(0)
        view.shape, view.count, view.data = shape, self.count, self.data
        return view

    def data_ptr(self): return self.data.buffer_info()[0]

    def stride(self):
        steps = [1]
        for extent in reversed(self.shape[1:]):
            steps.append(steps[-1] * extent)
        return tuple(reversed(steps))

    def numbers(self): return struct.unpack(f"{self.count}e", self.data.tobytes())


def floats(*shape):
    count = 1
    for extent in shape:
        count *= extent
    data = array.array("f", bytes(4 * count))
    return data, memoryview(data).cast("B").cast("f", shape)
