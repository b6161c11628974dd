// What a vendor's code generator is to the rest: thread programs in, code for a device's loader out.
//
// Each form of code has one row in backend.cpp; its generator is a folder of codegen/llvm and the only part
// that knows the vendor's instructions. A vendor more is a folder, a row, and a loader in runtime/.
//
// requires: verified thread programs, lowered for the target. ensures: `bytes` are of the target's CodeFormat
// and have one entry a program, in order, by the names that the format's own header states (host_code.h,
// gpu_code.h). refuses (backend_failure): what the generator or LLVM rejects; a fatal error of LLVM is one of
// these. Cancellation is as in host_code.h.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "codegen/host_code.h"
#include "support/cancellation.h"
#include "support/diagnostic.h"
#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::codegen {

struct CodeOptions {
  bool keep_ir = false;  // fill llvm_ir (before optimisation) and llvm_ir_optimised
  bool keep_assembly = false;
  const Cancellation* cancellation = nullptr;
};

struct Code {
  std::string bytes;
  std::shared_ptr<HostCode> in_process;  // where this process is the device: `bytes`, linked
  std::string llvm_ir, llvm_ir_optimised, assembly;
  double emit_ms = 0, optimise_ms = 0, codegen_ms = 0;
};

struct Backend {
  target::CodeFormat format;
  Expected<Code> (*compile)(std::span<const thread::ThreadProgram> kernels, const target::Target& target,
                            const CodeOptions& options);
};

const Backend& backend_of(const target::Target& target);

}  // namespace tilegen::codegen
