// Where an artifact's launches go: the module in the context that is current, or in the device's primary one
// where the current context is none of the device's. Modules are loaded when a context first asks, on a
// worker: the driver compiles them, and a launch may come from a small stack.
//
// ensures: known() takes no lock; however many threads ask find(), a context loads once; no call needs a
// context that is not there. refuses: a load inside of a capture, a broken context, what loading refuses.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/gpu/contexts.h"
#include "runtime/gpu/loaded_module.h"

namespace tilegen::runtime::gpu {

class Routes {
 public:
  // What a launch does while `current` is current: which module it takes, and whether its context must be
  // made current first.
  struct Route {
    Current current;
    const LoadedModule* module = nullptr;
    ContextState* state = nullptr;  // the module's
    bool push = false;
    const Route* next = nullptr;
  };

  Routes(const Driver& driver, const Device& device, const driver::Artifact& artifact)
      : driver_(driver), device_(device), artifact_(artifact) {}
  ~Routes();

  // The way of a launch after the first; none before it, and where the driver fails.
  const Route* known() const {
    Current current;
    if (driver_.current(current) != kSuccess) return nullptr;
    return among(current);
  }

  // The same, made where there is none. `stream` is the one to launch on, where this is for a launch.
  Expected<const Route*> find(const std::optional<Stream>& stream);

  // The module that was loaded first; null before.
  const LoadedModule* first() const { return first_.load(std::memory_order_acquire); }

 private:
  const Route* among(const Current& current) const {
    for (const Route* r = routes_.load(std::memory_order_acquire); r; r = r->next)
      if (r->current == current) return r;
    return nullptr;
  }
  Expected<const Route*> make(const Current& current);
  Expected<const LoadedModule*> module_in(ContextState& state);
  Checked not_capturing(Stream stream) const;

  const Driver& driver_;
  const Device& device_;
  const driver::Artifact& artifact_;
  std::atomic<const Route*> routes_{nullptr};
  std::atomic<const LoadedModule*> first_{nullptr};
  std::mutex mutex_;  // of growing what stands above and below
  std::vector<std::unique_ptr<LoadedModule>> modules_;
};

}  // namespace tilegen::runtime::gpu
