// An artifact on a device, ready to launch: the one interface behind which the host, GPUs (and whatever
// else runs thread programs) stand.
//
// requires: an artifact with code for the device. ensures: launch() checks its arguments against the program,
// chooses each kernel's version, and runs the kernels in order; it may be called by any number of threads at
// once and, once prepared, takes no lock and allocates nothing of its own. refuses: launch_* for arguments,
// the device's own diagnostics for the rest. A program with workspaces gets their memory for each launch.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "runtime/argument_plan.h"
#include "runtime/workspace.h"
#include "support/cancellation.h"

namespace tilegen::runtime {

struct LaunchOptions {
  int max_threads = 0;     // host: 0 = all cores
  void* stream = nullptr;  // CUDA: a CUstream, HIP: a hipStream_t; null is the legacy default stream
  // host and simulator: asked while blocks run; GPUs: while code is compiled. Null: nobody to ask
  const Cancellation* cancellation = nullptr;
  // GPUs: makes the log, of `listener`, that hears of code compiled for the launch. Null: nobody's
  std::shared_ptr<Log> (*log_of)(const void* listener) = nullptr;
  const void* listener = nullptr;
  LineSink lines;  // of what the program prints
};

// What one version of one kernel needs. Numbers are -1 where they are not known.
struct VersionInfo {
  size_t kernel = 0;   // of the program, in order
  size_t variant = 0;  // 0 is tried first
  const thread::ThreadProgram* program = nullptr;
  std::string guards;     // what it relies on
  bool measured = false;  // true: the device said so; false: from tables
  int registers = -1;     // of a thread; HIP: accumulation registers among them
  int accumulation_registers = 0, scalar_registers = 0;  // HIP, of a lane and of a wave
  int64_t local_bytes = -1;                              // of a thread, spilled or addressed
  int64_t static_shared_bytes = 0, dynamic_shared_bytes = 0;
  int max_threads = -1;  // of a block of this code
  int blocks_per_multiprocessor = -1;
};

class KernelVersion;
// What the code itself tells of a version.
VersionInfo version_row(const KernelVersion& version, size_t kernel, size_t variant);

class Executable {
 public:
  virtual ~Executable() = default;

  const driver::Artifact& artifact() const { return *artifact_; }
  const MemoryReach& reach() const { return reach_; }

  // Brings everything a launch needs in place (GPUs: in the context that is current).
  virtual Checked prepare() = 0;

  Checked launch(std::span<const Argument> arguments, const LaunchOptions& options) const;

  // One row per version, kernels in order, each kernel's versions in the order they are tried.
  virtual Expected<std::vector<VersionInfo>> info() const = 0;

  // How many rows info() has.
  virtual size_t version_count() const { return artifact_->kernels.size(); }

  // What the device's compiler said when the code was first loaded, and how long that took. "" before.
  virtual std::string load_log() const { return {}; }
  virtual double load_ms() const { return 0; }

 protected:
  Executable(std::shared_ptr<const driver::Artifact> artifact, MemoryReach reach)
      : artifact_(std::move(artifact)),
        plan_(artifact_->launch_program()),
        workspace_(artifact_->launch_program()),
        reach_(reach) {}

  // Kernels on checked slots, one per parameter.
  virtual Checked run(std::span<const uint64_t> slots, const LaunchOptions& options) const = 0;

  // The same where there are workspaces: their slots are still to be filled. Host memory unless a device does
  // it.
  virtual Checked run_in_workspace(std::span<uint64_t> slots, const LaunchOptions& options) const;
  const Workspace& workspace() const { return workspace_; }

  // Of another executable of the same text, for those that are made of several: the slots of its parameters,
  // and what workspaces of their own the two have.
  static Checked run_of(const Executable& e, std::span<const uint64_t> slots, const LaunchOptions& options);
  static Checked run_in_workspace_of(const Executable& e, std::span<uint64_t> slots,
                                     const LaunchOptions& options);

 private:
  Checked launch_unplanned(std::span<const Argument> arguments, const LaunchOptions& options) const;

  std::shared_ptr<const driver::Artifact> artifact_;
  ArgumentPlan plan_;
  Workspace workspace_;
  MemoryReach reach_;
};

// Any device that fits the artifact: for GPUs the one of the current context, else the first.
inline constexpr size_t kAnyDevice = static_cast<size_t>(-1);

// Puts an artifact on device `ordinal` of devices(). Refuses: device_absent and driver_* where the device is
// not there or not able, target_unsupported for an artifact without code.
Expected<std::unique_ptr<Executable>> load(std::shared_ptr<const driver::Artifact> artifact, size_t ordinal);

}  // namespace tilegen::runtime
