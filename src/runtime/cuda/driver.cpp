#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <new>

#include "runtime/cuda/contexts.h"
#include "runtime/cuda/workspace_pools.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::cuda {
namespace {

constexpr int kOldestVersion = 11000;  // CUDA 11.0, the first for sm_80
constexpr char kNoDriverHint[] = "install NVIDIA's driver, or compile for 'host'";
constexpr char kUpdateHint[] = "update NVIDIA's driver, or compile for 'host'";

std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

constexpr bool required = true, optional = false;

}  // namespace

Driver::Driver() = default;
Driver::~Driver() = default;

std::string Driver::version_text() const { return cuda_version(version_); }

std::string Driver::describe(CuResult result) const {
  const char *name = nullptr, *text = nullptr;
  if (api_.error_name(result, &name) != kCuSuccess || !name) return "CUDA error " + std::to_string(result);
  if (api_.error_string(result, &text) != kCuSuccess || !text) return name;
  return std::string(name) + " (" + text + ")";
}

Checked Driver::find_entries(void* library, const std::string& path) {
  std::string missing;
#define TILEGEN_CUDA_ENTRY(member, symbol, need, parameters)                     \
  api_.member = reinterpret_cast<decltype(api_.member)>(dlsym(library, symbol)); \
  if (need && !api_.member && missing.empty()) missing = symbol;
#include "runtime/cuda/driver_entries.def"
#undef TILEGEN_CUDA_ENTRY
  // An old driver lacks functions too; its age says more.
  const bool tells = api_.driver_version && api_.driver_version(&version_) == kCuSuccess;
  if (tells && version_ < kOldestVersion)
    return Error(DiagCode::driver_absent, "cuda",
                 "the driver supports CUDA " + version_text() + ", " + cuda_version(kOldestVersion) +
                     " or newer is needed",
                 kUpdateHint);
  if (!missing.empty())
    return Error(DiagCode::driver_absent, "cuda", path + " has no function " + missing, kUpdateHint);
  if (!tells)
    return Error(DiagCode::driver_failure, "cuda", "the driver does not tell its version", kUpdateHint);
  return Unit{};
}

Checked Driver::describe_device(Device& device) {
  CuResult result = api_.device_get(&device.handle, device.ordinal);
  char name[256] = "";
  if (result == kCuSuccess) result = api_.device_name(name, sizeof name - 1, device.handle);
  if (result == kCuSuccess) result = api_.device_memory(&device.memory_bytes, device.handle);
  device.name = name;
  const std::pair<CuDeviceAttribute, int*> numbers[] = {
      {kCapabilityMajor, &device.major},
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
      {kReservedSharedPerBlock, &device.reserved_shared}};
  for (const auto& [attribute, number] : numbers)
    if (result == kCuSuccess) result = api_.device_attribute(number, attribute, device.handle);
  if (result == kCuSuccess) return Unit{};
  return Error(DiagCode::driver_failure, "cuda:" + std::to_string(device.ordinal),
               "asking for the device's properties failed: " + describe(result),
               "see whether `nvidia-smi` lists it");
}

Checked Driver::find_devices() {
  CuResult result = api_.init(0);
  int count = 0;
  if (result == kCuSuccess) result = api_.device_count(&count);
  if (result == kCuNoDevice || (result == kCuSuccess && count == 0))
    return Error(DiagCode::device_absent, "cuda", "the driver finds no CUDA device",
                 "see whether `nvidia-smi` and CUDA_VISIBLE_DEVICES name one, or compile for 'host'");
  if (result != kCuSuccess)
    return Error(DiagCode::driver_failure, "cuda", "starting the driver failed: " + describe(result),
                 result == kCuSystemDriverMismatch
                     ? "the kernel module and libcuda.so.1 are of different releases; restart the machine"
                     : "see whether `nvidia-smi` works, or compile for 'host'");
  devices_.resize(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    devices_[static_cast<size_t>(i)].ordinal = i;
    if (Checked ok = describe_device(devices_[static_cast<size_t>(i)]); !ok) return ok;
  }
  return Unit{};
}

Expected<std::unique_ptr<Driver>> Driver::load(const char* path) {
  errno = 0;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    // says nothing about the driver, and is not to be remembered
    if (errno == ENOMEM) throw std::bad_alloc();
    const char* why = dlerror();
    return Error(DiagCode::driver_absent, "cuda",
                 "the CUDA driver cannot be loaded: " + std::string(why ? why : path), kNoDriverHint);
  }
  std::unique_ptr<Driver> driver(new Driver);
  if (Checked ok = driver->find_entries(library, path); !ok) return ok.error();
  if (Checked ok = driver->find_devices(); !ok) return ok.error();
  driver->contexts_ = std::make_unique<Contexts>(*driver);
  driver->pools_ = std::make_unique<WorkspacePools>(*driver);
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
