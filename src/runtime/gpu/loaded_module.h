// An artifact's code loaded in one context, compiled by the driver where it is PTX: its functions looked up
// and made ready for the shared memory they need.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "runtime/gpu/contexts.h"
#include "runtime/gpu/tile_counters.h"
#include "runtime/gpu/workspace_pools.h"

namespace tilegen::runtime::gpu {

// Launches of up to `blocks` blocks ask for `bytes` of shared memory beside those that the code states.
struct SharedOfFewBlocks {
  int64_t blocks = 0;
  uint32_t bytes = 0;
};

struct LoadedFunction {
  Function function = nullptr;
  const char* name = nullptr;        // lives for ever
  int64_t resident_blocks = 0;       // of a persistent kernel, or in clusters: on the whole device at once
  TileCounters* counters = nullptr;  // of kernels whose blocks fetch tiles
  std::array<int64_t, 3> most_blocks{};  // along x, y and z
  uint32_t dynamic_shared = 0;           // bytes that a launch asks for beside those that the code states
  std::vector<SharedOfFewBlocks> few_blocks;  // of a dependent kernel, the fewest first
  int registers = 0, local_bytes = 0, static_shared = 0, max_threads = 0;
};

// Blocks of a launch along x, y and z at most.
std::array<int64_t, 3> most_blocks(const Device& device, const thread::ThreadProgram& program);

class LoadedModule {
 public:
  // The context must be current. Refuses: driver_failure with the compiler's words, limit_memory and
  // launch_limit for what the device does not have.
  static Expected<std::unique_ptr<LoadedModule>> load(const Driver& driver, ContextState& state,
                                                      const driver::Artifact& artifact);
  ~LoadedModule();

  ContextState& state() const { return state_; }
  MemoryPool pool() const { return pool_; }  // where launches have workspaces
  const std::vector<LoadedFunction>& functions() const { return functions_; }  // as Artifact::kernels
  const std::string& log() const { return log_; }
  double load_ms() const { return load_ms_; }

 private:
  LoadedModule(const Driver& driver, ContextState& state) : driver_(driver), state_(state) {}
  Checked compile(const driver::Artifact& artifact);
  Checked find(const thread::ThreadProgram& kernel);
  Checked allow(const thread::ThreadProgram& kernel, const LoadedFunction& f) const;
  Checked count_resident(const thread::ThreadProgram& kernel, LoadedFunction& f) const;
  Checked count_clusters(const thread::ThreadProgram& kernel, LoadedFunction& f) const;
  Result clusters_at_once(const thread::ThreadProgram& kernel, const LoadedFunction& f, uint32_t shared,
                          int& clusters) const;
  void spread(const thread::ThreadProgram& kernel, LoadedFunction& f) const;

  const Driver& driver_;
  ContextState& state_;
  Module module_ = nullptr;
  MemoryPool pool_ = nullptr;  // the device's
  std::unique_ptr<TileCounters> counters_;
  std::vector<LoadedFunction> functions_;
  std::string log_;
  double load_ms_ = 0;
};

}  // namespace tilegen::runtime::gpu
