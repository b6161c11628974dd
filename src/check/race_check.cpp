// Iterations of a parallel loop must be independent: no element is written by one iteration and touched by
// another.
//
// Stores: the index vector must be injective in the loop's variables, by a mixed-radix argument on its linear
// form or by enumeration of a loop of at most 65536 iterations. What neither decides (indices read from
// memory, guards that depend on more than the loop) is allowed. Loads of a buffer that the loop stores must
// use the store's index; another index is allowed only when enumeration shows that no element is shared.
// Atomic stores are independent of each other, whatever elements they name.
#include <algorithm>
#include <map>
#include <set>

#include "check/context.h"
#include "check/expr_walk.h"
#include "check/iteration_table.h"
#include "support/diag_codes.h"

namespace tilegen::check {
namespace {

using arith::Sum;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::StmtId;

constexpr size_t kMaxPairs = 256;  // of accesses of one buffer in one loop

bool same_indices(const Access& a, const Access& b) { return std::ranges::equal(a.indices, b.indices); }

// Two sides of one `if` whose condition is the same for every iteration.
bool exclude_each_other(const Access& a, const Access& b, const IterationTable& table) {
  for (const Condition& x : a.conditions)
    for (const Condition& y : b.conditions)
      if (x.expr == y.expr && x.holds != y.holds && !table.depends_on_loop(x.expr)) return true;
  return false;
}

class LoopRaces {
 public:
  LoopRaces(CheckContext& ctx, IndexForms& forms, Scratch& scratch, const ir::Loop& loop)
      : ctx_(ctx),
        p_(ctx.program),
        forms_(forms),
        walk_(scratch.walk),
        loop_(loop),
        table_(ctx.program, forms, scratch, loop) {}

  void run();

 private:
  void collect(const ir::Block& block);
  void collect_loads(StmtId id);
  void check_buffer(const std::vector<const Access*>& accesses);
  bool check_store(const Access& store);
  bool check_pair(const Access& store, const Access& other);
  bool injective(const Access& store);
  bool injective(const std::vector<ExprId>& indices);
  bool of_one_iteration(const Access& a, const Access& b);
  bool settle_dimension(const Sum& index, std::set<ir::VarId>* settled) const;
  bool disjoint(const Access& a, const Access& b);
  void report(const Access& at, const Access& store, const Access& other, const TouchedElement& x,
              const TouchedElement& y);

  CheckContext& ctx_;
  const ir::Program& p_;
  IndexForms& forms_;
  ExprWalk& walk_;
  const ir::Loop& loop_;
  IterationTable table_;
  std::vector<Condition> conditions_;
  std::vector<Access> accesses_;
  bool broken_ = false;
};

void LoopRaces::run() {
  collect(loop_.body);
  if (broken_) return;
  std::map<ir::BufferId, std::vector<const Access*>> by_buffer;
  for (const Access& a : accesses_)
    if (a.is_write) by_buffer[a.buffer];
  for (const Access& a : accesses_)
    if (auto it = by_buffer.find(a.buffer); it != by_buffer.end()) it->second.push_back(&a);
  for (const auto& [buffer, accesses] : by_buffer) check_buffer(accesses);
}

void LoopRaces::collect_loads(StmtId id) {
  walk_.start();
  for_each_root(p_, id, [&](ExprId root) {
    walk_.visit(root, [&](ExprId e, const ExprNode& n) {
      if (n.op == ExprOp::load) accesses_.push_back({id, n.object, p_.exprs.indices(e), false, conditions_});
    });
  });
}

void LoopRaces::collect(const ir::Block& block) {
  for (StmtId id : block) {
    broken_ |= ctx_.broken[id.value];
    if (broken_) return;
    collect_loads(id);
    if (const auto* branch = p_.as<ir::Branch>(id)) {
      conditions_.push_back({branch->condition, true});
      collect(branch->then_body);
      conditions_.back().holds = false;
      collect(branch->else_body);
      conditions_.pop_back();
    } else if (const auto* store = p_.as<ir::Store>(id)) {
      accesses_.push_back({id, store->buffer, store->indices, true, conditions_, store->atomic.has_value()});
      if (store->old) accesses_.push_back({id, store->old->buffer, store->old->indices, true, conditions_});
    }
  }
}

// One message per buffer: the others would tell the same story.
void LoopRaces::check_buffer(const std::vector<const Access*>& accesses) {
  for (const Access* a : accesses)
    if (a->is_write && !a->is_atomic && !check_store(*a)) return;
  size_t pairs = 0;
  for (const Access* store : accesses) {
    if (!store->is_write) continue;
    for (const Access* other : accesses) {
      if (other == store || (other->is_write && other < store)) continue;
      // Atomic operations are done one after the other, whatever they are.
      if (store->is_atomic && other->is_atomic) continue;
      if (same_indices(*store, *other) && !store->is_atomic && !other->is_atomic) continue;
      if (++pairs > kMaxPairs) return;
      if (!check_pair(*store, *other)) return;
    }
  }
}

// Marks the loop variables that one index determines: coefficients in ascending order, each larger than all
// that the smaller ones can add up to.
bool LoopRaces::settle_dimension(const Sum& index, std::set<ir::VarId>* settled) const {
  struct Digit {
    uint64_t coeff, extent;
    ir::VarId var;
  };
  std::vector<Digit> digits;
  for (const arith::Term& t : index.terms) {
    const ExprNode& n = p_.exprs[t.atom];
    if (!table_.depends_on_loop(t.atom)) continue;
    if (n.op != ExprOp::var) return false;
    if (settled->contains(n.var())) continue;
    const auto at = std::find(loop_.vars.begin(), loop_.vars.end(), n.var()) - loop_.vars.begin();
    int64_t extent = 0;
    p_.exprs.is_const_int(loop_.extents[at], &extent);
    const uint64_t coeff = t.coeff < 0 ? 0 - static_cast<uint64_t>(t.coeff) : static_cast<uint64_t>(t.coeff);
    if (coeff > UINT64_MAX >> 32) return false;  // nothing below may overflow; extents are below 2^31
    digits.push_back({coeff, static_cast<uint64_t>(extent), n.var()});
  }
  std::ranges::sort(digits, {}, &Digit::coeff);
  uint64_t reach = 0;
  for (const Digit& d : digits) {
    if (d.coeff <= reach) return false;
    reach += d.coeff * (d.extent - 1);
  }
  for (const Digit& d : digits) settled->insert(d.var);
  return !digits.empty();
}

bool LoopRaces::injective(const Access& store) {
  return injective({store.indices.begin(), store.indices.end()});
}
bool LoopRaces::injective(const std::vector<ExprId>& indices) {
  std::set<ir::VarId> settled;
  for (size_t d = 0; d < loop_.vars.size(); ++d) {
    int64_t extent = 0;
    p_.exprs.is_const_int(loop_.extents[d], &extent);
    if (extent == 1) settled.insert(loop_.vars[d]);
  }
  for (bool progress = true; progress && settled.size() < loop_.vars.size();) {
    progress = false;
    for (ExprId e : indices) progress |= settle_dimension(forms_.linear(e), &settled);
  }
  return settled.size() == loop_.vars.size();
}

// False when a race was reported.
bool LoopRaces::check_store(const Access& store) {
  if (injective(store)) return true;
  if (const auto elements = table_.touched(store)) {
    for (size_t i = 1; i < elements->size(); ++i) {
      if ((*elements)[i].index != (*elements)[i - 1].index) continue;
      report(store, store, store, (*elements)[i - 1], (*elements)[i]);
      return false;
    }
    return true;
  }
  if (table_.iterations() <= kMaxEnumeratedIterations) return true;
  // Too large to enumerate: certain only when a variable occurs nowhere.
  for (size_t d = 0; d < loop_.vars.size(); ++d) {
    const ir::VarId v = loop_.vars[d];
    bool used = false;
    walk_.start();
    const auto look = [&](ExprId, const ExprNode& n) { used |= n.op == ExprOp::var && n.var() == v; };
    for (ExprId e : store.indices) walk_.visit(e, look);
    for (const Condition& c : store.conditions) walk_.visit(c.expr, look);
    int64_t extent = 0;
    p_.exprs.is_const_int(loop_.extents[d], &extent);
    if (used || extent == 1) continue;
    ctx_.error(DiagCode::parallel_race, store.stmt,
               "the index of " + p_.buffer(store.buffer).name + " does not use " + p_.var(v).name +
                   ": iterations that differ only there write the same element",
               "use every loop variable in the index, or reduce with a reduce op");
    return false;
  }
  return true;
}

// In some dimension the indices differ by a constant that no loop variable can make up for.
bool LoopRaces::disjoint(const Access& a, const Access& b) {
  for (size_t d = 0; d < a.indices.size(); ++d) {
    const auto difference = arith::add_scaled(forms_.linear(a.indices[d]), forms_.linear(b.indices[d]), -1);
    if (!difference || !difference->is_constant() || difference->constant == 0) continue;
    if (!table_.depends_on_loop(a.indices[d]) && !table_.depends_on_loop(b.indices[d])) return true;
  }
  return false;
}

// Of a tile: the indices that both have tell the iteration, whatever the others are.
bool LoopRaces::of_one_iteration(const Access& a, const Access& b) {
  if (p_.buffer(a.buffer).scope == ir::MemScope::global) return false;
  std::vector<ExprId> same;
  for (size_t d = 0; d < a.indices.size(); ++d)
    if (a.indices[d] == b.indices[d]) same.push_back(a.indices[d]);
  return injective(same);
}

bool LoopRaces::check_pair(const Access& store, const Access& other) {
  if (exclude_each_other(store, other, table_) || disjoint(store, other)) return true;
  if (of_one_iteration(store, other)) return true;
  if (table_.fixed_part(store) == table_.fixed_part(other)) {
    const auto written = table_.touched(store);
    const auto touched = table_.touched(other);
    if (written && touched) {
      for (const TouchedElement& x : *written) {
        auto y = std::lower_bound(touched->begin(), touched->end(), TouchedElement{x.index, 0});
        if (y != touched->end() && y->index == x.index && y->iteration == x.iteration) ++y;
        if (y == touched->end() || y->index != x.index) continue;
        report(other, store, other, x, *y);
        return false;
      }
      return true;
    }
  }
  if (other.is_write) return true;
  const std::string& name = p_.buffer(store.buffer).name;
  ctx_.error(DiagCode::parallel_race, other.stmt,
             name + " is written at one index and read at another inside one parallel loop",
             "read " + name + " at the index that is written, or split the loop in two");
  return false;
}

void LoopRaces::report(const Access& at, const Access& store, const Access& other, const TouchedElement& x,
                       const TouchedElement& y) {
  const std::string& name = p_.buffer(store.buffer).name;
  std::string element = "the same element of " + name;
  if (!table_.has_fixed_part(store)) {
    element = name + "[";
    for (size_t d = 0; d < store.indices.size(); ++d) element += (d ? ", " : "") + std::to_string(x.index[d]);
    element += "]";
  }
  const std::string first = "(" + table_.iteration_text(x.iteration) + ")";
  const std::string second = "(" + table_.iteration_text(y.iteration) + ")";
  if (other.is_write)
    ctx_.error(DiagCode::parallel_race, at.stmt,
               "iterations " + first + " and " + second + " both write " + element,
               "use every loop variable in the index, or reduce with a reduce op");
  else
    ctx_.error(DiagCode::parallel_race, at.stmt,
               "iteration " + first + " writes " + element + " and iteration " + second + " reads it",
               "read " + name + " at the index that is written, or split the loop in two");
}

}  // namespace

void check_races(CheckContext& ctx) {
  IndexForms forms(ctx.program);
  Scratch scratch(ctx);
  for (const ir::Kernel& k : ctx.program.kernels)
    ir::for_each_statement(ctx.program, k.body, [&](StmtId id, int) {
      const auto* loop = ctx.program.as<ir::Loop>(id);
      if (loop == nullptr || loop->kind != ir::LoopKind::parallel || ctx.broken[id.value] || ctx.stop())
        return;
      LoopRaces(ctx, forms, scratch, *loop).run();
    });
}

}  // namespace tilegen::check
