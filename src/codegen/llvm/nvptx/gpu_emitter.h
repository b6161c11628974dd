// One thread program of a GPU block -> one LLVM kernel for NVPTX.
//
// Everything is scalar: a `vectorized` loop is emitted element by element, with its contiguous loads and
// stores as wide accesses (emit_access.cpp). Local memories are SSA values (register_file.h). An i64
// expression whose range fits i32 is emitted in 32 bits; addresses are sums ordered by what they depend on,
// so that loops keep only their own part (emit_address.cpp). Accesses under a predicate are predicated
// instructions, so that code stays in one block.
#pragma once

#include <array>
#include <set>
#include <unordered_map>

#include "codegen/llvm/index_facts.h"
#include "codegen/llvm/nvptx/address_sums.h"
#include "codegen/llvm/nvptx/assembly.h"
#include "codegen/llvm/nvptx/matrix_operands.h"
#include "codegen/llvm/nvptx/packing.h"
#include "codegen/llvm/nvptx/place.h"
#include "codegen/llvm/nvptx/product_foldings.h"
#include "codegen/llvm/nvptx/register_file.h"
#include "codegen/llvm/program_emitter.h"
#include "target/target.h"

namespace tilegen::codegen {

class GpuEmitter : private ProgramEmitter {
 public:
  // `facts` are those of `program`.
  GpuEmitter(llvm::Module& module, const thread::ThreadProgram& program, IndexFacts& facts,
             const MachineFeatures& features, const target::Target& target, std::string symbol);

  // Emits the kernel; a message when the program asks for something this emitter cannot do.
  std::optional<std::string> emit();
  const std::string& refused_origin() const { return refused_origin_; }

 private:
  // (variable of a serial loop + constant) % modulus, counted along instead of divided.
  struct Counter {
    llvm::PHINode* value = nullptr;
    int64_t first = 0, modulus = 1;
  };
  struct OpenLoop {
    ir::VarId var;
    CountedLoop blocks;
    std::vector<Counter> counters;
  };
  // When an access happens: where `value` holds (null: always), or never.
  struct Condition {
    llvm::Value* value = nullptr;
    bool never = false;
    int level = 0;
  };
  using Values = std::vector<llvm::Value*>;

  // the kernel (emit_kernel.cpp)
  void create_function();
  void annotate_function();
  void declare_shared();
  void bind_params();
  void bind_launch_vars();
  llvm::Value* launch_register(llvm::Intrinsic::ID id, int64_t count);
  // Divisions by dims that depend on the launch and the loops around alone, before branches and loops of the
  // body could repeat them (emit_early.cpp).
  void emit_early_divisions(const thread::Block& body);
  bool stands(ir::VarId v) const;
  void collect_early(const thread::Block& body, std::set<ir::ExprId>& divisions);
  void collect_divisions(ir::ExprId e, std::set<ir::ExprId>& divisions,
                         std::unordered_map<ir::ExprId, bool>& known);

  // statements (emit_control.cpp, emit_sync.cpp, emit_matrix.cpp)
  void emit_statement(const thread::Stmt& s) override;
  void emit_serial_loop(const thread::Loop& loop) override;
  bool stepped(const thread::Loop& loop);
  CountedLoop begin_serial_loop(const thread::Loop& loop, llvm::Value* condition);
  const thread::WarpgroupWait* wait_for_filled();
  llvm::BasicBlock* emit_wait_behind(const CountedLoop& l, llvm::BranchInst* again,
                                     const thread::WarpgroupWait& wait, const RegisterFile::Memories& changed,
                                     RegisterFile::Values& after);
  void emit_vector_loop(const thread::Loop& loop) override;
  void emit_branch(const thread::Branch& branch) override;
  void emit_sides(llvm::Value* condition, const thread::Block& then_body, const thread::Block& else_body);
  std::optional<Emitted> rotating_counter(const ir::ExprNode& n);
  void advance_counters(const OpenLoop& loop);
  RegisterFile::Values merged(const RegisterFile::Values& a, llvm::BasicBlock* from_a,
                              const RegisterFile::Values& b, llvm::BasicBlock* from_b);
  void emit_node(const thread::Loop&) {}  // not through emit_statement
  void emit_node(const thread::Branch&) {}
  void emit_node(const thread::Store& store);
  void emit_node(const thread::LaneReduce&) { refuse("a reduction over SIMD lanes has no GPU code"); }
  void emit_node(const thread::HostMma&) { refuse("a matrix atom of the host has no GPU code"); }
  void emit_node(const thread::Prefetch&) { refuse("a prefetch has no GPU code"); }
  void emit_node(const thread::Barrier& barrier);
  void emit_node(const thread::AsyncCopy& copy);
  void emit_node(const thread::AsyncCommit&);
  void emit_node(const thread::AsyncWait& wait);
  void emit_node(const thread::Shuffle& shuffle);
  void emit_node(const thread::LoadMatrix& load);
  void emit_node(const thread::StoreMatrix& store);
  void emit_node(const thread::WarpMma& mma);
  void emit_plain_store(const thread::Store& store);
  void emit_vector_store(const thread::Store& store);

  // warps with tasks of their own (emit_roles.cpp)
  void bind_warp();
  std::optional<Emitted> of_warp(const ir::ExprNode& n);
  void emit_node(const thread::Roles& roles);
  void emit_register_budget(int registers);
  void emit_node(const thread::OneThread& one);

  // transaction barriers (emit_transaction.cpp), the copy engine (emit_tensor.cpp)
  void initialise_block();
  Place barrier_place(int barriers, ir::ExprId index);
  void emit_node(const thread::TransactionArrive& arrive);
  void emit_node(const thread::TransactionWait& wait);
  void emit_node(const thread::TransactionTest& test);
  void emit_node(const thread::FetchTile& fetch);
  void emit_node(const thread::TensorLoad& load);
  void emit_node(const thread::TensorStore& store);
  std::string coordinates(const std::vector<ir::ExprId>& at, std::string& constraints, Values& operands);
  void emit_node(const thread::BulkCommit&);
  void emit_node(const thread::BulkWait& wait);
  void emit_node(const thread::ProxyFence&);
  void emit_node(const thread::ClusterBarrier&);
  void emit_node(const thread::ClusterLoad& load);

  // products of a warpgroup (emit_warpgroup.cpp)
  struct WarpgroupCode;
  void emit_node(const thread::WarpgroupMma& mma);
  void emit_node(const thread::WarpgroupFence&);
  void emit_node(const thread::WarpgroupCommit&);
  void emit_node(const thread::WarpgroupWait& wait);
  bool fits(const thread::WarpgroupMma& mma, const target::WarpgroupInstruction& instruction);
  void add_accumulators(WarpgroupCode& code, const thread::WarpgroupMma& mma);
  size_t add_words(WarpgroupCode& code, const thread::WarpgroupMma& mma);
  void add_sources(WarpgroupCode& code, const thread::WarpgroupMma& mma);
  std::string products(const WarpgroupCode& code, const thread::WarpgroupMma& mma);
  llvm::Value* low_descriptor(thread::MemoryId memory, ir::ExprId index, const thread::MatrixForm& form);

  Values mma_operands(const MatrixOperands& row, const thread::WarpMma& mma);
  void emit_fma(const thread::WarpMma& mma);
  void emit_byte_dots(const thread::WarpMma& mma);
  // First word of a register memory's slice that matrix instructions use as words.
  std::optional<int64_t> first_word(thread::MemoryId memory, ir::ExprId index);

  // memory (emit_access.cpp, emit_address.cpp)
  Emitted emit_load(ir::ExprId e);
  Values load_wide(thread::MemoryId memory, const Place& at, int64_t count, const Condition& condition);
  void store_wide(const thread::Store& store, const Place& at, const Values& held,
                  const Condition& condition);
  llvm::Value* load_element(thread::MemoryId memory, ir::ExprId index, const Condition& condition);
  void store_element(const thread::Store& store, ir::ExprId index, llvm::Value* held,
                     const Condition& condition);
  Condition condition(ir::ExprId predicate);  // of no predicate: always
  bool uniform(ir::ExprId e);                 // the same for all lanes, as nothing is
  // The address of the element at lane 0 when `index` is lane + (the same for all lanes).
  std::optional<Place> contiguous(thread::MemoryId memory, ir::ExprId index);
  Place place(thread::MemoryId memory, ir::ExprId index);
  Place place(thread::MemoryId memory, const arith::Affine& index);
  Place shared_place(const arith::Affine& index, int64_t scale, int64_t first);  // in the arena, bytes
  std::vector<Summand> summands(const arith::Affine& index, int64_t scale);
  void add_dim_products(const std::vector<std::pair<ir::ExprId, Summand>>& products,
                        std::vector<Summand>& out);
  std::optional<int64_t> constant_index(ir::ExprId e);

  // expressions (emit_values.cpp)
  llvm::Value* value(ir::ExprId e) { return emit_expr(e).value; }
  llvm::Value* held_value(ir::ExprId e);  // in the type memories hold: i64 in 64 bits
  Emitted emit_expr(ir::ExprId e);
  Emitted compute_expr(ir::ExprId e);
  Emitted emit_var(const ir::ExprNode& n, ir::ExprId e);
  Emitted emit_index_unary(const ir::ExprNode& n, ir::ExprId e);
  Emitted emit_index_binary(const ir::ExprNode& n, ir::ExprId e);
  llvm::Value* index_operation(const ir::ExprNode& n, ir::ExprId e, llvm::Value* a, llvm::Value* b);
  llvm::Value* divided_by_reciprocal(const ir::ExprNode& n, ir::ExprId e, llvm::Value* a, llvm::Value* b);
  llvm::Value* divided_narrow(const ir::ExprNode& n, ir::ExprId e, llvm::Value* a, llvm::Value* b);
  llvm::Value* modular(const ir::ExprNode& n, ir::ExprId e, llvm::Value* a, llvm::Value* b);
  unsigned index_bits(ir::ExprId e) { return facts_.narrow(e) ? 32 : 64; }
  llvm::Value* resized(llvm::Value* v, unsigned bits, ir::ExprId e);

  IndexFacts& facts_;
  const target::Target& target_;
  Assembly ptx_;
  Packing packing_;
  RegisterFile registers_;
  llvm::GlobalVariable* shared_ = nullptr;  // the block's dynamic shared memory
  Values bases_;                            // by MemoryId, of global memories
  std::vector<llvm::Argument*> maps_;       // by tensor map, its address
  llvm::Value* counter_ = nullptr;          // address of what points are claimed from
  struct Divisor {
    llvm::Value *value = nullptr, *reciprocal = nullptr;
  };
  std::unordered_map<ir::ExprId, Divisor> divisors_;  // that the launch passes
  // index of the warp in the block, the same register for the warp; where it is of use
  llvm::Value* warp_ = nullptr;
  std::vector<ProductFolding> folding_;  // by StmtId
  size_t statement_ = 0;                 // StmtId being emitted
  ir::VarId lane_var_;                   // valid inside a vectorized loop
  int64_t width_ = 1;
  std::vector<OpenLoop> loops_;                        // serial loops being emitted, outermost first
  std::unordered_map<ir::ExprId, Values> wide_loads_;  // of the statement: elements by lane
  std::string refused_origin_;
};

}  // namespace tilegen::codegen
