#include "sync/hazard_walk.h"

#include <algorithm>
#include <utility>

#include "arith/prove.h"

namespace tilegen::sync {

using thread::Block;
using thread::StmtId;
using thread::ThreadProgram;

// Accesses that became one are as near as the newest of them.
void close(State& state) {
  std::sort(state.begin(), state.end(), [](const Held& a, const Held& b) {
    return a.access != b.access ? a.access < b.access : a.commits < b.commits;
  });
  state.erase(std::unique(state.begin(), state.end(),
                          [](const Held& a, const Held& b) { return a.access == b.access; }),
              state.end());
}

namespace {

void add_to(State& into, const State& other) {
  if (other.empty()) return;
  into.insert(into.end(), other.begin(), other.end());
  close(into);
}

void hold(State& state, const std::vector<uint32_t>& fresh) {
  for (const uint32_t access : fresh) {
    const auto at = std::lower_bound(state.begin(), state.end(), access,
                                     [](const Held& h, uint32_t number) { return h.access < number; });
    if (at != state.end() && at->access == access)
      at->commits = 0;
    else
      state.insert(at, Held{access, 0});
  }
}

}  // namespace

HazardWalk::HazardWalk(ThreadProgram& p, bool by_iterations, bool named)
    : p_(p),
      split_(thread::split_barriers(p)),
      by_iterations_(by_iterations),
      oracle_(p),
      transactions_(p, named) {
  for (const thread::Memory& m : p.memories) back_ = std::max(back_, m.slots + 2);
  if (!transactions_.empty()) back_ = std::max(back_, transactions_.most_barriers() + 2);
}

template <class T>
const T* HazardWalk::as(StmtId id) const {
  return std::get_if<T>(&p_.stmts[id.value].node);
}

bool HazardWalk::is_leaf(StmtId id) const {
  const auto* loop = as<thread::Loop>(id);
  return !as<thread::Branch>(id) && (!loop || loop->form == thread::LoopForm::vectorized);
}

void HazardWalk::enter(const OpenLoop& loop) {
  around_.push_back(loop);
  current_[loop.var] = {Binding::Kind::back, 0};
}

void HazardWalk::leave() {
  current_.erase(around_.back().var);
  around_.pop_back();
}

// Conditions of threads alone say who accesses. What memory holds may be another value at the next access,
// and loops would be told apart for conditions that places do not follow.
void HazardWalk::enter_branch(ir::ExprId condition, bool value) {
  const thread::IndexProgram program(p_.exprs, condition);
  const auto& vars = program.vars();
  const bool of_threads =
      std::all_of(vars.begin(), vars.end(), [&](ir::VarId v) { return v == p_.thread_var; });
  const bool reads = program.reads_memory();
  if (!value) condition = p_.exprs.unary(ir::ExprOp::logical_not, condition);
  conditions_.push_back({of_threads && !reads ? condition : ir::ExprId(),
                         by_iterations_ && !reads ? oracle_.implied(condition, around_) : ir::ExprId()});
}

uint32_t HazardWalk::number_of(Outstanding o) {
  const auto [at, fresh] = numbers_.try_emplace(std::move(o), static_cast<uint32_t>(outstanding_.size()));
  if (fresh) outstanding_.push_back(&at->first);
  return at->second;
}

template <class Change>
int64_t HazardWalk::rebound(uint32_t access, const OpenLoop& loop, Change&& change) {
  Outstanding o = *outstanding_[access];
  const auto& loops = oracle_[o.access].loops;
  bool exists = true, bound = false;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].var != loop.var) continue;
    bound = true;
    exists = change(o.at[i]) && exists;
  }
  for (auto& [arrival, at] : o.arrivals) {
    if (transactions_.find(arrival)->loop != loop.var) continue;
    bound = true;
    change(at);
  }
  if (!exists) return kGone;
  return bound ? number_of(std::move(o)) : access;
}

template <class Change>
State HazardWalk::rebound(const State& state, const OpenLoop& loop, Changes& known, Change&& change) {
  State next;
  next.reserve(state.size());
  for (const Held& h : state) {
    if (known.size() <= h.access) known.resize(outstanding_.size(), kNotAsked);
    if (known[h.access] == kNotAsked) known[h.access] = rebound(h.access, loop, change);
    if (const int64_t to = known[h.access]; to != kGone)
      next.push_back({static_cast<uint32_t>(to), h.commits});
  }
  close(next);
  return next;
}

// One iteration later. What lies further back than slots reach counts as any iteration.
void HazardWalk::age(State& state, const OpenLoop& loop) {
  state = rebound(state, loop, aged_[loop.var], [&](Binding& b) {
    if (b.kind == Binding::Kind::back && ++b.value > back_) b.kind = Binding::Kind::far;
    const bool relative = b.kind == Binding::Kind::back || b.kind == Binding::Kind::far;
    return !relative || loop.most() < 0 || b.value < loop.most();
  });
}
State HazardWalk::from_numbers(const State& state, const OpenLoop& loop, int64_t now) {
  Changes known;  // others for each `now`
  return rebound(state, loop, known, [&](Binding& b) {
    if (b.kind == Binding::Kind::at) b = Binding{Binding::Kind::back, now - b.value};
    if (b.kind == Binding::Kind::back && b.value > back_) b.kind = Binding::Kind::far;
    return true;
  });
}
State HazardWalk::released(const State& state, const OpenLoop& loop) {
  return rebound(state, loop, released_[loop.var], [](Binding& b) {
    b = {};
    return true;
  });
}
OpenLoop HazardWalk::open_loop(StmtId id) {
  const auto& loop = std::get<thread::Loop>(p_.stmts[id.value].node);
  int64_t extent = -1;
  p_.exprs.is_const_int(loop.extent, &extent);
  const bool bounds = by_iterations_ || transactions_.inside(loop.var);
  const int64_t bound = extent < 0 && bounds ? oracle_.bound_of(loop.extent) : -1;
  return {loop.var, extent, p_.stmts[id.value].origin, loop.condition.valid(), bound};
}

Need HazardWalk::walk(const Block& block, State& state) {
  Need need = Need::nothing;
  for (size_t i = 0; i < block.size(); ++i) need = std::max(need, walk(block[i], state));
  return need;
}

Need HazardWalk::walk(StmtId id, State& state) {
  if (!touches_memory(id)) return Need::nothing;
  if (is_leaf(id) && !is_warpgroup_barrier(id)) return walk_leaf(id, state);
  if (as<thread::Loop>(id)) return walk_loop(id, state);
  if (const auto warps = warp_barriers_.find(id); warps != warp_barriers_.end()) {
    for (Held& h : state) {
      Outstanding access = *outstanding_[h.access];
      if (access.in_flight) continue;
      access.met_in |= uint32_t{1} << warps->second;
      h.access = number_of(std::move(access));
    }
    close(state);
    return Need::nothing;
  }
  if (is_warpgroup_barrier(id)) {
    for (Held& h : state) {
      Outstanding access = *outstanding_[h.access];
      if (access.met || access.in_flight) continue;
      access.met = true;
      h.access = number_of(std::move(access));
    }
    close(state);
    return Need::nothing;
  }
  Need need = meet(id, state);
  const thread::Branch branch = *as<thread::Branch>(id);
  int64_t always = 0;
  if (p_.exprs.is_const_int(branch.condition, &always))  // the other side is never run
    return std::max(need, walk(always != 0 ? branch.then_body : branch.else_body, state));
  // All of these threads do it: no way leads around.
  if (branch.then_body.size() == 1 && branch.else_body.empty() && transactions_.find(branch.then_body[0]) &&
      transactions_.is_of_threads(branch.condition))
    return std::max(need, walk_leaf(branch.then_body[0], state));
  if (transactions_.is_of_threads(branch.condition) && hands_over(id))
    return std::max(need, walk_sides(branch, state));
  State other = state;
  choose(branch.condition, true, state);
  choose(branch.condition, false, other);
  enter_branch(branch.condition, true);
  need = std::max(need, walk(branch.then_body, state));
  leave_branch();
  enter_branch(branch.condition, false);
  need = std::max(need, walk(branch.else_body, other));
  leave_branch();
  choose(branch.condition, true, state);  // what is done on that side is of it
  choose(branch.condition, false, other);
  add_to(state, other);
  return need;
}

Need HazardWalk::walk_leaf(StmtId id, State& state) {
  if (const TransactionOrder::Point* at = transactions_.find(id)) {
    if (at->arrives) arrive(*at, state);
    if (at->waits) wait(*at, state);
    return Need::nothing;
  }
  if (const auto* b = as<thread::Barrier>(id)) {
    // Those who have waited for a copy meet all others here.
    if (thread::is_block_barrier(p_, *b, split_))
      std::erase_if(state, [&](const Held& h) { return !(*this)[h].in_flight || (*this)[h].known_to != 0; });
    return Need::nothing;
  }
  if (as<thread::AsyncCommit>(id)) {
    for (Held& h : state)
      if ((*this)[h].in_flight) ++h.commits;
    return Need::nothing;
  }
  if (const auto* wait = as<thread::AsyncWait>(id)) {
    for (Held& h : state) {
      Outstanding access = *outstanding_[h.access];
      if (!access.in_flight || h.commits <= wait->pending) continue;
      access.in_flight = false;
      h = {number_of(std::move(access)), 0};
    }
    close(state);
    return Need::nothing;
  }
  return meet(id, state);
}

bool HazardWalk::enters(StmtId id, State& state) {
  if (!touches_memory(id)) return true;
  if (transactions_.find(id)) return false;
  if (!is_leaf(id) || as<thread::Barrier>(id) || as<thread::AsyncCommit>(id) || as<thread::AsyncWait>(id))
    return false;
  std::vector<uint32_t> fresh;
  if (meet(id, state, fresh) != Need::nothing) return false;
  hold(state, fresh);
  return true;
}

Need HazardWalk::meet(StmtId id, State& state) {
  std::vector<uint32_t> fresh;
  const Need need = meet(id, state, fresh);
  hold(state, fresh);
  return need;
}

// The accesses of the statement itself, and what they clash with.
Need HazardWalk::meet(StmtId id, const State& state, std::vector<uint32_t>& fresh) {
  Need need = Need::nothing;
  const std::vector<int> classes = classes_of(id);
  for (int c : classes) {
    Outstanding own{c, {}, oracle_[c].access.async};
    for (const OpenLoop& l : oracle_[c].loops) {
      auto it = current_.find(l.var);
      own.at.push_back(it == current_.end() ? Binding{} : it->second);
    }
    const uint32_t number = number_of(std::move(own));
    for (const Held& h : state) need = std::max(need, between(h.access, number));
    fresh.push_back(number);
  }
  return need;
}

// The first iterations by their number, as what stands before a pipelined loop fills slots by number;
// then by their distance.
Need HazardWalk::walk_loop(StmtId id, State& state) {
  const OpenLoop loop = open_loop(id);
  const Block body = as<thread::Loop>(id)->body;
  Need need = meet(id, state);
  State after;
  const bool any_number = loop.extent < 0 || loop.ends;  // of iterations
  if (any_number) after = state;
  int64_t numbered =
      std::any_of(state.begin(), state.end(), [&](const Held& h) { return (*this)[h].in_flight; }) ? back_
                                                                                                   : 0;
  if (loop.most() >= 0) numbered = std::min(numbered, loop.most());
  around_.push_back(loop);
  int64_t n = 0;
  for (; n < numbered; ++n) {
    current_[loop.var] = {Binding::Kind::at, n};
    need = std::max(need, walk(body, state));
    if (any_number || n + 1 == loop.extent) add_to(after, released(state, loop));
  }
  if (loop.most() < 0 || n < loop.most()) {
    state = from_numbers(state, loop, n);
    current_[loop.var] = {Binding::Kind::back, 0};
    for (int64_t k = 0; k <= 2 * back_ && (loop.most() < 0 || n + k < loop.most()); ++k) {
      const State before = state;
      need = std::max(need, walk(body, state));
      add_to(after, released(state, loop));
      age(state, loop);
      if (state == before) break;
    }
  }
  current_.erase(loop.var);
  around_.pop_back();
  state = std::move(after);
  return need;
}

// Barriers of warpgroups are told apart by constant numbers: one behind each way through branches. Where one
// warpgroup's stands alone, what comes after it on this way is that warpgroup's.
bool HazardWalk::is_warpgroup_barrier(StmtId id) const {
  if (const auto* b = as<thread::Barrier>(id))
    return !thread::is_of_program(p_, *b) && !b->arrive_only && (split_ >> b->id & 1) == 0 &&
           b->threads == p_.machine.warpgroup;
  const auto* branch = as<thread::Branch>(id);
  return branch && branch->then_body.size() == 1 && branch->else_body.size() == 1 &&
         is_warpgroup_barrier(branch->then_body[0]) && is_warpgroup_barrier(branch->else_body[0]);
}

bool HazardWalk::varies(ir::ExprId e) const {
  return p_.thread_var.valid() && arith::depends_on(p_.exprs, e, p_.thread_var);
}

const std::vector<int>& HazardWalk::classes_of(StmtId id) {
  Leaf& leaf = leaves_[id];
  if (!leaf.known) {
    leaf.known = true;
    const auto* loop = as<thread::Loop>(id);
    const auto list = loop && loop->form != thread::LoopForm::vectorized ? thread::sync_accesses(p_, *loop)
                                                                         : thread::sync_accesses(p_, id);
    const bool engine =
        as<thread::TensorLoad>(id) || as<thread::TensorStore>(id) || as<thread::WarpgroupMma>(id);
    for (const thread::SyncAccess& a : list)
      if (!engine && shared_by_accesses(a))
        leaf.classes.push_back(oracle_.add(conditioned(a), around_, p_.stmts[id.value].origin));
    std::sort(leaf.classes.begin(), leaf.classes.end());
    leaf.classes.erase(std::unique(leaf.classes.begin(), leaf.classes.end()), leaf.classes.end());
  }
  return leaf.classes;
}

thread::SyncAccess HazardWalk::conditioned(thread::SyncAccess a) {
  for (const Condition& around : conditions_) {
    const ir::ExprId condition = a.async && around.of_iterations ? around.of_iterations : around.of_threads;
    if (condition) a.predicate = a.predicate ? p_.exprs.logical_and(a.predicate, condition) : condition;
  }
  return a;
}

// Tensors that are only read need no look at their indices.
bool HazardWalk::shared_by_accesses(const thread::SyncAccess& a) {
  if (p_.memory(a.memory).space == thread::Space::shared) return true;
  if (written_tensors_.empty()) find_written_tensors(p_.body);
  return written_tensors_.count(a.memory) > 0;
}
void HazardWalk::find_written_tensors(const Block& block) {
  written_tensors_.insert(thread::MemoryId());
  for (StmtId id : block) {
    const auto* loop = as<thread::Loop>(id);
    const bool inner = loop && loop->form != thread::LoopForm::vectorized;
    for (const auto& a : inner ? thread::sync_accesses(p_, *loop) : thread::sync_accesses(p_, id))
      if (a.write) written_tensors_.insert(a.memory);
    if (inner) find_written_tensors(loop->body);
    if (!inner)
      for (const Block* b : thread::blocks_inside(std::as_const(p_.stmts[id.value].node)))
        find_written_tensors(*b);
  }
}

bool HazardWalk::touches_memory(StmtId id) {
  if (as<thread::Barrier>(id) || as<thread::AsyncCommit>(id) || as<thread::AsyncWait>(id)) return true;
  if (warp_barriers_.contains(id) || transactions_.find(id)) return true;
  if (is_leaf(id)) return !classes_of(id).empty();
  auto [it, fresh] = touches_.try_emplace(id, false);
  if (!fresh) return it->second;
  bool any = false;
  if (as<thread::Branch>(id)) {
    const thread::Branch branch = *as<thread::Branch>(id);
    any = !classes_of(id).empty();
    for (const bool taken : {true, false}) {
      enter_branch(branch.condition, taken);
      for (StmtId s : taken ? branch.then_body : branch.else_body) any = touches_memory(s) || any;
      leave_branch();
    }
  } else {
    const Block body = as<thread::Loop>(id)->body;
    any = !classes_of(id).empty();
    around_.push_back(open_loop(id));
    for (StmtId s : body) any = touches_memory(s) || any;
    around_.pop_back();
  }
  return touches_[id] = any;
}

}  // namespace tilegen::sync
