// Contexts as this library sees them: which one work for a device goes to, and whether it still works.
//
// CUDA: the caller's current one where that belongs to the device asked for, else the device's primary one,
// retained on first use and never given back. HIP: a device is its context. A kernel that fails on the
// device breaks its context for good; the first call that notices says so in full, later ones say that the
// context is broken.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/gpu/driver.h"

namespace tilegen::runtime::gpu {

// Lives as long as the driver. Its address identifies the context: one that is destroyed and made again has
// another state where the driver can tell the two apart.
struct ContextState {
  Current context;
  bool primary = false;  // held by us, so it cannot go away
  const Device* device = nullptr;
  std::atomic<const char*> last_kernel{nullptr};  // launched last by this library
  std::atomic<Result> broken{kSuccess};
  std::atomic<const char*> culprit{nullptr};
};

class ContextTable {
 public:
  // The state of a context, made where it has none.
  ContextState& state_of(const Current& context, const Device& device);

  // A kernel's name that lives for ever.
  const char* intern(const std::string& name);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<ContextState>> states_;
  std::set<std::string> names_;
};

// Makes a context current for a while.
class ContextScope {
 public:
  ContextScope(const Driver& driver, const ContextState& state) : driver_(driver) {
    result_ = driver.enter(state, before_);
  }
  ~ContextScope() {
    if (result_ == kSuccess) driver_.leave(before_);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  Result result() const { return result_; }

 private:
  const Driver& driver_;
  Current before_;
  Result result_;
};

// Whether work on the device failed so that its context is lost.
bool breaks_context(Result result);

// The error of a failed call. `what` is "copying memory". A failure of the device is noted in the state;
// `kernel`, if any, is the one the call was about.
Error call_failed(const Driver& driver, ContextState* state, Result result, const std::string& what,
                  const std::string& kernel = {});

// The error of every call on a context that is known to be broken.
Error context_broken(const Driver& driver, const ContextState& state, const std::string& what);

}  // namespace tilegen::runtime::gpu
