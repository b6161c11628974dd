#include "lower/gpu/lane_votes.h"

#include <algorithm>

#include "analysis/lane_reads.h"
#include "ir/expr_nodes.h"
#include "ir/group_vote.h"
#include "lower/addressing.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "ops/element_view.h"

namespace tilegen::lower {

namespace {

// Lanes hold the row that the vote asks, in the order of their numbers; of match the own element is the
// point's.
bool is_asked_of_lanes(LoweringContext& k, const ir::Loop& loop, const ir::GroupVote& vote) {
  const ir::ExprPool& e = k.in.program.exprs;
  const ir::BufferId buffer = e[vote.first].object;
  const auto indices = e.indices(vote.first);
  if (!in_thread_registers(k, buffer) || k.in.program.buffer(buffer).type == ir::DType::boolean) return false;
  const ops::ElementAccess a = ops::loop_access(k.in.program, loop, buffer, indices, false);
  const auto& list = k.at.op->view.accesses;
  const auto same = std::find_if(list.begin(), list.end(),
                                 [&](const ops::ElementAccess& o) { return !o.write && o.same_elements(a); });
  if (same == list.end() || !k.walk.of_lanes.count(static_cast<size_t>(same - list.begin()))) return false;
  const FragmentView held = fragment_view(k, value_of(k, buffer));
  if (held.fragment->shape().back() != vote.lanes ||
      !analysis::lanes_hold_rows(*held.fragment, *k.walk.iteration, a, k.in.target))
    return false;
  return vote.kind != ir::VoteKind::match || e[e.indices(vote.own).back()].var() == loop.vars.back();
}

ExprId lower_vote(LoweringContext& k, const ir::GroupVote& vote) {
  using Mode = thread::Vote::Mode;
  ir::ExprPool& e = k.out.exprs;
  const std::vector<ExprId> zero = {e.const_int(0)};
  const FragmentView held = fragment_view(k, value_of(k, k.in.program.exprs[vote.first].object));
  const ExprId own = e.load(held.memory, k.out.memory(held.memory).type, zero);
  const bool match = vote.kind == ir::VoteKind::match;
  const Mode mode = match ? Mode::match : vote.kind == ir::VoteKind::any ? Mode::any : Mode::ballot;
  const ExprId of = match ? own : ir::test_of(e, k.in.program.exprs, vote, own);
  const MemoryId said = add_registers(k, "said", thread::vote_type(mode), 1);
  k.walk.body->push_back(k.out.add(thread::Vote{mode, said, zero.front(), of, vote.lanes}, k.at.origin));
  return e.load(said, thread::vote_type(mode), zero);
}

}  // namespace

std::vector<std::pair<ExprId, ExprId>> lower_votes(LoweringContext& k, ExprId program_expr) {
  std::vector<std::pair<ExprId, ExprId>> made;
  const auto* loop = k.at.op ? k.in.program.as<ir::Loop>(k.at.op->stmt) : nullptr;
  if (!loop || !k.walk.body || !k.walk.iteration) return made;
  const ir::ExprPool& e = k.in.program.exprs;
  ir::ExprNodes nodes(e, {program_expr});
  while (const ExprId at = nodes.next()) {
    const auto vote = ir::find_group_vote(e, at);
    if (!vote || !is_asked_of_lanes(k, *loop, *vote)) continue;
    made.push_back({at, lower_vote(k, *vote)});
    nodes.skip_operands();
  }
  return made;
}

}  // namespace tilegen::lower
