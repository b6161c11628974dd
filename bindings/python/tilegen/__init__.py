"""libtilegen for Python: tile programs built or read from text, compiled and launched on PyTorch tensors and NumPy
arrays. Only ctypes and the shared library are needed."""
from ._library import Diagnostic, Error
from .boxes import ds
from .builder import Buffer, Builder, Expr
from .program import (Artifact, Context, Kernel, Launch, PerformanceWarning, Program, Target, bitcode_text, build_info, devices,
                      format_text)
from .tensors import packed, reinterpret
from .tuning import Configuration
from .types import (DType, bf16, boolean, dtype_of, e2m1, e4m3, e4m3fnuz, e5m2, e5m2fnuz, e8m0, f16, f32, f64, i2, i4, i8,
                    i16, i32, i64, u2, u4, u8, u16, u32, u64)

__all__ = ["Artifact", "Buffer", "Builder", "Configuration", "Context", "DType", "Diagnostic", "Error", "Expr", "Kernel", "Launch",
           "PerformanceWarning", "Program", "Target", "bf16", "bitcode_text", "boolean", "build_info", "devices", "ds", "dtype_of", "e2m1",
           "e4m3", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0", "f16", "f32", "f64", "format_text", "i2", "i4", "i8", "i16", "i32", "i64",
           "packed", "reinterpret", "u2", "u4", "u8", "u16", "u32", "u64"]
