#include "runtime/hip/hip_executable.h"

#include "runtime/gpu/gpu_executable.h"

namespace tilegen::runtime::hip {

Expected<std::unique_ptr<Executable>> load_on_hip(const Driver& driver,
                                                  std::shared_ptr<const driver::Artifact> artifact,
                                                  int ordinal) {
  return gpu::load_on_gpu(driver, std::move(artifact), ordinal);
}

Expected<std::unique_ptr<Executable>> load_on_hip(std::shared_ptr<const driver::Artifact> artifact,
                                                  int ordinal) {
  auto driver = machine_driver();
  if (!driver) return driver.error();
  return load_on_hip(**driver, std::move(artifact), ordinal);
}

}  // namespace tilegen::runtime::hip
