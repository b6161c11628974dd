// The common level: pinned layouts propagate through the ops that touch them.
#include <algorithm>

#include "infer/inference.h"

namespace tilegen::infer {

using layout::Fragment;
using plan::Origin;

// What all points share says nothing about where they run.
bool Inference::shared_by_all_points(const KernelOp& op, const ops::ElementAccess& a) const {
  const bool walked = walked_dims(a) > 0;
  const bool several =
      std::any_of(op.view.extents.begin(), op.view.extents.end(), [](int64_t n) { return n > 1; });
  return !walked && several && in_.threads > 1;
}

FormId Inference::root_form(OpId id, size_t access) {
  const KernelOp& op = ops_.ops[id];
  const ValueId v = op.accesses[access].value;
  if (!distributed(op, v) || !pinned(state_, v) || shared_by_all_points(op, op.view.accesses[access]))
    return {};
  return forms_.pulled_back(state_.form[v], id, access);
}

namespace {

// Of two operands, wherever they stand in an expression: what the op writes again, as nothing has to be moved
// for it twice; else what the program made first.
bool is_operand_before(const KernelOp& op, size_t access, size_t other) {
  const OpAccess &a = op.accesses[access], &b = op.accesses[other];
  if (a.write || b.write) return false;
  const auto written = [&](ValueId value) {
    return std::any_of(op.accesses.begin(), op.accesses.end(),
                       [&](const OpAccess& w) { return w.write && w.value == value; });
  };
  if (written(a.value) != written(b.value)) return written(a.value);
  return a.value < b.value;
}

}  // namespace

int Inference::root_access(OpId id) {
  const KernelOp& op = ops_.ops[id];
  struct Rank {
    bool keeps_order;
    int dims;
    Origin origin;
  };
  int best = -1;
  Rank best_rank{};
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    if (!root_form(id, i).valid()) continue;
    const Rank r{forms_.keeps_order(id, i), walked_dims(op.view.accesses[i]),
                 state_.origin[op.accesses[i].value]};
    const auto better = [&] {
      if (best < 0) return true;
      if (r.keeps_order != best_rank.keeps_order) return r.keeps_order;
      if (r.dims != best_rank.dims) return r.dims > best_rank.dims;
      if (r.origin != best_rank.origin) return r.origin < best_rank.origin;
      return is_operand_before(op, i, static_cast<size_t>(best));
    };
    if (!better()) continue;
    best = static_cast<int>(i);
    best_rank = r;
  }
  return best;
}

FormId Inference::rooted_form(OpId id) {
  const int root = root_access(id);
  return root < 0 ? FormId() : root_form(id, static_cast<size_t>(root));
}

void Inference::propagate(OpId id, FormId iteration, Origin origin) {
  const KernelOp& op = ops_.ops[id];
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    const ValueId v = op.accesses[i].value;
    if (!distributed(op, v) || pinned(state_, v)) continue;
    const FormId form = forms_.projected(iteration, id, i);
    if (form.valid()) pin_form(v, form, origin, "as " + op.path + " needs it", op.path);
  }
}

void Inference::propagate_op(OpId id) {
  const KernelOp& op = ops_.ops[id];
  if (op.form == OpForm::element) {
    const FormId iteration = iteration_[id] ? forms_.id_of(*iteration_[id]) : rooted_form(id);
    if (iteration.valid()) propagate(id, iteration, Origin::common);
  } else if (op.form == OpForm::reduction) {
    const ValueId src = op.accesses[0].value, dst = op.accesses[1].value;
    if (!distributed(op, src) || !distributed(op, dst) || !pinned(state_, src) || pinned(state_, dst)) return;
    const FormId form = reduced_form(id, state_.form[src]);
    if (!form.valid()) return;
    pin_form(dst, form, Origin::common, "row statistic held beside " + ops_.values[src].name, op.path);
  }
}

FormId Inference::reduced_form(OpId id, FormId src) {
  const auto [it, fresh] = reduced_forms_.try_emplace({id, src});
  if (!fresh) return it->second;
  const auto f = reduced(ops_.ops[id], forms_.at(src));
  return it->second = f ? forms_.id_of(*f) : FormId();
}

std::optional<Fragment> Inference::reduced(const KernelOp& op, const Fragment& src) const {
  const auto& tile_op = *p_.as<ir::TileOp>(op.stmt);
  const ir::Region& dst = tile_op.operands[1];
  bool keep = dst.extents.size() == tile_op.operands[0].extents.size();
  std::vector<int64_t> shape = p_.tile_shape(dst.buffer);
  if (shape != dst.extents || src.shape() != tile_op.operands[0].extents) return std::nullopt;
  Fragment f = src.reduce(ops::layout_rule(tile_op).reduction->axis, keep);
  if (f.shape() != shape) return std::nullopt;
  return f.canonical();
}

// An op that nothing was pinned for since it was last asked has nothing to add.
void Inference::propagate(std::set<OpId> dirty) {
  while (!dirty.empty()) {
    std::set<OpId> next;
    while (!dirty.empty()) {
      const OpId id = *dirty.begin();
      dirty.erase(dirty.begin());
      const size_t mark = pinned_order_.size();
      propagate_op(id);
      for (OpId user : users_since(mark)) (user > id ? dirty : next).insert(user);
    }
    dirty = std::move(next);
  }
}

std::set<OpId> Inference::users_since(size_t mark) const {
  std::set<OpId> users;
  for (size_t i = mark; i < pinned_order_.size(); ++i) {
    const std::vector<OpId>& of = users_[pinned_order_[i]];
    users.insert(of.begin(), of.end());
  }
  return users;
}

}  // namespace tilegen::infer
