// The code for arguments that the guards of an artifact's versions refuse: the same program, planned for the
// next lower assumption level. Few launches need it, so it is compiled by the first that does, or ahead.
//
// requires: options as the caller gave them. ensures: what the caller gave holds as far as it can at that
// level (fallback_plan.h); the compilation runs on a worker of the library, once, however many threads ask;
// whoever waits may leave, and then the next one compiles. refuses: what compile() refuses, for ever;
// cancelled_by_caller, for that call alone.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "driver/compile.h"

namespace tilegen::driver {

class FallbackVersion {
 public:
  using Made = Expected<std::shared_ptr<const Artifact>>;

  // The callbacks in `options` are dropped: what they listen with may be gone before the version is made.
  FallbackVersion(std::shared_ptr<const ir::Program> program, target::Target target, CompileOptions options);
  ~FallbackVersion();

  // From any thread. The artifact has one version of each kernel, and a fallback of its own where it has
  // guards. `call` (null: nobody) is asked while this one waits or compiles; `log` hears of the compilation
  // and is closed where it is left. Null: one for TILEGEN_LOG alone.
  Made get(const Cancellation* call = nullptr, std::shared_ptr<Log> log = nullptr) const;

  // What get() has made; null before.
  std::shared_ptr<const Artifact> made() const;

 private:
  Made make(const Cancellation* call, const std::shared_ptr<Log>& log) const;
  Error stopped(const Cancellation& why, const std::string& stage) const;

  // Outlives this where a compilation was left.
  std::shared_ptr<const ir::Program> program_;
  target::Target target_;
  CompileOptions options_;
  mutable std::mutex mutex_;  // of what stands below
  mutable std::condition_variable ended_;
  mutable bool busy_ = false;
  mutable std::optional<Made> made_;
};

}  // namespace tilegen::driver
