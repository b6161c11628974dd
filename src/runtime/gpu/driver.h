// The driver of one vendor's GPUs in this process: what launches, modules and memory ask of CUDA's driver
// and of HIP's runtime alike. The calls that are the same in both are a table of functions; what is not, is
// virtual.
//
// requires: nothing; without a library, a device or a recent enough version there is an error with a way
// out. ensures: every required entry exists; nothing is unloaded, and no function of the library runs at
// process exit.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/gpu/gpu_types.h"
#include "runtime/memory_place.h"
#include "support/diagnostic.h"

namespace tilegen::driver {
struct Artifact;
}
namespace tilegen::thread {
struct ThreadProgram;
}
namespace tilegen::runtime {
struct TensorShape;
}

namespace tilegen::runtime::gpu {

struct Entries {
#define TILEGEN_GPU_ENTRY(member, cuda, cuda_need, hip, hip_need, parameters) \
  Result(*member) parameters = nullptr;
#include "runtime/gpu/driver_entries.def"
#undef TILEGEN_GPU_ENTRY
};

// What diagnostics call a driver, its parts and its tools.
struct Names {
  const char* prefix;          // "cuda": of targets and devices
  const char* interface;       // "CUDA": what has the version
  const char* library;         // "driver" or "runtime": what the library is
  const char* driver;          // "NVIDIA's driver": what is installed or updated
  const char* tool;            // "nvidia-smi": lists devices and who holds their memory
  const char* memory_tool;     // "compute-sanitizer": what finds a bad access
  const char* pool_function;   // that workspaces come from
  MemoryPlace::Type memory;    // of devices, by DLPack
  uintptr_t launch_param_end;  // of the `extra` list of a launch
  bool compiles;               // the driver compiles what it loads, and keeps a log
  bool dynamic_shared;         // a launch says how much shared memory blocks have; else the code does
};

struct Device {
  const char* prefix = "";  // Names::prefix
  int ordinal = 0;
  DeviceHandle handle = 0;
  std::string name;
  int major = 0, minor = 0;  // CUDA: compute capability
  std::string architecture;  // HIP: "gfx942"
  std::string features;      // HIP: "sramecc+:xnack-"
  size_t memory_bytes = 0;
  int multiprocessors = 0;
  int warp = 32;        // lanes
  int max_threads = 0;  // of a block
  int max_grid[3] = {0, 0, 0};
  int64_t max_grid_threads = 0;  // along x; 0: no limit of its own
  int shared_bytes = 0;          // of a block, when asked for
  int threads_per_multiprocessor = 0, blocks_per_multiprocessor = 0;
  int shared_per_multiprocessor = 0, reserved_shared = 0;
  bool memory_pools = true;

  std::string label() const { return std::string(prefix) + ":" + std::to_string(ordinal); }  // "cuda:0"
  std::string text() const { return label() + " (" + name + ")"; }
};

// What is current on a thread: a context of CUDA and its number, a device of HIP. Equal ones are the same; a
// handle may be that of a context destroyed before, a number never is.
struct Current {
  void* handle = nullptr;  // null: none
  uint64_t id = 0;         // 0: the driver gives no numbers

  bool operator==(const Current&) const = default;
};

struct ContextState;
class ContextTable;
class WorkspacePools;

class Driver {
 public:
  virtual ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const Names& names() const { return names_; }
  const Entries& api() const { return api_; }
  int version() const { return version_; }  // 1000 * major + 10 * minor of the interface
  std::string version_text() const;
  MemoryReach reach(int ordinal) const { return {names_.memory, ordinal}; }
  const std::vector<Device>& devices() const { return devices_; }
  ContextTable& contexts() const { return *contexts_; }
  WorkspacePools& workspace_pools() const { return *pools_; }

  // "CUDA_ERROR_INVALID_VALUE (invalid argument)"
  std::string describe(Result result) const;
  // A way out of a failed call.
  std::string hint_for(Result result) const;

  // What is current on this thread.
  virtual Result current(Current& out) const = 0;
  // Ordinal of the device that work of this thread goes to; -1: none.
  virtual int current_device() const = 0;
  // The context that work for `device` goes to while `current` is current.
  virtual Expected<ContextState*> choose(const Current& current, const Device& device) const = 0;
  // Whether it can still be made current: one of the caller that is gone must not be touched.
  virtual bool alive(const ContextState& state) const = 0;
  // Makes it current on this thread until leave(), which gets what enter() gave.
  virtual Result enter(const ContextState& state, Current& before) const = 0;
  virtual void leave(const Current& before) const = 0;

  // After a call that failed, where the driver keeps that for the thread.
  virtual void forget_error() const {}

  virtual Result copy(Pointer to, Pointer from, size_t bytes, Stream stream) const = 0;

  // Refuses what the driver lacks a function for: driver_absent.
  virtual Checked takes(const driver::Artifact&) const { return Unit{}; }

  // Tensor maps, where the driver makes them.
  virtual bool has_tensor_maps() const { return false; }
  virtual bool encode(const thread::ThreadProgram& program, size_t map, const TensorShape& shape,
                      TensorMap* out) const;

 protected:
  explicit Driver(const Names& names);
  // Starts the driver and describes its devices.
  Checked find_devices();
  Error not_there(const std::string& why, const char* hint) const;

  virtual Checked describe_device(Device& device) = 0;
  // Hints of its own; "" for none.
  virtual std::string own_hint(Result result) const = 0;
  virtual std::string start_hint(Result result) const = 0;
  // Asks for attributes in turn; the first failure ends it.
  struct AttributeRow {
    int32_t attribute;
    int* value;
  };
  Result ask(const Device& device, std::initializer_list<AttributeRow> rows) const;
  Error not_described(const Device& device, Result result) const;

  Entries api_;
  int version_ = 0;

 private:
  Names names_;
  std::vector<Device> devices_;
  std::unique_ptr<ContextTable> contexts_;
  std::unique_ptr<WorkspacePools> pools_;
};

// Opens a driver's library. Refuses: driver_absent.
Expected<void*> open_library(const char* path, const Names& names, const char* hint);

}  // namespace tilegen::runtime::gpu
