// The common and free levels: pinned layouts spread through the ops, and the cheapest root is found for what
// is left.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "infer/inference.h"
#include "infer/projection.h"

namespace tilegen::infer {

using ir::Program;
using layout::ConversionKind;
using layout::Fragment;
using layout::Layout;
using plan::Origin;

std::vector<int64_t> Inference::iteration_extents(const KernelOp& op) const {
  if (op.form == OpForm::element) return op.view.extents;
  return p_.as<ir::TileOp>(op.stmt)->operands[0].extents;
}

int Inference::root_access(const State& s, const KernelOp& op) const {
  int best = -1, best_dims = -1;
  Origin best_origin = Origin::free;
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    int v = op.accesses[i].value;
    if (!distributed(op, v) || !pinned(s, v)) continue;
    const ops::ElementAccess& a = op.view.accesses[i];
    if (!pull_back(fragment(s, v), a, op.view.extents)) continue;
    int dims =
        static_cast<int>(std::count_if(a.dim_of.begin(), a.dim_of.end(), [](int k) { return k >= 0; }));
    // What all points share says nothing about where they run.
    const bool several = std::any_of(op.view.extents.begin(), op.view.extents.end(), [](int64_t n) { return n > 1; });
    if (dims == 0 && several && in_.threads > 1) continue;
    Origin o = s.origin[static_cast<size_t>(v)];
    if (dims > best_dims || (dims == best_dims && o < best_origin)) {
      best = static_cast<int>(i);
      best_dims = dims;
      best_origin = o;
    }
  }
  return best;
}

bool Inference::spread(State& s, const KernelOp& op, const Fragment& iteration, Origin origin) {
  bool changed = false;
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    int v = op.accesses[i].value;
    if (!distributed(op, v) || pinned(s, v)) continue;
    auto f = project(iteration, op.view.accesses[i], ops_.values[static_cast<size_t>(v)].shape);
    if (!f) continue;
    pin(s, v, std::move(*f), origin, "as " + op.path + " needs it", op.path);
    changed = true;
  }
  return changed;
}

bool Inference::propagate_op(State& s, size_t index) {
  const KernelOp& op = ops_.ops[index];
  if (op.form == OpForm::element) {
    if (iteration_[index]) return spread(s, op, *iteration_[index], Origin::common);
    int root = root_access(s, op);
    if (root < 0) return false;
    return spread(s, op,
                  *pull_back(fragment(s, op.accesses[static_cast<size_t>(root)].value),
                             op.view.accesses[static_cast<size_t>(root)], op.view.extents),
                  Origin::common);
  }
  if (op.form == OpForm::reduce) {
    int src = op.accesses[0].value, dst = op.accesses[1].value;
    if (!distributed(op, src) || !distributed(op, dst) || !pinned(s, src) || pinned(s, dst)) return false;
    auto f = reduced(op, fragment(s, src));
    if (!f) return false;
    pin(s, dst, std::move(*f), Origin::common,
        "row statistic held beside " + ops_.values[static_cast<size_t>(src)].name, op.path);
    return true;
  }
  return false;
}

std::optional<Fragment> Inference::reduced(const KernelOp& op, const Fragment& src) const {
  const auto& tile_op = *p_.as<ir::TileOp>(op.stmt);
  const ir::Region& dst = tile_op.operands[1];
  bool keep = dst.extents.size() == tile_op.operands[0].extents.size();
  std::vector<int64_t> shape = p_.tile_shape(dst.buffer);
  if (shape != dst.extents || src.shape() != tile_op.operands[0].extents) return std::nullopt;
  Fragment f = src.reduce(static_cast<int>(tile_op.attrs[ir::reduce_attr::axis]), keep);
  if (f.shape() != shape) return std::nullopt;
  return f.canonical();
}

void Inference::propagate(State& s) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < ops_.ops.size(); ++i) changed = propagate_op(s, i) || changed;
  }
}

std::optional<Fragment> Inference::vectors_along(const std::vector<int64_t>& extents, int dim,
                                                 int64_t vector) const {
  std::vector<int> order;  // new dimension i is old order[i]: `dim` last
  for (int d = 0; d < static_cast<int>(extents.size()); ++d)
    if (d != dim) order.push_back(d);
  order.push_back(dim);
  std::vector<int64_t> permuted;
  for (int d : order) permuted.push_back(extents[static_cast<size_t>(d)]);
  Fragment f = Fragment::row_major_vectors(permuted, in_.threads, vector);
  std::vector<int> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int>(i);
  auto placed = Fragment::make(f.map().permute(back), in_.threads);
  if (!placed) return std::nullopt;
  return *placed;
}

std::vector<Fragment> Inference::candidates(const KernelOp& op) const {
  std::vector<int64_t> extents = iteration_extents(op);
  std::vector<Fragment> list;
  if (extents.empty()) {
    list.push_back(Fragment::replicated({}, in_.threads));
    return list;
  }
  std::set<int> dims = {static_cast<int>(extents.size()) - 1};
  for (const ops::ElementAccess& a : op.view.accesses)
    if (!a.dim_of.empty() && a.dim_of.back() >= 0) dims.insert(a.dim_of.back());
  for (auto it = dims.rbegin(); it != dims.rend(); ++it) {
    int64_t extent = extents[static_cast<size_t>(*it)];
    for (int64_t vector = in_.target.is_host() ? 1 : in_.target.vector_bytes; vector >= 1; vector /= 2)
      if (extent % vector == 0)
        if (auto f = vectors_along(extents, *it, vector)) list.push_back(std::move(*f));
  }
  return list;
}

double Inference::cost_of(const State& s, size_t index, const Fragment& iteration) const {
  const KernelOp& op = ops_.ops[index];
  if (op.form != OpForm::element) return static_cast<double>(iteration.registers() * iteration.replicas());
  return access_cost(p_, op, iteration, s.known, in_.target) * std::pow(8.0, op.depth);
}

double Inference::total_cost(const State& s) const {
  double cost = 0;
  for (size_t i = 0; i < ops_.ops.size(); ++i) {
    const KernelOp& op = ops_.ops[i];
    if (op.form != OpForm::element) continue;
    int root = root_access(s, op);
    if (root < 0) continue;
    auto it = pull_back(fragment(s, op.accesses[static_cast<size_t>(root)].value),
                        op.view.accesses[static_cast<size_t>(root)], op.view.extents);
    if (it) cost += cost_of(s, i, *it);
  }
  return cost;
}

std::optional<State> Inference::try_root(size_t index, const Fragment& iteration) {
  const KernelOp& op = ops_.ops[index];
  State trial = state_;
  if (op.form == OpForm::element) {
    if (!spread(trial, op, iteration, Origin::free)) return std::nullopt;
  } else {
    int src = op.accesses[0].value, dst = op.accesses[1].value;
    bool changed = false;
    if (distributed(op, src) && !pinned(trial, src)) {
      if (iteration.shape() != ops_.values[static_cast<size_t>(src)].shape) return std::nullopt;
      pin(trial, src, iteration.canonical(), Origin::free, "as " + op.path + " reads it", op.path);
      changed = true;
    }
    if (distributed(op, dst) && !pinned(trial, dst))
      if (auto f = reduced(op, iteration)) {
        pin(trial, dst, std::move(*f), Origin::free, "result of " + op.path, op.path);
        changed = true;
      }
    if (!changed) return std::nullopt;
  }
  propagate(trial);
  return trial;
}

// What is reduced comes first: its rows' results, and what is made of them, then follow it.
std::vector<size_t> Inference::reduced_first() const {
  std::vector<size_t> order(ops_.values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_partition(order.begin(), order.end(), [&](size_t v) {
    return std::any_of(ops_.ops.begin(), ops_.ops.end(), [&](const KernelOp& op) {
      return op.form == OpForm::reduce && op.accesses[0].value == static_cast<int>(v);
    });
  });
  return order;
}

void Inference::free_values() {
  for (size_t v : reduced_first()) {
    if (!distributed(static_cast<int>(v)) || pinned(state_, static_cast<int>(v))) continue;
    std::optional<State> best;
    double best_cost = INFINITY;
    std::string best_root;
    for (size_t i = 0; i < ops_.ops.size(); ++i) {
      const KernelOp& op = ops_.ops[i];
      if (op.form == OpForm::gemm || !touches_unpinned(op)) continue;
      for (const Fragment& f : candidates(op)) {
        auto trial = try_root(i, f);
        if (!trial || !pinned(*trial, static_cast<int>(v))) continue;
        double cost = total_cost(*trial);
        if (cost < best_cost - 1e-9) {
          best_cost = cost;
          best = std::move(trial);
          best_root = op.path;
        }
      }
    }
    if (best) {
      state_ = std::move(*best);
      state_.reason[v] += "; cheapest root: " + best_root;
      continue;
    }
    // No op can spread a layout to it (parts or irregular indices only): one thread's row-major, or a copy
    // per thread.
    pin(state_, static_cast<int>(v), Fragment::replicated(ops_.values[v].shape, in_.threads), Origin::free,
        "only parts or computed indices of it are used; every thread holds a copy", "");
    propagate(state_);
  }
}

bool Inference::touches_unpinned(const KernelOp& op) const {
  return std::any_of(op.accesses.begin(), op.accesses.end(),
                     [&](const OpAccess& a) { return distributed(op, a.value) && !pinned(state_, a.value); });
}

void Inference::shared_rest() {
  for (size_t v = 0; v < ops_.values.size(); ++v)
    if (ops_.values[v].scope == ir::MemScope::shared && !state_.known.memories[v])
      pin_memory(static_cast<int>(v), Layout::row_major(ops_.values[v].shape), Origin::free,
                 "row-major: no instruction asks for another form", "");
}

}  // namespace tilegen::infer
