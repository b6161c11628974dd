#include "thread/launch_numbers.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "support/checked.h"

namespace tilegen::thread {

namespace {

class Chooser {
 public:
  explicit Chooser(const RoleProgram& r) : p_(*r.program), values_(r.variables), variables_(r.variables) {
    for (MemoryId m : r.data) values_.set_data(m, kFar);
    for (const Param& param : p_.params) {
      if (param.kind == Param::Kind::dim) {
        dims_.push_back(param.var);
        steps_.emplace(param.var, std::max<int64_t>(p_.vars[param.var.value].divisor, 1));
      }
      if (param.kind == Param::Kind::scalar) values_.set(param.var, 1);
    }
    // A launch that breaks the guards takes another form.
    for (const Guard& guard : p_.guards) {
      const Param& param = p_.params[static_cast<size_t>(guard.param)];
      if (param.kind != Param::Kind::dim) continue;
      int64_t& step = steps_.at(param.var);
      step = checked_mul(step / std::gcd(step, guard.divisor), guard.divisor).value_or(INT64_MAX);
    }
    for (ir::VarId block : p_.block_vars) values_.set(block, 0);
    if (p_.launched_var.valid()) values_.set(p_.launched_var, p_.cluster);
    if (p_.thread_var.valid()) values_.set(p_.thread_var, 0);
    // Registers that change, as indices of the block do, as they are for the first point.
    for (size_t v = p_.vars.size(); v < r.variables; ++v) values_.set(ir::VarId(v), 0);
    for (const RoleStep& s : r.steps) {
      if (s.op != RoleOp::loop) continue;
      const IndexProgram& e = r.values[static_cast<size_t>(s.value)];
      extents_.push_back(&e);
      if (s.second >= 0 || (p_.launched_var.valid() && e.depends_on(p_.launched_var))) walks_.insert(&e);
    }
  }

  PointValues run(int64_t trips, int64_t points) {
    for (ir::VarId dim : dims_) values_.set(dim, at(dim, 0));
    for (ir::VarId dim : dims_)
      for (const IndexProgram* e : extents_)
        if (among(*e) == 1 && e->depends_on(dim) && reach(*e, dim, trips)) break;
    // What no loop follows alone has a point, then as many as are asked for.
    for (ir::VarId dim : dims_)
      if (std::none_of(extents_.begin(), extents_.end(),
                       [&](const IndexProgram* e) { return among(*e) == 1 && e->depends_on(dim); }))
        values_.set(dim, at(dim, at(dim, 0) > 0 || at(dim, 1) > p_.vars[dim.value].upper ? 0 : 1));
    for (const IndexProgram* e : extents_)
      for (MemoryId m : e->data())
        if (values_.data(m) && (e->eval(values_).value_or(trips) == trips || reach(*e, m, trips))) break;
    // The points last: they are what the lengths of other loops leave, and must not vanish.
    for (const bool walk : {false, true})
      for (const IndexProgram* e : extents_) {
        if (walks_.contains(e) != walk || among(*e) <= 1 || !e->data().empty()) continue;
        const int64_t now = e->eval(values_).value_or(walk ? points : trips);
        if (walk ? now >= points : now == trips) continue;
        for (ir::VarId dim : dims_)
          if (e->depends_on(dim) && reach(*e, dim, walk ? points : trips)) break;
      }
    spread(points);
    PointValues launch = values_;
    for (size_t v = p_.vars.size(); v < variables_; ++v) launch.clear(ir::VarId(v));
    return launch;
  }

 private:
  int64_t among(const IndexProgram& e) const {
    return std::count_if(dims_.begin(), dims_.end(), [&](ir::VarId dim) { return e.depends_on(dim); });
  }
  // The i-th value that a dim may have, not seen to its upper bound.
  int64_t at(ir::VarId dim, int64_t i) const {
    const int64_t step = steps_.at(dim);
    const auto first = checked_mul(ceil_div(std::max<int64_t>(p_.vars[dim.value].lower, 0), step), step),
               more = checked_mul(i, step);
    return first && more ? checked_add(*first, *more).value_or(INT64_MAX) : INT64_MAX;
  }

  // Where the dims ask for more points than that, more blocks are launched.
  void spread(int64_t points) {
    if (!p_.launched_var.valid() || p_.grid.size() != 1) return;
    const int64_t all = IndexProgram(p_.exprs, p_.grid[0]).eval(values_).value_or(1);
    const int64_t clusters = (all / p_.cluster + points - 1) / points;
    if (clusters > 1) values_.set(p_.launched_var, clusters * p_.cluster);
  }

  // The least value of the dim, or of the parts that `data` gives the ends of, for which the loop has
  // `wanted` trips, or of a dim somewhat more than many; false when there is none. A dim has its old value
  // then; data leave the loop as few trips more as they can.
  bool reach(const IndexProgram& e, ir::VarId dim, int64_t wanted) {
    const int64_t old = *values_[dim], most = p_.vars[dim.value].upper;
    const bool reached = search(wanted, [&](int64_t i) {
      values_.set(dim, at(dim, i));
      return at(dim, i) > most ? INT64_MAX : e.eval(values_).value_or(INT64_MAX);
    });
    if (reached) return true;
    const bool more = wanted == kManyTrips && *values_[dim] <= most &&
                      e.eval(values_).value_or(INT64_MAX) <= 4 * kManyTrips;
    if (!more) values_.set(dim, old);
    return more;
  }
  bool reach(const IndexProgram& e, MemoryId data, int64_t wanted) {
    const int64_t old = *values_.data(data);
    const auto trips = [&](int64_t i) {
      values_.set_data(data, i);
      return e.eval(values_).value_or(INT64_MAX);
    };
    const int64_t most = trips(old), least = trips(0);
    if (search(wanted, trips)) return true;
    values_.set_data(data, wanted < least && least < most ? 0 : old);
    return false;
  }
  template <class Trips>
  static bool search(int64_t wanted, Trips&& trips) {
    int64_t low = 0, high = 1;
    while (high < kFar && trips(high) < wanted) high *= 2;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      trips(middle) < wanted ? low = middle + 1 : high = middle;
    }
    return trips(low) == wanted;  // of the least that has as many
  }

  static constexpr int64_t kFar = int64_t{1} << 24;
  const ThreadProgram& p_;
  PointValues values_;
  const size_t variables_;
  std::vector<ir::VarId> dims_;
  std::map<ir::VarId, int64_t> steps_;  // of dims: their values are multiples
  std::vector<const IndexProgram*> extents_;
  std::set<const IndexProgram*> walks_;  // of those, over a block's points
};

}  // namespace

PointValues launch_numbers(const RoleProgram& r, int64_t trips, int64_t points) {
  return Chooser(r).run(trips, points);
}

std::vector<int64_t> launch_dims(const RoleProgram& r, const PointValues& values) {
  const ThreadProgram& p = *r.program;
  std::vector<int64_t> dims;
  for (MemoryId m : r.data) dims.push_back(values.data(m).value_or(0));
  for (const Param& param : p.params)
    if (param.kind == Param::Kind::dim) dims.push_back(values[param.var].value_or(0));
  if (p.launched_var.valid()) dims.push_back(values[p.launched_var].value_or(1));
  return dims;
}

}  // namespace tilegen::thread
