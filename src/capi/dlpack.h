// Layout of a DLPack tensor description (version 1), declared from its specification: the C ABI that array
// libraries share. Only what is read here; managed tensors are never taken.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: compact row-major
  uint64_t byte_offset;
};

}  // extern "C"

static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, device) == 8 && offsetof(DLTensor, ndim) == 16 &&
              offsetof(DLTensor, dtype) == 20 && offsetof(DLTensor, shape) == 24 &&
              offsetof(DLTensor, strides) == 32 && offsetof(DLTensor, byte_offset) == 40);

namespace tilegen::capi::dl {

// The 8-bit floats have their codes since DLPack 1.1, and those of fewer bits. Elements of fewer bits, those
// of kInt and kUInt too, lie packed, as many in a byte as it has room for, the first in its lowest bits.
enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kBool = 6,
  kFloat8E4m3fn = 10,
  kFloat8E4m3fnuz = 11,
  kFloat8E5m2 = 12,
  kFloat8E5m2fnuz = 13,
  kFloat8E8m0fnu = 14,
  kFloat4E2m1fn = 17,
};

}  // namespace tilegen::capi::dl
