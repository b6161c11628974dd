#include "sync/plant_barriers.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "support/diag_codes.h"
#include "sync/hazard_walk.h"

namespace tilegen::sync {

using thread::Block;
using thread::StmtId;
using thread::ThreadProgram;

namespace {

class Planter {
 public:
  Planter(ThreadProgram& p, const Planting& how) : p_(p), how_(how), walk_(p, how.own_waits, how.by_warps) {
    // Barriers that lowering put are needed as far as accesses say so.
    for (size_t i = 0; i < p.stmts.size(); ++i)
      if (const auto* b = as<thread::Barrier>(StmtId(i));
          b && b->id == 0 && thread::is_block_barrier(p, *b, 0))
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
  template <class T>
  T* as(StmtId id) {
    return std::get_if<T>(&p_.stmts[id.value].node);
  }

  // ---- planning: children first, then what stands between them

  // `before`: what the condition or the extent before the block reads.
  void plan_block(Block& block, bool uniform, const State& before) {
    for (StmtId id : block) plan_children(id, uniform);
    State state = before;
    plant_between(block, state, uniform);
    drop_redundant(block, before, [] { return true; });
  }

  void plan_children(StmtId id, bool uniform) {
    if (walk_.is_leaf(id) || !walk_.touches_memory(id)) return;
    if (const auto* branch = as<thread::Branch>(id)) {
      const bool inside = uniform && !walk_.varies(branch->condition);
      Block then_body = branch->then_body, else_body = branch->else_body;
      State condition;
      walk_.meet(id, condition);
      const ir::ExprId decides = branch->condition;
      int64_t always = 0;
      const bool decided = p_.exprs.is_const_int(decides, &always);
      for (const bool taken : {true, false}) {
        if (decided && taken != (always != 0)) continue;  // it is never run
        walk_.enter_branch(decides, taken);
        plan_block(taken ? then_body : else_body, inside, condition);
        walk_.leave_branch();
      }
      auto* again = as<thread::Branch>(id);
      again->then_body = std::move(then_body);
      again->else_body = std::move(else_body);
      return;
    }
    const auto* loop = as<thread::Loop>(id);
    const bool inside = uniform && !walk_.varies(loop->extent);
    const OpenLoop open = walk_.open_loop(id);
    Block body = loop->body;
    walk_.enter(open);
    State extent;
    walk_.meet(id, extent);
    plan_block(body, inside, extent);
    plan_carried(body, open, inside, extent);
    as<thread::Loop>(id)->body = body;
    // What one iteration needs the loop needs, which is asked for the rest.
    drop_redundant(as<thread::Loop>(id)->body, extent, [&] {
      walk_.leave();
      State empty;
      const bool clean = walk_.walk_loop(id, empty) == Need::nothing;
      walk_.enter(open);
      return clean;
    });
    walk_.leave();
  }

  // Walks the body as one iteration after the other until nothing changes.
  void plan_carried(Block& body, const OpenLoop& loop, bool uniform, State state) {
    if (loop.extent == 1) return;
    plant_between(body, state, uniform);
    for (int64_t n = 0; n <= walk_.back() + 1 && (loop.extent < 0 || n + 1 < loop.extent); ++n) {
      walk_.age(state, loop);
      const State before = state;
      plant_between(body, state, uniform);
      State again = state;
      walk_.age(again, loop);
      if (again == before) break;
    }
  }

  // Leaves `state` as it is after the block.
  void plant_between(Block& block, State& state, bool uniform) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (walk_.enters(block[i], state)) continue;
      State probe = state;
      const Need need = walk_.walk(block[i], probe);
      if (need == Need::nothing) {
        state = std::move(probe);
        continue;
      }
      if (how_.own_waits && need == Need::wait) return refuse_unawaited(block[i], state);
      if (need == Need::barrier && walk_.inside_transactions())
        if (const WarpRange warps = walk_.warps_to_await(block[i], state);
            warps.count == 0 || !walk_.transactions().is_one_party(warps))
          return refuse_unordered(block[i], state);
      if (!uniform) return refuse(block[i]);
      // Copies in flight may be waited for within the statement with no barrier after: they are waited for
      // here.
      if (!order(block, i, state, need) && !order(block, i, state, Need::wait)) return refuse(block[i]);
    }
  }

  // Puts what is needed before block[i]; false, and nothing is done, when that does not help.
  bool order(Block& block, size_t& i, State& state, Need need) {
    if (need == Need::barrier && how_.by_warps && order_warps(block, i, state)) return true;
    State after = state;
    const std::vector<StmtId> ordered = ordering(need, state, block[i]);
    for (StmtId s : ordered) walk_.walk(s, after);
    if (walk_.walk(block[i], after) != Need::nothing) return false;
    block.insert(block.begin() + static_cast<long>(i), ordered.begin(), ordered.end());
    i += ordered.size();
    state = std::move(after);
    return true;
  }

  // The same by a barrier of some warps alone.
  bool order_warps(Block& block, size_t& i, State& state) {
    const WarpRange warps = walk_.warps_to_await(block[i], state);
    const int64_t warp = p_.machine.warp, end = warps.first + warps.count;
    if (warps.count == 0 || warps.count * warp >= p_.threads) return false;
    const thread::NamedBarrier use{thread::BarrierUse::warps, warps.first, warps.count};
    const auto& named = p_.named_barriers;
    const bool known = std::find(named.begin(), named.end(), use) != named.end();
    if (!known && static_cast<int64_t>(named.size()) + 1 >= p_.machine.named_barriers) return false;
    const std::string origin = p_.stmts[block[i].value].origin;
    ir::ExprPool& e = p_.exprs;
    const ir::ExprId at = e.floordiv(e.var(p_.thread_var), e.const_int(warp));
    ir::ExprId inside = e.lt(at, e.const_int(end));
    if (end * warp == p_.threads)
      inside = e.le(e.const_int(warps.first), at);
    else if (warps.first > 0)
      inside = e.logical_and(e.le(e.const_int(warps.first), at), inside);
    const int number = known ? p_.named_barrier(use) : static_cast<int>(named.size()) + 1;
    const StmtId meeting = p_.add(thread::Barrier{number, warps.count * warp}, origin);
    const StmtId branch = p_.add(thread::Branch{inside, {meeting}, {}}, origin);
    if (!walk_.add_warp_barrier(branch, warps)) return false;
    State after = state;
    walk_.walk(branch, after);
    if (walk_.walk(block[i], after) != Need::nothing) return false;
    p_.named_barrier(use);
    block.insert(block.begin() + static_cast<long>(i), branch);
    ++i;
    state = std::move(after);
    return true;
  }

  std::vector<StmtId> ordering(Need need, const State& state, StmtId before) {
    const std::string origin = p_.stmts[before.value].origin;
    std::vector<StmtId> s;
    if (need == Need::wait) {
      const bool open = std::any_of(state.begin(), state.end(),
                                    [&](const Held& h) { return walk_[h].in_flight && h.commits == 0; });
      if (open) s.push_back(p_.add(thread::AsyncCommit{}, origin));
      s.push_back(p_.add(thread::AsyncWait{0}, origin));
    }
    s.push_back(p_.add(thread::Barrier{}, origin));
    for (StmtId id : s) planted_.insert(id);
    return s;
  }

  // A barrier that is left out changes states until they are again what they were, mostly at the next
  // barrier: only so far is the block walked anew. `clean`: the same of what is around the block, asked
  //   without the barrier.
  template <class Clean>
  void drop_redundant(Block& block, const State& before, Clean&& clean) {
    const auto droppable = [&](StmtId id) { return planted_.count(id) > 0 && as<thread::Barrier>(id); };
    if (std::none_of(block.begin(), block.end(), droppable)) return;
    std::vector<State> after;  // each statement
    State state = before;
    for (StmtId id : block) {
      if (walk_.walk(id, state) != Need::nothing) return;  // with fewer barriers more would be needed
      after.push_back(state);
    }
    for (size_t i = 0; i < block.size(); ++i) {
      if (!droppable(block[i])) continue;
      const auto without = walk_without(block, i, i == 0 ? before : after[i - 1], after);
      if (!without) continue;
      const StmtId barrier = block[i];
      block.erase(block.begin() + static_cast<long>(i));
      if (!clean()) {
        block.insert(block.begin() + static_cast<long>(i), barrier);
        continue;
      }
      std::copy(without->begin(), without->end(), after.begin() + static_cast<long>(i) + 1);
      after.erase(after.begin() + static_cast<long>(i));
      --i;
    }
  }

  // The states that are others without block[i], of the statements after it; nothing where one of them needs
  // it.
  std::optional<std::vector<State>> walk_without(const Block& block, size_t i, State state,
                                                 const std::vector<State>& after) {
    std::vector<State> changed;
    for (size_t k = i + 1; k < block.size(); ++k) {
      if (walk_.walk(block[k], state) != Need::nothing) return std::nullopt;
      if (state == after[k]) break;
      changed.push_back(state);
    }
    return changed;
  }

  void refuse_unawaited(StmtId id, const State& state) {
    if (error_) return;
    std::string tile;
    for (const Held& h : state) {
      State alone{h};
      if (tile.empty() && walk_[h].in_flight && walk_.walk(id, alone) == Need::wait)
        tile = p_.memory(walk_.accessed(h)).name;
    }
    error_ = Error(DiagCode::misplaced_statement, p_.stmts[id.value].origin,
                   "it reads or writes '" + tile +
                       "' where asynchronous copies into the same elements may still be under way",
                   "put commit_group behind these copies, and in front of this a wait_group with the number "
                   "of groups that were committed later");
  }

  // Where warps go on by themselves no barrier of all of them is put between what they do.
  void refuse_unordered(StmtId id, const State& state) {
    if (error_) return;
    std::string tile, other;
    for (const Held& h : state) {
      State alone{h};
      if (!tile.empty() || walk_.walk(id, alone) != Need::barrier) continue;
      tile = p_.memory(walk_.accessed(h)).name;
      other = walk_.origin(h);
    }
    error_ =
        Error(DiagCode::misplaced_statement, p_.stmts[id.value].origin,
              "warps touch '" + tile + "' in elements that other warps touch in " + other +
                  ", and no arrival of these at a transaction barrier and wait of those for it stands "
                  "in between",
              "arrive behind what comes first, and wait for that phase in front of this: mbarrier_arrive "
              "full[s] ... mbarrier_wait full[s], parity");
  }

  void refuse(StmtId id) {
    if (error_) return;
    error_ = Error(DiagCode::internal_error, p_.stmts[id.value].origin,
                   "threads of a block meet in shared memory within control flow that differs between them",
                   "report this program");
  }

  ThreadProgram& p_;
  const Planting how_;
  HazardWalk walk_;
  std::set<StmtId> planted_;
  std::optional<Error> error_;
};

}  // namespace

namespace {

// Barriers of the whole block become barriers of the role's threads.
void make_role_barriers(ThreadProgram& p, const Block& block, int64_t threads) {
  for (StmtId id : block) {
    thread::StmtNode& node = p.stmts[id.value].node;
    if (auto* b = std::get_if<thread::Barrier>(&node); b && b->id == 0)
      *b = {p.named_barrier({thread::BarrierUse::role}), threads, b->arrive_only};
    for (const Block* inside : thread::blocks_inside(std::as_const(node)))
      make_role_barriers(p, *inside, threads);
  }
}

// The computing threads among themselves, as if they were the block; other roles issue copies, which
// transaction barriers order.
Checked plant_role(ThreadProgram& p, StmtId roles, size_t index, const Planting& how) {
  const auto role = [&]() -> thread::Role& {
    return std::get<thread::Roles>(p.stmts[roles.value].node).roles[index];
  };
  if (role().first_thread != 0) return Unit{};
  const int64_t threads = std::exchange(p.threads, role().threads);
  Block body = std::exchange(p.body, role().body);
  Checked planted = Planter(p, how).run();
  role().body = std::exchange(p.body, std::move(body));
  p.threads = threads;
  make_role_barriers(p, role().body, role().threads);
  return planted;
}

}  // namespace

Checked plant_barriers(ThreadProgram& p, const Planting& how) {
  if (p.threads <= 1) return Unit{};
  // Asked for each time: planting adds statements, which moves them all.
  const auto roles_in = [&](StmtId id) {
    const auto* roles = std::get_if<thread::Roles>(&p.stmts[id.value].node);
    return roles ? roles->roles.size() : 0;
  };
  Planting around = how;
  for (StmtId id : p.body)
    for (size_t i = 0; i < roles_in(id); ++i) {
      around.by_warps = false;  // roles have the named barriers
      if (Checked planted = plant_role(p, id, i, {how.own_waits, false}); !planted) return planted;
    }
  return Planter(p, around).run();
}

}  // namespace tilegen::sync
