#include "lower/sync_conflicts.h"

#include <algorithm>
#include <unordered_map>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "lower/perfect_nest.h"

namespace tilegen::lower {

using ir::ExprId;
using ir::ExprOp;
using ir::VarId;
using thread::IndexProgram;
using thread::PointValues;
using thread::SyncAccess;

namespace {

// Evaluations one comparison may take.
constexpr int64_t kEvaluations = 65536;
constexpr int32_t kNobody = -1, kMany = -2;

std::optional<Binding> binding_of(const AccessClass& c, const Bindings& at, VarId var) {
  for (size_t i = 0; i < c.loops.size(); ++i)
    if (c.loops[i].var == var) return at[i];
  return std::nullopt;
}

}  // namespace

ConflictOracle::ConflictOracle(thread::ThreadProgram& p) : p_(p), ctx_(p.exprs) {
  for (size_t v = 0; v < p.vars.size(); ++v) {
    const ir::Var& var = p.vars[v];
    if (var.type != ir::DType::i64) continue;
    if (var.kind == ir::VarKind::dim)
      ctx_.bind(VarId(v), var.lower, var.upper, var.divisor);
    else if (var.kind != ir::VarKind::scalar)
      ctx_.bind(VarId(v), 0, VarId(v) == p.thread_var ? p.threads - 1 : INT64_MAX);
  }
}

// index = slot * size + (what is in [0, size)).
ExprId ConflictOracle::slot_of(const SyncAccess& a) {
  const thread::Memory& m = p_.memory(a.memory);
  if (m.slots <= 1) return ExprId();
  const int64_t size = m.elements / m.slots;
  auto sum = arith::to_affine(ctx_, a.index);
  if (!sum) return ExprId();
  arith::Affine slot, within;
  for (const auto& [atom, coefficient] : sum->terms) {
    if (coefficient % size == 0)
      slot.terms[atom] = coefficient / size;
    else
      within.terms[atom] = coefficient;
  }
  within.constant = sum->constant % size;
  slot.constant = sum->constant / size;
  const arith::Interval range = arith::range_of(ctx_, arith::from_affine(ctx_, within));
  ExprId result = range.lo >= 0 && range.hi < size
                      ? arith::from_affine(ctx_, slot)
                      : arith::simplify(ctx_, p_.exprs.floordiv(a.index, p_.exprs.const_int(size)));
  return arith::depends_on(p_.exprs, result, p_.thread_var) ? ExprId() : result;
}

int ConflictOracle::add(const SyncAccess& access, const std::vector<OpenLoop>& around) {
  AccessClass c;
  c.access = access;
  auto mark = ctx_.mark();
  if (access.lane.valid()) ctx_.bind(access.lane, 0, access.lanes - 1);
  for (const OpenLoop& l : around) ctx_.bind(l.var, 0, l.extent > 0 ? l.extent - 1 : INT64_MAX);
  c.slot = slot_of(access);
  c.within = access.index;
  if (c.slot) {
    const thread::Memory& m = p_.memory(access.memory);
    ir::ExprPool& e = p_.exprs;
    c.within = arith::simplify(ctx_, e.sub(access.index, e.mul(c.slot, m.elements / m.slots)));
  }
  ctx_.rollback(mark);
  // Rows handed around within a warp are told apart by slot only.
  if (access.collective) c.access.index = c.within = c.access.predicate = ExprId();
  for (const OpenLoop& l : around)
    for (ExprId x : {c.slot, c.within, c.access.predicate})
      if (x.valid() && arith::depends_on(p_.exprs, x, l.var)) {
        c.loops.push_back(l);
        break;
      }
  auto same = [&](const AccessClass& o) {
    const SyncAccess &x = o.access, &y = c.access;
    return x.memory == y.memory && o.within == c.within && x.predicate == y.predicate && x.count == y.count &&
           x.lane == y.lane && x.write == y.write && x.async == y.async && x.collective == y.collective &&
           o.slot == c.slot && o.loops == c.loops;
  };
  for (size_t i = 0; i < classes_.size(); ++i)
    if (same(classes_[i])) return static_cast<int>(i);
  classes_.push_back(std::move(c));
  return static_cast<int>(classes_.size() - 1);
}

// The slot with loop variables replaced by the iterations meant; invalid where an iteration is not known.
ExprId ConflictOracle::bound_slot(const AccessClass& c, const Bindings& at) {
  if (!c.slot) return ExprId();
  std::map<VarId, ExprId> map;
  for (size_t i = 0; i < c.loops.size(); ++i) {
    const VarId v = c.loops[i].var;
    if (!arith::depends_on(p_.exprs, c.slot, v)) continue;
    if (at[i].kind == Binding::Kind::any) return ExprId();
    map[v] = at[i].kind == Binding::Kind::at ? p_.exprs.const_int(at[i].value)
                                             : p_.exprs.add(p_.exprs.var(v), -at[i].value);
  }
  return arith::simplify(ctx_, VarSubstitution(p_.exprs, std::move(map)).rewrite(c.slot));
}

bool ConflictOracle::slots_differ(ExprId a, ExprId b) {
  if (!a || !b || a == b) return false;
  auto [it, fresh] = slot_answers_.try_emplace({a, b}, false);
  if (!fresh) return it->second;
  ir::ExprPool& e = p_.exprs;
  bool differ = arith::prove(ctx_, e.binary(ExprOp::ne, a, b));
  // x % s and y % s where x - y is a constant that s does not divide.
  const ir::ExprNode x = e[a], y = e[b];
  int64_t s = 0, t = 0, distance = 0;
  if (!differ && x.op == ExprOp::floormod && y.op == ExprOp::floormod && e.is_const_int(x.b, &s) &&
      e.is_const_int(y.b, &t) && s == t && s > 0)
    differ = e.is_const_int(arith::simplify(ctx_, e.sub(x.a, y.a)), &distance) && distance % s != 0;
  slot_answers_[{a, b}] = differ;
  return differ;
}

Meeting ConflictOracle::meeting(int a, const Bindings& a_at, int b, const Bindings& b_at) {
  auto [it, fresh] = known_.try_emplace(Key{a, a_at, b, b_at}, Meeting::clash);
  if (fresh) it->second = compare(a, a_at, b, b_at);
  return it->second;
}

Meeting ConflictOracle::compare(int a, const Bindings& a_at, int b, const Bindings& b_at) {
  const AccessClass &x = (*this)[a], &y = (*this)[b];
  if (!thread::may_overlap(p_, x.access.memory, y.access.memory)) return Meeting::disjoint;
  if (x.access.memory != y.access.memory) return Meeting::clash;
  if (slots_differ(bound_slot(x, a_at), bound_slot(y, b_at))) return Meeting::disjoint;
  if (x.access.collective || y.access.collective) return Meeting::clash;
  return enumerate(x, a_at, y, b_at);
}

namespace {

struct Range {
  VarId var;
  int64_t extent = 1;
};

// Calls visit() at every point of the ranges; false when visit stopped it.
template <class Visit>
bool for_each_point(const std::vector<Range>& ranges, PointValues& at, Visit&& visit, size_t d = 0) {
  if (d == ranges.size()) return visit();
  for (int64_t i = 0; i < ranges[d].extent; ++i) {
    at.set(ranges[d].var, i);
    if (!for_each_point(ranges, at, visit, d + 1)) return false;
  }
  return true;
}

int64_t points(const std::vector<Range>& ranges) {
  int64_t n = 1;
  for (const Range& r : ranges) {
    n *= std::max<int64_t>(r.extent, 1);
    if (n > kEvaluations) return kEvaluations + 1;
  }
  return n;
}

// One side of a comparison: its index within the slot, and the variables it runs over by itself.
struct Side {
  const AccessClass& c;
  IndexProgram index;
  IndexProgram predicate;
  std::vector<Range> own;
  int64_t slot_elements;  // 0: no slots

  Side(const thread::ThreadProgram& p, const AccessClass& cls)
      : c(cls), index(p.exprs, cls.within), predicate(p.exprs, cls.access.predicate) {
    const thread::Memory& m = p.memory(cls.access.memory);
    slot_elements = m.slots > 1 ? m.elements / m.slots : 0;
    if (p.thread_var.valid()) own.push_back({p.thread_var, p.threads});
    if (cls.access.lane.valid()) own.push_back({cls.access.lane, cls.access.lanes});
  }
  bool uses(VarId v) const { return index.depends_on(v) || predicate.depends_on(v); }
};

}  // namespace

// Loops that both stand in, at known distances, are walked together; everything else apart. Different slots are
// looked at as if they were one.
Meeting ConflictOracle::enumerate(const AccessClass& a, const Bindings& a_at, const AccessClass& b,
                                  const Bindings& b_at) {
  Side sides[2] = {Side(p_, a), Side(p_, b)};
  const Bindings* at[2] = {&a_at, &b_at};
  std::vector<Range> common;
  std::map<VarId, int64_t> offset[2];  // of a common variable
  PointValues values(p_.vars.size());
  std::map<VarId, int64_t> fixed[2];
  for (int s = 0; s < 2; ++s) {
    const AccessClass& c = sides[s].c;
    for (size_t i = 0; i < c.loops.size(); ++i) {
      const OpenLoop& l = c.loops[i];
      if (!sides[s].uses(l.var)) continue;
      const Binding own = (*at[s])[i];
      const auto other = binding_of(sides[1 - s].c, *at[1 - s], l.var);
      if (own.kind == Binding::Kind::at) {
        fixed[s][l.var] = own.value;
      } else if (l.extent < 0) {
        return Meeting::clash;
      } else if (own.kind == Binding::Kind::back && other && other->kind == Binding::Kind::back) {
        offset[s][l.var] = own.value;
        if (s == 0) common.push_back({l.var, l.extent});
      } else {
        sides[s].own.push_back({l.var, l.extent});
      }
    }
  }
  const int64_t evaluations = points(common) * (points(sides[0].own) + points(sides[1].own));
  if (evaluations > kEvaluations) return Meeting::clash;

  Meeting result = Meeting::disjoint;
  std::unordered_map<int64_t, int32_t> owner;
  auto run = [&](int s) {
    Side& side = sides[s];
    std::vector<std::optional<int64_t>> saved;
    for (const Range& r : common) {
      saved.push_back(values[r.var]);
      values.set(r.var, *values[r.var] - offset[s][r.var]);
      if (*values[r.var] < 0) {  // there is no such iteration
        for (size_t i = 0; i < saved.size(); ++i) values.set(common[i].var, *saved[i]);
        return true;
      }
    }
    for (auto [var, v] : fixed[s]) values.set(var, v);
    const bool complete = for_each_point(side.own, values, [&] {
      if (side.c.access.predicate.valid() && side.predicate.eval(values) == 0) return true;
      auto index = side.index.eval(values);
      if (!index) return false;
      const int32_t thread = p_.thread_var.valid() ? static_cast<int32_t>(*values[p_.thread_var]) : 0;
      for (int64_t i = 0; i < side.c.access.count; ++i) {
        int64_t element = *index + i;
        if (side.slot_elements > 0) element = ((element % side.slot_elements) + side.slot_elements) % side.slot_elements;
        if (s == 0) {
          auto [it, fresh] = owner.try_emplace(element, thread);
          if (!fresh && it->second != thread) it->second = kMany;
        } else if (auto it = owner.find(element); it != owner.end()) {
          if (it->second != thread) return false;
          result = Meeting::same_thread;
        }
      }
      return true;
    });
    for (size_t i = 0; i < saved.size(); ++i) values.set(common[i].var, *saved[i]);
    for (auto [var, v] : fixed[s]) values.clear(var);
    return complete;
  };
  const bool proven = for_each_point(common, values, [&] {
    owner.clear();
    return run(0) && run(1);
  });
  return proven ? result : Meeting::clash;
}

}  // namespace tilegen::lower
