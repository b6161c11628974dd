// Two accesses at iterations i and i + d touch one element where their ranges overlap in every dimension:
//
//   a.coefficient * i + a.low <= b.coefficient * (i + d) + b.high, and the other way round
//
// Dimensions of equal coefficients bound d alone. Others bound i for each d: iterations of loops of a known,
// small number are gone through; beyond, the least distance that the order allows is taken.
#include "analysis/dependence.h"

#include <algorithm>

namespace tilegen::analysis {

namespace {

constexpr int64_t kMaxTrips = 4096;  // whose distances are gone through

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
int64_t ceil_quotient(int64_t a, int64_t b) { return -floor_quotient(-a, b); }

struct Interval {
  int64_t low, high;
  bool empty() const { return low > high; }
  // Keeps x with low <= factor * x <= high.
  void bound(int64_t factor, int64_t from, int64_t to) {
    if (factor == 0) {
      if (from > 0 || to < 0) high = low - 1;
      return;
    }
    if (factor < 0) std::tie(factor, from, to) = std::tuple(-factor, -to, -from);
    low = std::max(low, ceil_quotient(from, factor));
    high = std::min(high, floor_quotient(to, factor));
  }
};

// Whether accesses meet, and in how many iterations at the least.
struct Meeting {
  int64_t distance = 0;
  bool exact = false;
};

// How the statement of `b` may follow that of `a` in one iteration.
struct Order {
  bool same_iteration = false;
  bool certain = false;  // it does, where both run
};

Order order_of(const Footprints& all, const Footprint& a, const Footprint& b) {
  const auto &x = all.around[a.around], &y = all.around[b.around];
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (x[i].stmt != y[i].stmt) break;
    if (x[i].loop) return {a.op != b.op, false};  // iterations of a loop inside follow each other
    if (x[i].otherwise != y[i].otherwise) return {false, false};
  }
  return {a.op != b.op && a.position < b.position, true};
}

std::optional<Meeting> meeting(const Footprint& a, const Footprint& b, int64_t least,
                               std::optional<int64_t> begin, std::optional<int64_t> trips) {
  Interval distance{least, trips ? *trips - 1 : INT64_MAX};
  bool exact = a.always && b.always && trips && a.place.value.valid();
  std::vector<size_t> skewed;  // dimensions that iterations move through at different speeds
  for (size_t d = 0; d < a.dims.size(); ++d) {
    const IndexRange &x = a.dims[d], &y = b.dims[d];
    exact = exact && x.dense && y.dense;
    if (!x.known || !y.known || x.invariant != y.invariant) {
      exact = false;
    } else if (x.coefficient == y.coefficient) {
      distance.bound(x.coefficient, x.low - y.high, x.high - y.low);
    } else {
      skewed.push_back(d);
    }
  }
  if (distance.empty()) return std::nullopt;
  if (skewed.empty()) return Meeting{distance.low, exact};
  if (!begin || !trips || *trips > kMaxTrips || std::abs(*begin) > kMaxTrips)
    return Meeting{distance.low, false};
  for (int64_t apart = distance.low; apart <= distance.high; ++apart) {
    Interval iteration{*begin, *begin + *trips - 1 - apart};
    for (size_t d : skewed) {
      const IndexRange &x = a.dims[d], &y = b.dims[d];
      const int64_t moved = y.coefficient * apart;
      iteration.bound(x.coefficient - y.coefficient, moved + y.low - x.high, moved + y.high - x.low);
    }
    if (!iteration.empty()) return Meeting{apart, exact};
  }
  return std::nullopt;
}

std::optional<int64_t> constant(const ir::Program& p, ir::ExprId e) {
  int64_t value = 0;
  if (!e.valid()) return value;
  return p.exprs.is_const_int(e, &value) ? std::optional(value) : std::nullopt;
}

}  // namespace

DependenceGraph::DependenceGraph(const ir::Program& p, const KernelOps& ops, const ir::Loop& loop,
                                 Granularity granularity)
    : footprints_(collect_footprints(p, ops, loop.body, loop.vars[0])),
      granularity_(granularity),
      begin_(constant(p, loop.begin)),
      trips_(constant(p, loop.extents[0])) {
  index();
}

DependenceGraph::DependenceGraph(const ir::Program& p, const KernelOps& ops, const ir::Kernel& kernel,
                                 Granularity granularity)
    : footprints_(collect_footprints(p, ops, kernel.body, ir::VarId())),
      granularity_(granularity),
      begin_(0),
      trips_(1) {
  index();
}

void DependenceGraph::index() {
  for (size_t i = 0; i < footprints_.list.size(); ++i) {
    const Footprint& f = footprints_.list[i];
    by_op_[f.op].push_back(i);
    by_place_[f.place].push_back(i);
  }
}

void DependenceGraph::add(const Footprint& from, const Footprint& to, Edges& edges) const {
  if (!from.write && !to.write) return;
  const Order order = order_of(footprints_, from, to);
  const int64_t least = order.same_iteration ? 0 : 1;
  std::optional<Meeting> met;
  if (granularity_ == Granularity::element)
    met = meeting(from, to, least, begin_, trips_);
  else
    met = Meeting{least, false};
  if (!met) return;
  const bool exact = met->exact && (met->distance > 0 || order.certain);
  const DependenceKind kind = !from.write ? DependenceKind::anti
                              : to.write  ? DependenceKind::output
                                          : DependenceKind::flow;
  const auto [edge, fresh] =
      edges.try_emplace({from.op, to.op, kind, from.place}, std::pair(met->distance, exact));
  if (fresh) return;
  auto& [distance, known] = edge->second;
  known = (distance <= met->distance && known) || (met->distance <= distance && exact);
  distance = std::min(distance, met->distance);
}

std::vector<Dependence> DependenceGraph::list(const Edges& edges) {
  std::vector<Dependence> out;
  for (const auto& [key, met] : edges) {
    const auto& [from, to, kind, place] = key;
    out.push_back({from, to, kind, place, met.first, met.second});
  }
  return out;
}

std::vector<Dependence> DependenceGraph::edges() const {
  Edges edges;
  for (const auto& [place, users] : by_place_)
    for (size_t a : users)
      for (size_t b : users) add(footprints_.list[a], footprints_.list[b], edges);
  return list(edges);
}

std::vector<Dependence> DependenceGraph::from(OpId op) const {
  Edges edges;
  if (const auto own = by_op_.find(op); own != by_op_.end())
    for (size_t a : own->second)
      for (size_t b : by_place_.at(footprints_.list[a].place))
        add(footprints_.list[a], footprints_.list[b], edges);
  return list(edges);
}

std::vector<Dependence> DependenceGraph::to(OpId op) const {
  Edges edges;
  if (const auto own = by_op_.find(op); own != by_op_.end())
    for (size_t b : own->second)
      for (size_t a : by_place_.at(footprints_.list[b].place))
        add(footprints_.list[a], footprints_.list[b], edges);
  return list(edges);
}

const DependenceGraph& LoopDependences::of(ir::StmtId loop) {
  const auto known = graphs_.find(loop);
  if (known != graphs_.end()) return known->second;
  return graphs_.try_emplace(loop, p_, ops_, *p_.as<ir::Loop>(loop), Granularity::value).first->second;
}

}  // namespace tilegen::analysis
