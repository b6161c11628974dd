// State of lowering one kernel, shared by the files of this folder. Not used outside it.
#pragma once

#include <map>
#include <set>

#include "arith/context.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "infer/kernel_ops.h"
#include "lower/lower_kernel.h"
#include "ops/element_view.h"
#include "ops/lower_sink.h"

namespace tilegen::lower {

using ir::ExprId;
using ir::VarId;
using thread::MemoryId;

// One dimension of an iteration nest: a loop variable standing for a digit of the iteration layout.
struct NestLoop {
  VarId var;
  int64_t extent = 1;
  thread::LoopForm form = thread::LoopForm::serial;
};

// Loops that walk an iteration layout, outermost first, and the logical point they stand for.
struct Nest {
  std::vector<NestLoop> loops;
  std::vector<ExprId> point;  // per iteration dimension
  ExprId inside;              // bool: the point is no padding; a true literal when it never is
};

class KernelLowering {
 public:
  KernelLowering(const ir::Program& p, int kernel, const plan::KernelSchedule& s, const target::Target& t);
  Expected<thread::ThreadProgram> run();

 private:
  friend class OpLowering;
  friend class ExprLowering;

  // lower_kernel.cpp
  void declare_parameters();
  void declare_values();
  void block(const ir::Block& b, thread::Block& out);
  void statement(ir::StmtId id, thread::Block& out);
  void serial_loop(const ir::Loop& loop, thread::Block& out, const std::string& origin);
  void branch(const ir::Branch& b, thread::Block& out, const std::string& origin);
  void fail(DiagCode code, const std::string& op, std::string message, std::string hint);
  bool failed() const { return !error_.diagnostics.empty(); }

  // addressing.cpp
  ExprId lower_expr(ExprId program_expr);  // under the current substitution
  ExprId simplified(ExprId e) { return arith::simplify(ctx_, e); }
  // Element `indices` of a buffer as an index into its memory; `predicate` collects bounds that are not
  // proven.
  ExprId memory_index(ir::BufferId buffer, std::span<const ExprId> indices);
  ExprId bounds_predicate(ir::BufferId buffer, std::span<const ExprId> indices);
  ExprId layout_index(const layout::Layout& l, int output, std::span<const ExprId> indices);
  // `inside`: the element is known to be in bounds wherever `predicate` holds.
  ExprId load_element(ir::BufferId buffer, std::span<const ExprId> indices, bool inside,
                      ExprId predicate = ExprId());
  ExprId store_predicate(ir::BufferId buffer, std::span<const ExprId> indices, ExprId predicate, bool inside);
  // Value the op being lowered means by an on-chip buffer; -1 and an error when that cannot be told.
  int value_of(ir::BufferId buffer);
  MemoryId memory_of(ir::BufferId buffer);
  const plan::ValuePlan& value_plan(ir::BufferId b) {
    return schedule_.values[static_cast<size_t>(value_of(b))];
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

  // element.cpp, reduce.cpp, gemm.cpp: bodies of OpLowering

  const ir::Program& p_;
  int kernel_index_;
  const ir::Kernel& kernel_;
  const plan::KernelSchedule& schedule_;
  const target::Target& target_;
  infer::KernelOps ops_;
  std::vector<std::string> paths_;
  std::map<ir::StmtId, const infer::KernelOp*> op_of_;
  thread::ThreadProgram out_;
  arith::Context ctx_;
  std::map<VarId, ExprId> vars_;  // program variable -> thread expression
  std::map<ir::BufferId, MemoryId> globals_;
  std::vector<MemoryId> values_;              // by value index
  const infer::KernelOp* current_ = nullptr;  // op being lowered: decides which value a buffer means
  ir::StmtId statement_;                      // statement being lowered: decides which value its scalars read
  int scalar_value_ = -1;                     // while a scalar is lowered: the value it reads
  std::string origin_;
  bool interior_ = false;  // the tile op's regions are known to be in bounds
  Error error_;
};

// One op while it is lowered.
class OpLowering final : public ops::LowerSink {
 public:
  OpLowering(KernelLowering& k, const infer::KernelOp& op, const plan::OpPlan& plan, thread::Block& out)
      : k_(k), op_(op), plan_(plan), out_(out), tile_op_(k.p_.as<ir::TileOp>(op.stmt)) {}

  void parallel_loop();  // element form that is no tile op

  ir::ExprPool& exprs() override { return k_.out_.exprs; }
  ir::DType type(int operand) const override;
  ExprId load(int operand, std::span<const ExprId> point) override;
  ExprId value() override;
  void for_each_point(int operand, const PointValue& value) override;
  void reduce(int src, int dst, ir::ReduceKind kind, int axis, bool accumulate) override;
  void contract(int a, int b, int c, bool clear) override;

 private:
  friend class KernelLowering;
  std::vector<ExprId> element_at(int operand, std::span<const ExprId> point) const;
  std::vector<int64_t> iteration_extents() const;
  // Emits the nest around `emit(point, predicate, stores)`, twice (interior and edge) where bounds can be
  // told for the whole box at once.
  using EmitPoint = std::function<void(const Nest&, thread::Block&)>;
  void emit_nest(const layout::Fragment& iteration, int64_t vector, const EmitPoint& emit);
  ExprId interior_condition();
  // The condition's value per vector lane, computed before the stores it guards may change what it reads.
  ExprId frozen_condition(const Nest& nest, ExprId condition, thread::Block& body);
  void contract_micro_kernel(int a, int b, int c, bool clear);
  void contract_loops(int a, int b, int c, bool clear);

  KernelLowering& k_;
  const infer::KernelOp& op_;
  const plan::OpPlan& plan_;
  thread::Block& out_;
  const ir::TileOp* tile_op_;
  ExprId no_padding_;                            // of the point being emitted; invalid: no point is padding
  std::map<int, std::vector<int>> region_dims_;  // operand -> buffer dimension's iteration dimension
};

}  // namespace tilegen::lower
