#include "ir/weave_sides.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <optional>
#include <set>

#include "ir/expr_nodes.h"
#include "ir/op_kinds.h"
#include "ir/side_phases.h"
#include "ir/store_parts.h"
#include "ir/transaction_barriers.h"

namespace tilegen::ir {

namespace {

constexpr int64_t kWarp = 32, kMaxThreads = 4096;
constexpr size_t kMaxStatements = 20000;  // of a block that is put in order
constexpr int64_t kMaxWork = 4'000'000;   // of a kernel: pairs of statements, and what these touch
constexpr int kDepth = 32;                // of conditions, for every thread

using Warps = std::bitset<kMaxThreads / kWarp>;

class WithVars : public ExprRewriter {
 public:
  WithVars(const ExprPool& from, ExprPool& to) : ExprRewriter(from, to) {}
  void set(VarId var, ExprId value) { values_[var] = value; }

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    const auto it = values_.find(n.var());
    return it == values_.end() ? to_->var(n.var(), n.type) : it->second;
  }

 private:
  std::map<VarId, ExprId> values_;
};

template <class Visit>
void visit_roots(Stmt& s, Visit&& visit) {
  const auto some = [&](ExprId& e) {
    if (e.valid()) visit(e);
  };
  if (auto* store = std::get_if<Store>(&s.node)) visit_exprs(*store, some);
  if (auto* branch = std::get_if<Branch>(&s.node)) some(branch->condition);
  if (auto* loop = std::get_if<Loop>(&s.node)) {
    some(loop->begin), some(loop->condition);
    for (ExprId& e : loop->extents) some(e);
  }
  if (auto* op = std::get_if<TileOp>(&s.node)) {
    for (Region& region : op->operands)
      for (ExprId& e : region.offsets) some(e);
    some(op->value);
  }
}

class Weaver {
 public:
  Weaver(Program& p, Kernel& kernel, const std::function<bool(BufferId)>& is_own)
      : p_(p), kernel_(kernel), is_own_(is_own), phases_(p, kernel) {
    all_.set();
  }

  void run() {
    if (kernel_.threads <= 0 || kernel_.threads > kMaxThreads) return;
    Block body = kernel_.body;
    kernel_.body = weave(std::move(body));
  }

 private:
  Block weave(Block left) {
    Block out;
    const bool ordered = left.size() > kMaxStatements;
    while (!left.empty()) {
      size_t next = 0;
      if (!ordered && phases_.blocks(left.front()) && !find_other(left, &next)) continue;  // two became one
      const StmtId s = left[next];
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(next));
      out.push_back(s);
      inside(s);
      phases_.pass(s);
    }
    return out;
  }

  // What is done while the first one waits: 0, itself, where there is nothing. False: it became one with what
  // it waits for.
  bool find_other(Block& left, size_t* next) {
    for (size_t j = 1; j < left.size() && work_ < kMaxWork; ++j) {
      if (!is_ready(left, j)) continue;
      if (phases_.holds_barriers(left[j]))
        for (size_t i = 0; i < j; ++i)
          if (awaits(left[i], left[j]) && is_ready(left, i) && phases_.blocks(left[i]) &&
              join(left[i], left[j])) {
            known_.erase(left[i]);
            left.erase(left.begin() + static_cast<std::ptrdiff_t>(j));
            return false;
          }
      if (phases_.blocks(left[j]) || clashes(left, j)) continue;
      *next = j;
      return true;
    }
    return true;
  }

  // One of the arrays of barriers that the first waits at the second arrives at.
  bool awaits(StmtId waiting, StmtId arriving) const {
    std::set<BufferId> waits;
    bool any = false;
    for_each_statement(p_, Block{waiting}, [&](StmtId s, int) {
      const auto* op = p_.as<TileOp>(s);
      if (op && (op->kind == OpKind::mbarrier_wait || op->kind == OpKind::barrier_sync))
        waits.insert(op->operands.front().buffer);
    });
    for_each_statement(p_, Block{arriving}, [&](StmtId s, int) {
      const auto* op = p_.as<TileOp>(s);
      any = any || (op && is_barrier_op(op->kind) && op->kind != OpKind::mbarrier_wait &&
                    waits.contains(op->operands.front().buffer));
    });
    return any;
  }

  // What is left in front of it is of other threads, or each thread's own that has nothing to do with it.
  bool is_ready(const Block& left, size_t at) {
    const StmtId s = left[at];
    return std::all_of(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(at), [&](StmtId before) {
      ++work_;
      return are_apart(before, s) || (is_own(s) && !meet(before, s, true));
    });
  }

  // Of other threads. What these are given where they do not take part is no name of the others.
  bool are_apart(StmtId a, StmtId b) {
    if ((warps_of(a) & warps_of(b)).any()) return false;
    const auto keeps = [&](StmtId one, StmtId other) {
      const auto given = given_.find(one);
      if (given == given_.end() || given->second.empty()) return true;
      const Touched t = touched(other, true);
      return std::none_of(given->second.begin(), given->second.end(),
                          [&](BufferId x) { return t.read.contains(x) || t.written.contains(x); });
    };
    return keeps(a, b) && keeps(b, a);
  }

  // No barrier orders what it touches.
  bool is_own(StmtId s) {
    if (phases_.holds_barriers(s)) return false;
    const auto [known, fresh] = own_.try_emplace(s, false);
    if (!fresh) return known->second;
    const Touched t = touched(s, false);
    return known->second = t.written.empty() && std::all_of(t.read.begin(), t.read.end(), [&](BufferId b) {
                             return p_.buffer(b).read_only;
                           });
  }

  // A statement that other threads' loops in front of it go together with in memory: which comes first is
  // said by the text alone.
  bool clashes(const Block& left, size_t at) {
    for (size_t i = 0; i < at; ++i) {
      if (!p_.as<Loop>(left[i]) && !p_.as<Branch>(left[i])) continue;
      if (phases_.holds_barriers(left[i]) && is_ready(left, i) && meet(left[i], left[at], false)) return true;
    }
    return false;
  }

  // One writes what the other touches; `own`: elements that are each thread's own count, too.
  bool meet(StmtId a, StmtId b, bool own) {
    const Touched x = touched(a, own), y = touched(b, own);
    const auto both = [](const std::set<BufferId>& some, const std::set<BufferId>& others) {
      return std::any_of(some.begin(), some.end(), [&](BufferId t) { return others.contains(t); });
    };
    return both(x.written, y.written) || both(x.written, y.read) || both(x.read, y.written);
  }
  struct Touched {
    std::set<BufferId> read, written;
  };
  Touched touched(StmtId s, bool own) {
    Touched t;
    const auto counts = [&](BufferId b) { return own || !is_own_(b); };
    for_each_statement(p_, Block{s}, [&](StmtId inside, int) {
      std::vector<ExprId> roots;
      work_ += 10;
      visit_roots(p_.stmts[inside.value], [&](ExprId& e) { roots.push_back(e); });
      ExprNodes nodes(p_.exprs, roots);
      while (const ExprId e = nodes.next())
        if (p_.exprs[e].op == ExprOp::load && counts(p_.exprs[e].object)) t.read.insert(p_.exprs[e].object);
      if (const auto* store = p_.as<Store>(inside))
        visit_written(*store, [&](BufferId b, const auto&) {
          if (counts(b)) t.written.insert(b);
        });
      const auto* op = p_.as<TileOp>(inside);
      if (!op || is_barrier_op(op->kind)) return;
      for (const Region& region : op->operands) {  // either way
        t.read.insert(region.buffer);
        t.written.insert(region.buffer);
      }
    });
    return t;
  }

  void inside(StmtId s) {
    if (!phases_.holds_barriers(s)) return;
    const SidePhases::State before = phases_.state();
    if (const auto* loop = p_.as<Loop>(s)) {
      const Loop head = *loop;
      phases_.enter(head);
      Block body = weave(head.body);
      phases_.leave(head);
      std::get<Loop>(p_.stmts[s.value].node).body = std::move(body);
    }
    if (const auto* branch = p_.as<Branch>(s)) {
      const Branch sides = *branch;
      for (const bool taken : {true, false}) {
        Block body = weave(taken ? sides.then_body : sides.else_body);
        auto& node = std::get<Branch>(p_.stmts[s.value].node);
        (taken ? node.then_body : node.else_body) = std::move(body);
        phases_.restore(before);
      }
    }
    phases_.restore(before);
  }

  // ---- whose statements are

  const Warps& warps_of(StmtId s) {
    if (const auto it = known_.find(s); it != known_.end()) return it->second;
    return known_[s] = find_warps(s);
  }

  Warps find_warps(StmtId s) {
    if (const auto* op = p_.as<TileOp>(s)) {
      if (!is_barrier_op(op->kind)) return all_;
      const ThreadRange range = threads_of(*op, kernel_);
      Warps warps;
      for (int64_t t = range.first; t < std::min(range.first + range.count, kMaxThreads); t += kWarp)
        if (t >= 0) warps.set(static_cast<size_t>(t / kWarp));
      return warps;
    }
    if (const auto* loop = p_.as<Loop>(s))
      return loop->kind == LoopKind::parallel ? of_part(s, *loop) : of_block(s, loop->body);
    if (const auto* branch = p_.as<Branch>(s))
      return of_block(s, branch->then_body) | of_block(s, branch->else_body);
    return all_;
  }
  Warps of_block(StmtId around, const Block& block) {
    Warps warps;
    for (StmtId s : block) {
      warps |= warps_of(s);
      given_[around].insert(given_[s].begin(), given_[s].end());
    }
    return warps;
  }

  // The warps of which a thread does anything in a part: all of it stands in ifs on the threads' numbers. The
  // others' elements of names may be given a value.
  Warps of_part(StmtId around, const Loop& part) {
    std::vector<int64_t> extents;
    int64_t threads = 1;
    for (size_t d = 0; d < part.extents.size() && threads < kernel_.threads; ++d) {
      p_.exprs.is_const_int(part.extents[d], &extents.emplace_back(1));
      threads *= extents.back();
    }
    Warps warps;
    if (threads != kernel_.threads) return all_;
    for (StmtId s : part.body) {
      const auto* branch = p_.as<Branch>(s);
      if (!branch || p_.exprs[branch->condition].depth > kDepth) return all_;
      for (StmtId other : branch->else_body) {
        const auto* store = p_.as<Store>(other);
        if (!store || !is_own_(store->buffer) || store->old || !p_.exprs.is_const(store->value)) return all_;
        given_[around].insert(store->buffer);
      }
      ExprPool pool;
      for (int64_t t = 0; t < threads; ++t) {
        WithVars of_thread(p_.exprs, pool);
        int64_t rest = t, holds = 0;
        for (size_t d = extents.size(); d-- > 0; rest /= extents[d])
          of_thread.set(part.vars[d], pool.const_int(rest % extents[d]));
        const auto warp = static_cast<size_t>(t / kWarp);
        if (!warps[warp] && !(pool.is_const_int(of_thread.rewrite(branch->condition), &holds) && holds == 0))
          warps.set(warp);
      }
    }
    return warps;
  }

  // ---- two that become one, the first

  bool join(StmtId a, StmtId b) {
    if (p_.as<Loop>(a) && p_.as<Loop>(b)) return join_loops(a, b);
    if (p_.as<TileOp>(a) && p_.as<TileOp>(b)) return join_meetings(a, b);
    const auto *x = p_.as<Branch>(a), *y = p_.as<Branch>(b);
    if (!x || !y || x->condition != y->condition) return false;
    auto& first = std::get<Branch>(p_.stmts[a.value].node);
    const Branch second = *y;
    first.then_body.insert(first.then_body.end(), second.then_body.begin(), second.then_body.end());
    first.else_body.insert(first.else_body.end(), second.else_body.begin(), second.else_body.end());
    return true;
  }

  bool join_loops(StmtId a, StmtId b) {
    Stmt &first = p_.stmts[a.value], &second = p_.stmts[b.value];
    auto &x = std::get<Loop>(first.node), &y = std::get<Loop>(second.node);
    if (x.kind != LoopKind::serial || y.kind != LoopKind::serial || x.condition.valid() ||
        y.condition.valid())
      return false;
    if (x.extents != y.extents || !second.annotations.empty()) return false;
    if (!first.label.empty() && !second.label.empty()) return false;
    ExprPool& e = p_.exprs;
    WithVars renamed(e, e);
    const ExprId var = e.var(x.vars.front());
    renamed.set(y.vars.front(), x.begin == y.begin ? var : e.add(var, e.sub(y.begin, x.begin)));
    for_each_statement(p_, y.body, [&](StmtId s, int) {
      visit_roots(p_.stmts[s.value], [&](ExprId& root) { root = renamed.rewrite(root); });
    });
    x.body.insert(x.body.end(), y.body.begin(), y.body.end());
    if (first.label.empty()) first.label = second.label;
    return true;
  }

  // Of warps that follow each other.
  bool join_meetings(StmtId a, StmtId b) {
    auto& x = std::get<TileOp>(p_.stmts[a.value].node);
    const auto& y = std::get<TileOp>(p_.stmts[b.value].node);
    if (x.kind != OpKind::barrier_sync || y.kind != OpKind::barrier_sync) return false;
    const Region &at = x.operands.front(), &other = y.operands.front();
    if (at.buffer != other.buffer || at.offsets != other.offsets || at.extents != other.extents) return false;
    const ThreadRange mine = threads_of(x, kernel_), others = threads_of(y, kernel_);
    const int64_t first = std::min(mine.first, others.first), count = mine.count + others.count;
    if (std::max(mine.first + mine.count, others.first + others.count) != first + count) return false;
    const bool whole = count == kernel_.threads;
    x.attrs[barrier_sync_attr::first] = whole ? 0 : first;
    x.attrs[barrier_sync_attr::threads] = whole ? 0 : count;
    return true;
  }

  Program& p_;
  Kernel& kernel_;
  const std::function<bool(BufferId)>& is_own_;
  SidePhases phases_;
  std::map<StmtId, Warps> known_;
  std::map<StmtId, bool> own_;
  std::map<StmtId, std::set<BufferId>> given_;  // names that threads are given which do not take part
  Warps all_;
  int64_t work_ = 0;
};

}  // namespace

void weave_sides(Program& p, const std::function<bool(BufferId)>& is_own) {
  for (size_t k = 0; k < p.kernels.size(); ++k)
    if (const auto index = static_cast<int>(k);
        !barriers_of(p, index).empty() || !named_barriers_of(p, index).empty())
      Weaver(p, p.kernels[k], is_own).run();
}

}  // namespace tilegen::ir
