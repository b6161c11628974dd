#include "lower/operation.h"

#include <algorithm>
#include <utility>

#include "lower/gpu/operand_forms.h"
#include "lower/gpu/registers.h"
#include "lower/loop_bounds.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "ops/op.h"

namespace tilegen::lower {

namespace {

bool writes_tensor(const LoweringContext& k, ir::StmtId id) {
  const auto it = k.in.op_of.find(id);
  return it != k.in.op_of.end() &&
         std::any_of(it->second->accesses.begin(), it->second->accesses.end(),
                     [](const analysis::OpAccess& a) { return a.write && !a.value.valid(); });
}

}  // namespace

const std::string& begin_operation(LoweringContext& k, ir::StmtId id) {
  k.at.origin = k.in.paths[id.value];
  k.at.statement = id;
  const auto op = k.in.op_of.find(id);
  k.at.op = op == k.in.op_of.end() ? nullptr : op->second;
  return k.in.paths[id.value];
}

void lower_operation(LoweringContext& k, ir::StmtId id, thread::Block& out) {
  const std::string& path = begin_operation(k, id);
  const plan::OpPlan* plan = plan::find_op(k.in.schedule, path);
  if (k.grid.inside && writes_tensor(k, id)) {
    thread::Branch own{std::exchange(k.grid.inside, ExprId()), {}, {}};
    lower_operation(k, id, own.then_body);
    k.grid.inside = own.condition;
    out.push_back(k.out.add(std::move(own), path));
    return;
  }
  take_scalars(k, id, out, path);
  if (k.block_threads()) begin_conversions(k, *k.at.op, out);
  if (k.block_threads()) begin_copies(k, *k.at.op, *plan, out);
  thread::Branch skip_if_identity{{}, {}, {}, true};
  if (plan->skip_if_identity && !plan->skip_if_identity->empty())
    skip_if_identity.condition = some_factor_is_not_one(k, *k.at.op, *plan->skip_if_identity);
  OpLowering lowering(k, *k.at.op, *plan, skip_if_identity.condition ? skip_if_identity.then_body : out);
  if (const auto* op = k.in.program.as<ir::TileOp>(id))
    ops::op_def(op->kind).lower(*op, lowering);
  else
    lowering.parallel_loop();
  if (skip_if_identity.condition) out.push_back(k.out.add(std::move(skip_if_identity), path));
  if (k.block_threads()) end_copies(k, *k.at.op, out);
  if (k.block_threads()) end_conversions(k, *k.at.op, out);
  k.at.taken.clear();
  k.at.op = nullptr;
}

}  // namespace tilegen::lower
