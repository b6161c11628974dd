// Accesses told apart by the distance of their iterations and the ranges of what threads add.
#include <cstdlib>
#include <map>
#include <set>

#include "arith/prove.h"
#include "sync/conflicts.h"

namespace tilegen::sync {

using ir::ExprId;
using ir::ExprOp;
using ir::VarId;
using thread::IndexProgram;

std::optional<Binding> AccessClass::binding_of(const Bindings& at, VarId var) const {
  for (size_t i = 0; i < loops.size(); ++i)
    if (loops[i].var == var) return at[i];
  return std::nullopt;
}

// index = what is the same for all threads and both accesses + coefficient * (iteration of a loop) + what
// threads and inner loops add, which has a range.
bool ConflictOracle::apart(int a, const Bindings& a_at, int b, const Bindings& b_at) {
  const AccessClass &x = (*this)[a], &y = (*this)[b];
  if (!x.within || !y.within) return false;
  // `within` is then the whole index
  if (p_.memory(x.access.memory).slots > 1 && (!x.slot || !y.slot)) return false;
  auto mark = ctx_.mark();
  std::map<VarId, std::optional<int64_t>> distance;  // iterations between the two; none: told by no number
  for (const AccessClass* c : {&x, &y}) {
    if (c->access.lane.valid()) {
      ctx_.bind(c->access.lane, 0, c->access.lanes - 1);
      distance[c->access.lane] = std::nullopt;
    }
    for (const OpenLoop& l : c->loops) {
      ctx_.bind(l.var, 0, l.extent > 0 ? l.extent - 1 : thread::kMaxIterations);
      distance[l.var] = std::nullopt;
    }
  }
  distance[p_.thread_var] = std::nullopt;
  std::set<VarId> further;  // whose distance is the least one
  for (size_t i = 0; i < x.loops.size(); ++i) {
    const VarId v = x.loops[i].var;
    const auto other = y.binding_of(b_at, v);
    const Binding own = a_at[i];
    if (!other || other->kind != Binding::Kind::back) continue;
    if (own.kind == Binding::Kind::back || own.kind == Binding::Kind::far)
      distance[v] = own.value - other->value;
    if (own.kind == Binding::Kind::far) further.insert(v);
  }
  const auto first = arith::to_affine(ctx_, x.within), second = arith::to_affine(ctx_, y.within);
  bool result = false;
  if (first && second) {
    // The later index less the earlier one.
    arith::Interval between = arith::Interval::point(second->constant - first->constant);
    int64_t by_distance = 0;
    bool told = true, grows = false, falls = false;
    std::map<ExprId, std::pair<int64_t, int64_t>> terms;
    for (const auto& [atom, coefficient] : first->terms) terms[atom].first = coefficient;
    for (const auto& [atom, coefficient] : second->terms) terms[atom].second = coefficient;
    for (const auto& [atom, factors] : terms) {
      const ir::ExprNode& n = p_.exprs[atom];
      bool varies = IndexProgram(p_.exprs, atom).reads_memory();
      for (const auto& [v, d] : distance)
        varies = varies || (v.valid() && arith::depends_on(p_.exprs, atom, v));
      if (!varies) {
        told = told && factors.first == factors.second;
        continue;
      }
      if (n.op == ExprOp::var && factors.first == factors.second && distance.at(n.var())) {
        by_distance += factors.first * *distance.at(n.var());
        if (further.count(n.var())) (factors.first > 0 ? grows : falls) = true;
        continue;
      }
      const arith::Interval range = arith::range_of(ctx_, atom);
      between = arith::interval_add(between, arith::interval_scale(range, factors.second));
      between = arith::interval_sub(between, arith::interval_scale(range, factors.first));
    }
    const int64_t span = std::max<int64_t>(1, std::max(x.access.count, y.access.count));
    constexpr int64_t kLarge = int64_t{1} << 40;
    if (told && std::abs(by_distance) < kLarge && between.lo > -kLarge && between.hi < kLarge)
      result = (!falls && by_distance + between.lo >= span) || (!grows && by_distance + between.hi <= -span);
  }
  ctx_.rollback(mark);
  return result;
}

}  // namespace tilegen::sync
