// One thread program of a GPU block -> one LLVM kernel: what the back ends of all vendors share.
//
// Everything is scalar: a `vectorized` loop is emitted element by element, with its contiguous loads and
// stores as wide accesses (emit_access.cpp). Local memories are SSA values (register_file.h). An i64
// expression whose range fits i32 is emitted in 32 bits; addresses are sums ordered by what they depend on,
// so that loops keep only their own part (emit_address.cpp). A vendor's emitter says how a kernel is
// declared, which registers a launch sets, how words are loaded and stored, and what its instructions are: a
// statement that it has no code for is refused by name.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "codegen/llvm/gpu/address_sums.h"
#include "codegen/llvm/gpu/packing.h"
#include "codegen/llvm/gpu/place.h"
#include "codegen/llvm/gpu/register_file.h"
#include "codegen/llvm/index_facts.h"
#include "codegen/llvm/program_emitter.h"
#include "target/target.h"

namespace tilegen::codegen {

// Address spaces, the same in NVPTX and AMDGPU.
constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

class GpuEmitter : protected ProgramEmitter {
 public:
  // Emits the kernel; a message when the program asks for something this emitter cannot do.
  std::optional<std::string> emit();
  const std::string& refused_origin() const { return refused_origin_; }

 protected:
  // `facts` are those of `program`.
  GpuEmitter(llvm::Module& module, const thread::ThreadProgram& program, IndexFacts& facts,
             const MachineFeatures& features, const target::Target& target, std::string symbol);

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
  // When an access happens: where `value` holds (null: always), or never. `bounded`: and where its offset is
  // within the tensor's bytes, which the hardware sees to.
  struct Condition {
    llvm::Value* value = nullptr;
    bool never = false;
    int level = 0;
    bool bounded = false;
  };
  using Values = std::vector<llvm::Value*>;

  // ---- what a vendor provides

  // What the target has no place for, asked before anything is emitted.
  virtual std::optional<std::string> unsupported() const = 0;
  // The function, with its entry block, and the block's shared memory (`shared_`).
  virtual void declare_kernel() = 0;
  // Registers of the launch, each less than `count`: the block's index along a dimension of the launch (0 is
  // the fastest), the number of blocks along dimension 0, the thread's index in its block.
  virtual llvm::Value* block_index(unsigned dimension, int64_t count) = 0;
  virtual llvm::Value* launched_blocks(int64_t count) = 0;
  virtual llvm::Value* thread_index() = 0;
  // Between the binding of parameters and the body.
  virtual void begin_body() {}
  // Accesses of at most 16 bytes to global and shared memory, as words or one smaller register. `condition`:
  // where it happens, a load gives zeros elsewhere; null: always.
  virtual Values load_words(const Place& at, const thread::Memory& m, int64_t bytes, llvm::Value* condition,
                            LoadKind kind) = 0;
  virtual void store_words(const Place& at, const thread::Memory& m, int64_t bytes, Values words,
                           llvm::Value* condition, bool streaming) = 0;
  virtual llvm::Value* any_lane(llvm::Value* condition) = 0;
  // For which lanes of the warp it holds, an integer of as many bits.
  virtual llvm::Value* ballot(llvm::Value* condition) = 0;
  // Which lanes of the warp have the same integer.
  virtual llvm::Value* matching(llvm::Value* value);
  // The 32 bits that another lane gives: lane (own ^ `lane`), or lane `lane`.
  virtual llvm::Value* shuffled(thread::Shuffle::Mode mode, llvm::Value* bits, llvm::Value* lane) = 0;
  // An expression that is the same for the warp.
  virtual std::optional<Emitted> of_warp(const ir::ExprNode&) { return std::nullopt; }

  virtual void emit_node(const thread::Barrier& barrier) = 0;
  virtual void emit_node(const thread::WarpMma& mma) = 0;
  virtual void emit_node(const thread::AsyncCopy&) { no_code("an asynchronous copy"); }
  virtual void emit_node(const thread::AsyncCommit&) { no_code("an asynchronous copy"); }
  virtual void emit_node(const thread::AsyncWait&) { no_code("an asynchronous copy"); }
  virtual void emit_node(const thread::LoadMatrix&) { no_code("a load of matrices"); }
  virtual void emit_node(const thread::StoreMatrix&) { no_code("a store of matrices"); }
  virtual void emit_node(const thread::Roles&) { no_code("warps with tasks of their own"); }
  virtual void emit_node(const thread::OneThread&) { no_code("an elected thread"); }
  virtual void emit_node(const thread::TransactionArrive&) { no_code("a transaction barrier"); }
  virtual void emit_node(const thread::TransactionWait&) { no_code("a transaction barrier"); }
  virtual void emit_node(const thread::TransactionTest&) { no_code("a transaction barrier"); }
  virtual void emit_node(const thread::FetchTile&) { no_code("a claim of tiles"); }
  virtual void emit_node(const thread::TensorLoad&) { no_code("a copy engine"); }
  virtual void emit_node(const thread::TensorStore&) { no_code("a copy engine"); }
  virtual void emit_node(const thread::BulkCommit&) { no_code("a copy engine"); }
  virtual void emit_node(const thread::BulkWait&) { no_code("a copy engine"); }
  virtual void emit_node(const thread::ProxyFence&) { no_code("a copy engine"); }
  virtual void emit_node(const thread::ClusterBarrier&) { no_code("a cluster of blocks"); }
  virtual void emit_node(const thread::GridDependencyWait&) { no_code("dependent kernels"); }
  virtual void emit_node(const thread::ClusterLoad&) { no_code("a cluster of blocks"); }
  virtual void emit_node(const thread::WarpgroupMma&) { no_code("a product of a warpgroup"); }
  virtual void emit_node(const thread::WarpgroupFence&) { no_code("a product of a warpgroup"); }
  virtual void emit_node(const thread::WarpgroupCommit&) { no_code("a product of a warpgroup"); }
  virtual void emit_node(const thread::WarpgroupWait&) { no_code("a product of a warpgroup"); }

  // ---- what they share

  // The kernel (emit_kernel.cpp). A parameter for each slot of the launch and each divisor, then `more`.
  void create_function(const std::vector<llvm::Type*>& more);
  void bind_params();
  void bind_launch_vars();
  // `v`, known to be in 0 .. count - 1.
  llvm::Value* below(llvm::CallInst* v, int64_t count);
  // Divisions by dims that depend on the launch and the loops around alone, before branches and loops of the
  // body could repeat them (emit_early.cpp).
  void emit_early_divisions(const thread::Block& body);
  bool stands(ir::VarId v) const;
  void collect_early(const thread::Block& body, std::set<ir::ExprId>& divisions);
  void collect_divisions(ir::ExprId e, std::set<ir::ExprId>& divisions,
                         std::unordered_map<ir::ExprId, bool>& known);
  // What memory says of where a loop's tiles lie, before the loop waits for a slot.
  void emit_early_loads(const thread::Loop& loop, const RegisterFile::Memories& changed);

  // Stores of unrolled loops that nothing there reads wait until some have gathered (emit_late.cpp): an
  // assembler moves no load of shared memory before a store to it.
  struct LateStore {
    Place at;
    thread::MemoryId memory;
    int64_t bytes = 0;
    Values words;
    llvm::Value* condition = nullptr;
    bool streaming = false;
  };
  // What unrolled loops of stores read and write, registers left out. Nothing where they hold anything else.
  struct Touched {
    std::set<uint32_t> read, written;
  };
  std::optional<Touched> touched_by_stores(const thread::Block& body);
  bool stores_may_wait(const Touched& touched) const;
  void put_words(LateStore store);
  void emit_late_stores();

  // statements (emit_control.cpp, emit_access.cpp)
  void no_code(const char* what) { refuse(target_.name + " has no code for " + what); }
  void emit_statement(const thread::Stmt& s) override;
  void emit_serial_loop(const thread::Loop& loop) override;
  void emit_unrolled_loop(const thread::Loop& loop) override;
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
  void emit_node(const thread::Shuffle& shuffle);
  void emit_node(const thread::Vote& vote);
  void emit_node(const thread::LaneReduce&) { refuse("a reduction over SIMD lanes has no GPU code"); }
  void emit_node(const thread::HostMma&) { refuse("a matrix atom of the host has no GPU code"); }
  void emit_node(const thread::Prefetch&) { refuse("a prefetch has no GPU code"); }
  void emit_plain_store(const thread::Store& store);
  void emit_vector_store(const thread::Store& store);

  // what lanes give each other (emit_shuffle.cpp)
  bool goes_on(const thread::Shuffle& shuffle);
  void emit_shuffles(size_t count);

  // products of the lanes' own instructions (emit_fma.cpp)
  void emit_fma(const thread::WarpMma& mma);
  // Of a register of A and one of B, added to an element of C.
  using Dot = std::function<llvm::Value*(llvm::Value* a, llvm::Value* b, llvm::Value* sum)>;
  void emit_dots(const thread::WarpMma& mma, const Dot& dot);
  // First word of a register memory's slice that matrix instructions use as words.
  std::optional<int64_t> first_word(thread::MemoryId memory, ir::ExprId index);

  // memory (emit_access.cpp, emit_address.cpp)
  Emitted emit_load(ir::ExprId e);
  Emitted emit_own_load(ir::ExprId e);
  Values load_wide(thread::MemoryId memory, const Place& at, int64_t count, const Condition& condition,
                   LoadKind kind = LoadKind::plain, int64_t most_bytes = 16);
  void store_wide(const thread::Store& store, const Place& at, const Values& held,
                  const Condition& condition);
  // The same of an atomic operation.
  void combine_wide(const thread::Store& store, const Place& at, const Values& held,
                    const Condition& condition);
  llvm::Value* load_element(thread::MemoryId memory, ir::ExprId index, const Condition& condition);
  void store_element(const thread::Store& store, ir::ExprId index, llvm::Value* held,
                     const Condition& condition);
  Condition condition(ir::ExprId predicate);  // of no predicate: always
  // Of an access to an element, without what the hardware bounds.
  Condition condition(ir::ExprId predicate, thread::MemoryId of, ir::ExprId index);
  Condition store_condition(const thread::Store& s);
  bool uniform(ir::ExprId e);  // the same for all lanes, as nothing is
  // Accesses of so many bytes from the element `index` on are.
  bool aligned(const thread::Memory& m, const arith::Affine& index, int64_t bytes);
  // The address of the element at lane 0 when `index` is lane + (the same for all lanes) and an access of all
  // lanes is aligned: lowering has seen to that, but for a predicate that only facts_ knows to be uniform.
  std::optional<Place> contiguous(thread::MemoryId memory, ir::ExprId index, ir::ExprId predicate);
  // Elements near each other that lanes read, several of them one, or with gaps: all from `at` on.
  struct NearElements {
    Place at;
    int64_t count = 0, access_bytes = 0;
    std::vector<size_t> of_lane;
  };
  std::optional<NearElements> near_elements(thread::MemoryId memory, ir::ExprId index);
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
  Emitted emit_native_call(const ir::ExprNode& n, ir::ExprId e);
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
  Packing packing_;
  RegisterFile registers_;
  llvm::GlobalVariable* shared_ = nullptr;  // the block's arena
  Values bases_;                            // by MemoryId, of global memories
  struct Divisor {
    llvm::Value *value = nullptr, *reciprocal = nullptr;
  };
  std::unordered_map<ir::ExprId, Divisor> divisors_;  // that the launch passes
  ir::VarId lane_var_;                                // valid inside a vectorized loop
  int64_t width_ = 1;
  std::vector<OpenLoop> loops_;                               // serial loops being emitted, outermost first
  int sides_in_loops_ = 0;                                    // of branches being emitted, inside of loops
  std::unordered_map<ir::ExprId, Values> wide_loads_;         // of the statement: elements by lane
  std::unordered_map<ir::ExprId, llvm::Value*> early_loads_;  // of the loops being emitted
  struct Standing {
    Values registers;  // what tells the place
    int level = 0;
  };
  std::optional<Standing> standing(ir::ExprId load);
  std::unordered_map<ir::ExprId, Values> standing_registers_;  // of loads that are remembered
  struct Given {
    const thread::Shuffle* shuffle = nullptr;
    llvm::Value *held = nullptr, *lane = nullptr;
  };
  // Integers out of words (emit_words.cpp): lanes beside each other read parts of one.
  struct WordPlace {
    int64_t each = 1;          // elements of a word
    std::vector<int64_t> key;  // of the terms
    std::vector<Summand> terms;
    int64_t constant = 0, divisor = 0;  // in elements; the latter of the sum of terms
    llvm::Value* part = nullptr;        // of the word: which element
    ir::ExprId part_of;                 // what tells it
  };
  bool add_terms(const arith::Affine& form, WordPlace& place);
  bool add_mixed(ir::ExprId mixed, WordPlace& place);
  bool stands_unrolled(ir::ExprId e);
  std::optional<int64_t> known_value(ir::ExprId e);
  llvm::Value* element_of_word(thread::MemoryId memory, ir::ExprId index);
  bool words_stand_ = false;
  std::map<std::vector<int64_t>, Values> words_;  // that the loops being written out have read
  std::vector<ir::VarId> unrolled_;
  bool stores_wait_ = false;
  std::vector<LateStore> late_stores_;
  std::vector<Given> given_;  // of shuffles in a row that wait to share a word
  std::string refused_origin_;
};

}  // namespace tilegen::codegen
