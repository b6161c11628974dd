// Thread programs of GPU blocks to PTX, through LLVM. The only door other folders use to the NVPTX code
// generator.
//
// requires: verified thread programs for an NVIDIA target; the kernels' symbols differ.
// ensures: one `.entry` per program, in order. Parameters are 8-byte slots in the order of
// ThreadProgram::params: a tensor's address, a dim as i64, a scalar in the low bytes; the tensor maps
// follow, 128 bytes each, aligned to 64. The linear block index is ctaid.x (with several grid extents x is
// the last one, then y, z); a block has `threads` threads in x.
// Shared memory is the dynamic one, arena_bytes of it. The text depends on nothing but the arguments.
// refuses (backend_failure): host-only statements, atoms the table has no row for, what LLVM rejects; an LLVM
// fatal error is caught and returned, never an abort. Cancellation is as in host_code.h.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "support/cancellation.h"
#include "support/diagnostic.h"
#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::codegen {

struct GpuCodegenOptions {
  std::vector<std::string> symbols;  // one per kernel; empty: the programs' names
  bool keep_ir = false;              // fill llvm_ir (before optimisation) and llvm_ir_optimised
  const Cancellation* cancellation = nullptr;
  bool verify = true;                // LLVM's module verifier before optimisation
};

struct PtxResult {
  std::string ptx;
  std::string llvm_ir, llvm_ir_optimised;
  double emit_ms = 0, optimise_ms = 0, codegen_ms = 0;
};

Expected<PtxResult> compile_ptx(std::span<const thread::ThreadProgram> kernels, const target::Target& target,
                                const GpuCodegenOptions& options);

}  // namespace tilegen::codegen
