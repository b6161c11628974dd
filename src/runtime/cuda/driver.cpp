#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include "runtime/gpu/contexts.h"
#include "runtime/gpu/workspace_pools.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::cuda {
namespace {

constexpr int kOldestVersion = 11000;  // CUDA 11.0, the first for sm_80
constexpr char kNoDriverHint[] = "install NVIDIA's driver, or compile for 'host'";
constexpr char kUpdateHint[] = "update NVIDIA's driver, or compile for 'host'";
constexpr gpu::Names kNames = {.prefix = "cuda",
                               .interface = "CUDA",
                               .library = "driver",
                               .driver = "NVIDIA's driver",
                               .tool = "nvidia-smi",
                               .memory_tool = "compute-sanitizer",
                               .pool_function = "cuMemAllocFromPoolAsync",
                               .memory = MemoryPlace::cuda,
                               .launch_param_end = 0,
                               .compiles = true,
                               .dynamic_shared = true};
constexpr bool required = true, optional = false;

}  // namespace

Driver::Driver() : gpu::Driver(kNames) {}
Driver::~Driver() = default;

Checked Driver::find_entries(void* library, const std::string& path) {
  std::string missing;
#define TILEGEN_GPU_ENTRY(member, symbol, need, hip, hip_need, parameters)       \
  api_.member = reinterpret_cast<decltype(api_.member)>(dlsym(library, symbol)); \
  if (need && !api_.member && missing.empty()) missing = symbol;
#include "runtime/gpu/driver_entries.def"
#undef TILEGEN_GPU_ENTRY
#define TILEGEN_CUDA_ENTRY(member, symbol, need, parameters)                       \
  cuda_.member = reinterpret_cast<decltype(cuda_.member)>(dlsym(library, symbol)); \
  if (need && !cuda_.member && missing.empty()) missing = symbol;
#include "runtime/cuda/driver_entries.def"
#undef TILEGEN_CUDA_ENTRY
  // An old driver lacks functions too; its age says more.
  const bool tells = api_.driver_version && api_.driver_version(&version_) == gpu::kSuccess;
  if (tells && version_ < kOldestVersion)
    return not_there("the driver supports CUDA " + version_text() + ", 11.0 or newer is needed", kUpdateHint);
  if (!missing.empty()) return not_there(path + " has no function " + missing, kUpdateHint);
  if (!tells)
    return Error(DiagCode::driver_failure, "cuda", "the driver does not tell its version", kUpdateHint);
  return Unit{};
}

Checked Driver::describe_device(gpu::Device& device) {
  const gpu::Result result = ask(device, {{kCapabilityMajor, &device.major},
                                          {kCapabilityMinor, &device.minor},
                                          {kMultiprocessors, &device.multiprocessors},
                                          {kMaxThreadsPerBlock, &device.max_threads},
                                          {kMaxGridX, &device.max_grid[0]},
                                          {kMaxGridY, &device.max_grid[1]},
                                          {kMaxGridZ, &device.max_grid[2]},
                                          {kMaxSharedPerBlockOptIn, &device.shared_bytes},
                                          {kMaxThreadsPerMultiprocessor, &device.threads_per_multiprocessor},
                                          {kMaxBlocksPerMultiprocessor, &device.blocks_per_multiprocessor},
                                          {kMaxSharedPerMultiprocessor, &device.shared_per_multiprocessor},
                                          {kReservedSharedPerBlock, &device.reserved_shared}});
  if (result != gpu::kSuccess) return not_described(device, result);
  return Unit{};
}

std::string Driver::own_hint(gpu::Result result) const {
  switch (result) {
    case kCuInvalidPtx:
      return "compile for the target 'cuda', which is this machine's device";
    case kCuUnsupportedPtxVersion:
      return "update NVIDIA's driver, which supports CUDA " + version_text();
    case kCuJitCompilerNotFound:
    case kCuJitDisabled:
      return "install libnvidia-ptxjitcompiler of the driver's release and unset CUDA_DISABLE_PTX_JIT";
  }
  return {};
}

std::string Driver::start_hint(gpu::Result result) const {
  if (result == gpu::kNoDevice)
    return "see whether `nvidia-smi` and CUDA_VISIBLE_DEVICES name one, or compile for 'host'";
  if (result == kCuSystemDriverMismatch)
    return "the kernel module and libcuda.so.1 are of different releases; restart the machine";
  return "see whether `nvidia-smi` works, or compile for 'host'";
}

Expected<std::unique_ptr<Driver>> Driver::load(const char* path) {
  auto library = gpu::open_library(path, kNames, kNoDriverHint);
  if (!library) return library.error();
  std::unique_ptr<Driver> driver(new Driver);
  if (Checked ok = driver->find_entries(*library, path); !ok) return ok.error();
  if (Checked ok = driver->find_devices(); !ok) return ok.error();
  driver->primaries_.resize(driver->devices().size());
  return driver;
}

Expected<Driver*> machine_driver() {
  // Leaked: work may still run on the device when static objects die.
  static const auto* const answer = [] {
    const char* path = secure_getenv("TILEGEN_CUDA_DRIVER");
    return new Expected<std::unique_ptr<Driver>>(Driver::load(path && *path ? path : "libcuda.so.1"));
  }();
  if (!*answer) return answer->error();
  return (*answer)->get();
}

}  // namespace tilegen::runtime::cuda
