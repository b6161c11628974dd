// CUDA contexts as this library sees them: which one work for a device goes to, and whether it still works.
//
// A context is the caller's current one where that belongs to the device asked for, else the device's primary
// one, retained on first use and never given back. A kernel that fails on the device breaks its context for
// good; the first call that notices says so in full, later ones say that the context is broken.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"

namespace tilegen::runtime::cuda {

// Lives as long as the driver. Its address identifies the context: one that is destroyed and made again has
// another state where the driver can tell the two apart.
struct ContextState {
  CuContext context = nullptr;
  uint64_t id = 0;
  bool primary = false;  // retained by us, so it cannot go away
  const Device* device = nullptr;
  std::atomic<const char*> last_kernel{nullptr};  // launched last by this library
  std::atomic<CuResult> broken{kCuSuccess};
  std::atomic<const char*> culprit{nullptr};
};

class Contexts {
 public:
  explicit Contexts(const Driver& driver);

  // Identity of a context; 0 for none and where the driver cannot tell.
  uint64_t id_of(CuContext context) const {
    unsigned long long id = 0;
    if (context && context_id_) context_id_(context, &id);
    return id;
  }

  // Whether a context can still be made current: one we hold, or one the driver still knows by its number.
  // One of the caller that is gone must not be touched.
  bool alive(const ContextState& state) const {
    return state.primary || (state.id != 0 && id_of(state.context) == state.id);
  }

  // The context that work for `device` goes to while `current` is current.
  Expected<ContextState*> choose(CuContext current, const Device& device);

  // A kernel's name that lives for ever.
  const char* intern(const std::string& name);

 private:
  Expected<ContextState*> primary(const Device& device);  // under mutex_
  ContextState& state_of(CuContext context, const Device& device);

  const Driver& driver_;
  CuResult (*context_id_)(CuContext, unsigned long long*);
  std::mutex mutex_;
  std::vector<std::unique_ptr<ContextState>> states_;
  std::vector<ContextState*> primaries_;  // by ordinal
  std::set<std::string> names_;
};

// Makes a context current for a while.
class ContextScope {
 public:
  ContextScope(const Driver& driver, CuContext context) : driver_(driver) {
    result_ = driver.api().context_push(context);
  }
  ~ContextScope() {
    CuContext popped = nullptr;
    if (result_ == kCuSuccess) driver_.api().context_pop(&popped);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  CuResult result() const { return result_; }

 private:
  const Driver& driver_;
  CuResult result_;
};

// Whether work on the device failed so that its context is lost.
bool breaks_context(CuResult result);

// The error of a failed call. `what` is "copying memory". A failure of the device is noted in the state;
// `kernel`, if any, is the one the call was about.
Error call_failed(const Driver& driver, ContextState* state, CuResult result, const std::string& what,
                  const std::string& kernel = {});

// The error of every call on a context that is known to be broken.
Error context_broken(const Driver& driver, const ContextState& state, const std::string& what);

}  // namespace tilegen::runtime::cuda
