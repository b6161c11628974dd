// State of lowering one kernel, shared by the files of this folder. Not used outside it.
//
// Blocks of one thread (host) and blocks of many (GPU) share statements, expressions and the walk over an
// op's points; what differs stands in functions of its own: those of gpu/ belong to GPUs alone.
//
// A GPU op is emitted in terms of digit variables: Nest::thread_digits names one variable per thread digit of
// the iteration layout, bound to its range, so that index arithmetic sees independent digits instead of
// quotients of the thread index. finish_thread_nest() replaces them by expressions of the thread variable.
// Register indices lose every digit variable on the way; one that does not is a choice among registers
// (gpu/registers.h).
#pragma once

#include <map>
#include <memory>
#include <set>

#include "analysis/block_tree.h"
#include "analysis/kernel_ops.h"
#include "arith/context.h"
#include "arith/simplify.h"
#include "ir/statement_paths.h"
#include "lower/lowering_parts.h"
#include "plan/access_facts.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilegen::lower {

using analysis::OpId;
using analysis::ValueId;

class TileScheduler;  // gpu/tile_scheduler.h

// What is lowered.
struct LoweringInputs {
  LoweringInputs(const ir::Program& p, const expand::ScheduledKernel& s, const target::Target& t);

  const ir::Program& program;
  const expand::ScheduledKernel& scheduled;
  const ir::Kernel& kernel;
  const plan::KernelSchedule& schedule;
  const target::Target& target;
  const analysis::KernelOps& ops;
  const ir::KernelPaths paths;
  const analysis::BlockTree tree;
  std::map<ir::StmtId, const analysis::KernelOp*> op_of;
};

// What the program's names stand for in the thread program, where statements are lowered now.
struct ProgramNames {
  std::map<VarId, ExprId> vars;
  std::map<ir::BufferId, MemoryId> globals;
  IdVector<ValueId, MemoryId> values;
  std::map<ir::BufferId, int> barriers;  // GPU: of the program, among those of the thread program
  std::map<ValueId, std::vector<MemoryId>> register_slots;  // GPU: of values that iterations have in turn
  std::map<ir::StmtId, MemoryId> loaded;  // GPU: registers of copies that have loaded, and not deposited yet
  std::map<ValueId, ExprId> slots;        // GPU: slot of a value that is meant; absent: 0
};

// The statement being lowered.
struct LoweredStatement {
  const analysis::KernelOp* op = nullptr;  // decides which value a buffer means
  ir::StmtId statement;                    // decides which value its scalars read
  ValueId scalar_value;                    // while a scalar is lowered: the value it reads
  std::string origin;
  std::map<ExprId, ExprId> taken;  // scalars of the op, as they were before it
  // GPU: the half of a register copy that is lowered
  enum class Half : uint8_t { none, load, deposit } half = Half::none;
};

// The walk being emitted: what is known of its points, and what its accesses have come to.
struct EmittedWalk {
  bool interior = false;           // the tile op's regions are known to be in bounds
  ExprId no_padding;               // GPU: the point is no padding; invalid: it never is, or none is walked
  ExprId inside;                   // GPU: the same, while a point is emitted
  bool edge = false;               // GPU: some access to a tensor may be out of bounds
  ExprId assumed_interior;         // GPU: all accesses to tensors are in bounds; holds here
  ExprId mask_known;               // GPU: the walk masks nothing; holds here
  bool mask_open = false;          // GPU: the walk masks something
  std::vector<Bound> bounds;       // GPU: bounds of tensors that accesses were predicated with
  bool staged = false;             // GPU: all threads with copies of an element read it before one writes it
  std::set<VarId> fixed_vars;      // GPU: constants after unrolling, and vector lanes
  std::map<VarId, int64_t> lanes;  // GPU: lanes of vectors, with how many there are
  // GPU: the point being emitted, where its statements go, and accesses of which lanes give it elements
  const std::vector<ExprId>* point = nullptr;
  thread::Block* body = nullptr;
  std::set<size_t> of_lanes;                    // accesses of the op
  const layout::Fragment* iteration = nullptr;  // of the walk, while a point is emitted
  // Elements of registers, by how their indices were lowered.
  struct Followed {
    std::vector<ExprId> indices;  // made of the point's digits
    bool of_lane = false;         // a lane of the warp gives it
    ExprId taken;                 // what it gave; read again where the op does not write it
  };
  std::map<std::pair<ir::BufferId, std::vector<ExprId>>, Followed> followed;
};

// GPU: what the op being lowered works on instead of values as they are held.
struct OperandForms {
  struct Copy {
    plan::ValuePlan plan;
    MemoryId memory;
  };
  struct Conversion {
    ValueId value;
    FragmentView form;
    bool after = false;
    layout::ConversionKind kind = layout::ConversionKind::none;  // planned, after
  };
  std::map<ValueId, FragmentView> converted;                  // values in another form
  std::map<ValueId, Copy> copies;                             // values in memory
  std::vector<Conversion> conversions;                        // of the op
  std::vector<std::unique_ptr<layout::Fragment>> fragments;   // what FragmentView of conversions points to
  std::map<std::pair<ir::StmtId, int>, MemoryId> transposed;  // copies of products' operands, of all ops
};

// GPU: the grid as one linear block index.
struct LinearGrid {
  std::map<VarId, ExprId> block_indices;  // program block index -> expression of the one block variable
  VarId tile_var;                         // persistent kernels: points of the grid this block has walked
  ExprId tiles;                           // points of the grid
  ExprId inside;                          // the block has a tile of its own; invalid: it always has
};

// GPU: the role being lowered, its pipelines, and what goes on after its statements.
struct LoweredRole {
  expand::RoleKind kind = expand::RoleKind::all;
  std::vector<PipelineBarriers> pipelines;   // of the scheduled program, by index
  std::map<const void*, MemoryId> fillings;  // counts, by loop or pipeline
  ExprId iteration_counts;                   // specialised kernels: how often the body has begun before
  bool products_overwrite = false;           // the accumulators' values are not to be added to
  bool product_in_flight = false;            // the loop around the product waits for it
  bool stages_in_turn = false;               // of the store being lowered (expand::Run)
  std::optional<int64_t> warpgroup;          // whose list is lowered; none: that of all computing threads
  int64_t products_pending = 0;              // groups of products that go on here, at most
  int64_t part = expand::Issue::kWhole;      // of the product being lowered (expand::Issue)
  bool own_left = false;                     // the same
  std::map<ValueId, FragmentView> stored;    // tiles that these threads have stored from registers that last
};

// The condition of an operation's version, while it is looked for: nothing is emitted for walks.
struct ConditionSearch {
  expand::Version::Condition condition;
  ExprId found;  // the same for the whole block; invalid: none can be told, or it always holds
};

// Facts of accesses, while they are looked for. Narrower vectors than the widest that a walk can have are
// looked at where all are asked for.
struct FactSearch {
  plan::AccessFacts found;
  bool all_widths = false;
  bool for_estimate = false;              // none of what no estimate sees
  bool beside_copies = false;             // of walks, too, of ops whose asynchronous copies are legal
  std::map<std::string, int64_t> widest;  // by op
  bool differ = false;                    // walks of one op can have different widths
};

// One kernel while it is lowered. Statements are made in the order in which they run: what a member says
// holds where the next statement goes.
struct LoweringContext {
  LoweringContext(const ir::Program& p, const expand::ScheduledKernel& scheduled, const target::Target& t);
  ~LoweringContext();
  LoweringContext(const LoweringContext&) = delete;
  LoweringContext& operator=(const LoweringContext&) = delete;

  // The first failure counts.
  void fail(DiagCode code, const std::string& op, std::string message, std::string hint);
  bool failed() const { return !error.diagnostics.empty(); }

  ExprId simplified(ExprId e) { return arith::simplify(ctx, e); }

  bool block_threads() const { return in.target.has_block_threads(); }
  bool specialised() const { return in.schedule.has_producer(); }
  // Blocks claim points of the grid while they run.
  bool dynamic() const {
    return specialised() && in.schedule.persistence && in.schedule.persistence->dynamic();
  }
  // Of the cluster that the kernel's blocks come in; 1: none.
  int64_t cluster_blocks() const {
    return specialised() && in.schedule.cluster ? in.schedule.cluster->blocks : 1;
  }
  // As the op being lowered sees the value.
  const plan::ValuePlan& plan_of_value(ValueId value) const {
    const auto copy = forms.copies.find(value);
    return copy == forms.copies.end() ? in.schedule.values[value.index()] : copy->second.plan;
  }

  const LoweringInputs in;
  thread::ThreadProgram out;
  arith::Context ctx;  // what is known of the variables of `out`
  ProgramNames names;
  LoweredStatement at;
  EmittedWalk walk;
  OperandForms forms;
  LinearGrid grid;
  LoweredRole role;
  std::unique_ptr<TileScheduler> tile_scheduler;  // GPU: of kernels whose blocks fetch tiles
  std::optional<ConditionSearch> condition_search;
  std::optional<FactSearch> facts;  // while they are looked for: nothing is emitted for walks
  Error error;
};

}  // namespace tilegen::lower
