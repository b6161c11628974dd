// LLVM as this library uses it: set up once, fatal errors turned into values, one context per compile.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <llvm/IR/LLVMContext.h>
#include <llvm/Target/TargetMachine.h>

#include "support/diagnostic.h"
#include "target/target.h"

namespace tilegen::codegen {

// Registers the targets and the fatal error handler, once per process.
void ensure_backend();

// Runs `work`; an LLVM fatal error inside becomes the returned message instead of ending the process. LLVM's
// own frames are not unwound cleanly, so whatever LLVM objects `work` used must be abandoned (leaked), not
// destroyed.
std::optional<std::string> run_guarded(const std::function<void()>& work);

// Collects what LLVM reports through a context (by default an error there ends the process).
void collect_diagnostics(llvm::LLVMContext& context, std::string& errors);

// What the emitters may rely on.
struct MachineFeatures {
  int vector_bits = 128;
  bool fma = false, f16c = false;
  bool avx512 = false;  // F, BW, DQ and VL
  bool avx512_bf16 = false;
  bool avx512_vnni = false;
  bool avx_vnni = false;
  bool nvptx = false;  // rounding to bf16, minnum, maxnum, saturating casts and 2^x are instructions
  bool fp8_pairs = false;    // two 8-bit floats are converted by one instruction (NVPTX)
  bool approximate = false;  // the function's f32 result is rounded to 16 bits: a few ulps do
};
MachineFeatures host_features(const llvm::TargetMachine& machine);

Expected<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const target::Target& target);

// For NVIDIA targets: `ptx` is the PTX version times 10.
Expected<std::unique_ptr<llvm::TargetMachine>> make_gpu_machine(const target::Target& target, int ptx);

Error backend_error(const std::string& kernel, std::string message);

}  // namespace tilegen::codegen
