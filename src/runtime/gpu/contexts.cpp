#include "runtime/gpu/contexts.h"

#include "support/diag_codes.h"

namespace tilegen::runtime::gpu {

ContextState& ContextTable::state_of(const Current& context, const Device& device) {
  std::lock_guard lock(mutex_);
  for (const auto& state : states_)
    if (state->context == context) return *state;
  states_.push_back(std::make_unique<ContextState>());
  ContextState& state = *states_.back();
  state.context = context;
  state.device = &device;
  return state;
}

const char* ContextTable::intern(const std::string& name) {
  std::lock_guard lock(mutex_);
  return names_.insert(name).first->c_str();
}

// CUDA alone: 226, a failure contained to the process; 721, tensor memory that a kernel kept.
bool breaks_context(Result result) {
  constexpr Result kContained = 226, kTensorMemoryLeak = 721;
  return result == kEccUncorrectable || result == kContained || result == kIllegalAddress ||
         result == kLaunchTimeout || result == kContextIsDestroyed || result == kAssert ||
         (result >= kHardwareStackError && result <= kLaunchFailed) || result == kTensorMemoryLeak;
}

Error call_failed(const Driver& driver, ContextState* state, Result result, const std::string& what,
                  const std::string& kernel) {
  driver.forget_error();
  const std::string op = kernel.empty() ? driver.names().prefix : kernel;
  if (!state || !breaks_context(result))
    return Error(DiagCode::driver_failure, op, what + " failed: " + driver.describe(result),
                 driver.hint_for(result));
  const char* suspect = state->last_kernel.load(std::memory_order_relaxed);
  Result working = kSuccess;
  if (!state->broken.compare_exchange_strong(working, result)) return context_broken(driver, *state, what);
  state->culprit.store(suspect);
  return Error(DiagCode::context_broken, suspect ? suspect : op,
               "a kernel failed on " + state->device->text() + ": " + driver.describe(result) +
                   ", noticed when " + what +
                   (suspect ? "; the last kernel launched by this library was '" + std::string(suspect) + "'"
                            : "; this library had launched none"),
               std::string("run the program with tl_interpret, or the process under ") +
                   driver.names().memory_tool +
                   ", to find the access; the context is lost, start the process anew");
}

Error context_broken(const Driver& driver, const ContextState& state, const std::string& what) {
  const char* culprit = state.culprit.load();
  return Error(DiagCode::context_broken, culprit ? culprit : driver.names().prefix,
               what + " is not possible: the context on " + state.device->text() + " is broken since " +
                   driver.describe(state.broken.load()) +
                   (culprit ? " after kernel '" + std::string(culprit) + "'" : ""),
               std::string("start the process anew; a ") + driver.names().interface +
                   " context does not recover from a failed kernel");
}

}  // namespace tilegen::runtime::gpu
