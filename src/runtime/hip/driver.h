// The HIP runtime of this process, loaded when first asked for: the only place that knows libamdhip64's own
// symbols.
//
// A device of HIP is its context: work of a thread goes to its current device (hipSetDevice), which there
// always is.
#pragma once

#include "runtime/gpu/driver.h"
#include "runtime/hip/hip_types.h"

namespace tilegen::runtime::hip {

struct Entries {
#define TILEGEN_HIP_ENTRY(member, symbol, parameters) gpu::Result(*member) parameters = nullptr;
#include "runtime/hip/driver_entries.def"
#undef TILEGEN_HIP_ENTRY
};

class Driver final : public gpu::Driver {
 public:
  // `path` names the library; null: the first that is found of those that ROCm installs. Refuses:
  // driver_absent, device_absent, driver_failure.
  static Expected<std::unique_ptr<Driver>> load(const char* path);
  ~Driver() override;

  gpu::Result current(gpu::Current& out) const override;
  int current_device() const override;
  Expected<gpu::ContextState*> choose(const gpu::Current& current, const gpu::Device& device) const override;
  bool alive(const gpu::ContextState&) const override { return true; }
  gpu::Result enter(const gpu::ContextState& state, gpu::Current& before) const override;
  void leave(const gpu::Current& before) const override;
  void forget_error() const override;
  gpu::Result copy(gpu::Pointer to, gpu::Pointer from, size_t bytes, gpu::Stream stream) const override;

 private:
  Driver();
  Checked find_entries(void* library, const std::string& path);
  Checked describe_device(gpu::Device& device) override;
  std::string own_hint(gpu::Result result) const override;
  std::string start_hint(gpu::Result result) const override;

  Entries hip_;
};

// The machine's runtime, or what the variable TILEGEN_HIP_RUNTIME names (tests). Looked up once; the
// answer, good or bad, holds for the life of the process.
Expected<Driver*> machine_driver();

}  // namespace tilegen::runtime::hip
