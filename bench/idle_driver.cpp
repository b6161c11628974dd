// A library that looks like libcuda.so.1 and does next to nothing, so that what a launch costs is the
// library's own part:
//   TILEGEN_CUDA_DRIVER=build/bench/libidle_driver.so build/bench/gpu_launch
//
// With TILEGEN_IDLE_DRIVER=cold a launch passes over as much memory and code as the first-level caches hold,
// as a real driver's does: what is timed then is code that runs once in a while.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define IDLE_API extern "C" __attribute__((visibility("default")))

namespace {

enum Result : int { kSuccess = 0, kInvalidValue = 1, kInvalidContext = 201 };

struct Context {
  unsigned long long id = 1;
};
Context g_primary;
thread_local Context* t_current = nullptr;
constexpr uintptr_t kHandle = 64;  // of modules, functions and streams

constexpr size_t kDataBytes = 96 << 10, kLine = 64;
alignas(64) volatile char g_data[kDataBytes];

const bool g_cold = [] {
  const char* mode = std::getenv("TILEGEN_IDLE_DRIVER");
  return mode && !std::strcmp(mode, "cold");
}();

// 64 KiB of code, a jump in each line.
[[gnu::noinline]] void pass_over_code() {
  __asm__ volatile(".rept 1024\n jmp 1f\n .nops 30, 10\n 1: .nops 32, 8\n .endr\n" ::: "memory");
}

void pass_over_caches() {
  for (size_t at = 0; at < kDataBytes; at += kLine) g_data[at] = static_cast<char>(g_data[at] + 1);
  pass_over_code();
}

int launch() {
  if (!t_current) return kInvalidContext;
  if (g_cold) pass_over_caches();
  return kSuccess;
}

// Those of an H200 by the numbers of the driver's documentation.
int attribute_of(int attribute) {
  constexpr struct {
    int attribute, value;
  } kRows[] = {{1, 1024}, {5, 0x7fffffff}, {6, 65535}, {7, 65535},     {16, 132}, {39, 2048},
               {75, 9},   {76, 0},         {81, 228 << 10}, {97, 227 << 10}, {106, 32}, {111, 1 << 10}};
  for (const auto& row : kRows)
    if (row.attribute == attribute) return row.value;
  return -1;
}

}  // namespace

IDLE_API int cuInit(unsigned) { return kSuccess; }
IDLE_API int cuDriverGetVersion(int* version) { return *version = 13000, kSuccess; }
IDLE_API int cuGetErrorName(int, const char** text) { return *text = "CUDA_ERROR", kSuccess; }
IDLE_API int cuGetErrorString(int, const char** text) {
  return *text = "an error of the idle driver", kSuccess;
}
IDLE_API int cuDeviceGetCount(int* count) { return *count = 1, kSuccess; }
IDLE_API int cuDeviceGet(int* device, int) { return *device = 0, kSuccess; }
IDLE_API int cuDeviceGetName(char* name, int size, int) {
  return std::strncpy(name, "no device", static_cast<size_t>(size)), kSuccess;
}
IDLE_API int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = size_t{1} << 30, kSuccess; }
IDLE_API int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute_of(attribute);
  return *value < 0 ? kInvalidValue : kSuccess;
}
IDLE_API int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &g_primary, kSuccess; }
IDLE_API int cuCtxGetCurrent(void** context) { return *context = t_current, kSuccess; }
IDLE_API int cuCtxSetCurrent(void* context) { return t_current = static_cast<Context*>(context), kSuccess; }
IDLE_API int cuCtxPushCurrent_v2(void* context) { return cuCtxSetCurrent(context); }
IDLE_API int cuCtxPopCurrent_v2(void** context) {
  return *context = t_current, t_current = nullptr, kSuccess;
}
IDLE_API int cuCtxGetDevice(int* device) { return *device = 0, t_current ? kSuccess : kInvalidContext; }
IDLE_API int cuCtxGetId(void* context, unsigned long long* id) {
  const auto* const asked = context ? static_cast<Context*>(context) : t_current;
  return asked ? (*id = asked->id, kSuccess) : kInvalidContext;
}
IDLE_API int cuModuleLoadDataEx(void** module, const void*, unsigned, int*, void**) {
  return *module = reinterpret_cast<void*>(kHandle), kSuccess;
}
IDLE_API int cuModuleUnload(void*) { return kSuccess; }
IDLE_API int cuModuleGetFunction(void** function, void*, const char*) {
  return *function = reinterpret_cast<void*>(kHandle), kSuccess;
}
IDLE_API int cuFuncGetAttribute(int* value, int attribute, void*) {
  return *value = attribute == 0 ? 1024 : 0, kSuccess;
}
IDLE_API int cuFuncSetAttribute(void*, int, int) { return kSuccess; }
IDLE_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, size_t) {
  return *blocks = 1, kSuccess;
}
IDLE_API int cuOccupancyMaxActiveClusters(int* clusters, void*, const void*) {
  return *clusters = 66, kSuccess;
}
IDLE_API int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            void*, void**, void**) {
  return launch();
}
IDLE_API int cuLaunchKernelEx(const void*, void*, void**, void**) { return launch(); }
IDLE_API int cuStreamIsCapturing(void*, int* status) { return *status = 0, kSuccess; }
IDLE_API int cuStreamGetId(void* stream, unsigned long long* id) {
  return *id = reinterpret_cast<uintptr_t>(stream), kSuccess;
}
IDLE_API int cuStreamCreate(void** stream, unsigned) {
  return *stream = reinterpret_cast<void*>(kHandle), kSuccess;
}
IDLE_API int cuStreamDestroy_v2(void*) { return kSuccess; }
IDLE_API int cuStreamSynchronize(void*) { return kSuccess; }
IDLE_API int cuThreadExchangeStreamCaptureMode(int*) { return kSuccess; }
IDLE_API int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  *address = reinterpret_cast<uint64_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return kSuccess;
}
IDLE_API int cuMemFree_v2(uint64_t address) { return std::free(reinterpret_cast<void*>(address)), kSuccess; }
IDLE_API int cuMemcpyAsync(uint64_t, uint64_t, size_t, void*) { return kSuccess; }
IDLE_API int cuMemsetD8Async(uint64_t, unsigned char, size_t, void*) { return kSuccess; }
IDLE_API int cuTensorMapEncodeTiled(void* map, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                                    const uint32_t*, const uint32_t*, int, int, int, int) {
  return std::memset(map, 0, 128), kSuccess;
}
