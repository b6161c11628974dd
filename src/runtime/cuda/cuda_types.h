// The part of the CUDA driver's interface that HIP does not have, or has with other numbers, declared from
// its documentation.
#pragma once

#include "runtime/gpu/gpu_types.h"

namespace tilegen::runtime::cuda {

using CuContext = void*;

enum : gpu::Result {
  kCuInvalidPtx = 218,
  kCuJitCompilerNotFound = 221,
  kCuUnsupportedPtxVersion = 222,
  kCuJitDisabled = 223,
  kCuContained = 226,
  kCuTensorMemoryLeak = 721,
  kCuSystemDriverMismatch = 803,
};

enum CuDeviceAttribute : int32_t {
  kMaxThreadsPerBlock = 1,
  kMaxGridX = 5,
  kMaxGridY = 6,
  kMaxGridZ = 7,
  kMultiprocessors = 16,
  kMaxThreadsPerMultiprocessor = 39,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kMaxSharedPerMultiprocessor = 81,
  kMaxSharedPerBlockOptIn = 97,
  kMaxBlocksPerMultiprocessor = 106,
  kReservedSharedPerBlock = 111
};

enum CuTensorMapType : int32_t {
  kTensorU8 = 0,
  kTensorU16 = 1,
  kTensorU32 = 2,
  kTensorI32 = 3,
  kTensorU64 = 4,
  kTensorI64 = 5,
  kTensorF16 = 6,
  kTensorF32 = 7,
  kTensorF64 = 8,
  kTensorBf16 = 9
};
enum CuTensorMapInterleave : int32_t { kInterleaveNone = 0 };
enum CuTensorMapSwizzle : int32_t { kSwizzleNone = 0, kSwizzle32 = 1, kSwizzle64 = 2, kSwizzle128 = 3 };
enum CuTensorMapPromotion : int32_t { kPromotion128 = 2 };
enum CuTensorMapFill : int32_t { kFillZeros = 0 };

}  // namespace tilegen::runtime::cuda
