// Thread programs to machine code of this process, through LLVM. The only door other folders use to the host
// JIT.
//
// requires: verified thread programs with threads == 1.
// ensures: HostCode keeps the code alive; entries are pure functions of their arguments and re-entrant.
// refuses (backend_failure): what LLVM rejects; an LLVM fatal error is caught and returned, never an abort.
//   When the caller asks to stop, kernels that are not emitted are left out and optional passes of LLVM
//   skipped; what was begun is ended.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/cancellation.h"
#include "support/diagnostic.h"
#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::codegen {

// Runs blocks [first, last) of the linearised grid (last grid dimension fastest). `params` are the 8-byte
// slots of ThreadProgram::params, `grid` the evaluated extents (as many as ThreadProgram::grid), `arena`
// 64-byte aligned memory of arena_bytes private to the calling thread. `*stop` is looked at before each block
// and each iteration of a loop that may be long; once it is not 0, the call returns with its work undone. Any
// thread may set it.
using HostEntry = void (*)(const uint64_t* params, const int64_t* grid, int64_t first, int64_t last,
                           void* arena, const int32_t* stop);

class HostCode {
 public:
  virtual ~HostCode() = default;
  virtual HostEntry entry(size_t kernel) const = 0;
};

struct HostCodegenOptions {
  bool keep_ir = false;  // fill llvm_ir (before optimisation) and llvm_ir_optimised
  bool keep_assembly = false;
  const Cancellation* cancellation = nullptr;
  bool verify = true;  // LLVM's module verifier before optimisation
};

struct HostCodeResult {
  std::shared_ptr<HostCode> code;
  std::string object;  // ELF, that `code` was linked from; entries have the kernel's name, "_" and its number
  std::string llvm_ir, llvm_ir_optimised, assembly;
  double emit_ms = 0, optimise_ms = 0, codegen_ms = 0;
};

Expected<HostCodeResult> compile_host(std::span<const thread::ThreadProgram> kernels,
                                      const target::Target& target, const HostCodegenOptions& options);

// "LLVM 19.1.7; targets X86 NVPTX AMDGPU"
std::string backend_description();

}  // namespace tilegen::codegen
