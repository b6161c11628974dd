// One thread program of a GPU block -> one LLVM kernel for NVPTX (gpu/gpu_emitter.h). Accesses under a
// predicate are predicated instructions, so that code stays in one block.
#pragma once

#include "codegen/llvm/gpu/gpu_emitter.h"
#include "codegen/llvm/nvptx/assembly.h"
#include "codegen/llvm/nvptx/matrix_operands.h"
#include "codegen/llvm/nvptx/product_foldings.h"
#include "codegen/llvm/optimise.h"

namespace tilegen::codegen {

class PtxEmitter : public GpuEmitter {
 public:
  static constexpr auto kPipeline = Optimiser::Pipeline::gpu;

  PtxEmitter(llvm::Module& module, const thread::ThreadProgram& program, IndexFacts& facts,
             const MachineFeatures& features, const target::Target& target, std::string symbol);

 private:
  // the kernel (emit_kernel.cpp)
  std::optional<std::string> unsupported() const override;
  void declare_kernel() override;
  void annotate_function();
  void declare_shared();
  llvm::Value* block_index(unsigned dimension, int64_t count) override;
  llvm::Value* launched_blocks(int64_t count) override;
  llvm::Value* thread_index() override;
  void begin_body() override;

  // accesses (word_access.h), warps (emit_roles.cpp)
  Values load_words(const Place& at, const thread::Memory& m, int64_t bytes, llvm::Value* condition,
                    LoadKind kind) override;
  void store_words(const Place& at, const thread::Memory& m, int64_t bytes, Values words,
                   llvm::Value* condition, bool streaming) override;
  llvm::Value* any_lane(llvm::Value* condition) override;
  llvm::Value* ballot(llvm::Value* condition) override;
  llvm::Value* matching(llvm::Value* value) override;

  // statements (emit_sync.cpp, emit_matrix.cpp)
  using GpuEmitter::emit_node;
  void emit_statement(const thread::Stmt& s) override;
  void emit_node(const thread::Barrier& barrier) override;
  void emit_node(const thread::AsyncCopy& copy) override;
  void emit_node(const thread::AsyncCommit&) override;
  void emit_node(const thread::AsyncWait& wait) override;
  llvm::Value* shuffled(thread::Shuffle::Mode mode, llvm::Value* bits, llvm::Value* lane) override;
  void emit_node(const thread::LoadMatrix& load) override;
  void emit_node(const thread::StoreMatrix& store) override;
  void emit_node(const thread::WarpMma& mma) override;

  // warps with tasks of their own (emit_roles.cpp)
  void bind_warp();
  std::optional<Emitted> of_warp(const ir::ExprNode& n) override;
  void emit_node(const thread::Roles& roles) override;
  void emit_register_budget(int registers);
  void emit_node(const thread::OneThread& one) override;

  // transaction barriers (emit_transaction.cpp), the copy engine (emit_tensor.cpp)
  void initialise_block();
  Place barrier_place(int barriers, ir::ExprId index);
  void emit_node(const thread::TransactionArrive& arrive) override;
  void emit_node(const thread::TransactionWait& wait) override;
  void emit_node(const thread::TransactionTest& test) override;
  void emit_node(const thread::FetchTile& fetch) override;
  void emit_node(const thread::TensorLoad& load) override;
  void emit_node(const thread::TensorStore& store) override;
  std::string coordinates(const std::vector<ir::ExprId>& at, std::string& constraints, Values& operands);
  std::string tell_caches(int map, thread::Caching thread::Memory::*which, std::string& form,
                          std::string& constraints, Values& operands);
  void emit_node(const thread::BulkCommit&) override;
  void emit_node(const thread::BulkWait& wait) override;
  void emit_node(const thread::ProxyFence&) override;
  void emit_node(const thread::ClusterBarrier&) override;
  void emit_node(const thread::GridDependencyWait&) override;
  void emit_node(const thread::ClusterLoad& load) override;

  // products of a warpgroup (emit_warpgroup.cpp)
  struct WarpgroupCode;
  void emit_node(const thread::WarpgroupMma& mma) override;
  void emit_node(const thread::WarpgroupFence&) override;
  void emit_node(const thread::WarpgroupCommit&) override;
  void emit_node(const thread::WarpgroupWait& wait) override;
  bool fits(const thread::WarpgroupMma& mma, const target::WarpgroupInstruction& instruction);
  void add_accumulators(WarpgroupCode& code, const thread::WarpgroupMma& mma);
  bool starts_at_zero(const WarpgroupCode& code, const thread::WarpgroupMma& mma);
  size_t add_words(WarpgroupCode& code, const thread::WarpgroupMma& mma);
  size_t add_places(WarpgroupCode& code, const thread::WarpgroupMma& mma);
  void add_inputs(WarpgroupCode& code, const thread::WarpgroupMma& mma);
  void add_sources(WarpgroupCode& code, const thread::WarpgroupMma& mma);
  std::string products(const WarpgroupCode& code, const thread::WarpgroupMma& mma);
  llvm::Value* low_descriptor(thread::MemoryId memory, ir::ExprId index, const thread::MatrixForm& form);

  Values mma_operands(const MatrixOperands& row, const thread::WarpMma& mma);
  void emit_byte_dots(const thread::WarpMma& mma);

  Assembly ptx_;
  std::vector<llvm::Argument*> maps_;  // by tensor map, its address
  llvm::Value* counter_ = nullptr;     // address of what points are claimed from
  // index of the warp in the block, the same register for the warp; where it is of use
  llvm::Value* warp_ = nullptr;
  std::vector<ProductFolding> folding_;  // by StmtId
  size_t statement_ = 0;                 // StmtId being emitted
};

}  // namespace tilegen::codegen
