#include "runtime/cuda/cuda_executable.h"

#include "runtime/gpu/gpu_executable.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::cuda {

Expected<std::unique_ptr<Executable>> load_on_cuda(const Driver& driver,
                                                   std::shared_ptr<const driver::Artifact> artifact,
                                                   int ordinal) {
  for (const thread::ThreadProgram& kernel : artifact->kernels)
    if (!artifact->code.empty() && !kernel.tensor_maps.empty() && !driver.has_tensor_maps())
      return Error(DiagCode::driver_absent, kernel.name,
                   "code for " + artifact->target.name +
                       " needs the driver's function cuTensorMapEncodeTiled; this one supports CUDA " +
                       driver.version_text() + " and lacks it",
                   "update NVIDIA's driver, or compile for 'sm_90'");
  return gpu::load_on_gpu(driver, std::move(artifact), ordinal);
}

Expected<std::unique_ptr<Executable>> load_on_cuda(std::shared_ptr<const driver::Artifact> artifact,
                                                   int ordinal) {
  auto driver = machine_driver();
  if (!driver) return driver.error();
  return load_on_cuda(**driver, std::move(artifact), ordinal);
}

}  // namespace tilegen::runtime::cuda
