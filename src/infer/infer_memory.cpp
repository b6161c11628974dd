// Values of register scopes that are held in shared memory.
#include <algorithm>

#include "infer/inference.h"

namespace tilegen::infer {

using layout::Digit;
using layout::Fragment;
using layout::Layout;
using plan::Origin;

InMemory given_in_memory(const InferInput& in) {
  InMemory list;
  if (!in.given || in.threads == 1) return list;
  for (size_t v = 0; v < in.ops.values.size(); ++v) {
    const Value& value = in.ops.values[v];
    const plan::ValuePlan* g = plan::find_value(*in.given, value.name);
    if (g && g->memory && !g->fragment && (value.scope == ir::MemScope::fragment || value.scope == ir::MemScope::local))
      list[static_cast<int>(v)] = "the schedule says so";
  }
  return list;
}

bool Inference::works_on_registers(int v) const {
  return std::any_of(in_.gemms.begin(), in_.gemms.end(), [&](const auto& gemm) {
    const auto& accesses = ops_.ops[gemm.first].accesses;
    return std::any_of(accesses.begin(), accesses.end(), [&](const OpAccess& a) { return a.value == v; });
  });
}

void Inference::pin_in_memory() {
  for (const auto& [v, why] : in_memory_) {
    const Value& value = ops_.values[static_cast<size_t>(v)];
    if (works_on_registers(v))
      fail(DiagCode::schedule_illegal, value.name, "the given layout is in memory, but a gemm works on its registers",
           "leave the value out to have it inferred", p_.buffer(value.buffer).location);
    if (!state_.known.memories[static_cast<size_t>(v)])
      pin_memory(v, Layout::row_major(value.shape), Origin::free, "in shared memory: " + why, "");
  }
}

void Inference::cannot_hold(const KernelOp& op, int v, const std::string& why, const std::string& hint) {
  const size_t i = static_cast<size_t>(v);
  const bool given = state_.origin[i] == Origin::given;
  if (!in_.target.is_host() && !given && !works_on_registers(v)) {
    unheld_[v] = op.path + " " + why;
    fail(DiagCode::target_unsupported, op.path, "held in memory", "", op.location);
    return;
  }
  fail(given ? DiagCode::schedule_illegal : DiagCode::target_unsupported, op.path,
       "buffer '" + ops_.values[i].name + "' is held as " + fragment(state_, v).to_text() + " (" +
           (given ? "given" : state_.reason[i]) + "), and the operation " + why,
       hint + ", or go through a shared buffer", op.location);
}

bool Inference::too_many_choices(const KernelOp& op, const Fragment& iteration, size_t access) const {
  const int v = op.accesses[access].value;
  const ops::ElementAccess& a = op.view.accesses[access];
  const Fragment& held = fragment(state_, v);
  if (held.registers() <= kMostRegisterChoices || held.replicas() == 1) return false;
  auto threads_walk = [&](const Fragment& f, int dim) {
    return std::any_of(f.map().digits().begin(), f.map().digits().end(), [&](const Digit& d) {
      return d.output == layout::kThread && d.stride > 0 && (dim < 0 ? d.dim != layout::kReplica : d.dim == dim);
    });
  };
  for (size_t d = 0; d < a.dim_of.size(); ++d) {
    if (held.shape()[d] == 1 || threads_walk(held, static_cast<int>(d))) continue;
    const int k = a.dim_of[d];
    // Offsets that are no constants may be the variables of unrolled loops.
    const bool told = a.offset[d] != ops::ElementAccess::kUnknownOffset || op.depth > 0;
    if (k == ops::kUniformIndex ? !told : threads_walk(iteration, k == ops::kIrregularIndex ? -1 : k)) return true;
  }
  return false;
}

std::optional<Fragment> Inference::iteration_of_copies(const KernelOp& op) const {
  if (in_.target.is_host()) return std::nullopt;
  int64_t points = 1;
  for (int64_t extent : op.view.extents) points *= extent;
  bool scattered = false;
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    const int v = op.accesses[i].value;
    const ops::ElementAccess& a = op.view.accesses[i];
    if (!distributed(v)) {
      if (a.write) return std::nullopt;
      continue;
    }
    if (!everywhere(v)) return std::nullopt;
    const std::vector<int64_t>& shape = fragment(state_, v).shape();
    for (size_t d = 0; a.write && d < shape.size(); ++d) {
      const int k = a.dim_of[d];
      if (k == ops::kUniformIndex ? shape[d] != 1
                                  : k < 0 || a.offset[d] != 0 || op.view.extents[static_cast<size_t>(k)] != shape[d])
        scattered = true;
    }
  }
  if (!scattered || points > kMostRegisterChoices) return std::nullopt;
  return Fragment::replicated(op.view.extents, in_.threads);
}

}  // namespace tilegen::infer
