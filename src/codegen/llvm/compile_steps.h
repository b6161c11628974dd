// Steps of a compile that do not depend on the target.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include <llvm/IR/Module.h>

#include "support/diagnostic.h"
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

}  // namespace tilegen::codegen
