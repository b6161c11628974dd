// Thread programs of GPU blocks to PTX or to HSACO, through LLVM. The only door other folders use to the
// NVPTX and AMDGPU code generators.
//
// requires: verified thread programs for a target of that vendor; the kernels' symbols differ.
// PTX ensures: one `.entry` per program, in order. Parameters are 8-byte slots in the order of
// ThreadProgram::params: a tensor's address, a dim as i64, a scalar in the low bytes; the tensor maps
// follow, 128 bytes each, aligned to 64. The linear block index is ctaid.x (with several grid extents x is
// the last one, then y, z); a block has `threads` threads in x.
// Shared memory is the dynamic one, arena_bytes of it. The text depends on nothing but the arguments.
// HSACO ensures: one kernel with its descriptor `<symbol>.kd` per program, code object version 5. Its
// argument segment has the same slots of 8 bytes, behind them the runtime's own; shared memory is the
// descriptor's, none is dynamic. Blocks and threads are counted in the same dimensions. The bytes depend on
// nothing but the arguments. refuses (backend_failure): host-only statements, atoms the table has no row for,
// what LLVM rejects; an LLVM fatal error is caught and returned, never an abort. Cancellation is as in
// host_code.h.
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
  bool keep_assembly = false;        // HSACO: fill assembly
  const Cancellation* cancellation = nullptr;
  bool verify = true;  // LLVM's module verifier before optimisation
};

struct PtxResult {
  std::string ptx;
  std::string llvm_ir, llvm_ir_optimised;
  double emit_ms = 0, optimise_ms = 0, codegen_ms = 0;
};

Expected<PtxResult> compile_ptx(std::span<const thread::ThreadProgram> kernels, const target::Target& target,
                                const GpuCodegenOptions& options);

struct HsacoResult {
  std::string hsaco;
  std::string object;  // with keep_assembly: what the linker was given
  std::string llvm_ir, llvm_ir_optimised, assembly;
  double emit_ms = 0, optimise_ms = 0, codegen_ms = 0;
};

Expected<HsacoResult> compile_hsaco(std::span<const thread::ThreadProgram> kernels,
                                    const target::Target& target, const GpuCodegenOptions& options);

}  // namespace tilegen::codegen
