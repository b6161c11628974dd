// State of lowering one kernel, shared by the files of this folder. Not used outside it.
//
// Blocks of one thread (host) and blocks of many (GPU) share statements, expressions and the walk over an
// op's points; what differs stands in functions of its own: those of gpu/ belong to GPUs alone.
//
// A GPU op is emitted in terms of digit variables: Nest::thread_digits names one variable per thread digit of
// the iteration layout, bound to its range, so that index arithmetic sees independent digits instead of
// quotients of the thread index. finish_thread_nest() replaces them by expressions of the thread variable.
// Register indices lose every digit variable on the way; one that does not is a choice among registers
// (gpu/registers.cpp).
//
// What plugs in:
//  - matrix products: OpLowering::contract_warp_mma (gpu/gemm.cpp), for Engine::mma. Registers of an operand
//    in the layout the atom wants: KernelLowering::held; elements of shared tiles: memory_index.
//  - asynchronous copies: OpLowering::async_copy_points (gpu/async.cpp), for Engine::async_copy. emit_nest
//    walks the points; false says that the plain copy shall be emitted.
//  - statements of the scheduled program: ScheduledLowering. While those of an iteration are lowered,
//    `slots_` says which slot of a value they mean; without an entry slot 0.
//  - barriers: planted by a pass over the finished program.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "analysis/block_tree.h"
#include "analysis/exchange.h"
#include "analysis/kernel_ops.h"
#include "analysis/tensor_copy.h"
#include "arith/context.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "ir/statement_paths.h"
#include "layout/tensor_tile.h"
#include "lower/lower_kernel.h"
#include "lower/lowering_parts.h"
#include "ops/element_view.h"
#include "plan/access_facts.h"

namespace tilegen::lower {

using EmitPoint = std::function<void(const Nest&, thread::Block&)>;

class KernelLowering {
 public:
  KernelLowering(const ir::Program& p, const expand::ScheduledKernel& scheduled, const target::Target& t);
  Expected<thread::ThreadProgram> run();
  Expected<plan::AccessFacts> find_facts();  // access_facts.h; in place of run()

 private:
  friend class OpLowering;
  friend class ExprLowering;
  friend class OperandAddresses;
  friend class GemmState;
  friend class GemmLowering;
  friend class MultiplyAdds;
  friend class ScheduledLowering;
  friend class StagedGemm;
  friend class BlockReduction;
  friend class DeferredReduction;
  friend class WarpgroupGemm;
  friend class StagedStore;
  friend class OperandTranspose;

  // lower_kernel.cpp
  void declare();
  void declare_parameters();
  void declare_grid();
  void declare_values();
  // What is lowered from here on belongs to the statement; its path.
  const std::string& begin_operation(ir::StmtId id);
  // A tile operation, parallel loop or store.
  void operation(ir::StmtId id, thread::Block& out);
  // loop_bounds.cpp
  LoopBounds loop_bounds(const ir::Loop& loop, thread::Block& out, const std::string& origin);
  bool reads_what_is_written(ExprId program_expr, const ir::Block& body) const;
  ExprId taken_before(ExprId program_expr, const ir::Block& body, const char* name, thread::Block& out,
                      const std::string& origin);
  void take_scalars(ir::StmtId op, thread::Block& out, const std::string& origin);
  // iterations of a loop that has run `count` times, which have taken their time
  ExprId repeated(ExprId count, ExprId extent);
  // 0 <= var < extent, but for what is known of the extent's value
  void bind_counter(VarId var, ExprId extent);
  void fail(DiagCode code, const std::string& op, std::string message, std::string hint);
  bool failed() const { return !error_.diagnostics.empty(); }

  // addressing.cpp
  ExprId lower_expr(ExprId program_expr);  // under the current substitution
  ExprId simplified(ExprId e) { return arith::simplify(ctx_, e); }
  // Element `indices` of a buffer as an index into its memory; `predicate` collects bounds that are not
  // proven.
  ExprId memory_index(ir::BufferId buffer, std::span<const ExprId> indices);
  // `given` holds wherever the predicate counts: what it tells is not asked again.
  ExprId bounds_predicate(ir::BufferId buffer, std::span<const ExprId> indices, ExprId given = ExprId());
  bool reads_memory(ExprId e) const;
  ExprId layout_index(const layout::Layout& l, int output, std::span<const ExprId> indices);
  // `inside`: the element is known to be in bounds wherever `predicate` holds.
  ExprId load_element(ir::BufferId buffer, std::span<const ExprId> indices, bool inside,
                      ExprId predicate = ExprId());
  ExprId store_predicate(ir::BufferId buffer, std::span<const ExprId> indices, ExprId predicate, bool inside);
  // Value the op being lowered means by an on-chip buffer; -1 and an error when that cannot be told.
  int value_of(ir::BufferId buffer);
  MemoryId memory_of(ir::BufferId buffer);
  // As the op being lowered sees the value.
  const plan::ValuePlan& value_plan(ir::BufferId b) { return plan_of_value(value_of(b)); }
  const plan::ValuePlan& plan_of_value(int value) const {
    auto copy = copies_.find(value);
    return copy == copies_.end() ? schedule_.values[static_cast<size_t>(value)] : copy->second.plan;
  }
  // A planned streaming store pays when the tensor is larger than the target's caches: a condition on its
  // size; invalid for tensors known to be small and for tiles, which are never streamed.
  ExprId streaming_condition(const plan::OpPlan& plan, ir::BufferId buffer);
  ExprId both(ExprId a, ExprId b);  // conjunction; an invalid id is "true"

  // iteration.cpp
  Nest make_nest(const layout::Fragment& iteration, int64_t vector, const std::vector<int64_t>& extents);
  // Wraps `body` in the loops of the nest [first, last).
  thread::Block wrap(const Nest& nest, size_t first, size_t last, thread::Block body,
                     const std::string& origin);

  // gpu/grid.cpp: one linear block index; the program's indices are expressions of it, put in at the end.
  bool block_threads() const { return target_.has_block_threads(); }
  void declare_linear_grid();
  ExprId launch_divisor(ExprId given);
  void lpt(ExprId rest, const std::vector<ExprId>& extent, std::vector<ExprId>& value);
  void replace_block_indices(thread::Block& body);
  // Of the cluster that the kernel's blocks come in; 1: none.
  int64_t cluster_blocks() const {
    return specialised() && schedule_.cluster ? schedule_.cluster->blocks : 1;
  }
  ExprId cluster_rank();
  ExprId own_tile(ExprId of_cluster, ExprId tiles);
  bool writes_tensor(ir::StmtId id) const;

  void declare_assumptions();  // gpu_assumptions.cpp

  // gpu/full_tile.cpp
  struct Bound {  // 0 <= index, or index < extent where there is one; a dimension of a tensor
    ExprId index, extent;
  };
  // Stores that depend on a condition of the user's: a bound like those of tensors where it compares indices.
  void record_condition(ExprId condition);
  std::optional<ExprId> extremal_index(const Bound& bound, const Nest& nest);
  bool settle_padded(const Nest& nest, bool upper, ExprId& index, int64_t& further);
  // Condition, the same for the whole block, under which every recorded bound holds; invalid when none can be
  // told.
  ExprId interior_of_bounds(const Nest& nest);

  // gpu/iteration.cpp
  struct ThreadDigit {
    layout::Digit digit;
    ExprId value;  // expression of the thread variable, inside the digit's extent for every thread
  };
  struct ThreadDigits {
    std::vector<ThreadDigit> digits;  // by descending stride
    ExprId reached;                   // the thread is one that the digits reach; invalid: all are
  };
  ThreadDigits thread_digits(const layout::Fragment& f);
  // Register digits become loops (unrolled, or serial where no register depends on them), the unit digit a
  // vector.
  Nest make_thread_nest(const layout::Fragment& iteration, int64_t vector,
                        const std::vector<int64_t>& extents, bool serial);
  // Digit variables replaced by what they stand for, in the stores of `body` and below its loops.
  void finish_thread_nest(const Nest& nest, const thread::Block& body);

  // gpu/masks.cpp
  struct Walk;
  bool emit_split_by_mask(const Walk& walk, const EmitPoint& emit, thread::Block& out);
  ExprId unmasked(const Walk& walk, const EmitPoint& emit);
  void fold_mask(thread::Block& body);
  void shorten_mask(const Nest& nest, const thread::Block& body);

  // gpu/element_nest.cpp
  struct Walk {
    layout::Fragment iteration;
    int64_t vector = 1;
    std::string origin;
    const plan::OpPlan* plan = nullptr;  // of the op whose points are walked; null: `vector` is the most
    bool in_memory = false;              // no access is to a register
  };
  // The loops over the points that one thread walks, around what `emit` puts into their body.
  void emit_walk(const Walk& walk, const EmitPoint& emit, thread::Block& out);
  // What a form that is given up has added to the program goes.
  struct Sizes {
    size_t stmts, vars, memories;
  };
  Sizes sizes() const { return {out_.stmts.size(), out_.vars.size(), out_.memories.size()}; }
  void drop_since(const Sizes& before);
  // The walk with vectors of one width.
  struct Attempt {
    thread::Block block;
    bool legal = true;         // every wide access is aligned
    bool wide = false;         // there is one
    bool lane_bounds = false;  // predicates differ between the lanes of a vector
    ExprId interior;           // the block's accesses to tensors are all in bounds; invalid: not told
  };
  Attempt try_walk(const Walk& walk, int64_t width, const EmitPoint& emit);
  bool emit_vectors(const Walk& walk, const EmitPoint& emit, thread::Block& out);
  void emit_widest(const Walk& walk, const EmitPoint& emit, thread::Block& out);
  void inspect_vector(const Nest& nest, const thread::Block& body, Attempt& result);
  void judge_vector(const Attempt& a, int64_t width, const std::string& op);

  // gpu_access_facts.cpp: while there are facts to be found nothing is emitted for walks of ops.
  plan::OpAccessFacts& facts_of(const std::string& op);
  void find_facts(const Walk& walk, const EmitPoint& emit);
  void find_facts_of_width(const Walk& walk, int64_t width, const EmitPoint& emit,
                           plan::OpAccessFacts& facts);
  static int64_t widest_of(const Walk& walk, const plan::OpAccessFacts& facts);
  int64_t operations_of(const Walk& walk, int64_t width, const EmitPoint& emit);

  // gpu/code_size.cpp
  std::set<VarId> register_vars(const thread::Block& body);
  // `copies`: that the others write out.
  std::vector<bool> rolled_loops(const Nest& nest, size_t first, size_t last, const thread::Block& body,
                                 const std::string& origin, int64_t& copies);
  thread::Block rolled_loop(const NestLoop& l, int64_t together, thread::Block body,
                            const std::string& origin);
  // Of one thread, as written out, in loops that are unrolled.
  int64_t operations(const thread::Block& block, const std::set<VarId>& unrolled = {});

  // gpu/exchange.cpp
  MemoryId scratch(const std::string& path, ir::DType type, int64_t elements);
  MemoryId planned_memory(plan::Storage storage, const std::string& op, ir::DType type, int64_t elements,
                          const std::string& value = {});
  // Every element of a fragment from its registers to memory, and back to all that hold it.
  void put_in_memory(const FragmentView& from, const layout::Layout& place, MemoryId memory,
                     const std::string& path, thread::Block& out);
  void fetch_from_memory(const FragmentView& to, const layout::Layout& place, MemoryId memory,
                         const std::string& path, thread::Block& out);
  // to = from, element by element; every holder in `to` has it then.
  void exchange(layout::ConversionKind planned, const FragmentView& from, const FragmentView& to,
                const std::string& path, thread::Block& out);
  void exchange_lanes(const FragmentView& from, const FragmentView& to, const std::string& path,
                      thread::Block& out);
  void exchange_scratch(const FragmentView& from, const FragmentView& to, const std::string& path,
                        thread::Block& out);
  // The planned conversions before an op and after it; between the two held() gives the op's forms.
  void begin_conversions(const analysis::KernelOp& op, thread::Block& out);
  void end_conversions(const analysis::KernelOp& op, thread::Block& out);
  // The same for what the op works on in memory.
  void begin_copies(const analysis::KernelOp& op, const plan::OpPlan& plan, thread::Block& out);
  void end_copies(const analysis::KernelOp& op, thread::Block& out);

  // gpu/registers.cpp
  // What the op being lowered means by the buffer is spread over the threads' registers.
  bool in_thread_registers(ir::BufferId buffer);
  FragmentView held(int value);
  ExprId load_register(const FragmentView& from, std::span<const ExprId> indices);
  // memory[register of the element] = value where `predicate` holds (invalid: always).
  void store_register(const FragmentView& to, std::span<const ExprId> indices, ExprId value, ExprId predicate,
                      thread::Block& out, const std::string& origin);
  // Index of an element's register, kept in range where the element may be none of the fragment's; `inside`
  // (invalid: always) is when it is one.
  ExprId register_index(const layout::Fragment& f, std::span<const ExprId> indices, ExprId* inside);
  bool fixed_index(ExprId index) const;
  // Where a thread has its element at (row, column) of the first thread's part.
  static int64_t first_register(const FragmentView& h, int row_dim, int column_dim, int64_t row,
                                int64_t column);
  // Registers that hold no element of the fragment get a value; so do all that may be moved before they are
  // written.
  void clear_unheld(const FragmentView& h, thread::Block& out, const std::string& origin, bool all = false);
  // The op writes all of the value and reads nothing of it.
  bool overwrites(const analysis::KernelOp& op, int value) const;
  // Values that are moved as a whole to another layout, to memory or into parts, with nothing that must have
  // written them before.
  std::set<int> moved_unwritten() const;
  // This thread holds the element.
  ExprId holds(const layout::Fragment& f, std::span<const ExprId> indices);
  MemoryId add_registers(const std::string& name, ir::DType type, int64_t elements);
  ExprId swizzled(const layout::Layout& l, ExprId index);
  // Element `index` of the slot that the statements being lowered mean.
  ExprId in_slot(int value, ExprId index);

  // gpu/carried_sums.cpp: before a loop and after it.
  struct CarriedJoin;
  void split_sums(ir::StmtId loop, thread::Block& out);
  void join_sums(ir::StmtId loop, thread::Block& out);

  // gpu/roles.cpp
  bool specialised() const { return schedule_.has_producer(); }
  // How often iterations of the loop have filled its pipelines before it begins: told by the points of the
  // grid and the iterations around where trip counts say it, else counted after each run
  // (analysis::runs_irregularly).
  bool counted(ir::StmtId s) const;
  ExprId fillings_before(ir::StmtId loop, ExprId extent);
  void count_fillings(ir::StmtId loop, ExprId extent, thread::Block& out);
  // The same for a pipeline that is filled once for a point of the grid, if at all.
  bool uses_counted(const PipelineBarriers& line) const;
  ExprId uses_before(const PipelineBarriers& line);
  void count_use(const PipelineBarriers& line, thread::Block& out);
  MemoryId count_of(const void* what, const char* name);
  ExprId held_number(MemoryId number);  // of 32 bits, in a register
  ExprId held_count(MemoryId count);
  void add_to_count(MemoryId count, ExprId more, thread::Block& out);
  // gpu/tile_scheduler.cpp: points of the grid that the block claims while it runs, handed from the producer
  // to the computing threads.
  bool dynamic() const { return specialised() && schedule_.persistence && schedule_.persistence->dynamic(); }
  void declare_tile_scheduler();
  ExprId current_tile();
  thread::Block walk_dynamic(thread::Block body, bool fetches);
  void fetch_next(thread::Block& out);
  void take_next(thread::Block& out);
  void take_next_alone(thread::Block& out);
  ExprId points();
  ExprId tile_in_grid();
  ExprId tile_is_empty();
  ExprId handed_slot();
  ExprId handed_parity();
  thread::StmtId set_tile(ExprId to);
  thread::StmtId set_tile_to_number();
  void warpgroup_barrier(thread::Block& out, const std::string& origin);
  // What a warpgroup of its own does, told apart by constant barrier numbers.
  void for_each_warpgroup(const std::function<thread::Block(int64_t)>& own, thread::Block& out,
                          const std::string& origin);
  // Of those that the thread has: for an op that multiplies by them.
  ExprId some_factor_is_not_one(const analysis::KernelOp& op, const std::string& factors);
  // Run by the first thread, or the first `threads`, of each warpgroup.
  thread::StmtId only_first_of_warpgroup(thread::Block body, const std::string& origin,
                                         ExprId also = ExprId(), int64_t threads = 1);

  // gpu/pipelines.cpp
  void declare_pipelines();
  // The pipeline that a producer's copy fills.
  const PipelineBarriers& pipeline_of(const analysis::KernelOp& copy) const;
  // The slot and the parity of the phase that the `count`th use of a pipeline has.
  ExprId pipeline_slot(const PipelineBarriers& line, ExprId count);
  ExprId pipeline_parity(const PipelineBarriers& line, ExprId count);
  void issue_tensor_copy(const analysis::KernelOp& op, thread::Block& out);

  // gpu/operand_transpose.cpp: the operand's copy for instructions that read rows along k only; none where
  // they read it as it lies.
  TurnedOperand transpose_operand(const analysis::KernelOp& op, const ir::TileOp& tile_op, int index,
                                  const target::WarpgroupAtom& atom, int64_t part, thread::Block& out);

  // gpu/tensor.cpp
  int tensor_map(ir::BufferId tensor, const std::vector<int64_t>& box, int swizzle);
  struct TensorBoxes {
    int map = -1;
    std::vector<ExprId> origin;  // per tensor dimension, slowest first
    analysis::TensorCopyDims dims;
    layout::TensorTile tile;
  };
  // How the copy engine moves a region of a tensor from or to an on-chip tile of this layout.
  // `rows`: of a box, where not all that the layout has are moved at once.
  std::optional<TensorBoxes> tensor_boxes(const analysis::KernelOp& op, const layout::Layout& l,
                                          int64_t rows = 0);
  // Coordinates of the box that begins `row` rows and `column` elements after the region's begin, innermost
  // first.
  std::vector<ExprId> box_coordinates(const std::vector<ExprId>& origin, const analysis::TensorCopyDims& dims,
                                      ExprId row, ExprId column);
  std::vector<int64_t> box_of(const ir::Region& r, const analysis::TensorCopyDims& dims, int64_t rows,
                              int64_t columns) const;
  int64_t tensor_load_bytes(const analysis::KernelOp& op);
  int64_t shared_rows_of(const analysis::KernelOp& op) const;  // analysis::shared_rows
  void store_tile(const analysis::KernelOp& op, thread::Block& out);
  void role_barrier(thread::Block& out, const std::string& origin);  // of the computing threads
  void tensor_loads(const analysis::KernelOp& op, const PipelineBarriers& line, ExprId slot,
                    thread::Block& out);

  // element.cpp, reduce.cpp, gemm.cpp: bodies of OpLowering

  const ir::Program& p_;
  const expand::ScheduledKernel& scheduled_;
  int kernel_index_;
  const ir::Kernel& kernel_;
  const plan::KernelSchedule& schedule_;
  const target::Target& target_;
  std::optional<plan::AccessFacts> facts_;  // while they are looked for
  const analysis::KernelOps& ops_;
  const ir::KernelPaths paths_;
  const analysis::BlockTree tree_;
  std::map<ir::StmtId, const analysis::KernelOp*> op_of_;
  thread::ThreadProgram out_;
  arith::Context ctx_;
  std::map<VarId, ExprId> vars_;    // program variable -> thread expression
  std::map<ExprId, ExprId> taken_;  // scalars of the op being lowered, as they were before it
  std::map<ir::BufferId, MemoryId> globals_;
  std::vector<MemoryId> values_;                         // by value index
  std::map<int, std::vector<MemoryId>> register_slots_;  // GPU: of values that iterations have in turn
  const analysis::KernelOp* current_ = nullptr;  // op being lowered: decides which value a buffer means
  ir::StmtId statement_;   // statement being lowered: decides which value its scalars read
  int scalar_value_ = -1;  // while a scalar is lowered: the value it reads
  std::string origin_;
  bool interior_ = false;  // the tile op's regions are known to be in bounds
  // GPU: the point being walked is no padding; invalid: it never is, or none is walked
  ExprId no_padding_;
  // GPU: condition under which all accesses to tensors are in bounds; holds here
  ExprId assumed_interior_;
  // GPU: condition under which the walk being lowered masks nothing; holds here
  ExprId mask_known_;
  bool mask_open_ = false;     // GPU: the walk being lowered masks something
  std::vector<Bound> bounds_;  // GPU: bounds of tensors that accesses were predicated with
  // GPU: an element is read by all of its copies' threads before one writes it
  bool staged_ = false;
  std::map<VarId, ExprId> block_indices_;  // GPU: program block index -> expression of the one block variable
  std::set<VarId> fixed_vars_;             // GPU: constants after unrolling, and vector lanes
  std::map<VarId, int64_t> lanes_;         // GPU: lanes of vectors, with how many there are
  std::map<int, FragmentView> converted_;  // GPU: values the op being lowered sees in another form
  struct Copy {
    plan::ValuePlan plan;
    MemoryId memory;
  };
  std::map<int, Copy> copies_;  // GPU: values that the op being lowered works on in memory
  struct ActiveConversion {
    int value = -1;
    FragmentView form;
    bool behind = false;
    layout::ConversionKind kind = layout::ConversionKind::none;  // planned, after
  };
  std::vector<ActiveConversion> op_conversions_;          // of the op being lowered
  std::vector<std::unique_ptr<layout::Fragment>> forms_;  // what FragmentView of conversions points to
  std::map<int, ExprId> slots_;                    // GPU: slot of a value that statements mean; absent: 0
  expand::RoleKind role_ = expand::RoleKind::all;  // GPU: the role being lowered
  std::vector<PipelineBarriers> pipelines_;        // GPU: of the scheduled program's pipelines
  // GPU, persistent kernels: points of the grid this block has walked
  VarId tile_var_;
  ExprId tiles_;                              // GPU: points of the grid
  ExprId inside_grid_;                        // GPU: the block has a tile of its own; invalid: it always has
  std::map<const void*, MemoryId> fillings_;  // GPU: counts of the role being lowered, by loop or pipeline
  struct TileScheduler {
    int full = -1, empty = -1;  // index into ThreadProgram::barriers
    MemoryId handed;            // shared: numbers on their way to the computing threads
    MemoryId number, tile;      // registers: claimed, or handed over; the point being walked
  };
  TileScheduler scheduler_;  // GPU, kernels whose blocks claim their points
  std::map<std::pair<ir::StmtId, int>, MemoryId> turned_memories_;  // GPU: copies of products' operands
  // GPU, specialised kernels: how often the body being lowered has begun before
  ExprId iteration_counts_;
  bool products_overwrite_ = false;  // GPU: the accumulators' values are not to be added to
  bool product_in_flight_ = false;   // GPU: the loop around the product waits for it
  // GPU: async copies being lowered belong to a pipelined loop's group
  bool groups_closed_by_loop_ = false;
  Error error_;
};

}  // namespace tilegen::lower
