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
// Where a product is all that uses the tiles, wait and barrier stand in front of its last instructions
// instead, and the first loads of the next iteration behind them.
//
// A group is committed in every iteration, so that the wait counts right when fewer than D iterations are
// left. That all threads have read a slot before it is filled again is seen to by the barrier planted behind
// the wait, which is also what makes everybody's copies visible to everybody.
#include <algorithm>
#include <memory>

#include "lower/gpu_gemm.h"
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

namespace {

struct Ahead {
  ir::StmtId stmt;
  int64_t distance = 0;
  std::vector<int> values;  // tiles written
};

// What the schedule lets run ahead: copies that stand directly in the loop's body and have slots to write to.
std::vector<Ahead> copies_ahead(const ir::Loop& loop, const plan::LoopPlan* plan,
                                const analysis::KernelOps& ops, const plan::KernelSchedule& schedule) {
  std::vector<Ahead> list;
  if (!plan || plan->num_stages < 2) return list;
  for (ir::StmtId id : loop.body)
    for (const analysis::KernelOp& op : ops.ops) {
      if (op.stmt != id) continue;
      for (const auto& [path, stage] : plan->stages) {
        Ahead a{id, plan->num_stages - 1 - stage, {}};
        if (path != op.path || a.distance < 1) continue;
        bool slots = true;
        for (const analysis::OpAccess& x : op.accesses) {
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

class PipelineLowering {
 public:
  PipelineLowering(KernelLowering& k, const ir::Loop& loop, std::vector<Ahead> ahead,
                   const std::string& origin, thread::Block& out)
      : k_(k),
        e_(k.out_.exprs),
        loop_(loop),
        ahead_(std::move(ahead)),
        origin_(origin),
        bounds_(k.loop_bounds(loop, out, origin)),
        begin_(bounds_.begin),
        extent_(bounds_.extent),
        saved_slots_(k.slots_) {
    for (const Ahead& a : ahead_) {
      distances_.insert(a.distance);
      ring_.insert(a.values.begin(), a.values.end());
    }
  }

  void run(thread::Block& out) {
    if (int64_t trips = 0; e_.is_const_int(extent_, &trips) && trips <= 0) return;
    const int64_t farthest = *distances_.rbegin();
    for (int64_t j = 0; j < farthest; ++j) {
      for (int64_t d : distances_)
        if (const int64_t i = j - (farthest - d); i >= 0) issue(d, e_.const_int(i), out);
      emit(thread::AsyncCommit{}, out);
    }
    const auto gemm = prefetched_gemm();
    if (gemm) {
      wait(out);
      load_first(*gemm, e_.const_int(0), out);
    }
    const VarId var = k_.out_.add_var(k_.p_.var(loop_.vars[0]).name, ir::VarKind::loop);
    i_ = e_.var(var);
    thread::Loop lowered{var, extent_, thread::LoopForm::serial, {}};
    auto mark = k_.ctx_.mark();
    k_.bind_counter(var, extent_);
    k_.ctx_.assume(e_.lt(i_, extent_));
    gemm ? around_gemm(*gemm, lowered.body) : one_behind_the_other(lowered.body);
    k_.ctx_.rollback(mark);
    k_.slots_ = saved_slots_;
    emit(std::move(lowered), out);
  }

 private:
  template <class Node>
  void emit(Node node, thread::Block& to) {
    to.push_back(k_.out_.add(std::move(node), origin_));
  }
  bool runs_ahead(ir::StmtId id) const {
    return std::any_of(ahead_.begin(), ahead_.end(), [&](const Ahead& a) { return a.stmt == id; });
  }

  // Statements lowered from here on belong to iteration `i`.
  void enter(ExprId i) {
    k_.vars_[loop_.vars[0]] = e_.add(begin_, i);
    for (int v : ring_) k_.slots_[v] = slot(v, i);
  }
  ExprId slot(int value, ExprId i) {
    return k_.simplified(e_.floormod(i, e_.const_int(k_.schedule_.values[static_cast<size_t>(value)].slots)));
  }

  // What `body` emits, where there is an iteration `i`.
  template <class Body>
  void where_exists(ExprId i, thread::Block& to, Body&& body) {
    const ExprId exists = k_.simplified(e_.lt(i, extent_));
    int64_t known = 1;
    const bool decided = e_.is_const_int(exists, &known);
    if (decided && known == 0) return;
    auto mark = k_.ctx_.mark();
    k_.ctx_.assume(exists);
    thread::Block inside;
    body(inside);
    k_.ctx_.rollback(mark);
    if (decided || inside.empty())
      to.insert(to.end(), inside.begin(), inside.end());
    else
      emit(thread::Branch{exists, std::move(inside), {}}, to);
  }

  // The copies of iteration `i` of all that run `distance` ahead.
  void issue(int64_t distance, ExprId i, thread::Block& to) {
    where_exists(i, to, [&](thread::Block& copies) {
      enter(i);
      k_.groups_closed_by_loop_ = true;
      for (const Ahead& a : ahead_)
        if (a.distance == distance) k_.statement(a.stmt, copies);
      k_.groups_closed_by_loop_ = false;
    });
  }
  void issue_all(thread::Block& to) {
    for (int64_t d : distances_) issue(d, e_.add(i_, d), to);
    emit(thread::AsyncCommit{}, to);
    enter(i_);
  }
  void wait(thread::Block& to) { emit(thread::AsyncWait{*distances_.begin() - 1}, to); }

  void one_behind_the_other(thread::Block& body) {
    enter(i_);
    bool issued = false;
    auto turn = [&] {
      if (issued) return;
      issued = true;
      wait(body);
      issue_all(body);
    };
    for (ir::StmtId id : loop_.body) {
      if (k_.failed()) return;
      if (runs_ahead(id)) continue;
      if (uses_ring(id)) turn();
      k_.statement(id, body);
    }
    turn();
  }

  bool uses_ring(ir::StmtId id) const {
    bool uses = false;
    const ir::Block one = {id};
    ir::for_each_statement(k_.p_, one, [&](ir::StmtId s, int) {
      if (auto it = k_.op_of_.find(s); it != k_.op_of_.end())
        for (const analysis::OpAccess& a : it->second->accesses) uses = uses || ring_.count(a.value);
      for (const auto& [where, value] : k_.ops_.scalar_reads)
        uses = uses || (where.first == s && ring_.count(value));
    });
    return uses;
  }

  // The product whose registers are loaded ahead; none where the schedule says so of no product.
  std::unique_ptr<StagedGemm> prefetched_gemm() {
    const plan::LoopPlan* plan = plan::find_loop(k_.schedule_, origin_);
    if (!plan || !plan->register_prefetch.value_or(false)) return nullptr;
    const auto product = std::find_if(loop_.body.begin(), loop_.body.end(),
                                      [&](ir::StmtId id) { return !runs_ahead(id); });
    return std::make_unique<StagedGemm>(k_, *k_.op_of_.at(*product), *k_.p_.as<ir::TileOp>(*product));
  }

  // The first k step of iteration i + 1 is loaded in front of the last instructions of iteration i, so that
  // they hide the wait, the barrier and the loads.
  void around_gemm(StagedGemm& gemm, thread::Block& body) {
    issue_all(body);
    gemm.steps(body, [&] {
      wait(body);
      load_first(gemm, e_.add(i_, 1), body);
      enter(i_);
    });
  }
  void load_first(StagedGemm& gemm, ExprId i, thread::Block& to) {
    where_exists(i, to, [&](thread::Block& first) {
      enter(i);
      gemm.first_step(first);
    });
  }

  KernelLowering& k_;
  ir::ExprPool& e_;
  const ir::Loop& loop_;
  const std::vector<Ahead> ahead_;
  const std::string& origin_;
  const LoopBounds bounds_;
  const ExprId begin_, extent_;
  const std::map<int, ExprId> saved_slots_;
  std::set<int64_t> distances_;
  std::set<int> ring_;
  ExprId i_;
};

void KernelLowering::pipelined_loop(const ir::Loop& loop, thread::Block& out, const std::string& origin) {
  if (role_ == Role::consumer && has_channels(origin)) return channel_loop(loop, out, origin);
  if (role_ == Role::producer) return serial_loop(loop, out, origin);
  std::vector<Ahead> ahead = copies_ahead(loop, plan::find_loop(schedule_, origin), ops_, schedule_);
  if (ahead.empty()) return serial_loop(loop, out, origin);
  PipelineLowering(*this, loop, std::move(ahead), origin, out).run(out);
}

}  // namespace tilegen::lower
