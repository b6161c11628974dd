// Values of register scopes that are held in shared memory.
#include <algorithm>

#include "analysis/loads.h"
#include "analysis/uniformity.h"
#include "infer/inference.h"
#include "ir/statement_paths.h"
#include "support/diag_codes.h"

namespace tilegen::infer {

using layout::Digit;
using layout::Fragment;
using layout::Layout;
using plan::Origin;

InMemory given_in_memory(const InferInput& in) {
  InMemory list;
  if (!in.given || in.threads == 1) return list;
  for (ValueId v : in.ops.values.ids()) {
    const Value& value = in.ops.values[v];
    const plan::ValuePlan* g = plan::find_value(*in.given, value.name);
    if (g && g->memory && (value.scope == ir::MemScope::fragment || value.scope == ir::MemScope::local))
      list.values[v] = "the schedule says so";
  }
  return list;
}

bool Inference::works_on_registers(ValueId v) const {
  return std::any_of(in_.gemms.begin(), in_.gemms.end(), [&](const auto& gemm) {
    const auto& accesses = ops_.ops[gemm.first].accesses;
    const size_t first = gemm.second.loop_over_k ? 2 : 0;  // C alone
    return std::any_of(accesses.begin() + first, accesses.end(),
                       [&](const OpAccess& a) { return a.value == v; });
  });
}

void Inference::check_loops_over_k() {
  if (!in_.target.has_block_threads() || in_.keep_in_registers) return;
  for (const auto& [id, gemm] : in_.gemms) {
    if (!gemm.loop_over_k || unsettled(ops_.ops[id])) continue;
    for (size_t side = 0; side < 2; ++side) {
      const ValueId v = ops_.ops[id].accesses[side].value;
      if (!distributed(v) || state_.origin[v] == Origin::given || works_on_registers(v)) continue;
      unheld_.values[v] = ops_.ops[id].path + " is a loop over k, which takes no registers by number";
    }
  }
}

void Inference::pin_in_memory() {
  for (const auto& [v, why] : in_memory_.values) {
    const Value& value = ops_.values[v];
    if (works_on_registers(v))
      fail(DiagCode::schedule_illegal, value.name,
           "the given layout is in memory, but a gemm works on its registers",
           "leave the value out to have it inferred", p_.buffer(value.buffer).location);
    if (!state_.known.memories[v])
      pin_memory(v, Layout::row_major(value.shape), Origin::free, "in shared memory: " + why, "");
  }
}

// What has no register in common is decided apart: a round finds one access of each island that cannot be
// held.
void Inference::find_islands() {
  IdVector<ValueId, ValueId>& island = islands_;
  for (ValueId v : ops_.values.ids()) island.push_back(v);
  const auto root = [&](ValueId v) {
    while (island[v] != v) v = island[v] = island[island[v]];
    return v;
  };
  for (const KernelOp& op : ops_.ops) {
    ValueId first;
    for (const OpAccess& a : op.accesses) {
      if (!a.value.valid() || ops_.values[a.value].scope == ir::MemScope::shared) continue;
      if (!first.valid()) first = root(a.value);
      island[root(a.value)] = first = root(first);
    }
  }
  for (ValueId v : island.ids()) island[v] = root(v);
}

bool Inference::unsettled(const KernelOp& op) const {
  return std::any_of(op.accesses.begin(), op.accesses.end(),
                     [&](const OpAccess& a) { return a.value.valid() && unsettled(a.value); });
}

void Inference::cannot_hold(const KernelOp& op, ValueId v, const std::string& why, const std::string& hint) {
  cannot_hold(op.path, op.location, ops_.id_of(op), v, why, hint);
}

// Matrix atoms and given layouts keep their registers: an op then works on a copy, which a scalar cannot.
void Inference::cannot_hold(const std::string& path, const SourceLocation& where, OpId op, ValueId v,
                            const std::string& why, const std::string& hint) {
  const bool stays = state_.origin[v] == Origin::given || works_on_registers(v);
  if (in_.target.has_block_threads() && (!stays || (op && in_.conversions))) {
    if (stays)
      unheld_.accesses[{op, v}] = why;
    else
      unheld_.values[v] = path + " " + why;
    unsettled_.insert(islands_[v]);
    return;
  }
  fail(in_.conversions ? DiagCode::target_unsupported : DiagCode::conversion_refused, path,
       "buffer '" + ops_.values[v].name + "' is held as " + fragment(state_, v).to_text() + " (" +
           state_.reason[v] + "), and the operation " + why,
       hint + ", or go through a shared buffer", where);
}

namespace {

std::vector<ir::ExprId> scalars_of(const ir::Program& p, ir::StmtId id) {
  if (const auto* loop = p.as<ir::Loop>(id))
    return loop->condition.valid() ? std::vector<ir::ExprId>{loop->begin, loop->extents[0], loop->condition}
                                   : std::vector<ir::ExprId>{loop->begin, loop->extents[0]};
  if (const auto* branch = p.as<ir::Branch>(id)) return {branch->condition};
  std::vector<ir::ExprId> list;
  if (const auto* op = p.as<ir::TileOp>(id)) {
    list.push_back(op->value);
    for (const ir::Region& r : op->operands) list.insert(list.end(), r.offsets.begin(), r.offsets.end());
  }
  return list;
}

}  // namespace

// Some element of the buffer that is read is told at run time only.
bool Inference::reads_any_element(const std::vector<ir::ExprId>& roots, ir::BufferId buffer) const {
  const auto chosen = [&](ir::ExprId load, const ir::ExprNode& n) {
    const auto indices = p_.exprs.indices(load);
    return n.object == buffer && std::any_of(indices.begin(), indices.end(),
                                             [&](ir::ExprId index) { return !unrolled_.fix(index); });
  };
  return std::any_of(roots.begin(), roots.end(),
                     [&](ir::ExprId root) { return analysis::any_load(p_.exprs, root, chosen); });
}

void Inference::check_scalars() {
  std::optional<ir::KernelPaths> paths;
  for (const auto& [where, v] : ops_.scalar_reads) {
    if (failed() || !distributed(v) || !in_.target.has_block_threads() || unsettled(v)) continue;
    const bool chosen = fragment(state_, v).registers() > kMaxRegisterChoices &&
                        reads_any_element(scalars_of(p_, where.first), where.second);
    if (everywhere(v) && !chosen) continue;
    if (!paths) paths.emplace(p_, static_cast<int>(kernel()));
    cannot_hold((*paths)[where.first.value], p_.stmt(where.first).location, OpId(), v,
                chosen ? "reads one of its elements, told at run time" : "reads it in every thread",
                "keep what scalars read in a small local buffer");
  }
}

// Elements of one register each while they are computed with, and two of those that are wider.
void Inference::check_register_counts() {
  if (!in_.target.has_block_threads()) return;
  for (ValueId v : ops_.values.ids()) {
    if (failed()) break;
    if (!distributed(v) || state_.origin[v] == Origin::given || unsettled(v)) continue;
    const Value& value = ops_.values[v];
    const int64_t wide = std::max(1, ir::dtype_bytes(p_.buffer(value.buffer).type) / 4);
    const int64_t registers = fragment(state_, v).registers() * wide;
    const bool stays = works_on_registers(v);
    if (registers > kMaxRegisters && (stays || in_.keep_in_registers))
      fail(DiagCode::limit_memory, value.name,
           "each thread would have " + std::to_string(registers) + " registers of it, more than " +
               std::to_string(kMaxRegisters) + (stays ? "" : ", and shared memory does not hold it"),
           "use a smaller tile or more threads", p_.buffer(value.buffer).location);
    if (stays || registers <= (everywhere(v) ? kMaxCopiedRegisters : kMaxPartitionedRegisters)) continue;
    if (in_.keep_in_registers) {
      result_.notes.push_back({value.name, "has " + std::to_string(registers) +
                                               " registers of each thread: shared memory does not hold it"});
      continue;
    }
    unheld_.values[v] =
        (everywhere(v) ? "each thread would have a copy of all of it in " : "each thread would have ") +
        std::to_string(registers) + " registers" + (everywhere(v) ? "" : " of it");
  }
  check_loops_over_k();
  if (failed()) unheld_ = {};
  if (!unheld_.empty()) fail(DiagCode::target_unsupported, "", "held in memory", "", {});
}

bool Inference::too_many_choices(const KernelOp& op, const Fragment& iteration, size_t access) const {
  const ValueId v = op.accesses[access].value;
  const ops::ElementAccess& a = op.view.accesses[access];
  const Fragment& held = fragment(state_, v);
  if (held.registers() <= kMaxRegisterChoices || held.replicas() == 1) return false;
  auto threads_walk = [&](const Fragment& f, int dim) {
    return std::any_of(f.map().digits().begin(), f.map().digits().end(), [&](const Digit& d) {
      return d.output == layout::kThread && d.stride > 0 &&
             (dim < 0 ? d.dim != layout::kReplica : d.dim == dim);
    });
  };
  const auto* loop = p_.as<ir::Loop>(op.stmt);
  const std::span<const ir::VarId> walked =
      loop ? std::span<const ir::VarId>(loop->vars) : std::span<const ir::VarId>();
  for (size_t d = 0; d < a.dim_of.size(); ++d) {
    if (held.shape()[d] == 1 || threads_walk(held, static_cast<int>(d))) continue;
    const int k = a.dim_of[d];
    if (a.unknown[d].valid() && !unrolled_.fix(a.unknown[d], walked)) return true;
    if (k != ops::kUniformIndex && threads_walk(iteration, k == ops::kIrregularIndex ? -1 : k)) return true;
  }
  return false;
}

std::optional<Fragment> Inference::iteration_of_copies(const KernelOp& op) const {
  if (!in_.target.has_block_threads()) return std::nullopt;
  int64_t points = 1;
  for (int64_t extent : op.view.extents) points *= extent;
  bool scattered = false;
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    const ValueId v = op.accesses[i].value;
    const ops::ElementAccess& a = op.view.accesses[i];
    if (!distributed(op, v)) {
      if (a.write) return std::nullopt;
      continue;
    }
    if (!everywhere(v)) return std::nullopt;
    const std::vector<int64_t>& shape = fragment(state_, v).shape();
    for (size_t d = 0; a.write && d < shape.size(); ++d) {
      const int k = a.dim_of[d];
      if (k == ops::kUniformIndex
              ? shape[d] != 1
              : k < 0 || a.offset[d] != 0 || op.view.extents[static_cast<size_t>(k)] != shape[d])
        scattered = true;
    }
  }
  if (!scattered || points > kMaxRegisterChoices) return std::nullopt;
  return Fragment::replicated(op.view.extents, in_.threads);
}

}  // namespace tilegen::infer
