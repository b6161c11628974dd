// One thread program of a GPU block -> one LLVM kernel for AMDGPU (gpu/gpu_emitter.h).
//
// A parameter is 8 bytes of the kernel's argument segment, in the order of the launch's slots. Shared memory
// is a variable of the kernel, so that its descriptor states the bytes. A load or store of global memory
// under a predicate, whose index in bytes is known to have 31 bits, is a buffer access, with an offset beyond
// the buffer's bounds where the predicate does not hold. Elsewhere a load reads zeros from a constant then,
// and a store is branched around.
#pragma once

#include <map>

#include "codegen/llvm/gpu/gpu_emitter.h"
#include "codegen/llvm/optimise.h"

namespace tilegen::codegen {

class AmdEmitter : public GpuEmitter {
 public:
  static constexpr auto kPipeline = Optimiser::Pipeline::gpu_of_pairs;

  AmdEmitter(llvm::Module& module, const thread::ThreadProgram& program, IndexFacts& facts,
             const MachineFeatures& features, const target::Target& target, std::string symbol)
      : GpuEmitter(module, program, facts, features, target, std::move(symbol)) {}

 private:
  // the kernel (emit_kernel.cpp)
  std::optional<std::string> unsupported() const override;
  void declare_kernel() override;
  llvm::Value* block_index(unsigned dimension, int64_t count) override;
  llvm::Value* launched_blocks(int64_t count) override;
  llvm::Value* thread_index() override;

  // accesses (emit_access.cpp)
  Values load_words(const Place& at, const thread::Memory& m, int64_t bytes, llvm::Value* condition,
                    LoadKind kind) override;
  void store_words(const Place& at, const thread::Memory& m, int64_t bytes, Values words,
                   llvm::Value* condition, bool streaming) override;
  llvm::Value* zeros();
  llvm::Value* bytes_of(const thread::Memory& m);
  void bind_tensor_bytes();
  llvm::Value* words_of_buffer(llvm::Value* base, const thread::Memory& m);
  llvm::Value* buffer_offset(const Place& at, llvm::Value* condition);
  llvm::CallInst* buffer_access(const Place& at, const thread::Memory& m, llvm::Value* condition,
                                llvm::Type* moved, llvm::Value* stored, bool streaming);
  std::map<int, llvm::Value*> tensor_bytes_;  // by parameter: where accesses leave bounds to the hardware

  // loads to shared memory (emit_async.cpp)
  void begin_body() override;
  void emit_node(const thread::AsyncCopy& copy) override;
  void emit_node(const thread::AsyncCommit& commit) override;
  void emit_node(const thread::AsyncWait& wait) override;
  std::vector<llvm::Value*> issued_;  // since the last commit, and by the groups before
  int64_t largest_group_ = 0;

  // statements of a wave (emit_wave.cpp)
  using GpuEmitter::emit_node;
  llvm::Value* any_lane(llvm::Value* condition) override;
  llvm::Value* ballot(llvm::Value* condition) override;
  void emit_node(const thread::Barrier& barrier) override;
  llvm::Value* shuffled(thread::Shuffle::Mode mode, llvm::Value* bits, llvm::Value* lane) override;
  llvm::Value* exchanged(llvm::Value* bits, uint32_t mask);
  llvm::Value* of_lane(llvm::Value* bits, llvm::Value* lane);
  llvm::Value* own_lane();

  // products (emit_matrix.cpp)
  void emit_node(const thread::WarpMma& mma) override;
  void emit_given(const thread::WarpMma& mma, const target::MmaAtom& atom);
  Values matrix_operand(thread::MemoryId memory, ir::ExprId index, int elements);
  void keep_loads_in_front();
  llvm::Instruction* product_end_ = nullptr;  // the last instruction of the product before
};

// What kernels count in memory of their own (emit_async.cpp) becomes values; comes before other passes.
void counts_to_registers(llvm::Module& module);

}  // namespace tilegen::codegen
