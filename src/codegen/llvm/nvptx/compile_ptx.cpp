// compile_ptx: emit, verify, optimise, generate. One context per compile; a fatal error of LLVM abandons it.
#include <algorithm>
#include <set>

#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/gpu_code.h"
#include "codegen/llvm/compile_steps.h"
#include "codegen/llvm/gpu/gpu_compile.h"
#include "codegen/llvm/llvm_setup.h"
#include "codegen/llvm/machine_code.h"
#include "codegen/llvm/nvptx/absolute_values.h"
#include "codegen/llvm/nvptx/differences.h"
#include "codegen/llvm/nvptx/expand_division.h"
#include "codegen/llvm/nvptx/ptx_emitter.h"
#include "codegen/llvm/nvptx/widen_extrema.h"
#include "codegen/llvm/optimise.h"
#include "target/atomic_sums.h"

namespace tilegen::codegen {
namespace {

using Kernels = std::span<const thread::ThreadProgram>;

constexpr int kStoreMatrixPtx = 78;  // PTX ISA, "stmatrix"
constexpr int kCachingPtx = 74;      // PTX ISA, "createpolicy", eviction priorities of "ld" and "st"
constexpr int kBarrierPtx = 78;      // PTX ISA, "mbarrier", ".shared::cta"

// Of vectors of atomic sums, whatever their elements' places are.
int sums_ptx(const target::Target& target, const thread::ThreadProgram& k, const thread::Loop& loop) {
  int ptx = 0;
  if (loop.form != thread::LoopForm::vectorized) return ptx;
  for (thread::StmtId id : loop.body)
    if (const auto* s = std::get_if<thread::Store>(&k.stmts[id.value].node))
      if (const auto* sum = target::find_atomic_sum(k, *s, target, target.vector_bytes))
        ptx = std::max(ptx, sum->isa_version);
  return ptx;
}

// Least PTX version that serves the target and what the kernels use of it.
int least_ptx(const target::Target& target, Kernels kernels) {
  int ptx = target.isa_version;
  for (const thread::ThreadProgram& k : kernels)
    for (const thread::Stmt& s : k.stmts) {
      if (auto* mma = std::get_if<thread::WarpMma>(&s.node))
        if (const target::MmaAtom* atom = target::find_mma_atom(target, mma->atom))
          ptx = std::max(ptx, atom->isa_version);
      if (auto* mma = std::get_if<thread::WarpgroupMma>(&s.node))
        if (const auto instruction = target::find_warpgroup_atom(target, mma->atom))
          ptx = std::max(ptx, instruction->atom->isa_version);
      if (const auto* loop = std::get_if<thread::Loop>(&s.node))
        ptx = std::max(ptx, sums_ptx(target, k, *loop));
      if (std::holds_alternative<thread::StoreMatrix>(s.node)) ptx = std::max(ptx, kStoreMatrixPtx);
    }
  for (const thread::ThreadProgram& k : kernels)
    if (!k.barriers.empty()) ptx = std::max(ptx, kBarrierPtx);
  for (const thread::ThreadProgram& k : kernels)
    for (const thread::Memory& m : k.memories)
      if (m.loads != thread::Caching::usual || m.stores != thread::Caching::usual)
        ptx = std::max(ptx, kCachingPtx);
  if (target.fp8_isa_version > ptx)
    for (const thread::ThreadProgram& k : kernels)
      for (size_t id = 0; id < k.exprs.size(); ++id)
        if (const ir::DType t = k.exprs.type(ir::ExprId(id)); ir::is_storage_only(t) && !ir::is_fnuz(t))
          return target.fp8_isa_version;
  return ptx;
}

constexpr uint32_t kAllLanes = 0xffffffff;

bool is_number(const llvm::Value* v, uint64_t number) {
  const auto* c = llvm::dyn_cast<llvm::ConstantInt>(v);
  return c && c->getValue() == number;
}

std::optional<LaneMove> shuffle_of_warp(const llvm::IntrinsicInst& call) {
  const bool flips = call.getIntrinsicID() == llvm::Intrinsic::nvvm_shfl_sync_bfly_i32;
  if (!flips && call.getIntrinsicID() != llvm::Intrinsic::nvvm_shfl_sync_idx_i32) return std::nullopt;
  if (!is_number(call.getArgOperand(0), kAllLanes) || !is_number(call.getArgOperand(3), 31))
    return std::nullopt;
  return LaneMove{call.getArgOperand(1), call.getArgOperand(2), 0, flips};
}

constexpr LaneInstructions kWarpLanes{
    32, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, shuffle_of_warp,
    [](llvm::IRBuilder<>& b, llvm::Value* condition) -> llvm::Value* {
      return b.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_ballot_sync, {},
                               {b.getInt32(kAllLanes), condition});
    },
    [](llvm::IRBuilder<>& b, llvm::Value* condition) -> llvm::Value* {
      return b.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_any_sync, {}, {b.getInt32(kAllLanes), condition});
    }};

std::optional<Error> generate(GpuCompile& c, Kernels kernels, const target::Target& target,
                              const MachineFeatures& features, const GpuCodegenOptions& options,
                              PtxResult& result) {
  const auto as_it_is = [](llvm::Module&) {};
  const auto mend = [](llvm::Module& module) {  // what ptxas would make wrong code of
    expand_divisions(module);
    replace_absolute_values(module);
    rewrite_differences(module);
    widen_extrema(module);
  };
  if (auto error = make_module<PtxEmitter>(c, kernels, target, features, options, kNvidiaGrid, kWarpLanes,
                                           result, as_it_is, mend))
    return error;
  Clock clock;
  if (auto error = write_code(c, kernels, options, c.assembly, llvm::CodeGenFileType::AssemblyFile,
                              "the target writes no assembly"))
    return error;
  result.ptx.assign(c.assembly.bytes().begin(), c.assembly.bytes().end());
  result.codegen_ms = clock.lap();
  return std::nullopt;
}

}  // namespace

Expected<PtxResult> compile_ptx(Kernels kernels, const target::Target& target,
                                const GpuCodegenOptions& options) {
  if (target.code != target::CodeFormat::ptx)
    return backend_error(names_of(kernels), "no PTX for target '" + target.name + "'");
  MachineFeatures features;
  features.fma = features.nvptx = true;
  features.fp8_pairs = target.fp8_isa_version > 0;
  return compile_gpu<PtxResult>(kernels, target, options, "nvptx64-nvidia-cuda",
                                {"+ptx" + std::to_string(least_ptx(target, kernels))},
                                [&](GpuCompile& c, PtxResult& result) {
                                  return generate(c, kernels, target, features, options, result);
                                });
}

}  // namespace tilegen::codegen
