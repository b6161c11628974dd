#include "runtime/cuda/contexts.h"

#include "support/diag_codes.h"

namespace tilegen::runtime::cuda {

Contexts::Contexts(const Driver& driver)
    : driver_(driver), context_id_(driver.api().context_id), primaries_(driver.devices().size()) {}

Expected<ContextState*> Contexts::choose(CuContext current, const Device& device) {
  if (current) {
    CuDevice handle = -1;
    const CuResult result = driver_.api().context_device(&handle);
    if (result != kCuSuccess)
      return call_failed(driver_, nullptr, result, "asking for the device of the current context");
    if (handle == device.handle) return &state_of(current, device);
  }
  std::lock_guard lock(mutex_);
  return primary(device);
}

Expected<ContextState*> Contexts::primary(const Device& device) {
  ContextState*& known = primaries_[static_cast<size_t>(device.ordinal)];
  if (known) return known;
  CuContext context = nullptr;
  const CuResult result = driver_.api().primary_retain(&context, device.handle);
  if (result != kCuSuccess)
    return call_failed(driver_, nullptr, result, "making a context on " + device.text());
  const uint64_t id = id_of(context);
  for (const auto& state : states_)  // the caller may have had it current before
    if (state->context == context && state->id == id) known = state.get();
  if (!known) {
    states_.push_back(std::make_unique<ContextState>());
    known = states_.back().get();
    known->context = context;
    known->id = id;
    known->device = &device;
  }
  known->primary = true;
  return known;
}

ContextState& Contexts::state_of(CuContext context, const Device& device) {
  const uint64_t id = id_of(context);
  std::lock_guard lock(mutex_);
  for (const auto& state : states_)
    if (state->context == context && state->id == id) return *state;
  states_.push_back(std::make_unique<ContextState>());
  ContextState& state = *states_.back();
  state.context = context;
  state.id = id;
  state.device = &device;
  return state;
}

const char* Contexts::intern(const std::string& name) {
  std::lock_guard lock(mutex_);
  return names_.insert(name).first->c_str();
}

bool breaks_context(CuResult result) {
  return result == kCuEccUncorrectable || result == kCuContained || result == kCuIllegalAddress ||
         result == kCuLaunchTimeout || result == kCuContextIsDestroyed || result == kCuAssert ||
         (result >= kCuHardwareStackError && result <= 719) || result == kCuTensorMemoryLeak;
}

namespace {

std::string hint_for(const Driver& driver, CuResult result) {
  switch (result) {
    case kCuOutOfMemory:
      return "free device memory; see `nvidia-smi` for who holds it";
    case kCuInvalidContext:
    case kCuInvalidHandle:
      return "use a stream of the context that is current, on the device the kernel was loaded for";
    case kCuLaunchOutOfResources:
      return "use fewer threads or smaller tiles";
    case kCuNoBinaryForGpu:
    case kCuInvalidPtx:
      return "compile for the target 'cuda', which is this machine's device";
    case kCuUnsupportedPtxVersion:
      return "update NVIDIA's driver, which supports CUDA " + driver.version_text();
    case kCuJitCompilerNotFound:
    case kCuJitDisabled:
      return "install libnvidia-ptxjitcompiler of the driver's release and unset CUDA_DISABLE_PTX_JIT";
  }
  if (result >= kCuStreamCaptureUnsupported && result <= kCuStreamCaptureWrongThread)
    return "call tl_kernel_prepare before the capture begins, and nothing but launches inside";
  return "see `nvidia-smi` and the driver's documentation of this error";
}

}  // namespace

Error call_failed(const Driver& driver, ContextState* state, CuResult result, const std::string& what,
                  const std::string& kernel) {
  const std::string op = kernel.empty() ? "cuda" : kernel;
  if (!state || !breaks_context(result))
    return Error(DiagCode::driver_failure, op, what + " failed: " + driver.describe(result),
                 hint_for(driver, result));
  const char* suspect = state->last_kernel.load(std::memory_order_relaxed);
  CuResult working = kCuSuccess;
  if (!state->broken.compare_exchange_strong(working, result)) return context_broken(driver, *state, what);
  state->culprit.store(suspect);
  return Error(
      DiagCode::context_broken, suspect ? suspect : op,
      "a kernel failed on " + state->device->text() + ": " + driver.describe(result) + ", noticed when " +
          what +
          (suspect ? "; the last kernel launched by this library was '" + std::string(suspect) + "'"
                   : "; this library had launched none"),
      "run the program with tl_interpret, or the process under compute-sanitizer, to find the access; "
      "the context is lost, start the process anew");
}

Error context_broken(const Driver& driver, const ContextState& state, const std::string& what) {
  const char* culprit = state.culprit.load();
  return Error(DiagCode::context_broken, culprit ? culprit : "cuda",
               what + " is not possible: the context on " + state.device->text() + " is broken since " +
                   driver.describe(state.broken.load()) +
                   (culprit ? " after kernel '" + std::string(culprit) + "'" : ""),
               "start the process anew; a CUDA context does not recover from a failed kernel");
}

}  // namespace tilegen::runtime::cuda
