// The part of the CUDA driver's interface that is used here, declared from its documentation: no CUDA header
// is needed to build, no CUDA library to start.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilegen::runtime::cuda {

using CuResult = int32_t;
using CuDevice = int32_t;
using CuPointer = uint64_t;
using CuContext = struct CuContextTag*;
using CuModule = struct CuModuleTag*;
using CuFunction = struct CuFunctionTag*;
using CuStream = struct CuStreamTag*;

enum : CuResult {
  kCuSuccess = 0,
  kCuInvalidValue = 1,
  kCuOutOfMemory = 2,
  kCuNoDevice = 100,
  kCuInvalidContext = 201,
  kCuNoBinaryForGpu = 209,
  kCuEccUncorrectable = 214,
  kCuInvalidPtx = 218,
  kCuJitCompilerNotFound = 221,
  kCuUnsupportedPtxVersion = 222,
  kCuJitDisabled = 223,
  kCuContained = 226,
  kCuInvalidHandle = 400,
  kCuIllegalAddress = 700,
  kCuLaunchOutOfResources = 701,
  kCuLaunchTimeout = 702,
  kCuContextIsDestroyed = 709,
  kCuAssert = 710,
  kCuHardwareStackError = 714,
  kCuTensorMemoryLeak = 721,
  kCuSystemDriverMismatch = 803,
  kCuStreamCaptureUnsupported = 900,
  kCuStreamCaptureWrongThread = 908
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

enum CuFunctionAttribute : int32_t {
  kFunctionMaxThreads = 0,
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicShared = 8,
  kFunctionLargeClusters = 14  // CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
};
constexpr int64_t kPortableCluster = 8;  // blocks; larger clusters only where the function allows them

enum CuJitOption : int32_t {
  kJitInfoLogBuffer = 3,
  kJitInfoLogBufferSize = 4,
  kJitErrorLogBuffer = 5,
  kJitErrorLogBufferSize = 6,
  kJitLogVerbose = 12
};

// CUtensorMap: how the copy engine sees a tensor; a parameter of kernels.
struct alignas(64) CuTensorMap {
  uint64_t opaque[16];
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

// A launch with attributes, CUlaunchConfig.
enum CuLaunchAttributeId : int32_t {
  kLaunchCluster = 4,    // value: x, y, z
  kLaunchDependent = 6,  // value[0]: 1, blocks may begin before the kernel before it has ended
};
struct CuLaunchAttribute {
  CuLaunchAttributeId id = kLaunchCluster;
  uint32_t padding = 0;
  uint32_t value[16] = {1, 1, 1};
};
static_assert(sizeof(CuLaunchAttribute) == 72);
struct CuLaunchConfig {
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared_bytes = 0;
  CuStream stream = nullptr;
  const CuLaunchAttribute* attributes = nullptr;
  uint32_t attribute_count = 0;
};

// A pool of memory that is allocated and freed in the order of a stream, CUmemPoolProps.
using CuMemoryPool = struct CuMemoryPoolTag*;
enum CuPoolAttribute : int32_t { kPoolReleaseThreshold = 4 };
struct CuPoolProperties {
  int32_t kind = 1;      // pinned, as all device memory
  int32_t handles = 0;   // for no other process
  int32_t location = 1;  // a device:
  int32_t device = 0;    // its number
  void* security = nullptr;
  uint8_t reserved[64] = {};
};
static_assert(sizeof(CuPoolProperties) == 88);

// Marks of cuLaunchKernel's `extra` list: the parameters as one buffer.
inline void* const kLaunchParamEnd = nullptr;
inline void* const kLaunchParamBuffer = reinterpret_cast<void*>(uintptr_t{1});
inline void* const kLaunchParamBufferSize = reinterpret_cast<void*>(uintptr_t{2});

}  // namespace tilegen::runtime::cuda
