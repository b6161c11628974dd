// One thread program -> one LLVM function with HostEntry's signature.
//
// Inside a `vectorized` loop of width W an expression is emitted either uniform (a scalar) or per lane
// (<W x T>); outside everything is scalar.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <llvm/IR/MDBuilder.h>

#include "codegen/llvm/lane_analysis.h"
#include "codegen/llvm/program_emitter.h"
#include "thread/interleaved.h"

namespace tilegen::codegen {

using Builder = llvm::IRBuilder<>;

class HostEmitter : private ProgramEmitter {
 public:
  HostEmitter(llvm::Module& module, const thread::ThreadProgram& program, const MachineFeatures& features,
              std::string symbol)
      : ProgramEmitter(module, program, program.exprs, features, std::move(symbol)),
        facts_(program, kHostGrid),
        lanes_(program, facts_) {}

  // Emits the function; a message when the program asks for something this emitter cannot do.
  std::optional<std::string> emit();

  // Memory accesses and loops, for code of whole atoms (emit_access.cpp).
  struct Place {
    llvm::Value* pointer = nullptr;
    llvm::Align align;
  };
  Place place(thread::MemoryId memory, ir::ExprId index);  // of lane 0
  llvm::Value* load_contiguous(const Place& p, thread::MemoryId memory, int64_t lanes, llvm::Value* mask);
  void store_contiguous(const Place& p, thread::MemoryId memory, llvm::Value* storage, llvm::Value* mask,
                        bool nontemporal);
  using ProgramEmitter::begin_counted_loop;
  using ProgramEmitter::CountedLoop;
  using ProgramEmitter::end_counted_loop;

 private:
  // entry (emit_entry.cpp)
  void create_function();
  void bind_params();
  void create_memories();
  void create_alias_scopes();
  void emit_block_loop();
  void emit_stop_check();  // returns from the function when the caller's flag is set
  void bind_block_vars(llvm::Value* linear, const std::vector<llvm::Value*>& grid);

  // statements (emit_stmt.cpp)
  void emit_statement(const thread::Stmt& s) override;
  void emit_serial_loop(const thread::Loop& loop) override;
  void emit_vector_loop(const thread::Loop& loop) override;
  void emit_unrolled_loop(const thread::Loop& loop) override;  // emit_interleaved.cpp
  void emit_interleaved(const thread::InterleavedRows& rows);
  void emit_transposed(const thread::TransposedRows& rows);
  // The values of a store for each row, as stored; where the first is stored.
  std::vector<llvm::Value*> load_rows(const thread::Store& store, ir::VarId row, int64_t rows, ir::VarId lane,
                                      int64_t lanes, Place* first);
  void emit_branch(const thread::Branch& branch) override;
  void emit_lanes(const thread::Loop& loop, llvm::Value* base, int64_t width, int64_t base_divisor);
  // Bodies of a vectorized loop, chosen at run time (emit_versions.cpp).
  void emit_versions(const thread::Block& body);
  void emit_streaming_versions(const thread::Block& body);
  void emit_either(llvm::Value* condition, const std::function<void()>& then,
                   const std::function<void()>& otherwise);
  llvm::Value* all_lanes_condition(const thread::Block& body);
  void collect_predicates(ir::ExprId e, std::vector<ir::ExprId>& predicates,
                          std::unordered_set<ir::ExprId>& seen);
  llvm::Value* holds_for_all_lanes(ir::ExprId predicate);
  bool reads_memory(ir::ExprId e, std::unordered_set<ir::ExprId>& seen) const;
  // The predicate, or none when it is known to hold here.
  ir::ExprId needed(ir::ExprId predicate) const;
  void emit_store(const thread::Store& store);
  void emit_atomic_store(const thread::Store& store);
  void emit_lane_reduce(const thread::LaneReduce& reduce);
  void emit_prefetch(const thread::Prefetch& prefetch);

  // memory (emit_access.cpp)
  llvm::Value* element_pointer(thread::MemoryId memory, llvm::Value* index);
  llvm::Align alignment(thread::MemoryId memory, ir::ExprId index);
  Emitted emit_load(ir::ExprId e);
  llvm::Value* gather(thread::MemoryId memory, ir::ExprId index, llvm::Value* mask);
  void scatter(thread::MemoryId memory, ir::ExprId index, llvm::Value* storage, llvm::Value* mask);
  llvm::Value* load_scalar(const Place& p, thread::MemoryId memory, llvm::Value* condition);
  void store_scalar(const Place& p, thread::MemoryId memory, llvm::Value* storage, llvm::Value* condition);
  // Lane-varying truth of a predicate as <W x i1>; cheap compare on small lane numbers where the form allows.
  llvm::Value* emit_mask(ir::ExprId predicate);
  void tag(llvm::Instruction* access, thread::MemoryId memory);

  // Stores of a vectorized loop that may bypass the caches when their address is aligned at run time.
  bool may_stream(const thread::Store& store);
  llvm::Value* streaming_condition(const thread::Block& body);

  // expressions (emit_expr.cpp)
  llvm::Value* value(ir::ExprId e) { return emit_expr(e).value; }
  llvm::Value* lane_zero(ir::ExprId e);     // value at lane 0, a scalar
  llvm::Value* index_vector(ir::ExprId e);  // <W x i64>
  Emitted emit_expr(ir::ExprId e);
  Emitted compute_expr(ir::ExprId e);
  Emitted emit_var(const ir::ExprNode& n);
  Emitted emit_native_call(const ir::ExprNode& n, ir::ExprId e);
  llvm::Value* splat(llvm::Value* v, int64_t lanes);
  void match_lanes(llvm::Value*& a, llvm::Value*& b);

  // matrix atom (emit_mma.cpp)
  void emit_mma(const thread::HostMma& mma);

  // matrix registers (emit_matrix_registers.cpp)
  void emit_matrix_registers(const thread::HostMma& mma);
  // At the entry of the function, where all products of the program share a configuration.
  void configure_matrix_registers();
  void configure_matrix_registers(const thread::HostMma& mma);
  void release_matrix_registers();

  // Wider vectorized loops run in pieces, so that one value never takes more than a few machine registers.
  static constexpr int64_t kMaxLanes = 64;

  llvm::BasicBlock *entry_ = nullptr, *return_ = nullptr;
  llvm::Value* arena_ = nullptr;
  std::vector<llvm::Value*> bases_;                      // by MemoryId
  std::vector<llvm::MDNode*> scope_of_, disjoint_from_;  // by MemoryId, null when nothing is known

  IndexFacts facts_;
  LaneAnalysis lanes_;
  ir::VarId lane_var_;  // valid inside a vectorized loop
  int64_t width_ = 1;
  bool lane_zero_mode_ = false;
  std::unordered_set<ir::ExprId> assumed_;  // predicates the version being emitted may take for true
  bool streaming_now_ = false;
  bool streamed_ = false;                                // a fence is due before returning
  bool one_configuration_ = false, configured_ = false;  // of matrix registers
};

}  // namespace tilegen::codegen
