#include "runtime/gpu/routes.h"

#include <utility>

#include "support/diag_codes.h"
#include "support/worker.h"

namespace tilegen::runtime::gpu {

Routes::~Routes() {
  for (const Route* r = routes_.load(); r;) delete std::exchange(r, r->next);
}

Expected<const Routes::Route*> Routes::find(const std::optional<Stream>& stream) {
  Current current;
  if (const Result result = driver_.current(current); result != kSuccess)
    return call_failed(driver_, nullptr, result, "asking for the current context");
  if (const Route* known = among(current)) return known;
  std::lock_guard lock(mutex_);
  if (const Route* known = among(current)) return known;
  // The default stream is some context's: it is asked about where one is current.
  if (stream && (*stream || current.handle))
    if (Checked ok = not_capturing(*stream); !ok) return ok.error();
  return make(current);
}

// A load inside a capture would fail, or worse, spoil the capture.
Checked Routes::not_capturing(Stream stream) const {
  if (!driver_.api().stream_capturing) return Unit{};
  int status = 0;
  const Result result = driver_.api().stream_capturing(stream, &status);
  if (result != kSuccess) driver_.forget_error();
  const bool refused = result >= kStreamCaptureUnsupported && result <= kStreamCaptureWrongThread;
  if (!refused && (result != kSuccess || status == 0)) return Unit{};
  return Error(DiagCode::driver_failure, artifact_.program->kernels.front().name,
               "the stream is being captured and the kernel is not loaded in this context yet",
               "call tl_kernel_prepare before the capture begins");
}

Expected<const Routes::Route*> Routes::make(const Current& current) {
  auto state = driver_.choose(current, device_);
  if (!state) return state.error();
  auto made = std::make_unique<Route>();
  made->current = current;
  made->push = (*state)->context != current;
  made->state = *state;
  auto module = module_in(**state);
  if (!module) return module.error();
  made->module = *module;
  made->next = routes_.load(std::memory_order_relaxed);
  routes_.store(made.get(), std::memory_order_release);
  return made.release();
}

Expected<const LoadedModule*> Routes::module_in(ContextState& state) {
  for (const auto& m : modules_)
    if (&m->state() == &state) return m.get();
  if (state.broken.load() != kSuccess)
    return context_broken(driver_, state, "loading '" + artifact_.program->name + "'");
  std::optional<Expected<std::unique_ptr<LoadedModule>>> loaded;
  Checked ran = run_on_big_stack([&] {  // where no context is current
    const ContextScope scope(driver_, state);
    if (scope.result() == kSuccess)
      loaded.emplace(LoadedModule::load(driver_, state, artifact_));
    else
      loaded.emplace(call_failed(driver_, &state, scope.result(), "switching to " + device_.text()));
  });
  if (!ran) return ran.error();
  if (!*loaded) return loaded->error();
  modules_.push_back(std::move(**loaded));
  const LoadedModule* none = nullptr;
  first_.compare_exchange_strong(none, modules_.back().get());
  return modules_.back().get();
}

}  // namespace tilegen::runtime::gpu
