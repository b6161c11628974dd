"""The binding on HIP devices, on the stand-in for the runtime: devices by name, tensors in their memory, results."""
import array
import ctypes
import sys
import types
import unittest

import tilegen as tg
from tilegen import _header as h
from tilegen import ds, f32
from tilegen._library import call, lib

HIP = 1  # ordinal of devices()


def doubling():
    b = tg.Builder("doubling")
    n = b.dim("n")
    x, y = b.tensor("X", f32, [n], read_only=True), b.tensor("Y", f32, [n])
    with b.kernel("doubling", [(n + 255) // 256]) as block:
        tile = b.fragment("tile", f32, [256])
        b.copy(x[ds(block * 256, 256)], tile)
        with b.parallel(256) as i:
            b.store(tile, i, tile(i) * 2.0)
        b.copy(tile, y[ds(block * 256, 256)])
    return b.finish()


class DType:
    name, itemsize = "float32", 4


class DeviceArray:
    """Floats in the memory of a device, as CuPy has them; with `torch` as PyTorch has them."""

    def __init__(self, values, device=(10, 0), torch=False):
        self.data, self.dtype = array.array("f", values), DType()
        self.bytes = 4 * len(values)
        memory = ctypes.c_void_p()
        call("tl_device_allocate", HIP, self.bytes, ctypes.byref(memory))
        self.memory = memory.value
        call("tl_device_copy", HIP, self.memory, self.data.buffer_info()[0], self.bytes, None)
        if torch:
            self.shape, self.device = (len(values),), types.SimpleNamespace(type="cuda", index=device[1])
            self.data_ptr, self.stride = lambda: self.memory, lambda: (1,)
        else:
            self.__cuda_array_interface__ = {"version": 3, "shape": (len(values),), "typestr": "<f4",
                                             "data": (self.memory, False)}
            self.__dlpack_device__ = lambda: device

    def fetch(self):
        out = array.array("f", [0] * len(self.data))
        call("tl_device_copy", HIP, out.buffer_info()[0], self.memory, self.bytes, None)
        return list(out)


class Hip(unittest.TestCase):
    def test_the_device_is_listed_and_is_the_best(self):
        device = tg.devices()[HIP]
        self.assertEqual(device["target"], "gfx942")
        self.assertEqual(device["kind"], h.TL_DEVICE_HIP)
        self.assertEqual(tg.Target("hip").name, "gfx942")
        self.assertEqual(tg.Target().name, "gfx942")

    def test_tensors_of_its_memory(self):
        kernel = doubling().compile("hip").load()
        x, y = DeviceArray(range(300)), DeviceArray([0] * 300)
        kernel(x, y)
        self.assertEqual(y.fetch(), [2 * v for v in range(300)])
        with self.assertRaisesRegex(tg.Error, "tensor 'X' lives on cuda:0, the kernel runs on hip:0"):
            kernel(DeviceArray(range(300), device=(2, 0)), y)
        with self.assertRaisesRegex(tg.Error, "lives on the host"):
            kernel(array.array("f", [1]), array.array("f", [1]))

    def test_what_pytorch_for_rocm_calls_cuda(self):
        stream = types.SimpleNamespace(cuda_stream=0)
        torch = types.SimpleNamespace(version=types.SimpleNamespace(hip="6.2"),
                                      cuda=types.SimpleNamespace(current_stream=lambda device: stream))
        kernel = doubling().compile("hip").load()
        sys.modules["torch"] = torch
        try:
            x, y = DeviceArray(range(8), torch=True), DeviceArray([0] * 8, torch=True)
            kernel(x, y)
            self.assertEqual(y.fetch(), [2 * v for v in range(8)])
            torch.version.hip = None
            with self.assertRaisesRegex(tg.Error, "lives on cuda:0"):
                kernel(x, y)
        finally:
            del sys.modules["torch"]


if __name__ == "__main__":
    assert lib.tl_device_count() > HIP, "no HIP device"
    unittest.main()
