"""Tensors of other libraries as the DLTensor descriptions that a launch takes. Nothing is copied."""
import ctypes

from . import _header as h
from .types import boolean, dtype_of, f16, f32, f64, i8, i32, i64, u8

_CPU, _CUDA = 1, 2  # DLPack device types

# Formats of the buffer protocol (struct module).
_BUFFER_FORMATS = {"e": f16, "f": f32, "d": f64, "b": i8, "B": u8, "i": i32, "q": i64, "l": i64, "?": boolean}


class Described:
    """A DLTensor and what it points to. `owner` keeps the memory alive."""

    def __init__(self, address, shape, strides, dtype, device, owner):
        rank = len(shape)
        self.owner, self.dtype = owner, dtype
        self.shape = (ctypes.c_int64 * max(rank, 1))(*shape)
        self.strides = (ctypes.c_int64 * max(rank, 1))(*strides)
        self.raw = h.DLTensor(data=address, device=h.DLDevice(*device), ndim=rank,
                              dtype=h.DLDataType(dtype.code, dtype.bits, 1), byte_offset=0)
        self.raw.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        self.raw.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))


def _compact(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return strides[::-1]


def describe(tensor):
    """Describes a PyTorch tensor, a NumPy array, a writable buffer, or anything with __cuda_array_interface__."""
    if hasattr(tensor, "data_ptr"):  # PyTorch
        kind = tensor.device.type
        if kind not in ("cpu", "cuda"):
            raise TypeError(f"a tensor on device {kind!r}; expected cpu or cuda")
        device = (_CPU, 0) if kind == "cpu" else (_CUDA, tensor.device.index or 0)
        return Described(tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), dtype_of(tensor.dtype), device, tensor)
    if hasattr(tensor, "__array_interface__") and hasattr(tensor, "dtype"):  # NumPy
        dtype = dtype_of(tensor.dtype)
        size = tensor.dtype.itemsize
        if any(s % size for s in tensor.strides):
            raise ValueError("strides that are no whole number of elements")
        return Described(tensor.__array_interface__["data"][0], tensor.shape, [s // size for s in tensor.strides], dtype,
                         (_CPU, 0), tensor)
    if hasattr(tensor, "__cuda_array_interface__"):  # CuPy, Numba
        face = tensor.__cuda_array_interface__
        dtype = dtype_of(tensor.dtype)
        size = tensor.dtype.itemsize
        strides = [s // size for s in face["strides"]] if face.get("strides") else _compact(face["shape"])
        return Described(face["data"][0], face["shape"], strides, dtype, (_CUDA, 0), tensor)
    try:
        view = memoryview(tensor)
    except TypeError:
        view = None
    if view is not None and view.format in _BUFFER_FORMATS:  # array.array, ctypes arrays, memoryview
        address = ctypes.addressof(ctypes.c_char.from_buffer(view)) if view.nbytes else 0
        return Described(address, view.shape, [s // view.itemsize for s in view.strides], _BUFFER_FORMATS[view.format],
                         (_CPU, 0), tensor)
    raise TypeError(f"{type(tensor).__name__} is no tensor that can be launched on: expected a PyTorch tensor, a NumPy "
                    "array, a writable buffer of numbers or an object with __cuda_array_interface__")
