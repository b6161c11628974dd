// Elements of fragments: which register of this thread holds one.
#include "lower/gpu/registers.h"

#include <algorithm>
#include <bit>

#include "analysis/carried_sums.h"
#include "analysis/exchange.h"
#include "arith/prove.h"
#include "lower/addressing.h"
#include "lower/gpu/iteration.h"
#include "lower/lowering_context.h"
#include "plan/register_choices.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

using layout::Digit;

using plan::kMaxRegisterChoices;

bool in_thread_registers(LoweringContext& k, ir::BufferId buffer) {
  const ir::MemScope scope = k.in.program.buffer(buffer).scope;
  if (k.in.target.addressable_registers() || scope == ir::MemScope::global || scope == ir::MemScope::shared)
    return false;
  const ValueId v = value_of(k, buffer);
  return !v.valid() || k.plan_of_value(v).fragment.has_value();
}

FragmentView fragment_view(LoweringContext& k, ValueId value) {
  if (auto it = k.forms.converted.find(value); it != k.forms.converted.end()) return it->second;
  return {k.names.values[value], &*k.in.schedule.values[value.index()].fragment};
}

ExprId some_element_is_not_one(LoweringContext& k, ValueId value) {
  ir::ExprPool& e = k.out.exprs;
  const FragmentView f = fragment_view(k, value);
  const ir::DType type = k.out.memory(f.memory).type;
  ExprId some;
  for (int64_t r = 0; r < f.fragment->registers(); ++r) {
    const ExprId element = e.load(f.memory, type, std::vector<ExprId>{e.const_int(r)});
    const ExprId other = e.binary(ir::ExprOp::ne, element, e.const_float(1, type));
    some = some ? e.binary(ir::ExprOp::logical_or, some, other) : other;
  }
  return some;
}

MemoryId add_registers(LoweringContext& k, const std::string& name, ir::DType type, int64_t elements) {
  thread::Memory m;
  m.name = name + std::to_string(k.out.memories.size());
  m.space = thread::Space::local;
  m.type = type;
  m.elements = elements;
  m.alignment = k.in.target.vector_bytes;
  m.in_registers = true;
  return k.out.add_memory(std::move(m));
}

int64_t first_register(const FragmentView& h, int row_dim, int column_dim, int64_t row, int64_t column) {
  std::vector<int64_t> at(h.fragment->shape().size(), 0);
  at[static_cast<size_t>(row_dim)] = row;
  at[static_cast<size_t>(column_dim)] = column;
  return h.fragment->map().eval(at)[layout::kRegister];
}

// Threads may hold fewer elements than they have registers, or none; they compute on all registers all the
// same, and code generation must not see that as something that does not happen.
void clear_unheld(LoweringContext& k, const FragmentView& h, thread::Block& out, const std::string& origin,
                  bool all) {
  ir::ExprPool& e = k.out.exprs;
  const layout::Layout& map = h.fragment->map();
  bool unheld = false;
  for (int d = 0; d < h.fragment->rank(); ++d)
    unheld = unheld || map.padded_extent(d) != map.shape()[static_cast<size_t>(d)];
  int64_t holders = 1;
  for (const Digit& d : map.digits())
    if (d.output == layout::kThread && d.stride > 0) holders *= d.extent;
  if (!all && !unheld && holders == h.fragment->threads()) return;
  const thread::Memory& m = k.out.memory(h.memory);
  const ExprId zero = e.const_number(0, m.type), extent = e.const_int(m.elements);
  const VarId var = k.out.add_var("i" + std::to_string(k.out.vars.size()), ir::VarKind::loop);
  const thread::StmtId store =
      k.out.add(thread::Store{h.memory, e.var(var), zero, ExprId(), false, ExprId()}, origin);
  out.push_back(k.out.add(thread::Loop{var, extent, thread::LoopForm::unrolled, {store}}, origin));
}

bool overwrites(const LoweringContext& k, const analysis::KernelOp& op, ValueId value) {
  const auto* tile_op = k.in.program.as<ir::TileOp>(op.stmt);
  return tile_op && std::all_of(op.accesses.begin(), op.accesses.end(), [&](const analysis::OpAccess& a) {
           return a.value != value || (a.write && !a.read &&
                                       tile_op->operands[static_cast<size_t>(a.operand)].extents ==
                                           k.in.program.tile_shape(a.buffer));
         });
}

std::set<ValueId> moved_unwritten(const LoweringContext& k) {
  std::set<ValueId> moved;
  for (const analysis::KernelOp& op : k.in.ops.ops) {
    for (const auto& c : analysis::conversions_of(k.in.program, k.in.ops, op, k.in.schedule.values,
                                                  k.in.schedule.conversions))
      if (c.before) moved.insert(c.value);
    const plan::OpPlan* plan = plan::find_op(k.in.schedule, op.path);
    for (const analysis::OpAccess& a : op.accesses)
      if (a.value.valid() && plan && !plan->through_memory.empty()) moved.insert(a.value);
  }
  for (const analysis::CarriedSums& sums : k.in.scheduled.carried)
    moved.insert(sums.split.begin(), sums.split.end());
  // The first op writes all of it, and always runs.
  for (auto it = moved.begin(); it != moved.end();) {
    const auto first =
        std::find_if(k.in.ops.ops.begin(), k.in.ops.ops.end(), [&](const analysis::KernelOp& op) {
          return std::any_of(op.accesses.begin(), op.accesses.end(),
                             [&](const auto& a) { return a.value == *it; });
        });
    const bool always =
        std::find(k.in.kernel.body.begin(), k.in.kernel.body.end(), first->stmt) != k.in.kernel.body.end();
    it = always && overwrites(k, *first, *it) ? moved.erase(it) : std::next(it);
  }
  return moved;
}

bool fixed_index(const LoweringContext& k, ExprId index) {
  const ir::ExprNode& n = k.out.exprs[index];
  if (n.op == ir::ExprOp::load) return false;
  if (n.op == ir::ExprOp::var) return k.walk.fixed_vars.count(n.var()) > 0;
  for (ExprId operand : {n.a, n.b, n.c})
    if (operand && !fixed_index(k, operand)) return false;
  return true;
}

ExprId register_index(LoweringContext& k, const layout::Fragment& f, std::span<const ExprId> indices,
                      ExprId* inside) {
  ir::ExprPool& e = k.out.exprs;
  for (size_t d = 0; d < indices.size(); ++d) {
    const ExprId low = e.le(e.const_int(0), indices[d]);
    const ExprId high = e.lt(indices[d], e.const_int(f.map().padded_extent(static_cast<int>(d))));
    if (!arith::prove(k.ctx, low)) *inside = both(k, *inside, k.simplified(low));
    if (!arith::prove(k.ctx, high)) *inside = both(k, *inside, k.simplified(high));
  }
  ExprId index = layout_index(k, f.map(), layout::kRegister, indices);
  if (*inside) {
    index = e.binary(ir::ExprOp::max, index, e.const_int(0));
    index = k.simplified(e.binary(ir::ExprOp::min, index, e.const_int(f.registers() - 1)));
  }
  return index;
}

ExprId load_register(LoweringContext& k, const FragmentView& from, std::span<const ExprId> indices) {
  ir::ExprPool& e = k.out.exprs;
  const ir::DType type = k.out.memory(from.memory).type;
  ExprId inside;
  const ExprId index = register_index(k, *from.fragment, indices, &inside);
  auto load = [&](ExprId at) { return e.load(from.memory, type, std::vector<ExprId>{at}); };
  ExprId value;
  if (fixed_index(k, index)) {
    value = load(index);
  } else {
    const int64_t registers = from.fragment->registers();
    if (registers > kMaxRegisterChoices) {
      k.fail(DiagCode::target_unsupported, k.at.origin,
             "an element of '" + k.out.memory(from.memory).name + "' is chosen at run time among the " +
                 std::to_string(registers) + " registers of a thread",
             "copy it into a shared buffer first, or index it by the loop's own variables");
      return e.const_number(0, type);
    }
    // Halves the choices bit by bit of the index.
    std::vector<ExprId> choices;
    for (int64_t r = 0; r < registers; ++r) choices.push_back(load(e.const_int(r)));
    for (int64_t bit = 1; choices.size() > 1; bit *= 2) {
      const ExprId odd = k.simplified(e.binary(
          ir::ExprOp::ne, e.floormod(e.floordiv(index, e.const_int(bit)), e.const_int(2)), e.const_int(0)));
      std::vector<ExprId> next;
      for (size_t i = 0; i < choices.size(); i += 2)
        next.push_back(i + 1 < choices.size() ? e.select(odd, choices[i + 1], choices[i]) : choices[i]);
      choices = std::move(next);
    }
    value = choices[0];
  }
  return inside ? e.select(inside, value, e.const_number(0, type)) : value;
}

void store_register(LoweringContext& k, const FragmentView& to, std::span<const ExprId> indices, ExprId value,
                    ExprId predicate, thread::Block& out, const std::string& origin) {
  ir::ExprPool& e = k.out.exprs;
  ExprId inside;
  const ExprId index = register_index(k, *to.fragment, indices, &inside);
  predicate = both(k, predicate, inside);
  auto store = [&](ExprId at, ExprId when) {
    out.push_back(k.out.add(thread::Store{to.memory, at, value, when, false, ExprId()}, origin));
  };
  if (fixed_index(k, index)) return store(index, predicate);
  const int64_t registers = to.fragment->registers();
  if (registers > kMaxRegisterChoices)
    return k.fail(DiagCode::target_unsupported, origin,
                  "an element of '" + k.out.memory(to.memory).name + "' is chosen at run time among the " +
                      std::to_string(registers) + " registers of a thread",
                  "write it through a shared buffer, or index it by the loop's own variables");
  for (int64_t r = 0; r < registers; ++r)
    store(e.const_int(r), both(k, predicate, k.simplified(e.binary(ir::ExprOp::eq, index, e.const_int(r)))));
}

// The digits of the element against those of this thread.
ExprId holds(LoweringContext& k, const layout::Fragment& f, std::span<const ExprId> indices) {
  ir::ExprPool& e = k.out.exprs;
  const ThreadDigits threads = thread_digits(k, f);
  ExprId condition = threads.reached;
  for (const ThreadDigit& t : threads.digits) {
    if (t.digit.dim == layout::kReplica) continue;
    ExprId digit = e.floordiv(indices[static_cast<size_t>(t.digit.dim)], e.const_int(t.digit.weight));
    if (t.digit.weight * t.digit.extent < f.map().padded_extent(t.digit.dim))
      digit = e.floormod(digit, e.const_int(t.digit.extent));
    condition = both(k, condition, e.binary(ir::ExprOp::eq, k.simplified(digit), t.value));
  }
  return condition;
}

}  // namespace tilegen::lower
