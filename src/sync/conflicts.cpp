#include "sync/conflicts.h"

#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "sync/implied_condition.h"
#include "thread/perfect_nest.h"

namespace tilegen::sync {

using ir::ExprId;
using ir::ExprOp;
using ir::VarId;
using thread::IndexProgram;
using thread::SyncAccess;

ConflictOracle::ConflictOracle(thread::ThreadProgram& p) : p_(p), ctx_(p.exprs) {
  for (size_t v = 0; v < p.vars.size(); ++v) {
    const ir::Var& var = p.vars[v];
    if (var.type != ir::DType::i64) continue;
    if (var.kind == ir::VarKind::dim)
      ctx_.bind(VarId(v), var.lower, var.upper, var.divisor);
    else if (var.kind != ir::VarKind::scalar)
      ctx_.bind(VarId(v), 0, VarId(v) == p.thread_var ? p.threads - 1 : thread::kMaxIterations);
  }
}

// index = slot * size + (what is in [0, size)): sets both. The loops are known.
void ConflictOracle::part_slot(AccessClass& c) {
  const SyncAccess& a = c.access;
  const thread::Memory& m = p_.memory(a.memory);
  c.within = a.index;
  if (m.slots <= 1) return;
  const int64_t size = m.elements / m.slots;
  auto sum = arith::to_affine(ctx_, a.index);
  if (!sum) return;
  arith::Affine slot, within;
  for (const auto& [atom, coefficient] : sum->terms) {
    if (coefficient % size == 0)
      slot.terms[atom] = coefficient / size;
    else
      within.terms[atom] = coefficient;
  }
  within.constant = sum->constant % size;
  slot.constant = sum->constant / size;
  const ExprId rest = arith::from_affine(ctx_, within);
  const arith::Interval range = arith::range_of(ctx_, rest);
  const bool stays = (range.lo >= 0 && range.hi < size) || stays_below(c, rest, size);
  const ExprId result = stays ? arith::from_affine(ctx_, slot)
                              : arith::simplify(ctx_, p_.exprs.floordiv(a.index, p_.exprs.const_int(size)));
  if (arith::depends_on(p_.exprs, result, p_.thread_var)) return;
  ir::ExprPool& e = p_.exprs;
  c.slot = result;
  c.within = stays ? rest : arith::simplify(ctx_, e.sub(a.index, e.mul(result, size)));
}

int ConflictOracle::add(const SyncAccess& access, const std::vector<OpenLoop>& around,
                        const std::string& origin) {
  AccessClass c;
  c.access = access;
  auto mark = ctx_.mark();
  if (access.lane.valid()) ctx_.bind(access.lane, 0, access.lanes - 1);
  for (const OpenLoop& l : around) ctx_.bind(l.var, 0, l.extent > 0 ? l.extent - 1 : thread::kMaxIterations);
  c.loops = around;
  part_slot(c);
  c.loops.clear();
  ctx_.rollback(mark);
  // Rows that a warp loads are told apart by slot only.
  if (access.collective && !access.write) c.access.index = c.within = c.access.predicate = ExprId();
  const bool tensor = access.write && p_.memory(access.memory).space == thread::Space::global;
  c.from = origin;
  // Of one parallel loop atomic operations come in any order, of two such loops in that of the program.
  if (tensor || access.atomic) c.op = origin;
  if (p_.memory(access.memory).space == thread::Space::global) c.origin = origin;
  auto reads = [&](ExprId x) { return x.valid() && IndexProgram(p_.exprs, x).reads_memory(); };
  const bool loaded = tensor && (reads(c.within) || reads(c.access.predicate));
  for (const OpenLoop& l : around) {
    bool follows = loaded;
    for (ExprId x : {c.slot, c.within, c.access.predicate})
      follows = follows || (x.valid() && arith::depends_on(p_.exprs, x, l.var));
    if (!follows && (c.op.empty() || l.origin == origin)) continue;
    c.loops.push_back(l);
    c.follows.push_back(follows);
  }
  auto same = [&](const AccessClass& o) {
    const SyncAccess &x = o.access, &y = c.access;
    return x.memory == y.memory && o.within == c.within && x.predicate == y.predicate && x.count == y.count &&
           x.lane == y.lane && x.row_lanes == y.row_lanes && x.write == y.write && x.atomic == y.atomic &&
           x.fetches == y.fetches && x.order == y.order && o.origin == c.origin && x.async == y.async &&
           x.collective == y.collective && o.slot == c.slot && o.loops == c.loops && o.op == c.op;
  };
  std::vector<int>& of_memory = by_memory_[access.memory];
  for (int i : of_memory)
    if (same(classes_[static_cast<size_t>(i)])) return i;
  of_memory.push_back(static_cast<int>(classes_.size()));
  classes_.push_back(std::move(c));
  return static_cast<int>(classes_.size() - 1);
}

ExprId ConflictOracle::implied(ExprId condition, const std::vector<OpenLoop>& around) {
  return implied_condition(ctx_, condition, [&](VarId v) {
    return v == p_.thread_var || std::any_of(around.begin(), around.end(),
                                             [&](const OpenLoop& l) { return l.var == v && l.is_short(); });
  });
}

bool ConflictOracle::same_points(int a, const Bindings& a_at, int b, const Bindings& b_at) const {
  const AccessClass &x = (*this)[a], &y = (*this)[b];
  if (x.op.empty() || x.op != y.op || x.access.async || y.access.async) return false;
  for (size_t i = 0; i < x.loops.size(); ++i) {
    const OpenLoop& l = x.loops[i];
    if (l.origin == x.op || (a == b && !x.follows[i] && !x.access.atomic)) continue;
    const auto other = y.binding_of(b_at, l.var);
    if (!other || *other != a_at[i] ||
        (other->kind != Binding::Kind::back && other->kind != Binding::Kind::at))
      return false;
  }
  return true;
}

// The slot with loop variables replaced by the iterations meant; invalid where an iteration is not known.
ExprId ConflictOracle::bound_slot(int id, const Bindings& at) {
  const AccessClass& c = (*this)[id];
  if (!c.slot) return ExprId();
  auto& known = bound_slots_[id];
  for (const auto& [bindings, slot] : known)
    if (bindings == at) return slot;
  const ExprId slot = make_bound_slot(c, at);
  known.emplace_back(at, slot);
  return slot;
}

ExprId ConflictOracle::make_bound_slot(const AccessClass& c, const Bindings& at) {
  std::map<VarId, ExprId> map;
  for (size_t i = 0; i < c.loops.size(); ++i) {
    const VarId v = c.loops[i].var;
    if (!arith::depends_on(p_.exprs, c.slot, v)) continue;
    if (at[i].kind == Binding::Kind::any || at[i].kind == Binding::Kind::far) return ExprId();
    map[v] = at[i].kind == Binding::Kind::at ? p_.exprs.const_int(at[i].value)
                                             : p_.exprs.add(p_.exprs.var(v), -at[i].value);
  }
  return arith::simplify(ctx_, thread::VarSubstitution(p_.exprs, std::move(map)).rewrite(c.slot));
}

bool ConflictOracle::slots_differ(ExprId a, ExprId b) {
  if (!a || !b || a == b) return false;
  auto [it, fresh] = slot_answers_.try_emplace({a, b}, false);
  if (!fresh) return it->second;
  ir::ExprPool& e = p_.exprs;
  bool differ = arith::prove(ctx_, e.binary(ExprOp::ne, a, b));
  // x % s and y % s where x - y is a constant that s does not divide.
  const ir::ExprNode x = e[a], y = e[b];
  int64_t s = 0, t = 0;
  if (!differ && x.op == ExprOp::floormod && y.op == ExprOp::floormod && e.is_const_int(x.b, &s) &&
      e.is_const_int(y.b, &t) && s == t && s > 0) {
    const auto between = arith::exact_difference(ctx_, x.a, y.a);
    differ = between && between->terms.empty() && between->constant % s != 0;
  }
  slot_answers_[{a, b}] = differ;
  return differ;
}

Meeting ConflictOracle::meeting(int a, const Bindings& a_at, int b, const Bindings& b_at) {
  const uint64_t classes = (static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32) | static_cast<uint32_t>(b);
  for (const Answer& known : known_[classes])
    if (known.a == a_at && known.b == b_at) return known.meeting;
  const Meeting meeting = compare(a, a_at, b, b_at);
  known_[classes].push_back({a_at, b_at, meeting});
  return meeting;
}

Meeting ConflictOracle::compare(int a, const Bindings& a_at, int b, const Bindings& b_at) {
  const AccessClass &x = (*this)[a], &y = (*this)[b];
  if (!thread::may_overlap(p_, x.access.memory, y.access.memory)) return Meeting::disjoint;
  if (x.access.memory != y.access.memory) return Meeting::clash;
  if (slots_differ(bound_slot(a, a_at), bound_slot(b, b_at))) return Meeting::disjoint;
  if ((x.access.collective && !x.access.write) || (y.access.collective && !y.access.write))
    return Meeting::clash;
  // Tiles are small and their footprints are kept; places in tensors are seldom known by number.
  const bool tile = p_.memory(x.access.memory).space == thread::Space::shared;
  if (!tile && apart(a, a_at, b, b_at)) return Meeting::disjoint;
  if (x.loops.empty() && y.loops.empty())
    if (const auto met = meet(touched(a, {}), touched(b, {}))) return *met;
  const Meeting met = enumerate(a, a_at, b, b_at);
  return tile && met != Meeting::disjoint && apart(a, a_at, b, b_at) ? Meeting::disjoint : met;
}

}  // namespace tilegen::sync
