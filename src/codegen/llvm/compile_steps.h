// Steps of a compile that do not depend on the target.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <llvm/IR/Module.h>

#include "codegen/llvm/guarded_memory.h"
#include "codegen/llvm/llvm_setup.h"
#include "support/cancellation.h"
#include "support/diagnostic.h"
#include "support/worker.h"
#include "thread/thread_program.h"

namespace tilegen::codegen {

class Clock {
 public:
  // Milliseconds since the last call.
  double lap() {
    auto now = std::chrono::steady_clock::now();
    double ms = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    return ms;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::string module_text(const llvm::Module& m);
std::string names_of(std::span<const thread::ThreadProgram> kernels);  // "a, b"
// What LLVM's verifier finds.
std::optional<Error> invalid_module(const llvm::Module& m, std::span<const thread::ThreadProgram> kernels);

inline std::optional<Error> given_up(const Cancellation* cancellation,
                                     std::span<const thread::ThreadProgram> kernels) {
  if (!stop_requested(cancellation)) return std::nullopt;
  return cancellation->error(names_of(kernels), "while code was made");
}

// Runs `work` on what one compile owns of LLVM, on a big stack. After a fatal error of LLVM, or anything
// thrown through it, the objects are in no state to be destroyed and stay behind.
template <class Owned, class Work>
std::optional<Error> run_compile(std::unique_ptr<Owned> owned, std::span<const thread::ThreadProgram> kernels,
                                 const Work& work) {
  std::optional<Error> failure;
  Checked ran = run_on_big_stack([&] {
    Owned* const objects = owned.release();
    const std::optional<std::string> fatal = run_guarded([&] { failure = work(*objects); });
    if (fatal) {
      failure = backend_error(names_of(kernels), "LLVM: " + *fatal);
    } else {
      const GuardedScope calls_llvm;
      const ReserveScope whole;
      delete objects;
    }
  });
  if (!ran) return ran.error();
  return failure;
}

}  // namespace tilegen::codegen
