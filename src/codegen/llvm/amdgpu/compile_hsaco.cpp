// compile_hsaco: emit, verify, optimise, generate an object, link it. One context per compile; a fatal error
// of LLVM abandons it.
#include <llvm/IR/IntrinsicsAMDGPU.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "codegen/gpu_code.h"
#include "codegen/llvm/amdgpu/amd_emitter.h"
#include "codegen/llvm/amdgpu/keep_lane_moves.h"
#include "codegen/llvm/amdgpu/shape_phis.h"
#include "codegen/llvm/amdgpu/split_wide_or.h"
#include "codegen/llvm/gpu/gpu_compile.h"
#include "object/hsaco_linker.h"

namespace tilegen::codegen {
namespace {

using Kernels = std::span<const thread::ThreadProgram>;

constexpr uint32_t kCodeObjectVersion = 500;  // 5, the least that names the runtime's arguments

std::string text(const llvm::SmallVector<char, 0>& bytes) { return {bytes.begin(), bytes.end()}; }

// The listing is generated from a copy: generating changes the module.
std::optional<Error> list_assembly(GpuCompile& c, Kernels kernels, HsacoResult& result) {
  const std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*c.module);
  if (!c.assembly.run(*c.machine, *copy, llvm::CodeGenFileType::AssemblyFile))
    return backend_error(names_of(kernels), "the target writes no assembly");
  result.assembly = text(c.assembly.bytes());
  return std::nullopt;
}

std::optional<LaneMove> permutation_of_wave(const llvm::IntrinsicInst& call) {
  if (call.getIntrinsicID() != llvm::Intrinsic::amdgcn_ds_bpermute) return std::nullopt;
  return LaneMove{call.getArgOperand(1), call.getArgOperand(0), 2, false};
}

llvm::Value* lane_mask(llvm::IRBuilder<>& b, llvm::Value* condition) {
  return b.CreateIntrinsic(llvm::Intrinsic::amdgcn_ballot, {b.getInt64Ty()}, {condition});
}

constexpr LaneInstructions kWaveLanes{64, llvm::Intrinsic::amdgcn_workitem_id_x, permutation_of_wave,
                                      lane_mask,
                                      [](llvm::IRBuilder<>& b, llvm::Value* condition) -> llvm::Value* {
                                        return b.CreateICmpNE(lane_mask(b, condition), b.getInt64(0));
                                      }};

std::optional<Error> generate(GpuCompile& c, Kernels kernels, const target::Target& target,
                              const MachineFeatures& features, const GpuCodegenOptions& options,
                              HsacoResult& result) {
  const auto name_version = [](llvm::Module& m) {
    m.addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", kCodeObjectVersion);
    counts_to_registers(m);
  };
  const auto for_selection = [](llvm::Module& m) {
    shape_phis(m);
    split_wide_or(m);
    keep_lane_moves(m);
  };
  if (auto error = make_module<AmdEmitter>(c, kernels, target, features, options, kAmdGrid, kWaveLanes,
                                           result, name_version, for_selection))
    return error;
  if (options.keep_assembly)
    if (auto error = list_assembly(c, kernels, result)) return error;
  Clock clock;
  if (auto error = write_code(c, kernels, options, c.object, llvm::CodeGenFileType::ObjectFile,
                              "the target writes no objects"))
    return error;
  const auto& bytes = c.object.bytes();
  if (options.keep_assembly) result.object = text(bytes);
  auto linked = object::link_hsaco({bytes.data(), bytes.size()});
  if (!linked) return linked.error();
  result.hsaco = std::move(*linked);
  result.codegen_ms = clock.lap();
  return std::nullopt;
}

}  // namespace

Expected<HsacoResult> compile_hsaco(Kernels kernels, const target::Target& target,
                                    const GpuCodegenOptions& options) {
  if (target.code != target::CodeFormat::hsaco)
    return backend_error(names_of(kernels), "no HSACO for target '" + target.name + "'");
  MachineFeatures features;
  features.fma = features.amdgpu = true;
  features.fnuz = target.fnuz_conversions;
  return compile_gpu<HsacoResult>(kernels, target, options, "amdgcn-amd-amdhsa", target.features,
                                  [&](GpuCompile& c, HsacoResult& result) {
                                    return generate(c, kernels, target, features, options, result);
                                  });
}

}  // namespace tilegen::codegen
