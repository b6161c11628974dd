"""Element types, and how they are called elsewhere."""
from . import _header as h


class DType:
    """An element type. `name` is libtilegen's; `code` and `bits` are DLPack's."""

    def __init__(self, value, name, code, bits):
        self.value, self.name, self.code, self.bits = value, name, code, bits

    def __repr__(self):
        return "tilegen." + self.name


_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6  # DLPack type codes
_E4M3FN, _E4M3FNUZ, _E5M2, _E5M2FNUZ, _E8M0FNU, _E2M1FN = 10, 11, 12, 13, 14, 17

f16 = DType(h.TL_F16, "f16", _FLOAT, 16)
bf16 = DType(h.TL_BF16, "bf16", _BFLOAT, 16)
f32 = DType(h.TL_F32, "f32", _FLOAT, 32)
f64 = DType(h.TL_F64, "f64", _FLOAT, 64)
i8 = DType(h.TL_I8, "i8", _INT, 8)
u8 = DType(h.TL_U8, "u8", _UINT, 8)
i32 = DType(h.TL_I32, "i32", _INT, 32)
i64 = DType(h.TL_I64, "i64", _INT, 64)
boolean = DType(h.TL_BOOL, "bool", _BOOL, 8)
e4m3 = DType(h.TL_E4M3, "e4m3", _E4M3FN, 8)
e5m2 = DType(h.TL_E5M2, "e5m2", _E5M2, 8)

e4m3fnuz = DType(h.TL_E4M3FNUZ, "e4m3fnuz", _E4M3FNUZ, 8)
e5m2fnuz = DType(h.TL_E5M2FNUZ, "e5m2fnuz", _E5M2FNUZ, 8)
i16 = DType(h.TL_I16, "i16", _INT, 16)
u16 = DType(h.TL_U16, "u16", _UINT, 16)
u32 = DType(h.TL_U32, "u32", _UINT, 32)
u64 = DType(h.TL_U64, "u64", _UINT, 64)
i4 = DType(h.TL_I4, "i4", _INT, 4)
u4 = DType(h.TL_U4, "u4", _UINT, 4)
i2 = DType(h.TL_I2, "i2", _INT, 2)
u2 = DType(h.TL_U2, "u2", _UINT, 2)
e2m1 = DType(h.TL_E2M1, "e2m1", _E2M1FN, 4)
e8m0 = DType(h.TL_E8M0, "e8m0", _E8M0FNU, 8)

ALL = (f16, bf16, f32, f64, i8, u8, i32, i64, boolean, e4m3, e5m2, e4m3fnuz, e5m2fnuz, i16, u16, u32, u64, i4, u4, i2, u2,
       e2m1, e8m0)
FLOATS = tuple(t for t in ALL if t.code in (_FLOAT, _BFLOAT, _E4M3FN, _E4M3FNUZ, _E5M2, _E5M2FNUZ, _E8M0FNU, _E2M1FN))

# NumPy's and PyTorch's names, after "torch." where they have it.
_FOREIGN = {
    "float16": f16, "half": f16, "bfloat16": bf16, "float32": f32, "float": f32, "float64": f64, "double": f64,
    "int8": i8, "uint8": u8, "int32": i32, "int": i32, "int64": i64, "long": i64, "bool": boolean, "bool_": boolean,
    "float8_e4m3fn": e4m3, "float8_e5m2": e5m2, "float8_e4m3fnuz": e4m3fnuz, "float8_e5m2fnuz": e5m2fnuz,
    "int4": i4, "uint4": u4, "int2": i2, "uint2": u2, "float4_e2m1fn": e2m1, "float8_e8m0fnu": e8m0,
    "float4_e2m1fn_x2": u8,  # PyTorch's: a byte of two
    "int16": i16, "short": i16, "uint16": u16, "uint32": u32, "uint64": u64,
}


def dtype_of(foreign):
    """DType of a DType, a NumPy dtype, a PyTorch dtype or a name."""
    if isinstance(foreign, DType):
        return foreign
    name = getattr(foreign, "name", None) or str(foreign)
    name = name.removeprefix("torch.")
    for own in ALL:
        if own.name == name:
            return own
    if name not in _FOREIGN:
        raise TypeError(f"no element type of libtilegen for {foreign!r}")
    return _FOREIGN[name]
