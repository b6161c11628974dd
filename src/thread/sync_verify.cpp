#include "thread/sync_verify.h"

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>

#include "thread/index_program.h"
#include "thread/loop_lengths.h"
#include "thread/sync_accesses.h"
#include "thread/sync_history.h"
#include "thread/warp_arrival.h"

namespace tilegen::thread {

using ir::ExprId;
using ir::VarId;

namespace {

constexpr int64_t kLongestLoop = 512;     // iterations of one loop that are looked at
constexpr int64_t kMaxSteps = 4'000'000;  // thread steps of one walk
constexpr size_t kMaxHazards = 16;
constexpr int64_t kFew = 8;  // threads that are evaluated for one by one

using Row = std::vector<std::optional<int64_t>>;  // by thread

class Walk {
 public:
  Walk(const ThreadProgram& p, int64_t unit, bool taken, std::vector<std::string>& hazards,
       std::set<std::pair<StmtId, StmtId>>& seen)
      : p_(p),
        warpgroup_(p.machine.warpgroup > 0 ? p.machine.warpgroup : p.threads),
        unit_(unit),
        taken_(taken),
        split_(split_barriers(p)),
        handed_over_(handed_over_memories(p)),
        hazards_(hazards),
        seen_(seen),
        values_(p.vars.size()),
        begin_(p.vars.size()),
        history_(p, p.arena_bytes / unit + 1) {}

  PointValues& values() { return values_; }

  // Whether a walk of these values is this one once more.
  bool repeats(const PointValues& values, bool taken) const {
    return (taken == taken_ || !asked_) &&
           std::all_of(programs_.begin(), programs_.end(), [&](const auto& entry) {
             const std::vector<VarId>& vars = entry.second.vars();
             return std::all_of(vars.begin(), vars.end(), [&](VarId v) { return values[v] == begin_[v]; });
           });
  }

  // False when the walk was given up: too many steps, or a loop longer than is looked at.
  bool run() {
    std::vector<bool> all(static_cast<size_t>(p_.threads), true);
    present_ = p_.threads;
    begin_ = values_;
    return block(p_.body, all);
  }

 private:
  const IndexProgram& compiled(ExprId e) {
    auto it = programs_.find(e);
    if (it == programs_.end()) it = programs_.emplace(e, IndexProgram(p_.exprs, e)).first;
    return it->second;
  }
  std::optional<int64_t> value(ExprId e, int64_t thread) {
    if (p_.thread_var.valid()) values_.set(p_.thread_var, thread);
    return compiled(e).eval(values_);
  }
  bool holds(std::optional<int64_t> condition) {
    asked_ = asked_ || !condition;
    return condition.value_or(taken_) != 0;
  }
  void values(ExprId e, Row& row) { compiled(e).eval_along(p_.thread_var, p_.threads, values_, row); }

  bool block(const Block& b, const std::vector<bool>& active) {
    for (StmtId id : b)
      if (!statement(id, active)) return false;
    return true;
  }

  // Another operation, or the same once more where a loop around it goes on.
  void come_to(StmtId id) {
    const std::string& origin = p_.stmts[id.value].origin;
    if (!origin_ || *origin_ != origin) ++operation_;
    origin_ = &origin;
  }

  bool statement(StmtId id, const std::vector<bool>& active) {
    come_to(id);
    const StmtNode& node = p_.stmts[id.value].node;
    if (const auto* loop = std::get_if<Loop>(&node); loop && loop->form != LoopForm::vectorized)
      return serial(id, *loop, active);
    if (const auto* branch = std::get_if<Branch>(&node)) {
      touch(id, sync_accesses(p_, id), active);
      std::vector<bool> then_active = active, else_active = active;
      bool any_then = false, any_else = false;
      values(branch->condition, row_);
      for (size_t t = 0; t < active.size(); ++t) {
        if (!active[t]) continue;
        const bool yes = holds(row_[t]);
        then_active[t] = yes;
        else_active[t] = !yes;
        (yes ? any_then : any_else) = true;
      }
      return (!any_then || block(branch->then_body, then_active)) &&
             (!any_else || block(branch->else_body, else_active));
    }
    if (const auto* roles = std::get_if<Roles>(&node)) return each_role(*roles);
    if (const auto* one = std::get_if<OneThread>(&node)) return one_of_each_warp(*one, active);
    if (const auto* barrier = std::get_if<Barrier>(&node)) return meet(id, *barrier, active);
    if (const auto* arrival = std::get_if<TransactionArrive>(&node); arrival && !arrival->block.valid())
      return at_transaction(arrival->barriers, arrival->index, active, arrival);
    if (const auto* wait = std::get_if<TransactionWait>(&node))
      return at_transaction(wait->barriers, wait->index, active, nullptr);
    if (std::holds_alternative<WarpgroupMma>(node)) return product(id, active);
    if (std::holds_alternative<WarpgroupCommit>(node)) {
      for_warpgroups(active, [&](int64_t g) { history_.commit_products(g); });
      return true;
    }
    if (const auto* wait = std::get_if<WarpgroupWait>(&node)) {
      for_warpgroups(active, [&](int64_t g) { history_.wait_products(g, wait->pending); });
      return true;
    }
    if (std::holds_alternative<AsyncCommit>(node)) {
      for_threads(active, [&](int64_t t) { history_.commit(t); });
      return true;
    }
    if (const auto* wait = std::get_if<AsyncWait>(&node)) {
      for_threads(active, [&](int64_t t) { history_.wait(t, wait->pending); });
      return true;
    }
    auto it = accesses_.find(id);
    if (it == accesses_.end()) it = accesses_.emplace(id, sync_accesses(p_, id)).first;
    touch(id, it->second, active);
    return steps_ < kMaxSteps;
  }

  // One role after the other: what they hand over is verify_transactions' to judge.
  bool each_role(const Roles& roles) {
    for (const Role& role : roles.roles) {
      std::vector<bool> active(static_cast<size_t>(p_.threads), false);
      std::fill_n(active.begin() + role.first_thread, role.threads, true);
      present_ = role.threads;
      history_.meet();
      if (!block(role.body, active)) return false;
    }
    return true;
  }

  bool one_of_each_warp(const OneThread& one, const std::vector<bool>& active) {
    const auto warp = static_cast<size_t>(p_.machine.warp);
    std::vector<bool> elected(active.size(), false);
    for (size_t t = 0; t < active.size(); t = (t / warp + 1) * warp) {
      const size_t end = std::min(active.size(), t + warp);
      while (t + 1 < end && !active[t]) ++t;
      elected[t] = active[t];
    }
    for (StmtId id : one.body) {
      const auto* arrival = std::get_if<TransactionArrive>(&p_.stmts[id.value].node);
      if (arrival && arrival == warp_arrival(p_, one) && !arrival->block.valid())
        at_transaction(arrival->barriers, arrival->index, active, arrival);  // for all that meet here
      else if (!statement(id, elected))
        return false;
    }
    return true;
  }

  // In a role a barrier may be one of its own, or of one of its warpgroups.
  bool meet(StmtId id, const Barrier& barrier, const std::vector<bool>& active) {
    if (is_of_program(p_, barrier)) return at_named(barrier, active);
    // orders none but those that wait
    if (barrier.arrive_only || (split_ >> barrier.id & 1) != 0) return true;
    if (barrier.id > 0 && static_cast<size_t>(barrier.id) <= p_.named_barriers.size())
      if (const NamedBarrier& named = p_.named_barriers[static_cast<size_t>(barrier.id - 1)];
          named.use == BarrierUse::warps)
        return meet_of_warps(id, named, active);
    const int64_t here = std::count(active.begin(), active.end(), true);
    const int64_t wanted = barrier.threads == 0 ? p_.threads : barrier.threads;
    if (wanted == present_) {
      if (here != wanted) hazard(id, id, "a barrier that not all threads of the block reach");
      history_.meet();
    } else if (wanted == warpgroup_) {
      for_warpgroups(active, [&](int64_t g) {
        if ((g + 1) * warpgroup_ > p_.threads) return;
        const auto first = active.begin() + g * warpgroup_;
        if (std::all_of(first, first + warpgroup_, [](bool a) { return a; })) history_.meet_of(g);
      });
    }
    return true;
  }

  // Exactly these warps come by.
  bool meet_of_warps(StmtId id, const NamedBarrier& named, const std::vector<bool>& active) {
    const int64_t first = named.first * p_.machine.warp, end = first + named.count * p_.machine.warp;
    for (int64_t t = 0; t < p_.threads; ++t)
      if (active[static_cast<size_t>(t)] != (first <= t && t < end)) {
        hazard(id, id, "a barrier of some warps that others or not all of them reach");
        return true;
      }
    history_.meet_of_threads(first, end);
    return true;
  }

  // Threads that follow each other come by a barrier that is the same for them.
  template <class F>
  static void for_run(const std::vector<bool>& active, F f) {
    const auto first = std::find(active.begin(), active.end(), true);
    const auto end = std::find(first, active.end(), false);
    if (first == active.end() || std::find(end, active.end(), true) != active.end()) return;
    f(first - active.begin(), end - active.begin());
  }
  bool at_named(const Barrier& barrier, const std::vector<bool>& active) {
    for_run(active, [&](int64_t from, int64_t to) {
      history_.arrive_named(barrier.id, from, to);
      if (!barrier.arrive_only) history_.await_named(barrier.id, from, to);
    });
    return true;
  }
  bool at_transaction(int barriers, ExprId index, const std::vector<bool>& active,
                      const TransactionArrive* arrival) {
    for_run(active, [&](int64_t from, int64_t to) {
      const int64_t at = value(index, from).value_or(-1);
      arrival ? history_.arrive(barriers, at, from, to, arrival->copies)
              : history_.await(barriers, at, from, to);
    });
    return true;
  }

  template <class F>
  static void for_threads(const std::vector<bool>& active, F f) {
    for (size_t t = 0; t < active.size(); ++t)
      if (active[t]) f(static_cast<int64_t>(t));
  }
  // The first thread of each warpgroup stands for it.
  template <class F>
  void for_warpgroups(const std::vector<bool>& active, F f) {
    for (int64_t t = 0; t < p_.threads; t += warpgroup_)
      if (active[static_cast<size_t>(t)]) f(t / warpgroup_);
  }

  // Operands are being read until the wait.
  bool product(StmtId id, const std::vector<bool>& active) {
    for_warpgroups(active, [&](int64_t g) {
      std::vector<bool> first(active.size(), false);
      first[static_cast<size_t>(g * warpgroup_)] = true;
      history_.issue_product(g);
      touch(id, sync_accesses(p_, id), first);
      history_.end_product();
    });
    return steps_ < kMaxSteps;
  }

  bool serial(StmtId id, const Loop& loop, const std::vector<bool>& active) {
    touch(id, sync_accesses(p_, loop), active);
    std::vector<int64_t> trips(active.size(), 0);
    int64_t longest = 0;
    values(loop.extent, row_);
    for (size_t t = 0; t < active.size(); ++t)
      if (active[t]) longest = std::max(longest, trips[t] = asked_trips(loop, row_[t].value_or(1)));
    if (longest > kLongestLoop) return false;
    for (int64_t i = 0; i < longest; ++i) {
      std::vector<bool> inside = active;
      for (size_t t = 0; t < active.size(); ++t) inside[t] = active[t] && i < trips[t];
      values_.set(loop.var, i);
      come_to(id);
      if (!block(loop.body, inside)) return false;
    }
    values_.clear(loop.var);
    return true;
  }

  // A condition ends the loop at once, or after enough iterations for each to meet the one before.
  int64_t asked_trips(const Loop& loop, int64_t trips) {
    if (!loop.condition.valid()) return trips;
    return holds(std::nullopt) ? std::min<int64_t>(trips, 3) : 0;
  }

  void touch(StmtId id, const std::vector<SyncAccess>& accesses, const std::vector<bool>& active) {
    history_.begin();
    for (bool write : {false, true})
      for (const SyncAccess& a : accesses) {
        if (a.write != write || p_.memory(a.memory).space != Space::shared) continue;
        if (a.engine && !history_.issues_product()) continue;  // the copy engine's
        std::vector<Places> places(static_cast<size_t>(a.lanes));
        const bool few = std::count(active.begin(), active.end(), true) < kFew;
        for (int64_t lane = 0; lane < a.lanes && !few; ++lane) {
          if (a.lane.valid()) values_.set(a.lane, lane);
          Places& of_lane = places[static_cast<size_t>(lane)];
          if (a.predicate.valid()) values(a.predicate, of_lane.predicate);
          values(a.index, of_lane.index);
        }
        for (size_t t = 0; t < active.size(); ++t) {
          const auto thread = static_cast<int64_t>(t);
          if (!active[t] || (a.row_lanes > 0 && thread % p_.machine.warp >= a.row_lanes)) continue;
          for (size_t lane = 0; lane < places.size(); ++lane) {
            ++steps_;
            if (a.lane.valid()) values_.set(a.lane, static_cast<int64_t>(lane));
            if (a.predicate.valid() && !holds(few ? value(a.predicate, thread) : places[lane].predicate[t]))
              continue;
            access(id, a, thread, few ? value(a.index, thread) : places[lane].index[t]);
          }
        }
      }
  }

  // What one lane of each thread accesses.
  struct Places {
    Row predicate, index;
  };

  void access(StmtId id, const SyncAccess& a, int64_t thread, std::optional<int64_t> index) {
    const Memory& m = p_.memory(a.memory);
    const int64_t bytes = ir::dtype_bytes(m.type);
    if (!index && handed_over_[a.memory.value]) return;  // a slot that the program counts
    const int64_t first = index ? *index + a.offset : 0, count = index ? a.count : m.elements;
    if (first < 0 || first + count > m.elements) {
      hazard(id, id, "an index outside of " + m.name + ": " + std::to_string(first));
      return;
    }
    const int64_t begin = (m.arena_offset + first * bytes) / unit_;
    const int64_t end = (m.arena_offset + (first + count) * bytes + unit_ - 1) / unit_;
    const int64_t group = thread / warpgroup_;
    const int64_t who = history_.issues_product() ? SyncHistory::kProducts - group
                        : a.collective            ? SyncHistory::kMany
                                                  : thread;
    const int32_t operation = a.atomic ? operation_ : SyncHistory::kOfNone;
    const SyncHistory::Access by{id, who, thread, a.async, history_.warpgroup_of(thread), operation};
    for (int64_t unit = begin; unit < end; ++unit)
      for (const SyncHistory::Clash& c : a.write ? history_.write(static_cast<size_t>(unit), by)
                                                 : history_.read(static_cast<size_t>(unit), by))
        report(id, a, thread, c);
  }

  static std::string thread_text(int64_t thread) {
    if (thread <= SyncHistory::kProducts) return "a product";
    return thread == SyncHistory::kMany ? "several threads" : "thread " + std::to_string(thread);
  }
  void report(StmtId id, const SyncAccess& a, int64_t thread, const SyncHistory::Clash& c) {
    using Kind = SyncHistory::Clash::Kind;
    const std::string& memory = p_.memory(a.memory).name;
    if (c.kind == Kind::with_product)
      return hazard(
          id, c.other,
          thread_text(thread) + " writes in " + memory + " what a product reads that was not waited for");
    const bool copied = std::holds_alternative<AsyncCopy>(p_.stmts[c.other.value].node);
    hazard(id, c.other,
           thread_text(thread) + (a.write ? " writes what " : " reads what ") + thread_text(c.who) +
               (c.kind == Kind::with_write ? " writes in " : " reads in ") + memory + " with no barrier" +
               (copied ? " after a wait" : "") + " in between");
  }
  void hazard(StmtId id, StmtId other, const std::string& text) {
    if (!seen_.insert({id, other}).second || hazards_.size() >= kMaxHazards) return;
    const std::string &x = p_.stmts[id.value].origin, &y = p_.stmts[other.value].origin;
    hazards_.push_back(x + (id == other || x == y ? "" : " after " + y) + ": " + text);
  }

  const ThreadProgram& p_;
  const int64_t warpgroup_;              // threads
  const int64_t unit_;                   // bytes
  const bool taken_;                     // what unknown conditions are
  const uint32_t split_;                 // barriers at which some only arrive
  const std::vector<bool> handed_over_;  // by memory
  std::vector<std::string>& hazards_;
  std::set<std::pair<StmtId, StmtId>>& seen_;
  PointValues values_, begin_;
  bool asked_ = false;  // a condition was unknown
  SyncHistory history_;
  std::unordered_map<ExprId, IndexProgram> programs_;
  std::unordered_map<StmtId, std::vector<SyncAccess>> accesses_;
  Row row_;
  int64_t present_ = 0;  // threads of the role, or of the block
  int64_t steps_ = 0;
  const std::string* origin_ = nullptr;  // of the statement walked last
  int32_t operation_ = 0;                // counts their executions
};

}  // namespace

std::vector<std::string> verify_synchronization(const ThreadProgram& p) {
  std::vector<std::string> hazards;
  if (p.threads <= 1 || p.arena_bytes == 0) return hazards;
  int64_t unit = 8, slots = 1;
  for (const Memory& m : p.memories) {
    if (m.space != Space::shared) continue;
    unit = std::min<int64_t>(unit, ir::dtype_bytes(m.type));
    slots = std::max(slots, m.slots);
  }
  const bool roles = std::any_of(p.body.begin(), p.body.end(), [&](StmtId s) {
    return std::holds_alternative<Roles>(p.stmts[s.value].node);
  });
  if (!roles)
    for (const TransactionBarriers& b : p.barriers) slots = std::max(slots, b.count);
  const LoopLengths lengths(p);
  std::set<std::pair<StmtId, StmtId>> seen;
  std::vector<std::unique_ptr<Walk>> walks;
  for (int64_t trips : {int64_t{0}, int64_t{1}, int64_t{2}, slots, slots + 2})
    for (bool taken : {true, false}) {
      auto walk = std::make_unique<Walk>(p, unit, taken, hazards, seen);
      lengths.choose(trips, taken, walk->values());
      if (std::any_of(walks.begin(), walks.end(),
                      [&](const auto& w) { return w->repeats(walk->values(), taken); }))
        continue;
      walk->run();
      walks.push_back(std::move(walk));
    }
  return hazards;
}

}  // namespace tilegen::thread
