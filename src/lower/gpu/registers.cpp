// Elements of fragments: which register of this thread holds one.
#include <algorithm>
#include <bit>

#include "lower/kernel_lowering.h"
#include "plan/register_choices.h"

namespace tilegen::lower {

using layout::Digit;

using plan::kMaxRegisterChoices;

bool KernelLowering::in_thread_registers(ir::BufferId buffer) {
  const ir::MemScope scope = p_.buffer(buffer).scope;
  if (target_.addressable_registers() || scope == ir::MemScope::global || scope == ir::MemScope::shared)
    return false;
  const int v = value_of(buffer);
  return v < 0 || plan_of_value(v).fragment.has_value();
}

FragmentView KernelLowering::held(int value) {
  if (auto it = converted_.find(value); it != converted_.end()) return it->second;
  return {values_[static_cast<size_t>(value)], &*schedule_.values[static_cast<size_t>(value)].fragment};
}

ExprId KernelLowering::some_factor_is_not_one(const analysis::KernelOp& op, const std::string& factors) {
  ir::ExprPool& e = out_.exprs;
  ExprId some;
  for (const analysis::OpAccess& a : op.accesses) {
    if (some || a.value < 0 || ops_.values[static_cast<size_t>(a.value)].name != factors) continue;
    const FragmentView f = held(a.value);
    const ir::DType type = out_.memory(f.memory).type;
    for (int64_t r = 0; r < f.fragment->registers(); ++r) {
      const ExprId factor = e.load(f.memory, type, std::vector<ExprId>{e.const_int(r)});
      const ExprId other = e.binary(ir::ExprOp::ne, factor, e.const_float(1, type));
      some = some ? e.binary(ir::ExprOp::logical_or, some, other) : other;
    }
  }
  return some;
}

MemoryId KernelLowering::add_registers(const std::string& name, ir::DType type, int64_t elements) {
  thread::Memory m;
  m.name = name + std::to_string(out_.memories.size());
  m.space = thread::Space::local;
  m.type = type;
  m.elements = elements;
  m.alignment = target_.vector_bytes;
  m.in_registers = true;
  return out_.add_memory(std::move(m));
}

int64_t KernelLowering::first_register(const FragmentView& h, int row_dim, int column_dim, int64_t row,
                                       int64_t column) {
  std::vector<int64_t> at(h.fragment->shape().size(), 0);
  at[static_cast<size_t>(row_dim)] = row;
  at[static_cast<size_t>(column_dim)] = column;
  return h.fragment->map().eval(at)[layout::kRegister];
}

// Threads may hold fewer elements than they have registers, or none; they compute on all registers all the
// same, and code generation must not see that as something that does not happen.
void KernelLowering::clear_unheld(const FragmentView& h, thread::Block& out, const std::string& origin,
                                  bool all) {
  ir::ExprPool& e = out_.exprs;
  const layout::Layout& map = h.fragment->map();
  bool unheld = false;
  for (int d = 0; d < h.fragment->rank(); ++d)
    unheld = unheld || map.padded_extent(d) != map.shape()[static_cast<size_t>(d)];
  int64_t holders = 1;
  for (const Digit& d : map.digits())
    if (d.output == layout::kThread && d.stride > 0) holders *= d.extent;
  if (!all && !unheld && holders == h.fragment->threads()) return;
  const thread::Memory& m = out_.memory(h.memory);
  const ExprId zero = e.const_number(0, m.type), extent = e.const_int(m.elements);
  const VarId var = out_.add_var("i" + std::to_string(out_.vars.size()), ir::VarKind::loop);
  const thread::StmtId store =
      out_.add(thread::Store{h.memory, e.var(var), zero, ExprId(), false, ExprId()}, origin);
  out.push_back(out_.add(thread::Loop{var, extent, thread::LoopForm::unrolled, {store}}, origin));
}

bool KernelLowering::overwrites(const analysis::KernelOp& op, int value) const {
  const auto* tile_op = p_.as<ir::TileOp>(op.stmt);
  return tile_op && std::all_of(op.accesses.begin(), op.accesses.end(), [&](const analysis::OpAccess& a) {
           return a.value != value ||
                  (a.write && !a.read &&
                   tile_op->operands[static_cast<size_t>(a.operand)].extents == p_.tile_shape(a.buffer));
         });
}

std::set<int> KernelLowering::moved_unwritten() const {
  std::set<int> moved;
  for (const analysis::KernelOp& op : ops_.ops) {
    for (const auto& c : analysis::conversions_of(p_, ops_, op, schedule_.values, schedule_.conversions))
      if (c.before) moved.insert(c.value);
    const plan::OpPlan* plan = plan::find_op(schedule_, op.path);
    for (const analysis::OpAccess& a : op.accesses)
      if (a.value >= 0 && plan && !plan->through_memory.empty()) moved.insert(a.value);
  }
  for (const analysis::CarriedSums& sums : scheduled_.carried)
    moved.insert(sums.split.begin(), sums.split.end());
  // The first op writes all of it, and always runs.
  for (auto it = moved.begin(); it != moved.end();) {
    const auto first = std::find_if(ops_.ops.begin(), ops_.ops.end(), [&](const analysis::KernelOp& op) {
      return std::any_of(op.accesses.begin(), op.accesses.end(),
                         [&](const auto& a) { return a.value == *it; });
    });
    const bool always =
        std::find(kernel_.body.begin(), kernel_.body.end(), first->stmt) != kernel_.body.end();
    it = always && overwrites(*first, *it) ? moved.erase(it) : std::next(it);
  }
  return moved;
}

bool KernelLowering::fixed_index(ExprId index) const {
  const ir::ExprNode& n = out_.exprs[index];
  if (n.op == ir::ExprOp::load) return false;
  if (n.op == ir::ExprOp::var) return fixed_vars_.count(n.var()) > 0;
  for (ExprId operand : {n.a, n.b, n.c})
    if (operand && !fixed_index(operand)) return false;
  return true;
}

ExprId KernelLowering::register_index(const layout::Fragment& f, std::span<const ExprId> indices,
                                      ExprId* inside) {
  ir::ExprPool& e = out_.exprs;
  for (size_t d = 0; d < indices.size(); ++d) {
    const ExprId low = e.le(e.const_int(0), indices[d]);
    const ExprId high = e.lt(indices[d], e.const_int(f.map().padded_extent(static_cast<int>(d))));
    if (!arith::prove(ctx_, low)) *inside = both(*inside, simplified(low));
    if (!arith::prove(ctx_, high)) *inside = both(*inside, simplified(high));
  }
  ExprId index = layout_index(f.map(), layout::kRegister, indices);
  if (*inside) {
    index = e.binary(ir::ExprOp::max, index, e.const_int(0));
    index = simplified(e.binary(ir::ExprOp::min, index, e.const_int(f.registers() - 1)));
  }
  return index;
}

ExprId KernelLowering::load_register(const FragmentView& from, std::span<const ExprId> indices) {
  ir::ExprPool& e = out_.exprs;
  const ir::DType type = out_.memory(from.memory).type;
  ExprId inside;
  const ExprId index = register_index(*from.fragment, indices, &inside);
  auto load = [&](ExprId at) { return e.load(from.memory, type, std::vector<ExprId>{at}); };
  ExprId value;
  if (fixed_index(index)) {
    value = load(index);
  } else {
    const int64_t registers = from.fragment->registers();
    if (registers > kMaxRegisterChoices) {
      fail(DiagCode::target_unsupported, origin_,
           "an element of '" + out_.memory(from.memory).name + "' is chosen at run time among the " +
               std::to_string(registers) + " registers of a thread",
           "copy it into a shared buffer first, or index it by the loop's own variables");
      return e.const_number(0, type);
    }
    // Halves the choices bit by bit of the index.
    std::vector<ExprId> choices;
    for (int64_t r = 0; r < registers; ++r) choices.push_back(load(e.const_int(r)));
    for (int64_t bit = 1; choices.size() > 1; bit *= 2) {
      const ExprId odd = simplified(e.binary(
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

void KernelLowering::store_register(const FragmentView& to, std::span<const ExprId> indices, ExprId value,
                                    ExprId predicate, thread::Block& out, const std::string& origin) {
  ir::ExprPool& e = out_.exprs;
  ExprId inside;
  const ExprId index = register_index(*to.fragment, indices, &inside);
  predicate = both(predicate, inside);
  auto store = [&](ExprId at, ExprId when) {
    out.push_back(out_.add(thread::Store{to.memory, at, value, when, false, ExprId()}, origin));
  };
  if (fixed_index(index)) return store(index, predicate);
  const int64_t registers = to.fragment->registers();
  if (registers > kMaxRegisterChoices)
    return fail(DiagCode::target_unsupported, origin,
                "an element of '" + out_.memory(to.memory).name + "' is chosen at run time among the " +
                    std::to_string(registers) + " registers of a thread",
                "write it through a shared buffer, or index it by the loop's own variables");
  for (int64_t r = 0; r < registers; ++r)
    store(e.const_int(r), both(predicate, simplified(e.binary(ir::ExprOp::eq, index, e.const_int(r)))));
}

// The digits of the element against those of this thread.
ExprId KernelLowering::holds(const layout::Fragment& f, std::span<const ExprId> indices) {
  ir::ExprPool& e = out_.exprs;
  const ThreadDigits threads = thread_digits(f);
  ExprId condition = threads.reached;
  for (const ThreadDigit& t : threads.digits) {
    if (t.digit.dim == layout::kReplica) continue;
    ExprId digit = e.floordiv(indices[static_cast<size_t>(t.digit.dim)], e.const_int(t.digit.weight));
    if (t.digit.weight * t.digit.extent < f.map().padded_extent(t.digit.dim))
      digit = e.floormod(digit, e.const_int(t.digit.extent));
    condition = both(condition, e.binary(ir::ExprOp::eq, simplified(digit), t.value));
  }
  return condition;
}

// Bits [base + shift, ..) of the byte address go into bits [base, ..); elements are powers of two of bytes,
// so the same holds of element indices with the positions counted in elements. The lanes of a vector that
// lies within a unit follow each other after it.
ExprId KernelLowering::swizzled(const layout::Layout& l, ExprId index) {
  const layout::Swizzle& s = l.swizzle();
  if (s.none()) return index;
  ir::ExprPool& e = out_.exprs;
  const int element_bits = std::countr_zero(static_cast<uint64_t>(l.element_bytes()));
  const int64_t low = int64_t{1} << (s.base - element_bits), high = low << s.shift;
  ExprId lane;
  if (const auto sum = arith::to_affine(ctx_, index))
    for (const auto& [term, factor] : sum->terms) {
      const auto vector = e[term].op == ir::ExprOp::var ? lanes_.find(e[term].var()) : lanes_.end();
      if (vector != lanes_.end() && factor == 1 && low % vector->second == 0) lane = term;
    }
  if (lane) {
    const ExprId first = simplified(e.sub(index, lane));
    if (arith::divisor_of(ctx_, first) % lanes_.at(e[lane].var()) == 0)
      index = first;
    else
      lane = ExprId();
  }
  const ExprId key = e.floormod(e.floordiv(index, e.const_int(high)), e.const_int(int64_t{1} << s.bits));
  const ExprId unit = e.binary(ir::ExprOp::bit_xor, index, e.mul(key, low));
  return simplified(lane ? e.add(unit, lane) : unit);
}

ExprId KernelLowering::in_slot(int value, ExprId index) {
  auto slot = slots_.find(value);
  if (slot == slots_.end()) return index;
  const thread::Memory& m = out_.memory(values_[static_cast<size_t>(value)]);
  return simplified(out_.exprs.add(index, out_.exprs.mul(slot->second, m.elements / m.slots)));
}

}  // namespace tilegen::lower
