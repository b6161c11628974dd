"""Tensors of other libraries as the DLTensor descriptions that a launch takes. Nothing is copied."""
import ctypes
import sys

from . import _header as h
from .types import ALL, boolean, dtype_of, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64

_CPU, _CUDA, _ROCM = 1, 2, 10  # DLPack device types
GPUS = (_CUDA, _ROCM)

# Formats of the buffer protocol (struct module), and bytes of an element; the size of "l" depends on what stands before it.
_BUFFER_FORMATS = {("e", 2): f16, ("f", 4): f32, ("d", 8): f64, ("b", 1): i8, ("B", 1): u8, ("i", 4): i32, ("l", 4): i32,
                   ("q", 8): i64, ("l", 8): i64, ("h", 2): i16, ("H", 2): u16, ("I", 4): u32, ("L", 4): u32, ("Q", 8): u64,
                   ("L", 8): u64, ("?", 1): boolean}
_NATIVE_ORDER = "<" if sys.byteorder == "little" else ">"


class Described:
    """A DLTensor and what it points to. `owner` keeps the memory alive; `read_only` memory is refused where a program
    writes."""

    def __init__(self, address, shape, strides, dtype, device, owner, read_only=False):
        rank = len(shape)
        self.owner, self.dtype, self.read_only = owner, dtype, read_only
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


def _whole_bytes(dtype):
    """Arrays of types of fewer bits keep each element in a byte of its own."""
    if dtype.bits < 8:
        raise TypeError(f"an array of {dtype.name} has a byte for each element; put {8 // dtype.bits} of them into each byte of an "
                        f"array of uint8 and pass that, or tilegen.packed(array, {dtype.name})")
    return dtype


def _described_interface(face, tensor, device):
    """Of __array_interface__ and __cuda_array_interface__, whose type has the byte order in front: "<f4", "|u1"."""
    order, size = face["typestr"][0], tensor.dtype.itemsize
    if order in "<>" and order != _NATIVE_ORDER:
        raise TypeError(f"elements of type {face['typestr']} have their bytes in the other order; convert them first, "
                        "e.g. with array.astype(array.dtype.newbyteorder('='))")
    if face.get("mask") is not None:
        raise TypeError("an array with a mask; pass its data alone")
    dtype, (address, read_only) = _whole_bytes(dtype_of(tensor.dtype)), face["data"]
    strides = face.get("strides")
    if strides is None:
        return Described(address, face["shape"], _compact(face["shape"]), dtype, device, tensor, read_only)
    if any(s % size for s in strides):
        raise ValueError("strides that are no whole number of elements")
    return Described(address, face["shape"], [s // size for s in strides], dtype, device, tensor, read_only)


def _described_buffer(view, tensor):
    """Of the buffer protocol, or None for elements that no type here has."""
    order, kind = (view.format[0], view.format[1:]) if view.format[0] in "@=<>!" else ("@", view.format)
    dtype = _BUFFER_FORMATS.get((kind, view.itemsize))
    if dtype is None:
        return None
    if view.itemsize > 1 and (">" if order == "!" else order) not in "@=" + _NATIVE_ORDER:
        raise TypeError(f"a buffer of format {view.format!r} has its bytes in the other order; convert it first")
    if view.readonly:
        raise TypeError("a read-only buffer does not say where it lies; pass a writable one, or numpy.frombuffer of it for "
                        "a tensor that the program only reads")
    address = ctypes.addressof(ctypes.c_char.from_buffer(view)) if view.nbytes else 0
    return Described(address, view.shape, [s // view.itemsize for s in view.strides], dtype, (_CPU, 0), tensor)


def _torch_gpu():
    """What PyTorch calls "cuda": a build for ROCm calls its devices so too."""
    torch = sys.modules.get("torch")
    return _ROCM if torch is not None and getattr(torch.version, "hip", None) else _CUDA


def packed(tensor, dtype):
    """A tensor of bytes described as what its bytes hold: elements of a type of fewer bits, those of a byte behind each
    other in the last dimension, the first in its lowest bits."""
    bytes_, dtype = describe(tensor), dtype_of(dtype)
    if bytes_.dtype.bits != 8 or dtype.bits > 8:
        raise TypeError(f"elements of {dtype.name} are taken from tensors of bytes, not of {bytes_.dtype.name} into {dtype.name}")
    rank, many = bytes_.raw.ndim, 8 // dtype.bits
    shape, strides = list(bytes_.shape[:rank]), list(bytes_.strides[:rank])
    if rank == 0 or (many > 1 and strides[-1] != 1 and shape[-1] > 1):
        raise ValueError("the bytes of the last dimension lie apart; copy the tensor")
    shape[-1] *= many
    return Described(bytes_.raw.data, shape, [s * many for s in strides[:-1]] + [1], dtype,
                     (bytes_.raw.device.device_type, bytes_.raw.device.device_id), bytes_.owner, bytes_.read_only)


def reinterpret(tensor, dtype):
    """A tensor described as one of another type of as many bits: bf16 or 8-bit floats in arrays of uint16 or uint8, as
    NumPy has them without ml_dtypes."""
    found, dtype = describe(tensor), dtype_of(dtype)
    if found.dtype.bits != dtype.bits or dtype is boolean:
        raise TypeError(f"elements of {found.dtype.name}, which have {found.dtype.bits} bits, are no {dtype.name} of {dtype.bits}"
                        + (", whose values are 0 and 1 alone" if dtype is boolean else ""))
    rank = found.raw.ndim
    return Described(found.raw.data, found.shape[:rank], found.strides[:rank], dtype,
                     (found.raw.device.device_type, found.raw.device.device_id), found.owner, found.read_only)


def _described_dlpack(tensor):
    """Of DLPack's protocol; the capsule, which is kept, owns the memory."""
    capsule = tensor.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    raw = ctypes.cast(pointer(capsule, b"dltensor"), ctypes.POINTER(h.DLTensor)).contents
    dtype = next((t for t in ALL if (t.code, t.bits) == (raw.dtype.code, raw.dtype.bits)), None)
    if dtype is None or raw.dtype.lanes != 1:
        raise TypeError(f"no element type of libtilegen for DLPack's type {raw.dtype.code} of {raw.dtype.bits} bits and {raw.dtype.lanes} lanes")
    shape = list(raw.shape[:raw.ndim])
    strides = list(raw.strides[:raw.ndim]) if raw.strides else _compact(shape)
    return Described((raw.data or 0) + raw.byte_offset, shape, strides, dtype, (raw.device.device_type, raw.device.device_id),
                     (tensor, capsule))


def describe(tensor):
    """Describes a PyTorch tensor, a NumPy array, a writable buffer, or anything with __cuda_array_interface__ or DLPack's
    protocol."""
    if isinstance(tensor, Described):
        return tensor
    if hasattr(tensor, "data_ptr"):  # PyTorch
        kind = tensor.device.type
        if kind not in ("cpu", "cuda"):
            raise TypeError(f"a tensor on device {kind!r}; expected cpu or cuda")
        device = (_CPU, 0) if kind == "cpu" else (_torch_gpu(), tensor.device.index or 0)
        return Described(tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), _whole_bytes(dtype_of(tensor.dtype)), device,
                         tensor)
    if hasattr(tensor, "__array_interface__") and hasattr(tensor, "dtype"):  # NumPy
        return _described_interface(tensor.__array_interface__, tensor, (_CPU, 0))
    if hasattr(tensor, "__cuda_array_interface__"):  # CuPy, Numba; of the device DLPack's protocol tells
        device = tensor.__dlpack_device__() if hasattr(tensor, "__dlpack_device__") else (_CUDA, 0)
        return _described_interface(tensor.__cuda_array_interface__, tensor, tuple(map(int, device)))
    try:
        view = memoryview(tensor)
    except TypeError:
        view = None
    described = _described_buffer(view, tensor) if view is not None and view.format else None  # array.array, ctypes arrays
    if described is not None:
        return described
    if hasattr(tensor, "__dlpack__"):
        return _described_dlpack(tensor)
    raise TypeError(f"{type(tensor).__name__} is no tensor that can be launched on: expected a PyTorch tensor, a NumPy "
                    "array, a writable buffer of numbers or an object with __cuda_array_interface__ or __dlpack__")
