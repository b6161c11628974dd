#include "lower/gpu/followed_indices.h"

#include <algorithm>

#include "ir/store_parts.h"
#include "lower/addressing.h"
#include "lower/gpu/exchange.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "ops/element_view.h"

namespace tilegen::lower {

namespace {

ExprId digit_at(LoweringContext& k, const ops::IndexTerm& t, std::span<const ExprId> point) {
  ir::ExprPool& e = k.out.exprs;
  ExprId part = e.floordiv(point[static_cast<size_t>(t.dim)], e.const_int(t.divisor));
  if (t.modulus != 0) part = e.floormod(part, e.const_int(t.modulus));
  part = k.simplified(part);
  if (t.mirrored) part = e.sub(e.const_int(t.modulus - 1), part);
  if (t.turn != 0) part = e.floormod(e.add(part, e.const_int(t.turn)), e.const_int(t.modulus));
  return e.mul(k.simplified(part), t.weight);
}

// As digits where these are known.
std::vector<ExprId> indices_at(LoweringContext& k, const ops::ElementAccess& a, std::span<const ExprId> point,
                               std::vector<ExprId> lowered) {
  for (size_t d = 0; d < lowered.size(); ++d) {
    if (a.terms.empty() || a.terms[d].empty()) continue;
    ExprId index = k.out.exprs.const_int(a.offset[d]);
    for (const ops::IndexTerm& t : a.terms[d]) index = k.out.exprs.add(index, digit_at(k, t, point));
    lowered[d] = k.simplified(index);
  }
  return lowered;
}

class Follower {
 public:
  Follower(LoweringContext& k, const analysis::KernelOp& op, const ir::Loop& loop)
      : k_(k), op_(op), loop_(loop) {}

  void statement(ir::StmtId id) {
    if (const auto* store = k_.in.program.as<ir::Store>(id)) {
      ir::visit_exprs(*store, [&](ExprId root) { loads(root); });
      ir::visit_written(
          *store, [&](ir::BufferId b, const std::vector<ExprId>& indices) { access(b, indices, true); });
    } else if (const auto* branch = k_.in.program.as<ir::Branch>(id)) {
      loads(branch->condition);
    }
  }

 private:
  void loads(ExprId root) {
    const ir::ExprPool& from = k_.in.program.exprs;
    std::vector<ExprId> todo = {root};
    while (!todo.empty()) {
      const ExprId at = todo.back();
      todo.pop_back();
      if (!at || !seen_.insert(at).second) continue;
      const ir::ExprNode& n = from[at];
      for (ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
      if (n.op != ir::ExprOp::load) continue;
      for (ExprId index : from.indices(at)) todo.push_back(index);
      access(n.object, from.indices(at), false);
    }
  }

  void access(ir::BufferId buffer, std::span<const ExprId> indices, bool write) {
    if (!in_thread_registers(k_, buffer)) return;
    const ops::ElementAccess a = ops::loop_access(k_.in.program, loop_, buffer, indices, write);
    const auto& list = op_.view.accesses;
    const auto same = std::find_if(list.begin(), list.end(), [&](const ops::ElementAccess& o) {
      return o.write == write && o.same_elements(a);
    });
    if (same == list.end()) return;
    const bool of_lane = k_.walk.of_lanes.count(static_cast<size_t>(same - list.begin())) > 0;
    if (a.terms.empty() && !of_lane) return;
    std::vector<ExprId> lowered;
    for (ExprId index : indices) lowered.push_back(lower_expr(k_, index));
    if (write)
      for (ExprId& index : lowered) index = k_.simplified(index);
    std::vector<ExprId> digits = indices_at(k_, a, *k_.walk.point, lowered);
    EmittedWalk::Followed& f = k_.walk.followed[{buffer, std::move(lowered)}];
    f.indices = std::move(digits);
    f.of_lane = f.of_lane || of_lane;
  }

  LoweringContext& k_;
  const analysis::KernelOp& op_;
  const ir::Loop& loop_;
  std::set<ExprId> seen_;
};

}  // namespace

void follow_indices(LoweringContext& k, const analysis::KernelOp& op) {
  const auto* loop = k.in.program.as<ir::Loop>(op.stmt);
  if (!loop || !k.walk.point) return;
  Follower follower(k, op, *loop);
  ir::for_each_statement(k.in.program, loop->body, [&](ir::StmtId id, int) { follower.statement(id); });
}

std::vector<ExprId> followed_indices(LoweringContext& k, ir::BufferId buffer,
                                     std::span<const ExprId> indices) {
  const auto it = k.walk.followed.find({buffer, {indices.begin(), indices.end()}});
  return it == k.walk.followed.end() ? std::vector<ExprId>(indices.begin(), indices.end())
                                     : it->second.indices;
}

ExprId load_followed(LoweringContext& k, ir::BufferId buffer, std::span<const ExprId> indices) {
  const FragmentView from = fragment_view(k, value_of(k, buffer));
  const auto it = k.walk.followed.find({buffer, {indices.begin(), indices.end()}});
  if (it == k.walk.followed.end() || !k.walk.body) return load_register(k, from, indices);
  EmittedWalk::Followed& f = it->second;
  if (!f.of_lane) return load_register(k, from, f.indices);
  const bool written =
      k.at.op && std::any_of(k.at.op->accesses.begin(), k.at.op->accesses.end(),
                             [&](const analysis::OpAccess& a) { return a.write && a.buffer == buffer; });
  if (!f.taken || written) f.taken = load_from_lane(k, from, f.indices, *k.walk.body);
  return f.taken;
}

}  // namespace tilegen::lower
