// The part of the drivers' interfaces that is the same for CUDA and HIP, declared from their documentation:
// HIP gives the functions that it took over from CUDA the same parameters, and their enumerators and errors
// the same values. No header of either is needed to build, no library to start.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilegen::runtime::gpu {

using Result = int32_t;
using DeviceHandle = int32_t;
using Pointer = uint64_t;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;

enum : Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidHandle = 400,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,
  kLaunchFailed = 719,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureWrongThread = 908
};

enum FunctionAttribute : int32_t {
  kFunctionMaxThreads = 0,
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicShared = 8,
  kFunctionLargeClusters = 14  // CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
};
constexpr int64_t kPortableCluster = 8;  // blocks; larger clusters only where the function allows them

enum JitOption : int32_t {
  kJitInfoLogBuffer = 3,
  kJitInfoLogBufferSize = 4,
  kJitErrorLogBuffer = 5,
  kJitErrorLogBufferSize = 6,
  kJitLogVerbose = 12
};

// A pool of memory that is allocated and freed in the order of a stream: CUmemPoolProps, hipMemPoolProps.
using MemoryPool = struct MemoryPoolTag*;
enum PoolAttribute : int32_t { kPoolReleaseThreshold = 4 };
struct PoolProperties {
  int32_t kind = 1;      // pinned, as all device memory
  int32_t handles = 0;   // for no other process
  int32_t location = 1;  // a device:
  int32_t device = 0;    // its number
  void* security = nullptr;
  uint8_t reserved[64] = {};
};
static_assert(sizeof(PoolProperties) == 88);

// Marks of the `extra` list of a launch: the parameters as one buffer. What ends it differs.
inline void* const kLaunchParamBuffer = reinterpret_cast<void*>(uintptr_t{1});
inline void* const kLaunchParamBufferSize = reinterpret_cast<void*>(uintptr_t{2});

// A launch with attributes, CUlaunchConfig.
enum LaunchAttributeId : int32_t {
  kLaunchCluster = 4,    // value: x, y, z
  kLaunchDependent = 6,  // value[0]: 1, blocks may begin before the kernel before it has ended
};
struct LaunchAttribute {
  LaunchAttributeId id = kLaunchCluster;
  uint32_t padding = 0;
  uint32_t value[16] = {1, 1, 1};
};
static_assert(sizeof(LaunchAttribute) == 72);
struct LaunchConfig {
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared_bytes = 0;
  Stream stream = nullptr;
  const LaunchAttribute* attributes = nullptr;
  uint32_t attribute_count = 0;
};

// How a copy engine sees a tensor; a parameter of kernels.
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

}  // namespace tilegen::runtime::gpu
