// What a test tells the fake CUDA driver and asks of it. The library is loaded as the driver would be; these
// functions are found in it by name (fake_control.h).
#pragma once

#include <cstddef>
#include <cstdint>

// What cuTensorMapEncodeTiled was told.
struct FakeTensorMap {
  uint32_t magic;
  uint16_t rank, type, swizzle, box[5];
  uint64_t address, extents[5], strides[4];
};
constexpr uint32_t kFakeTensorMap = 0x7e450a4d;

struct FakeLaunch {
  char name[128];
  unsigned grid[3], block[3], shared_bytes, cluster;  // cluster: its blocks, along x
  unsigned dependent;                                 // may begin before the kernel before it has ended
  void* stream;
  void* context;
  size_t parameters;
  uint64_t values[16];
  size_t maps;  // tensor maps after the parameters
  FakeTensorMap map[4];
  uint64_t behind;  // the slot after the maps, where there is one
  int pooled;       // pieces of pools' memory that its stream has then
};
using FakeKernel = void (*)(const FakeLaunch* launch);

// FAKE_CUDA_CONTROL(result, name, (parameters))
#define FAKE_CUDA_CONTROLS                                                                             \
  /* Forgets calls, launches, failures, contexts, modules and memory; one device of capability 9.0. */ \
  FAKE_CUDA_CONTROL(void, fake_reset, ())                                                              \
  FAKE_CUDA_CONTROL(void, fake_set_devices, (int count))                                               \
  FAKE_CUDA_CONTROL(void, fake_set_capability, (int device, int major, int minor))                     \
  FAKE_CUDA_CONTROL(void, fake_set_version, (int version))                                             \
  /* The calls of `function` after the next `after` ones give `result`, `times` of them (-1: all). */  \
  FAKE_CUDA_CONTROL(void, fake_fail, (const char* function, int result, int after, int times))         \
  FAKE_CUDA_CONTROL(int, fake_calls, (const char* function))                                           \
  FAKE_CUDA_CONTROL(int, fake_all_calls, ())                                                           \
  FAKE_CUDA_CONTROL(int, fake_launches, ())                                                            \
  FAKE_CUDA_CONTROL(const FakeLaunch*, fake_launch, (int index))                                       \
  /* Runs `kernel` at every launch of a function of that name. */                                      \
  FAKE_CUDA_CONTROL(void, fake_register, (const char* name, FakeKernel kernel))                        \
  /* What module loads write into the log buffers. */                                                  \
  FAKE_CUDA_CONTROL(void, fake_set_logs, (const char* info, const char* error))                        \
  FAKE_CUDA_CONTROL(void, fake_set_function,                                                           \
                    (int registers, int local_bytes, int static_shared, int max_threads))              \
  FAKE_CUDA_CONTROL(void*, fake_make_context, (int device))                                            \
  FAKE_CUDA_CONTROL(void, fake_destroy_context, (void* context))                                       \
  FAKE_CUDA_CONTROL(void, fake_set_current, (void* context))                                           \
  FAKE_CUDA_CONTROL(void*, fake_current, ())                                                           \
  /* While a stream is captured every call that a capture forbids fails, and is counted. */            \
  FAKE_CUDA_CONTROL(void, fake_capture, (void* stream, int on))                                        \
  FAKE_CUDA_CONTROL(int, fake_forbidden_calls, ())                                                     \
  /* Calls that needed a current context where there was none. */                                      \
  FAKE_CUDA_CONTROL(int, fake_calls_without_context, ())                                               \
  FAKE_CUDA_CONTROL(int, fake_loaded_modules, ())                                                      \
  FAKE_CUDA_CONTROL(int, fake_allocations, ())                                                         \
  /* Pieces of pools' memory that a stream has. */                                                     \
  FAKE_CUDA_CONTROL(int, fake_pooled, (void* stream))                                                  \
  /* Largest dynamic shared memory that was asked for. */                                              \
  FAKE_CUDA_CONTROL(int, fake_shared_allowed, ())                                                      \
  /* Clusters that are resident at once. */                                                            \
  FAKE_CUDA_CONTROL(void, fake_set_clusters, (int resident))                                           \
  /* Milliseconds that a module load takes. */                                                         \
  FAKE_CUDA_CONTROL(void, fake_slow_load, (int ms))
