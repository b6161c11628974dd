#include "lower/plant_barriers.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "arith/prove.h"
#include "lower/sync_conflicts.h"

namespace tilegen::lower {

using thread::Block;
using thread::StmtId;
using thread::ThreadProgram;

namespace {

// An access that no barrier orders yet.
struct Outstanding {
  int access = 0;  // id of its class
  Bindings at;     // parallel to the class's loops
  bool in_flight = false;
  auto operator<=>(const Outstanding&) const = default;
};
// With the number of commits since an async copy was issued (0 for others).
using State = std::map<Outstanding, int64_t>;

void add_to(State& into, const State& other) {
  for (const auto& [access, commits] : other) {
    auto [it, fresh] = into.try_emplace(access, commits);
    if (!fresh) it->second = std::min(it->second, commits);
  }
}

enum class Need : uint8_t { nothing, barrier, wait };

class Planter {
 public:
  explicit Planter(ThreadProgram& p) : p_(p), oracle_(p) {
    for (const thread::Memory& m : p.memories) back_ = std::max(back_, m.slots + 2);
    // Barriers that lowering put are needed as far as accesses say so.
    for (size_t i = 0; i < p.stmts.size(); ++i)
      if (const auto* b = as<thread::Barrier>(StmtId(i)); b && b->id == 0 && thread::is_block_barrier(p, *b))
        planted_.insert(StmtId(i));
  }

  Checked run() {
    Block body = p_.body;
    plan_block(body, true, {});
    p_.body = std::move(body);
    if (error_) return std::move(*error_);
    return Unit{};
  }

 private:
  struct Leaf {
    std::vector<int> classes;
    bool known = false;
  };

  template <class T>
  T* as(StmtId id) {
    return std::get_if<T>(&p_.stmts[id.value].node);
  }
  bool is_leaf(StmtId id) {
    const auto* loop = as<thread::Loop>(id);
    return !as<thread::Branch>(id) && (!loop || loop->form == thread::LoopForm::vectorized);
  }

  // ---- planning: children first, then what stands between them

  // `before`: what the condition or the extent in front of the block reads.
  void plan_block(Block& block, bool uniform, const State& before) {
    for (StmtId id : block) plan_children(id, uniform);
    State state = before;
    plant_between(block, state, uniform);
    drop_redundant(block, [&] {
      State from = before;
      return walk(block, from) == Need::nothing;
    });
  }

  void plan_children(StmtId id, bool uniform) {
    if (is_leaf(id) || !touches_memory(id)) return;
    if (const auto* branch = as<thread::Branch>(id)) {
      const bool inside = uniform && !varies(branch->condition);
      Block then_body = branch->then_body, else_body = branch->else_body;
      State condition;
      meet(id, condition);
      plan_block(then_body, inside, condition);
      plan_block(else_body, inside, condition);
      auto* again = as<thread::Branch>(id);
      again->then_body = std::move(then_body);
      again->else_body = std::move(else_body);
      return;
    }
    const auto* loop = as<thread::Loop>(id);
    const bool inside = uniform && !varies(loop->extent);
    const OpenLoop open = open_loop(id);
    Block body = loop->body;
    around_.push_back(open);
    current_[open.var] = {Binding::Kind::back, 0};
    State extent;
    meet(id, extent);
    plan_block(body, inside, extent);
    plan_carried(body, open, inside, extent);
    current_.erase(open.var);
    around_.pop_back();
    as<thread::Loop>(id)->body = body;
    drop_redundant(as<thread::Loop>(id)->body, [&] {
      State empty;
      return walk_loop(id, empty) == Need::nothing;
    });
  }

  // Walks the body as one iteration behind the other until nothing changes.
  void plan_carried(Block& body, const OpenLoop& loop, bool uniform, State state) {
    if (loop.extent == 1) return;
    plant_between(body, state, uniform);
    for (int64_t n = 0; n <= back_ + 1 && (loop.extent < 0 || n + 1 < loop.extent); ++n) {
      age(state, loop);
      const State before = state;
      plant_between(body, state, uniform);
      State again = state;
      age(again, loop);
      if (again == before) break;
    }
  }

  // Leaves `state` as it is behind the block.
  void plant_between(Block& block, State& state, bool uniform) {
    for (size_t i = 0; i < block.size(); ++i) {
      State probe = state;
      const Need need = walk(block[i], probe);
      if (need == Need::nothing) {
        state = std::move(probe);
        continue;
      }
      if (!uniform) return refuse(block[i]);
      // Copies in flight may be waited for within the statement with no barrier behind: they are waited for here.
      if (!order(block, i, state, need) && !order(block, i, state, Need::wait)) return refuse(block[i]);
    }
  }

  // Puts what is needed in front of block[i]; false, and nothing is done, when that does not help.
  bool order(Block& block, size_t& i, State& state, Need need) {
    State behind = state;
    const std::vector<StmtId> ordered = ordering(need, state, block[i]);
    for (StmtId s : ordered) walk(s, behind);
    if (walk(block[i], behind) != Need::nothing) return false;
    block.insert(block.begin() + static_cast<long>(i), ordered.begin(), ordered.end());
    i += ordered.size();
    state = std::move(behind);
    return true;
  }

  std::vector<StmtId> ordering(Need need, const State& state, StmtId before) {
    const std::string origin = p_.stmts[before.value].origin;
    std::vector<StmtId> s;
    if (need == Need::wait) {
      const bool open = std::any_of(state.begin(), state.end(), [](auto& o) { return o.first.in_flight && o.second == 0; });
      if (open) s.push_back(p_.add(thread::AsyncCommit{}, origin));
      s.push_back(p_.add(thread::AsyncWait{0}, origin));
    }
    s.push_back(p_.add(thread::Barrier{}, origin));
    for (StmtId id : s) planted_.insert(id);
    return s;
  }

  template <class Clean>
  void drop_redundant(Block& block, Clean&& clean) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (!planted_.count(block[i]) || !as<thread::Barrier>(block[i])) continue;
      const StmtId barrier = block[i];
      block.erase(block.begin() + static_cast<long>(i));
      if (clean())
        --i;
      else
        block.insert(block.begin() + static_cast<long>(i), barrier);
    }
  }

  void refuse(StmtId id) {
    if (error_) return;
    error_ = Error(DiagCode::internal_error, p_.stmts[id.value].origin,
                   "threads of a block meet in shared memory within control flow that differs between them",
                   "report this program");
  }

  // ---- walking: what is outstanding behind a statement, and what it needs in front

  Need walk(const Block& block, State& state) {
    Need need = Need::nothing;
    for (size_t i = 0; i < block.size(); ++i) need = std::max(need, walk(block[i], state));
    return need;
  }

  Need walk(StmtId id, State& state) {
    if (!touches_memory(id)) return Need::nothing;
    if (is_leaf(id)) return walk_leaf(id, state);
    if (as<thread::Loop>(id)) return walk_loop(id, state);
    Need need = meet(id, state);
    State other = state;
    const Block then_body = as<thread::Branch>(id)->then_body, else_body = as<thread::Branch>(id)->else_body;
    need = std::max(need, walk(then_body, state));
    need = std::max(need, walk(else_body, other));
    add_to(state, other);
    return need;
  }

  Need walk_leaf(StmtId id, State& state) {
    if (const auto* b = as<thread::Barrier>(id)) {
      if (thread::is_block_barrier(p_, *b)) std::erase_if(state, [](const auto& s) { return !s.first.in_flight; });
      return Need::nothing;
    }
    if (as<thread::AsyncCommit>(id)) {
      for (auto& [access, commits] : state)
        if (access.in_flight) ++commits;
      return Need::nothing;
    }
    if (const auto* wait = as<thread::AsyncWait>(id)) {
      State next;
      for (const auto& [outstanding, commits] : state) {
        const bool done = outstanding.in_flight && commits > wait->pending;
        Outstanding access = outstanding;
        if (done) access.in_flight = false;
        add_to(next, {{std::move(access), done ? 0 : commits}});
      }
      state = std::move(next);
      return Need::nothing;
    }
    return meet(id, state);
  }

  // The accesses of the statement itself: what they clash with, and their entry into the state.
  Need meet(StmtId id, State& state) {
    Need need = Need::nothing;
    const std::vector<int> classes = classes_of(id);
    std::vector<Outstanding> fresh;
    for (int c : classes) {
      Outstanding own{c, {}, oracle_[c].access.async};
      for (const OpenLoop& l : oracle_[c].loops) {
        auto it = current_.find(l.var);
        own.at.push_back(it == current_.end() ? Binding{} : it->second);
      }
      for (const auto& [other, commits] : state) need = std::max(need, between(other, own));
      fresh.push_back(std::move(own));
    }
    for (Outstanding& o : fresh) state[std::move(o)] = 0;
    return need;
  }

  Need between(const Outstanding& earlier, const Outstanding& later) {
    if (!oracle_[earlier.access].access.write && !oracle_[later.access].access.write) return Need::nothing;
    if (oracle_.same_points(earlier.access, earlier.at, later.access, later.at)) return Need::nothing;
    const Meeting m = oracle_.meeting(earlier.access, earlier.at, later.access, later.at);
    if (m == Meeting::disjoint) return Need::nothing;
    if (earlier.in_flight) return Need::wait;
    return m == Meeting::clash ? Need::barrier : Need::nothing;
  }

  // The first iterations by their number, as what stands in front of a pipelined loop fills slots by number; then
  // by their distance.
  Need walk_loop(StmtId id, State& state) {
    const OpenLoop loop = open_loop(id);
    const Block body = as<thread::Loop>(id)->body;
    Need need = meet(id, state);
    State after;
    if (loop.extent < 0) after = state;
    int64_t numbered = std::any_of(state.begin(), state.end(), [](auto& s) { return s.first.in_flight; }) ? back_ : 0;
    if (loop.extent >= 0) numbered = std::min(numbered, loop.extent);
    around_.push_back(loop);
    int64_t n = 0;
    for (; n < numbered; ++n) {
      current_[loop.var] = {Binding::Kind::at, n};
      need = std::max(need, walk(body, state));
      if (loop.extent < 0 || n + 1 == loop.extent) add_to(after, released(state, loop));
      state = rebound(state, loop, [](Binding&) { return true; });
    }
    if (loop.extent < 0 || n < loop.extent) {
      state = from_numbers(state, loop, n);
      current_[loop.var] = {Binding::Kind::back, 0};
      for (int64_t k = 0; k <= 2 * back_ && (loop.extent < 0 || n + k < loop.extent); ++k) {
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

  // ---- iterations

  template <class Change>
  State rebound(const State& state, const OpenLoop& loop, Change&& change) {
    State next;
    for (const auto& [outstanding, commits] : state) {
      Outstanding access = outstanding;
      const auto& loops = oracle_[access.access].loops;
      bool exists = true;
      for (size_t i = 0; i < loops.size(); ++i)
        if (loops[i].var == loop.var) exists = change(access.at[i]) && exists;
      if (exists) add_to(next, {{std::move(access), commits}});
    }
    return next;
  }

  // One iteration later. What lies further back than slots reach counts as any iteration.
  void age(State& state, const OpenLoop& loop) {
    state = rebound(state, loop, [&](Binding& b) {
      if (b.kind == Binding::Kind::back && ++b.value > back_) b.kind = Binding::Kind::far;
      const bool relative = b.kind == Binding::Kind::back || b.kind == Binding::Kind::far;
      return !relative || loop.extent < 0 || b.value < loop.extent;
    });
  }
  State from_numbers(const State& state, const OpenLoop& loop, int64_t now) {
    return rebound(state, loop, [&](Binding& b) {
      if (b.kind == Binding::Kind::at) b = Binding{Binding::Kind::back, now - b.value};
      if (b.kind == Binding::Kind::back && b.value > back_) b.kind = Binding::Kind::far;
      return true;
    });
  }
  State released(const State& state, const OpenLoop& loop) {
    return rebound(state, loop, [](Binding& b) {
      b = {};
      return true;
    });
  }
  OpenLoop open_loop(StmtId id) const {
    const auto& loop = std::get<thread::Loop>(p_.stmts[id.value].node);
    int64_t extent = -1;
    p_.exprs.is_const_int(loop.extent, &extent);
    return {loop.var, extent, p_.stmts[id.value].origin};
  }

  // ---- facts about statements

  bool varies(ir::ExprId e) const {
    return p_.thread_var.valid() && arith::depends_on(p_.exprs, e, p_.thread_var);
  }

  const std::vector<int>& classes_of(StmtId id) {
    Leaf& leaf = leaves_[id];
    if (!leaf.known) {
      leaf.known = true;
      const auto* loop = as<thread::Loop>(id);
      const auto list = loop && loop->form != thread::LoopForm::vectorized ? thread::sync_accesses(p_, *loop)
                                                                           : thread::sync_accesses(p_, id);
      const bool engine = as<thread::TensorLoad>(id) || as<thread::TensorStore>(id) || as<thread::WarpgroupMma>(id);
      for (const thread::SyncAccess& a : list)
        if (!engine && shared_by_accesses(a)) leaf.classes.push_back(oracle_.add(a, around_, p_.stmts[id.value].origin));
      std::sort(leaf.classes.begin(), leaf.classes.end());
      leaf.classes.erase(std::unique(leaf.classes.begin(), leaf.classes.end()), leaf.classes.end());
    }
    return leaf.classes;
  }

  // Tensors that are only read need no look at their indices.
  bool shared_by_accesses(const thread::SyncAccess& a) {
    if (p_.memory(a.memory).space == thread::Space::shared) return !p_.memory(a.memory).ordered;
    if (written_tensors_.empty()) find_written_tensors(p_.body);
    return written_tensors_.count(a.memory) > 0;
  }
  void find_written_tensors(const Block& block) {
    written_tensors_.insert(thread::MemoryId());
    for (StmtId id : block) {
      const auto* loop = as<thread::Loop>(id);
      const bool inner = loop && loop->form != thread::LoopForm::vectorized;
      for (const auto& a : inner ? thread::sync_accesses(p_, *loop) : thread::sync_accesses(p_, id))
        if (a.write) written_tensors_.insert(a.memory);
      if (inner) find_written_tensors(loop->body);
      if (!inner)
        for (const Block* b : thread::blocks_inside(std::as_const(p_.stmts[id.value].node))) find_written_tensors(*b);
    }
  }

  bool touches_memory(StmtId id) {
    if (as<thread::Barrier>(id) || as<thread::AsyncCommit>(id) || as<thread::AsyncWait>(id)) return true;
    if (is_leaf(id)) return !classes_of(id).empty();
    auto [it, fresh] = touches_.try_emplace(id, false);
    if (!fresh) return it->second;
    bool any = false;
    if (const auto* b = as<thread::Branch>(id)) {
      any = !classes_of(id).empty();
      for (const Block* block : {&b->then_body, &b->else_body})
        for (StmtId s : *block) any = touches_memory(s) || any;
    } else {
      const Block body = as<thread::Loop>(id)->body;
      any = !classes_of(id).empty();
      around_.push_back(open_loop(id));
      for (StmtId s : body) any = touches_memory(s) || any;
      around_.pop_back();
    }
    return touches_[id] = any;
  }

  ThreadProgram& p_;
  ConflictOracle oracle_;
  int64_t back_ = 3;  // iterations told apart
  std::vector<OpenLoop> around_;
  std::map<ir::VarId, Binding> current_;
  std::unordered_map<StmtId, Leaf> leaves_;
  std::unordered_map<StmtId, bool> touches_;
  std::set<thread::MemoryId> written_tensors_;
  std::set<StmtId> planted_;
  std::optional<Error> error_;
};

}  // namespace

namespace {

constexpr int kRoleBarrier = 8;  // barriers below belong to warpgroups

// Barriers of the whole block become barriers of the role's threads.
void make_role_barriers(ThreadProgram& p, const Block& block, int64_t threads) {
  for (StmtId id : block) {
    thread::StmtNode& node = p.stmts[id.value].node;
    if (auto* b = std::get_if<thread::Barrier>(&node); b && b->id == 0) *b = {kRoleBarrier, threads, b->arrive_only};
    for (const Block* inside : thread::blocks_inside(std::as_const(node))) make_role_barriers(p, *inside, threads);
  }
}

// The computing threads among themselves, as if they were the block; other roles only issue copies to ordered memories.
Checked plant_role(ThreadProgram& p, StmtId roles, size_t index) {
  const auto role = [&]() -> thread::Role& { return std::get<thread::Roles>(p.stmts[roles.value].node).roles[index]; };
  if (role().first_thread != 0) return Unit{};
  const int64_t threads = std::exchange(p.threads, role().threads);
  Block body = std::exchange(p.body, role().body);
  Checked planted = Planter(p).run();
  role().body = std::exchange(p.body, std::move(body));
  p.threads = threads;
  make_role_barriers(p, role().body, role().threads);
  return planted;
}

}  // namespace

Checked plant_barriers(ThreadProgram& p) {
  if (p.threads <= 1) return Unit{};
  for (StmtId id : p.body)
    if (const auto* roles = std::get_if<thread::Roles>(&p.stmts[id.value].node))
      for (size_t i = 0; i < roles->roles.size(); ++i)
        if (Checked planted = plant_role(p, id, i); !planted) return planted;
  return Planter(p).run();
}

}  // namespace tilegen::lower
