// The CUDA driver of this process, loaded when first asked for.
//
// requires: nothing; without a driver, a device or a recent enough driver there is an error with a way out.
// ensures: every entry that is called exists; nothing is unloaded, and no driver function runs at process
//   exit.
// why here: the only place that knows libcuda's symbols.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/cuda_types.h"
#include "support/diagnostic.h"

namespace tilegen::runtime::cuda {

struct Entries {
#define TILEGEN_CUDA_ENTRY(member, symbol, need, parameters) CuResult(*member) parameters = nullptr;
#include "runtime/cuda/driver_entries.def"
#undef TILEGEN_CUDA_ENTRY
};

struct Device {
  int ordinal = 0;
  CuDevice handle = 0;
  std::string name;
  int major = 0, minor = 0;  // compute capability
  size_t memory_bytes = 0;
  int multiprocessors = 0;
  int max_threads = 0;  // of a block
  int max_grid[3] = {0, 0, 0};
  int shared_bytes = 0;  // of a block, when asked for
  int threads_per_multiprocessor = 0, blocks_per_multiprocessor = 0;
  int shared_per_multiprocessor = 0, reserved_shared = 0;

  std::string text() const { return "cuda:" + std::to_string(ordinal) + " (" + name + ")"; }
};

class Contexts;
class WorkspacePools;

class Driver {
 public:
  // `path` names the library. Refuses: driver_absent, device_absent, driver_failure.
  static Expected<std::unique_ptr<Driver>> load(const char* path);
  ~Driver();

  const Entries& api() const { return api_; }
  int version() const { return version_; }  // 1000 * major + 10 * minor of the CUDA it supports
  std::string version_text() const;
  const std::vector<Device>& devices() const { return devices_; }
  Contexts& contexts() const { return *contexts_; }
  WorkspacePools& workspace_pools() const { return *pools_; }

  // "CUDA_ERROR_INVALID_VALUE (invalid argument)"
  std::string describe(CuResult result) const;

 private:
  Driver();
  Checked find_entries(void* library, const std::string& path);
  Checked find_devices();
  Checked describe_device(Device& device);

  Entries api_;
  int version_ = 0;
  std::vector<Device> devices_;
  std::unique_ptr<Contexts> contexts_;
  std::unique_ptr<WorkspacePools> pools_;
};

// The machine's driver: libcuda.so.1, or what the variable TILEGEN_CUDA_DRIVER names (tests). Looked up once;
// the answer, good or bad, holds for the life of the process.
Expected<Driver*> machine_driver();

}  // namespace tilegen::runtime::cuda
