#include "lower/operation.h"

#include <algorithm>
#include <utility>

#include "analysis/sum_shares.h"
#include "ir/annotations.h"
#include "lower/gpu/element_nest.h"
#include "lower/gpu/masks.h"
#include "lower/gpu/operand_forms.h"
#include "lower/gpu/registers.h"
#include "lower/loop_bounds.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "ops/op.h"

namespace tilegen::lower {

namespace {

using Condition = expand::Version::Condition;

bool writes_tensor(const LoweringContext& k, ir::StmtId id) {
  const auto it = k.in.op_of.find(id);
  return it != k.in.op_of.end() &&
         std::any_of(it->second->accesses.begin(), it->second->accesses.end(),
                     [](const analysis::OpAccess& a) { return a.write && !a.value.valid(); });
}

// An op that is run or issued, once or in versions.
class Operation {
 public:
  Operation(LoweringContext& k, ir::StmtId id)
      : k_(k), id_(id), path_(begin_operation(k, id)), plan_(*plan::find_op(k.in.schedule, path_)) {}

  // What all versions share stands before and after them.
  template <class Stmt>
  void lower(const Stmt& s, thread::Block& out) {
    take_scalars(k_, id_, out, path_);
    if (k_.block_threads()) begin_conversions(k_, *k_.at.op, out);
    if (k_.block_threads()) begin_copies(k_, *k_.at.op, plan_, out);
    one(s, out);
    // What is issued belongs to the group of the loop around it.
    if (!issued_ && copies_asynchronously() && !ir::is_asynchronous(k_.in.program.stmt(id_)))
      out.push_back(k_.out.add(thread::AsyncCommit{}, path_));
    if (k_.block_threads()) end_copies(k_, *k_.at.op, out);
    if (k_.block_threads()) end_conversions(k_, *k_.at.op, out);
    k_.at.taken.clear();
    k_.at.op = nullptr;
  }

 private:
  void one(const expand::Run& s, thread::Block& out) {
    k_.role.products_overwrite = s.overwrite;
    k_.role.stages_in_turn = s.stages_in_turn;
    form(out);
    k_.role.products_overwrite = k_.role.stages_in_turn = false;
  }
  void one(const expand::Issue& s, thread::Block& out) {
    issued_ = true;
    k_.role.product_in_flight = plan_.engine == plan::Engine::warpgroup_mma;
    if (k_.role.product_in_flight) ++k_.role.products_pending;
    if (plan_.engine == plan::Engine::register_copy) k_.at.half = LoweredStatement::Half::load;
    k_.role.part = s.part;
    k_.role.own_left = s.own_left;
    one(expand::Run{s.op, s.overwrite}, out);
    k_.role.part = expand::Issue::kWhole;
    k_.role.own_left = false;
    k_.at.half = LoweredStatement::Half::none;
    k_.role.product_in_flight = false;
  }
  void one(const expand::Deposit& s, thread::Block& out) {
    k_.at.half = LoweredStatement::Half::deposit;
    one(expand::Run{s.op}, out);
    k_.at.half = LoweredStatement::Half::none;
  }
  void one(const expand::Version& s, thread::Block& out) {
    const ExprId condition = condition_of(s);
    // What is not known of any block is not assumed.
    if (!condition) return any(s.condition == Condition::factor_is_not_one ? s.then_body : s.else_body, out);
    thread::Branch branch{condition, {}, {}};
    EmittedWalk& walk = k_.walk;
    switch (s.condition) {
      case Condition::factor_is_not_one:
        branch.together = true;
        any(s.then_body, branch.then_body);
        break;
      case Condition::full_tile:
        walk.interior = !k_.block_threads();
        if (k_.block_threads()) walk.assumed_interior = condition;
        any(s.then_body, branch.then_body);
        walk.interior = false;
        walk.assumed_interior = ExprId();
        walk.edge = true;
        any(s.else_body, branch.else_body);
        walk.edge = false;
        break;
      case Condition::unmasked:
        walk.mask_known = condition;
        any(s.then_body, branch.then_body);
        walk.mask_known = ExprId();
        walk.mask_open = true;
        any(s.else_body, branch.else_body);
        walk.mask_open = false;
        branch.condition = iteration_bound(k_, condition);
        if (!branch.then_body.empty()) break;
        branch.condition = k_.out.exprs.unary(ir::ExprOp::logical_not, branch.condition);
        std::swap(branch.then_body, branch.else_body);
        break;
    }
    out.push_back(k_.out.add(std::move(branch), path_));
  }
  // Nothing else is in a version (verify_scheduled).
  template <class Other>
  void one(const Other&, thread::Block&) {}
  void any(const expand::Block& b, thread::Block& out) {
    for (const expand::Stmt& s : b) std::visit([&](const auto& node) { one(node, out); }, s.node);
  }

  bool copies_asynchronously() const {
    return k_.block_threads() && plan_.engine == plan::Engine::async_copy && plan_.iteration;
  }

  ExprId condition_of(const expand::Version& s) {
    if (k_.facts) return ExprId();
    if (s.condition == Condition::factor_is_not_one) return some_element_is_not_one(k_, s.factor);
    const Sizes before = sizes(k_);
    thread::Block nothing;
    k_.condition_search = ConditionSearch{s.condition, ExprId()};
    form(nothing);
    const ExprId found = k_.condition_search->found;
    k_.condition_search.reset();
    drop_since(k_, before);
    return found;
  }

  void form(thread::Block& out) {
    OpLowering lowering(k_, *k_.at.op, plan_, out);
    if (const auto* op = k_.in.program.as<ir::TileOp>(id_))
      ops::op_def(op->kind).lower(*op, lowering);
    else
      lowering.parallel_loop();
  }

  LoweringContext& k_;
  const ir::StmtId id_;
  const std::string& path_;
  const plan::OpPlan& plan_;
  bool issued_ = false;  // it goes on after its statement
};

template <class Stmt>
void lower_as(LoweringContext& k, const Stmt& s, thread::Block& out) {
  // Done where the blocks meet.
  if (k.in.kernel.split && analysis::takes_share(k.in.program, k.in.kernel, s.op)) return;
  if (!k.grid.inside || !writes_tensor(k, s.op)) return Operation(k, s.op).lower(s, out);
  thread::Branch own{std::exchange(k.grid.inside, ExprId()), {}, {}};
  Operation(k, s.op).lower(s, own.then_body);
  k.grid.inside = own.condition;
  out.push_back(k.out.add(std::move(own), k.in.paths[s.op.value]));
}

}  // namespace

const std::string& begin_operation(LoweringContext& k, ir::StmtId id) {
  k.at.origin = k.in.paths[id.value];
  k.at.statement = id;
  const auto op = k.in.op_of.find(id);
  k.at.op = op == k.in.op_of.end() ? nullptr : op->second;
  return k.in.paths[id.value];
}

void lower_operation(LoweringContext& k, const expand::Run& s, thread::Block& out) { lower_as(k, s, out); }
void lower_operation(LoweringContext& k, const expand::Issue& s, thread::Block& out) { lower_as(k, s, out); }
void lower_operation(LoweringContext& k, const expand::Deposit& s, thread::Block& out) {
  lower_as(k, s, out);
}
void lower_operation(LoweringContext& k, const expand::Version& s, thread::Block& out) {
  lower_as(k, s, out);
}

}  // namespace tilegen::lower
