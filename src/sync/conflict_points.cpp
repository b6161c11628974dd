// What accesses touch, point by point: threads and the iterations of small loops are enumerated.
#include <algorithm>
#include <functional>
#include <numeric>

#include "arith/period.h"
#include "arith/prove.h"
#include "sync/conflicts.h"

namespace tilegen::sync {

using ir::ExprId;
using ir::ExprOp;
using ir::VarId;
using thread::IndexProgram;
using thread::PointValues;

namespace {

// Evaluations one comparison may take.
constexpr int64_t kEvaluations = 65536;
// Iterations of several loops that both accesses stand in, one by one.
constexpr int64_t kMaxNested = 4 * kMaxTogether;
struct Range {
  VarId var;
  int64_t extent = 1;
};

using Row = std::vector<std::optional<int64_t>>;  // by thread

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
    n *= std::clamp<int64_t>(r.extent, 1, kEvaluations + 1);
    if (n > kEvaluations) return kEvaluations + 1;
  }
  return n;
}

}  // namespace

// The parts of the access's condition that the block's threads and loops decide; others may hold.
std::vector<ExprId> ConflictOracle::told_conditions(const AccessClass& c) const {
  std::vector<ExprId> told, open = {c.access.predicate};
  while (!open.empty()) {
    const ExprId e = open.back();
    open.pop_back();
    if (!e) continue;
    const ir::ExprNode& n = p_.exprs[e];
    if (n.op == ExprOp::logical_and) {
      open.push_back(n.a);
      open.push_back(n.b);
      continue;
    }
    const IndexProgram program(p_.exprs, e);
    auto known = [&](VarId v) {
      return v == p_.thread_var || v == c.access.lane ||
             std::any_of(c.loops.begin(), c.loops.end(), [&](const OpenLoop& l) { return l.var == v; });
    };
    if (!program.reads_memory() && std::all_of(program.vars().begin(), program.vars().end(), known))
      told.push_back(e);
  }
  return told;
}

int64_t ConflictOracle::bound_of(ExprId extent) {
  const int64_t most = arith::range_of(ctx_, extent).hi;
  return most >= 0 && most <= kMaxTogether ? most : -1;
}

// Elements by which one iteration more of the loop moves everything the access touches; nothing where it does
// something else to it.
std::optional<int64_t> ConflictOracle::step_of(int id, VarId loop) {
  auto [it, fresh] = steps_.try_emplace({id, loop});
  if (!fresh) return it->second;
  const AccessClass& c = (*this)[id];
  for (ExprId condition : told_conditions(c))
    if (arith::depends_on(p_.exprs, condition, loop)) return std::nullopt;
  const auto sum = arith::to_affine(ctx_, c.within);
  if (!sum) return std::nullopt;
  int64_t step = 0;
  for (const auto& [atom, coefficient] : sum->terms) {
    const ir::ExprNode& n = p_.exprs[atom];
    if (n.op == ExprOp::var && n.var() == loop)
      step = coefficient;
    else if (arith::depends_on(p_.exprs, atom, loop))
      return std::nullopt;
  }
  return it->second = step;
}

// What the access touches under an assignment of some of its loop variables, each element with the thread
// that does; all other variables run over their range. Nothing when that cannot be told or takes too long.
ConflictOracle::Touched ConflictOracle::touched(int id, const Assigned& assigned) {
  Assigned kept;
  int64_t shift = 0;
  for (const auto& [var, value] : assigned) {
    const auto step = step_of(id, var);
    kept[var] = step ? 0 : value;
    if (step) shift += *step * value;
  }
  const Footprint* base = footprint(id, kept);
  const thread::Memory& m = p_.memory((*this)[id].access.memory);
  const int64_t slot_elements = m.slots > 1 ? m.elements / m.slots : 0;
  const bool wraps = base && !base->empty() && slot_elements > 0 &&
                     (base->first() + shift < 0 || base->last() + shift >= slot_elements);
  return wraps ? Touched{footprint(id, assigned), 0} : Touched{base, shift};
}

bool ConflictOracle::for_each_access(const AccessClass& c, ExprId e, const Assigned& assigned,
                                     const std::function<bool(int64_t, int64_t)>& visit) const {
  const IndexProgram index(p_.exprs, e);
  std::vector<IndexProgram> conditions;
  for (ExprId x : told_conditions(c)) conditions.emplace_back(p_.exprs, x);
  auto depends = [&](VarId v) {
    return index.depends_on(v) || std::any_of(conditions.begin(), conditions.end(),
                                              [&](const IndexProgram& p) { return p.depends_on(v); });
  };
  PointValues values(p_.vars.size());
  std::vector<Range> ranges;
  if (c.access.lane.valid()) ranges.push_back({c.access.lane, c.access.lanes});
  for (const OpenLoop& l : c.loops) {
    if (!depends(l.var)) continue;
    if (auto at = assigned.find(l.var); at != assigned.end())
      values.set(l.var, at->second);
    else if (l.most() < 0)
      return false;
    else
      ranges.push_back({l.var, l.most()});
  }
  const int64_t threads = p_.thread_var.valid() ? p_.threads : 1;
  if (points(ranges) * threads > kEvaluations) return false;
  Row firsts;
  std::vector<Row> holds(conditions.size());
  return for_each_point(ranges, values, [&] {
    index.eval_along(p_.thread_var, threads, values, firsts);
    for (size_t i = 0; i < conditions.size(); ++i)
      conditions[i].eval_along(p_.thread_var, threads, values, holds[i]);
    for (size_t t = 0; t < firsts.size(); ++t) {
      if (std::any_of(holds.begin(), holds.end(), [&](const Row& row) { return row[t] == 0; })) continue;
      if (!firsts[t] || !visit(*firsts[t], static_cast<int64_t>(t))) return false;
    }
    return true;
  });
}

bool ConflictOracle::stays_below(const AccessClass& c, ExprId e, int64_t size) const {
  return for_each_access(c, e, {}, [&](int64_t first, int64_t) {
    return first >= 0 && first + c.access.offset + c.access.count <= size;
  });
}

const Footprint* ConflictOracle::footprint(int id, const Assigned& assigned) {
  auto [it, fresh] = footprints_.try_emplace({id, assigned});
  std::optional<Footprint>& result = it->second;
  if (!fresh) return result ? &*result : nullptr;
  const AccessClass& c = (*this)[id];
  const thread::Memory& m = p_.memory(c.access.memory);
  const int64_t slot_elements = m.slots > 1 ? m.elements / m.slots : 0;
  Footprint found(p_.machine);
  const bool complete = for_each_access(c, c.within, assigned, [&](int64_t first, int64_t thread) {
    if (c.access.collective && c.access.row_lanes > 0 && thread % p_.machine.warp >= c.access.row_lanes)
      return true;
    const auto add = [&](int64_t begin, int64_t last) {
      c.access.collective ? found.add_of_warp(begin, last, thread) : found.add(begin, last, thread);
    };
    if (slot_elements == 0) {
      add(first, first + c.access.count - 1);
      return true;
    }
    for (int64_t i = 0, run = 0; i < c.access.count; i += run) {
      const int64_t at = ((first + i) % slot_elements + slot_elements) % slot_elements;
      run = std::min(c.access.count - i, slot_elements - at);
      add(at, at + run - 1);
    }
    return true;
  });
  if (!complete) return nullptr;
  found.close();
  result = std::move(found);
  return &*result;
}

std::optional<Meeting> ConflictOracle::meet(const Touched& a, const Touched& b) {
  if (!a.footprint || !b.footprint) return std::nullopt;
  return Footprint::meet(*a.footprint, a.shift, *b.footprint, b.shift);
}

// Iterations of the loop after which both touch the same again; 0: not known, or too many.
int64_t ConflictOracle::common_period(int a, int b, VarId loop) {
  int64_t period = 1;
  for (int id : {a, b}) {
    std::vector<ExprId> parts = told_conditions((*this)[id]);
    parts.push_back((*this)[id].within);
    for (ExprId part : parts) {
      const auto own = arith::period_of(ctx_, part, loop, kMaxTogether);
      if (!own) return 0;
      period = std::lcm(period, *own);
    }
  }
  return period <= kMaxTogether ? period : 0;
}

// Iterations of a loop of any length are those of a period, at all distances that are asked for. Its most
// where that is less, or nothing repeats.
int64_t ConflictOracle::of_a_period(int a, int b, const OpenLoop& loop, const Binding& earlier,
                                    const Binding& later) {
  const int64_t period = common_period(a, b, loop.var), most = loop.most();
  const int64_t far = earlier.kind == Binding::Kind::far ? period : 0;
  const int64_t walked = period + far + std::max(earlier.value, later.value);
  return period > 0 && (most < 0 || walked < most) ? walked : most;
}

// Loops that both stand in, at known distances, are walked together; everything else apart. Different slots
// are looked at as if they were one.
Meeting ConflictOracle::enumerate(int a, const Bindings& a_at, int b, const Bindings& b_at) {
  const int id[2] = {a, b};
  const Bindings* at[2] = {&a_at, &b_at};
  auto inside = [&](int s, VarId v) {
    const AccessClass& c = (*this)[id[s]];
    for (ExprId x : {c.within, c.access.predicate})
      if (x.valid() && arith::depends_on(p_.exprs, x, v)) return true;
    return false;
  };
  std::vector<Range> common;  // loops of both
  std::vector<Binding> distance[2];
  std::map<VarId, int64_t> fixed[2];
  for (size_t i = 0; i < (*this)[a].loops.size(); ++i) {
    const OpenLoop& l = (*this)[a].loops[i];
    const auto other = (*this)[b].binding_of(b_at, l.var);
    const Binding own = a_at[i];
    const bool relative = own.kind == Binding::Kind::back || own.kind == Binding::Kind::far;
    if (!relative || !other || other->kind != Binding::Kind::back || !inside(0, l.var) || !inside(1, l.var))
      continue;
    int64_t extent = l.most();
    if (extent < 0 || extent > kMaxTogether) extent = of_a_period(a, b, l, own, *other);
    if (extent < 0) continue;
    common.push_back({l.var, extent});
    distance[0].push_back(own);
    distance[1].push_back(*other);
  }
  for (size_t i = 0; i < common.size() && points(common) > kMaxNested; ++i) {
    const auto& loops = (*this)[a].loops;
    const auto loop =
        std::find_if(loops.begin(), loops.end(), [&](const OpenLoop& l) { return l.var == common[i].var; });
    common[i].extent = of_a_period(a, b, *loop, distance[0][i], distance[1][i]);
  }
  if (points(common) > kMaxNested) common.clear();
  for (int s = 0; s < 2; ++s) {
    const AccessClass& c = (*this)[id[s]];
    for (size_t i = 0; i < c.loops.size(); ++i)
      if ((*at[s])[i].kind == Binding::Kind::at && inside(s, c.loops[i].var))
        fixed[s][c.loops[i].var] = (*at[s])[i].value;
  }
  Meeting result = Meeting::disjoint;
  PointValues values(p_.vars.size());
  // Iterations of the earlier access that a far distance leaves open are walked too.
  auto compare_at = [&](const std::map<VarId, int64_t>& earlier) {
    std::map<VarId, int64_t> later = fixed[1];
    for (size_t i = 0; i < common.size(); ++i)
      later[common[i].var] = *values[common[i].var] - distance[1][i].value;
    for (const Range& r : common)
      if (later[r.var] < 0) return true;
    const auto met = meet(touched(a, earlier), touched(b, later));
    result = std::max(result, met.value_or(Meeting::clash));
    return result != Meeting::clash;
  };
  std::function<bool(size_t, std::map<VarId, int64_t>)> earlier_points =
      [&](size_t i, std::map<VarId, int64_t> chosen) {
        if (i == common.size()) return compare_at(chosen);
        const int64_t nearest = *values[common[i].var] - distance[0][i].value;
        const int64_t farthest = distance[0][i].kind == Binding::Kind::far ? 0 : nearest;
        for (int64_t v = farthest; v <= nearest; ++v) {
          if (v < 0) continue;
          chosen[common[i].var] = v;
          if (!earlier_points(i + 1, chosen)) return false;
        }
        return true;
      };
  const bool told = for_each_point(common, values, [&] { return earlier_points(0, fixed[0]); });
  return told ? result : Meeting::clash;
}

}  // namespace tilegen::sync
