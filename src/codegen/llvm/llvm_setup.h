// LLVM as this library uses it: set up once, fatal errors turned into values, one context per compile.
//
// Memory that LLVM cannot have is a std::bad_alloc out of the call into LLVM. LLVM's frames are not unwound
// cleanly then, nor after a fatal error: what LLVM objects were used must be abandoned (leaked), not
// destroyed, and a GuardedScope must be around every such call (guarded_memory.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <llvm/IR/LLVMContext.h>
#include <llvm/Target/TargetMachine.h>

#include "support/diagnostic.h"
#include "target/target.h"

namespace tilegen::codegen {

// Sets what LLVM calls on fatal errors and for want of memory. Before anything else of LLVM.
void ensure_handlers();

// Registers the targets, once per process; the handlers too.
void ensure_backend();

// Runs `work` in a GuardedScope; an LLVM fatal error inside becomes the returned message instead of ending
// the process.
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
  bool amx_bf16 = false, amx_f16 = false, amx_i8 = false;
  bool nvptx = false;        // rounding to bf16, minnum, maxnum, saturating casts and 2^x are instructions
  bool amdgpu = false;       // divisions that LLVM may take for ones of 24 bits are written out
  bool fp8_pairs = false;    // two 8-bit floats are converted by one instruction (NVPTX)
  bool fnuz = false;         // conversions of the FNUZ 8-bit floats are instructions (AMDGPU)
  bool approximate = false;  // the function's f32 result is rounded to 16 bits: a few ulps do
};
MachineFeatures host_features(const llvm::TargetMachine& machine);

// This machine's code generator, whose code this process runs.
Expected<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const target::Target& target);

// The code generator of `triple`. Refuses what LLVM does not know.
Expected<std::unique_ptr<llvm::TargetMachine>> make_machine(
    const char* triple, const std::string& cpu, const std::vector<std::string>& features,
    std::optional<llvm::CodeModel::Model> code_model = std::nullopt, bool in_process = false);

Error backend_error(const std::string& kernel, std::string message);

}  // namespace tilegen::codegen
