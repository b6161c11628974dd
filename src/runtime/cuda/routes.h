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

#include "runtime/cuda/contexts.h"
#include "runtime/cuda/loaded_module.h"

namespace tilegen::runtime::cuda {

class Routes {
 public:
  // What a launch does while `current` is current: which module it takes, and whether its context must be
  // made current first.
  struct Route {
    uint64_t id = 0;
    const LoadedModule* module = nullptr;
    ContextState* state = nullptr;  // the module's
    bool push = false;
    const Route* next = nullptr;
    CuContext current = nullptr;
  };

  Routes(const Driver& driver, const Device& device, const driver::Artifact& artifact)
      : driver_(driver), device_(device), artifact_(artifact) {}
  ~Routes();

  // The way of a launch after the first; none before it, and where the driver fails. A handle may be that of
  // a context destroyed before, a number never is.
  const Route* known() const {
    CuContext current = nullptr;
    if (driver_.api().context_current(&current) != kCuSuccess) return nullptr;
    return among(current, driver_.contexts().id_of(current));
  }

  // The same, made where there is none. `stream` is the one to launch on, where this is for a launch.
  Expected<const Route*> find(const std::optional<CuStream>& stream);

  // The module that was loaded first; null before.
  const LoadedModule* first() const { return first_.load(std::memory_order_acquire); }

 private:
  const Route* among(CuContext current, uint64_t id) const {
    for (const Route* r = routes_.load(std::memory_order_acquire); r; r = r->next)
      if (r->current == current && r->id == id) return r;
    return nullptr;
  }
  Expected<const Route*> make(CuContext current, uint64_t id);
  Expected<const LoadedModule*> module_in(ContextState& state);
  Checked not_capturing(CuStream stream) const;

  const Driver& driver_;
  const Device& device_;
  const driver::Artifact& artifact_;
  std::atomic<const Route*> routes_{nullptr};
  std::atomic<const LoadedModule*> first_{nullptr};
  std::mutex mutex_;  // of growing what stands above and below
  std::vector<std::unique_ptr<LoadedModule>> modules_;
};

}  // namespace tilegen::runtime::cuda
