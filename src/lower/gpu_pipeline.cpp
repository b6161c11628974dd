// Loops whose copies run ahead of what uses them.
//
// With D the largest distance that a copy runs ahead (stages - 1), the loop of n iterations becomes
//
//   for j in 0..D:  if j < n: copies of iteration j into slot j;  commit
//   for i in 0..n:  what uses no copied tile yet
//                   wait until at most d - 1 groups are unfinished       (d: the smallest distance)
//                   if i + D < n: copies of iteration i + D into slot (i + D) % slots;  commit
//                   the rest, on slot i % slots
//
// A group is committed in every iteration, so that the wait counts right when fewer than D iterations are left. That
// all threads have read a slot before it is filled again is seen to by the barrier planted behind the wait, which is
// also what makes everybody's copies visible to everybody.
#include <algorithm>

#include "lower/kernel_lowering.h"

namespace tilegen::lower {

namespace {

struct Ahead {
  ir::StmtId stmt;
  int64_t distance = 0;
  std::vector<int> values;  // tiles written
};

// What the schedule lets run ahead: copies that stand directly in the loop's body and have slots to write to.
std::vector<Ahead> copies_ahead(const ir::Loop& loop, const plan::LoopPlan* plan, const infer::KernelOps& ops,
                                       const plan::KernelSchedule& schedule) {
  std::vector<Ahead> list;
  if (!plan || plan->num_stages < 2) return list;
  for (ir::StmtId id : loop.body)
    for (const infer::KernelOp& op : ops.ops) {
      if (op.stmt != id) continue;
      for (const auto& [path, stage] : plan->stages) {
        Ahead a{id, plan->num_stages - 1 - stage, {}};
        if (path != op.path || a.distance < 1) continue;
        bool slots = true;
        for (const infer::OpAccess& x : op.accesses) {
          if (!x.write) continue;
          slots = slots && x.value >= 0 && schedule.values[static_cast<size_t>(x.value)].slots > a.distance;
          a.values.push_back(x.value);
        }
        if (slots) list.push_back(std::move(a));
      }
    }
  return list;
}

}  // namespace

void KernelLowering::pipelined_loop(const ir::Loop& loop, thread::Block& out, const std::string& origin) {
  const std::vector<Ahead> ahead = copies_ahead(loop, plan::find_loop(schedule_, origin), ops_, schedule_);
  if (ahead.empty()) return serial_loop(loop, out, origin);
  ir::ExprPool& e = out_.exprs;
  const ExprId begin = lower_expr(loop.begin), extent = simplified(lower_expr(loop.extents[0]));
  if (int64_t trips = 0; e.is_const_int(extent, &trips) && trips <= 0) return;
  std::set<int64_t> distances;
  std::set<int> ring;
  for (const Ahead& a : ahead) {
    distances.insert(a.distance);
    ring.insert(a.values.begin(), a.values.end());
  }
  const int64_t nearest = *distances.begin(), farthest = *distances.rbegin();
  auto slots_of = [&](int value) { return schedule_.values[static_cast<size_t>(value)].slots; };
  const auto saved_slots = slots_;

  // The copies of iteration `i` of all that run `distance` ahead, where there is such an iteration.
  auto issue = [&](int64_t distance, ExprId i, thread::Block& to) {
    auto mark = ctx_.mark();
    const ExprId exists = simplified(e.lt(i, extent));
    int64_t known = 1;
    const bool decided = e.is_const_int(exists, &known);
    if (decided && known == 0) return;
    ctx_.assume(exists);
    vars_[loop.vars[0]] = e.add(begin, i);
    thread::Block copies;
    groups_closed_by_loop_ = true;
    for (const Ahead& a : ahead) {
      if (a.distance != distance) continue;
      for (int v : a.values) slots_[v] = simplified(e.floormod(i, e.const_int(slots_of(v))));
      statement(a.stmt, copies);
    }
    groups_closed_by_loop_ = false;
    ctx_.rollback(mark);
    if (decided || copies.empty())
      to.insert(to.end(), copies.begin(), copies.end());
    else
      to.push_back(out_.add(thread::Branch{exists, std::move(copies), {}}, origin));
  };
  auto commit = [&](thread::Block& to) { to.push_back(out_.add(thread::AsyncCommit{}, origin)); };

  for (int64_t j = 0; j < farthest; ++j) {
    for (int64_t d : distances)
      if (const int64_t i = j - (farthest - d); i >= 0) issue(d, e.const_int(i), out);
    commit(out);
  }

  const VarId var = out_.add_var(p_.var(loop.vars[0]).name, ir::VarKind::loop);
  auto mark = ctx_.mark();
  const arith::Interval range = arith::range_of(ctx_, extent);
  ctx_.bind(var, 0, range.hi == arith::Interval::kMax ? range.hi : range.hi - 1);
  ctx_.assume(e.lt(e.var(var), extent));
  thread::Loop lowered{var, extent, thread::LoopForm::serial, {}};
  auto turn = [&] {
    lowered.body.push_back(out_.add(thread::AsyncWait{nearest - 1}, origin));
    for (int64_t d : distances) issue(d, e.add(e.var(var), d), lowered.body);
    commit(lowered.body);
    vars_[loop.vars[0]] = e.add(begin, e.var(var));
    for (int v : ring) slots_[v] = simplified(e.floormod(e.var(var), e.const_int(slots_of(v))));
  };
  auto uses_ring = [&](ir::StmtId id) {
    bool uses = false;
    const ir::Block one = {id};
    ir::for_each_statement(p_, one, [&](ir::StmtId s, int) {
      if (auto it = op_of_.find(s); it != op_of_.end())
        for (const infer::OpAccess& a : it->second->accesses) uses = uses || ring.count(a.value);
      for (const auto& [where, value] : ops_.scalar_reads) uses = uses || (where.first == s && ring.count(value));
    });
    return uses;
  };
  vars_[loop.vars[0]] = e.add(begin, e.var(var));
  bool turned = false;
  for (ir::StmtId id : loop.body) {
    if (failed()) return;
    if (std::any_of(ahead.begin(), ahead.end(), [&](const Ahead& a) { return a.stmt == id; })) continue;
    if (!turned && uses_ring(id)) {
      turn();
      turned = true;
    }
    statement(id, lowered.body);
  }
  if (!turned) turn();
  ctx_.rollback(mark);
  slots_ = saved_slots;
  out.push_back(out_.add(std::move(lowered), origin));
}

}  // namespace tilegen::lower
