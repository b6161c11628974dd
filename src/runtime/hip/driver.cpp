#include "runtime/hip/driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <iterator>
#include <limits>
#include <span>

#include "runtime/gpu/contexts.h"
#include "runtime/gpu/workspace_pools.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::hip {

using gpu::ContextState;
using gpu::Current;
using gpu::Device;
using gpu::Result;

namespace {

constexpr int kOldestMajor = 6;  // ROCm 6.0, the first for gfx942
constexpr char kNoRuntimeHint[] = "install ROCm 6.0 or newer, or compile for 'host'";
constexpr char kUpdateHint[] = "update ROCm, or compile for 'host'";
constexpr gpu::Names kNames = {.prefix = "hip",
                               .interface = "HIP",
                               .library = "runtime",
                               .driver = "ROCm",
                               .tool = "rocm-smi",
                               .memory_tool = "rocgdb",
                               .pool_function = "hipMallocFromPoolAsync",
                               .memory = MemoryPlace::rocm,
                               .launch_param_end = 3,
                               .compiles = false,
                               .dynamic_shared = false};
// By the name that ROCm 7, ROCm 6 and the wheels of frameworks give it, and where ROCm installs it.
constexpr const char* kLibraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so",
                                      "/opt/rocm/lib/libamdhip64.so"};
constexpr bool required = true, optional = false;

// A runtime that the process has already is the one to use: two of them would each take the devices for
// theirs.
Expected<void*> find_library() {
  for (const char* name : kLibraries)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return library;
  for (const char* name : std::span(kLibraries).first(std::size(kLibraries) - 1))
    if (auto library = gpu::open_library(name, kNames, kNoRuntimeHint)) return library;
  return gpu::open_library(std::end(kLibraries)[-1], kNames, kNoRuntimeHint);
}

// Device n; none is 0.
Current as_current(int ordinal) { return {reinterpret_cast<void*>(intptr_t{ordinal} + 1), 0}; }
int ordinal_of(const Current& c) { return static_cast<int>(reinterpret_cast<intptr_t>(c.handle) - 1); }

}  // namespace

Driver::Driver() : gpu::Driver(kNames) {}
Driver::~Driver() = default;

Checked Driver::find_entries(void* library, const std::string& path) {
  std::string missing;
  const auto find = [&](const char* symbol, bool need) {
    void* const found = *symbol ? dlsym(library, symbol) : nullptr;
    if (need && !found && missing.empty()) missing = symbol;
    return found;
  };
#define TILEGEN_GPU_ENTRY(member, cuda, cuda_need, symbol, need, parameters) \
  api_.member = reinterpret_cast<decltype(api_.member)>(find(symbol, need));
#include "runtime/gpu/driver_entries.def"
#undef TILEGEN_GPU_ENTRY
#define TILEGEN_HIP_ENTRY(member, symbol, parameters) \
  hip_.member = reinterpret_cast<decltype(hip_.member)>(find(symbol, required));
#include "runtime/hip/driver_entries.def"
#undef TILEGEN_HIP_ENTRY
  // HIP_VERSION: 10^7 * major + 10^5 * minor + patch. An old runtime lacks functions too; its age says more.
  int hip_version = 0;
  const bool tells = api_.driver_version && api_.driver_version(&hip_version) == gpu::kSuccess;
  version_ = hip_version / 10'000'000 * 1000 + hip_version / 100'000 % 100 * 10;
  if (tells && version_ < 1000 * kOldestMajor)
    return not_there("the runtime is HIP " + version_text() + ", 6.0 or newer is needed", kUpdateHint);
  if (!missing.empty()) return not_there(path + " has no function " + missing, kUpdateHint);
  if (!tells)
    return Error(DiagCode::driver_failure, "hip", "the runtime does not tell its version", kUpdateHint);
  return Unit{};
}

// A grid's threads along x are counted in 32 bits. What a block may have of shared memory it may have without
// asking.
Checked Driver::describe_device(Device& device) {
  int pools = 0;
  Result result = ask(device, {{kMultiprocessors, &device.multiprocessors},
                               {kWarpSize, &device.warp},
                               {kMaxThreadsPerBlock, &device.max_threads},
                               {kMaxGridX, &device.max_grid[0]},
                               {kMaxGridY, &device.max_grid[1]},
                               {kMaxGridZ, &device.max_grid[2]},
                               {kMaxSharedPerBlock, &device.shared_bytes},
                               {kMaxThreadsPerMultiprocessor, &device.threads_per_multiprocessor},
                               {kMaxBlocksPerMultiprocessor, &device.blocks_per_multiprocessor},
                               {kMaxSharedPerMultiprocessor, &device.shared_per_multiprocessor},
                               {kMemoryPoolsSupported, &pools}});
  HipDeviceProperties properties = {};
  if (result == gpu::kSuccess) result = hip_.device_properties(&properties, device.ordinal);
  if (result != gpu::kSuccess) return not_described(device, result);
  const std::string architecture = properties.architecture();
  const size_t colon = architecture.find(':');
  device.architecture = architecture.substr(0, colon);
  if (colon != std::string::npos) device.features = architecture.substr(colon + 1);
  device.max_grid_threads = std::numeric_limits<uint32_t>::max();
  device.memory_pools = pools != 0;
  return Unit{};
}

std::string Driver::own_hint(Result result) const {
  switch (result) {
    case kHipInvalidKernelFile:
    case kHipSharedObjectInitFailed:
      return "compile for the target 'hip', which is this machine's device, or update ROCm, which is HIP " +
             version_text();
    case kHipInvalidConfiguration:
      return "use fewer threads, or smaller dimensions";
  }
  return {};
}

std::string Driver::start_hint(Result result) const {
  if (result == gpu::kNoDevice)
    return "see whether `rocminfo` and HIP_VISIBLE_DEVICES name one, and whether the user may open /dev/kfd, "
           "or compile for 'host'";
  return "see whether `rocminfo` works, or compile for 'host'";
}

Expected<std::unique_ptr<Driver>> Driver::load(const char* path) {
  auto library = path ? gpu::open_library(path, kNames, kNoRuntimeHint) : find_library();
  if (!library) return library.error();
  std::unique_ptr<Driver> driver(new Driver);
  if (Checked ok = driver->find_entries(*library, path ? path : "libamdhip64.so"); !ok) return ok.error();
  if (Checked ok = driver->find_devices(); !ok) return ok.error();
  return driver;
}

Result Driver::current(Current& out) const {
  int ordinal = -1;
  const Result result = hip_.get_device(&ordinal);
  out = result == gpu::kSuccess ? as_current(ordinal) : Current();
  return result;
}

int Driver::current_device() const {
  Current now;
  return current(now) == gpu::kSuccess ? ordinal_of(now) : -1;
}

Expected<ContextState*> Driver::choose(const Current&, const Device& device) const {
  return &contexts().state_of(as_current(device.ordinal), device);
}

Result Driver::enter(const ContextState& state, Current& before) const {
  const Result result = current(before);
  return result == gpu::kSuccess ? hip_.set_device(state.device->ordinal) : result;
}

// The runtime keeps it for the thread, and whoever asks for the thread's last error next would take it for
// theirs.
void Driver::forget_error() const { hip_.last_error(); }

void Driver::leave(const Current& before) const { hip_.set_device(ordinal_of(before)); }

Result Driver::copy(gpu::Pointer to, gpu::Pointer from, size_t bytes, gpu::Stream stream) const {
  return hip_.memory_copy(to, from, bytes, kCopyByAddresses, stream);
}

Expected<Driver*> machine_driver() {
  // Leaked: work may still run on the device when static objects die.
  static const auto* const answer = [] {
    const char* path = secure_getenv("TILEGEN_HIP_RUNTIME");
    return new Expected<std::unique_ptr<Driver>>(Driver::load(path && *path ? path : nullptr));
  }();
  if (!*answer) return answer->error();
  return (*answer)->get();
}

}  // namespace tilegen::runtime::hip
