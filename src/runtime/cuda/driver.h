// The CUDA driver of this process, loaded when first asked for: the only place that knows libcuda's own
// symbols.
#pragma once

#include <mutex>

#include "runtime/cuda/cuda_types.h"
#include "runtime/gpu/driver.h"

namespace tilegen::runtime::cuda {

struct Entries {
#define TILEGEN_CUDA_ENTRY(member, symbol, need, parameters) gpu::Result(*member) parameters = nullptr;
#include "runtime/cuda/driver_entries.def"
#undef TILEGEN_CUDA_ENTRY
};

class Driver final : public gpu::Driver {
 public:
  // `path` names the library. Refuses: driver_absent, device_absent, driver_failure.
  static Expected<std::unique_ptr<Driver>> load(const char* path);
  ~Driver() override;

  const Entries& cuda() const { return cuda_; }

  gpu::Result current(gpu::Current& out) const override;
  int current_device() const override;
  Expected<gpu::ContextState*> choose(const gpu::Current& current, const gpu::Device& device) const override;
  bool alive(const gpu::ContextState& state) const override;
  gpu::Result enter(const gpu::ContextState& state, gpu::Current& before) const override;
  void leave(const gpu::Current& before) const override;
  gpu::Result copy(gpu::Pointer to, gpu::Pointer from, size_t bytes, gpu::Stream stream) const override;

  Checked takes(const driver::Artifact& artifact) const override;
  bool has_tensor_maps() const override { return cuda_.tensor_map != nullptr; }
  bool encode(const thread::ThreadProgram& program, size_t map, const TensorShape& shape,
              gpu::TensorMap* out) const override;

 private:
  Driver();
  Checked find_entries(void* library, const std::string& path);
  Checked describe_device(gpu::Device& device) override;
  std::string own_hint(gpu::Result result) const override;
  std::string start_hint(gpu::Result result) const override;
  // Of a context; 0 for none and where the driver cannot tell.
  uint64_t id_of(CuContext context) const;
  Expected<gpu::ContextState*> primary(const gpu::Device& device) const;

  Entries cuda_;
  mutable std::mutex mutex_;
  mutable std::vector<gpu::ContextState*> primaries_;  // by ordinal
};

// The machine's driver: libcuda.so.1, or what the variable TILEGEN_CUDA_DRIVER names (tests). Looked up once;
// the answer, good or bad, holds for the life of the process.
Expected<Driver*> machine_driver();

}  // namespace tilegen::runtime::cuda
