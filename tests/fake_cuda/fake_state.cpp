// A library that looks like libcuda.so.1 to a program that loads it: it hands out handles, keeps "device"
// memory on the host, records what is called, and fails where it is told to. Written from the driver's
// documentation, without CUDA headers and without the headers of the code under test.
//
// TILEGEN_FAKE_CUDA in the environment sets it up for programs that cannot call the controls:
// "devices=2,version=10020,fail=cuInit:100,endless=KERNEL".
#include "fake_state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace fake {
namespace {

// Every function, with whether a capture allows it.
struct Function {
  const char* name;
  bool in_capture;
};
constexpr Function kFunctions[] = {
    {"cuInit", true},
    {"cuDriverGetVersion", true},
    {"cuGetErrorName", true},
    {"cuGetErrorString", true},
    {"cuDeviceGetCount", true},
    {"cuDeviceGet", true},
    {"cuDeviceGetName", true},
    {"cuDeviceTotalMem_v2", true},
    {"cuDeviceGetAttribute", true},
    {"cuDevicePrimaryCtxRetain", false},
    {"cuCtxGetCurrent", true},
    {"cuCtxPushCurrent_v2", true},
    {"cuCtxPopCurrent_v2", true},
    {"cuCtxGetDevice", true},
    {"cuCtxGetId", true},
    {"cuModuleLoadDataEx", false},
    {"cuModuleUnload", false},
    {"cuModuleGetFunction", false},
    {"cuFuncGetAttribute", true},
    {"cuFuncSetAttribute", false},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", true},
    {"cuLaunchKernel", true},
    {"cuLaunchKernelEx", true},
    {"cuOccupancyMaxActiveClusters", true},
    {"cuStreamIsCapturing", true},
    {"cuStreamGetId", true},
    {"cuStreamCreate", false},
    {"cuStreamDestroy_v2", false},
    {"cuThreadExchangeStreamCaptureMode", true},
    {"cuMemsetD8Async", false},
    {"cuStreamSynchronize", false},
    {"cuMemAlloc_v2", false},
    {"cuMemFree_v2", false},
    {"cuMemPoolCreate", false},
    {"cuMemPoolSetAttribute", false},
    {"cuMemAllocFromPoolAsync", true},
    {"cuMemFreeAsync", true},
    {"cuMemcpyAsync", false},
    {"cuTensorMapEncodeTiled", true},
};
static_assert(std::size(kFunctions) == kFunctionCount);

}  // namespace

State& state() {
  static State* const s = new State;
  return *s;
}

int pooled(const State& s, void* stream) {
  return static_cast<int>(std::count_if(s.pooled.begin(), s.pooled.end(),
                                        [&](const auto& piece) { return piece.second == stream; }));
}

ContextStack& context_stack() {
  FAKE_THREAD_LOCAL static ContextStack stack;
  return stack;
}

int& capture_mode() {
  FAKE_THREAD_LOCAL static int mode = 0;
  return mode;
}

size_t index_of(const char* name) {
  for (size_t i = 0; i < kFunctionCount; ++i)
    if (!std::strcmp(kFunctions[i].name, name)) return i;
  std::abort();  // a test names a function that is not here
}

void reset(State& s) {
  s.devices = 1;
  s.version = 12080;
  for (auto& c : s.capability) c = {9, 0};
  s.calls.fill(0);
  s.failures.fill({});
  s.forbidden = s.launches = 0;
  s.kernels.clear();
  s.info_log = "ptxas info    : Used 32 registers, 400 bytes cmem[0]";
  s.error_log.clear();
  s.registers = 32;
  s.local_bytes = s.static_shared = 0;
  s.max_threads = 1024;
  s.primary.fill(nullptr);
  for (Module* m : s.modules) delete m;
  s.modules.clear();
  for (auto& [address, bytes] : s.memory) std::free(reinterpret_cast<void*>(address));
  s.memory.clear();
  s.streams.clear();
  for (auto& [address, stream] : s.pooled) std::free(reinterpret_cast<void*>(address));
  s.pooled.clear();
  s.stream_ids.clear();
  s.captured = nullptr;
  s.capturing = false;
  s.shared_allowed = s.load_ms = 0;
  s.clusters = 3;
  context_stack().clear();
  capture_mode() = 0;
}

Context* make_context(State& s, int device) {
  s.contexts.push_back(std::make_unique<Context>());
  s.contexts.back()->device = device;
  s.contexts.back()->id = s.next_id++;
  return s.contexts.back().get();
}

namespace {

void read_environment(State& s) {
  const char* text = std::getenv("TILEGEN_FAKE_CUDA");
  std::istringstream list(text ? text : "");
  for (std::string item; std::getline(list, item, ',');) {
    const std::string key = item.substr(0, item.find('=')), value = item.substr(item.find('=') + 1);
    if (key == "devices") s.devices = std::atoi(value.c_str());
    if (key == "version") s.version = std::atoi(value.c_str());
    if (key == "endless") s.endless = value;
    if (key == "capability")
      s.capability.fill({std::atoi(value.c_str()) / 10, std::atoi(value.c_str()) % 10});
    if (key == "fail")
      s.failures[index_of(value.substr(0, value.find(':')).c_str())] = {
          std::atoi(value.c_str() + value.find(':') + 1), 0, -1};
  }
}

[[maybe_unused]] const bool g_ready = [] {
  reset(state());
  read_environment(state());
  return true;
}();

}  // namespace

int enter(State& s, size_t i) {
  ++s.calls[i];
  constexpr int kRelaxed = 2;
  if (s.capturing && !kFunctions[i].in_capture && capture_mode() != kRelaxed) {
    ++s.forbidden;
    return kCaptureUnsupported;
  }
  Failure& f = s.failures[i];
  if (f.times == 0) return kSuccess;
  if (f.after > 0) {
    --f.after;
    return kSuccess;
  }
  if (f.times > 0) --f.times;
  return f.result;
}

}  // namespace fake
