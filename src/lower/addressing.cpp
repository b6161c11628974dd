// Expressions and addresses: program variables and element loads rewritten for the thread program.
#include "lower/addressing.h"

#include <algorithm>

#include "arith/prove.h"
#include "lower/accesses.h"
#include "lower/gpu/assumptions.h"
#include "lower/gpu/followed_indices.h"
#include "lower/gpu/lane_votes.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

using ir::ExprOp;

namespace {

// Rewrites a program expression under the variables' current meaning.
class ExprLowering final : public ir::ExprRewriter {
 public:
  ExprLowering(LoweringContext& k, ExprId root) : ExprRewriter(k.in.program.exprs, k.out.exprs), k_(k) {
    if (k.walk.of_lanes.empty()) return;
    for (const auto& [vote, said] : lower_votes(k, root)) replace(vote, said);
  }

 protected:
  ExprId rewrite_var(const ir::ExprNode& n) override {
    auto it = k_.names.vars.find(n.var());
    return it == k_.names.vars.end() ? to_->const_int(0, n.type) : it->second;
  }
  ExprId rewrite_load(const ir::ExprNode& n, std::span<const ExprId> indices) override {
    auto read = k_.in.ops.scalar_reads.find({k_.at.statement, n.object});
    k_.at.scalar_value = read == k_.in.ops.scalar_reads.end() ? ValueId() : read->second;
    ExprId element = load_element(k_, n.object, indices, false);
    k_.at.scalar_value = {};
    return element;
  }

 private:
  LoweringContext& k_;
};

bool reads_memory(const LoweringContext& k, ExprId e) {
  std::set<ExprId> seen;
  std::vector<Access> loads;
  collect_loads(k.out.exprs, e, seen, loads);
  return !loads.empty();
}

// Rows of a tensor that accesses may lie beyond its last one: what the hardware is left to bound must not
// come round 2^32 bytes.
constexpr int64_t kRowsBeyond[] = {16, 64, 128, 256, 1024};

// That an index is below the outermost extent of a contiguous tensor says that the element is below the
// tensor's end, where the other indices are not negative: that is left to the hardware.
void leave_to_hardware(LoweringContext& k, ir::BufferId buffer, ExprId row, ExprId rows, ExprId condition,
                       std::span<const ExprId> indices) {
  ir::ExprPool& e = k.out.exprs;
  const MemoryId tensor = memory_of(k, buffer);
  const auto guard = std::find_if(k.out.guards.begin(), k.out.guards.end(), [&](const thread::Guard& g) {
    return g.most_bytes > 0 && g.param == k.out.memory(tensor).param;
  });
  if (k.facts || guard == k.out.guards.end() || !k.in.program.buffer(buffer).strides.empty() ||
      reads_memory(k, condition))
    return;
  for (int64_t beyond : kRowsBeyond) {
    if (!arith::prove(k.ctx, e.lt(row, e.add(rows, e.const_int(beyond))))) continue;
    const bool further =
        std::none_of(std::begin(kRowsBeyond), std::end(kRowsBeyond), [&](int64_t rows_known) {
          return rows_known >= beyond && guard->reach == reach_of(k, tensor, rows_known);
        });
    if (further) guard->reach = reach_of(k, tensor, beyond);
    guard->bounds.insert(guard->bounds.end(), {condition, memory_index(k, buffer, indices)});
    return;
  }
}

}  // namespace

ExprId lower_expr(LoweringContext& k, ExprId program_expr) {
  const auto taken = k.at.taken.find(program_expr);
  return taken != k.at.taken.end() ? taken->second : ExprLowering(k, program_expr).rewrite(program_expr);
}

ExprId both(LoweringContext& k, ExprId a, ExprId b) {
  if (!a || (a && k.out.exprs.is_true(a))) return b && k.out.exprs.is_true(b) ? ExprId() : b;
  if (!b || k.out.exprs.is_true(b)) return a;
  return k.out.exprs.logical_and(a, b);
}

ValueId value_of(LoweringContext& k, ir::BufferId buffer) {
  if (k.at.scalar_value.valid()) return k.at.scalar_value;
  if (const ValueId v = k.at.op ? k.in.ops.value_of(*k.at.op, buffer) : ValueId(); v.valid()) return v;
  // A scalar of what no op touches.
  ValueId found;
  int count = 0;
  for (ValueId v : k.in.ops.values.ids())
    if (k.in.ops.values[v].buffer == buffer) {
      found = v;
      ++count;
    }
  if (count == 1) return found;
  k.fail(DiagCode::target_unsupported, k.at.origin,
         "buffer '" + k.in.program.buffer(buffer).name +
             "' is read between operations while it "
             "holds different values in different places",
         "read it through a buffer that is written once");
  return {};
}

MemoryId memory_of(LoweringContext& k, ir::BufferId buffer) {
  if (auto it = k.names.globals.find(buffer); it != k.names.globals.end()) return it->second;
  const ValueId v = value_of(k, buffer);
  if (auto copy = k.forms.copies.find(v); copy != k.forms.copies.end()) return copy->second.memory;
  return k.names.values[v];
}

const plan::ValuePlan& value_plan(LoweringContext& k, ir::BufferId buffer) {
  return k.plan_of_value(value_of(k, buffer));
}

ExprId layout_index(LoweringContext& k, const layout::Layout& l, int output,
                    std::span<const ExprId> indices) {
  ir::ExprPool& e = k.out.exprs;
  ExprId sum = e.const_int(0);
  for (const layout::Digit& d : l.digits()) {
    if (d.output != output || d.dim == layout::kReplica || d.stride == 0) continue;
    ExprId digit = e.floordiv(indices[static_cast<size_t>(d.dim)], e.const_int(d.weight));
    // The top digit needs no modulus: indices stay inside the padded extent.
    if (d.weight * d.extent < l.padded_extent(d.dim)) digit = e.floormod(digit, e.const_int(d.extent));
    sum = e.add(sum, e.mul(digit, d.stride));
  }
  return k.simplified(sum);
}

// Bits [base + shift, ..) of the byte address go into bits [base, ..); elements are powers of two of bytes,
// so the same holds of element indices with the positions counted in elements. The lanes of a vector that
// lies within a unit follow each other after it.
ExprId swizzled(LoweringContext& k, const layout::Layout& l, ExprId index) {
  const layout::Swizzle& s = l.swizzle();
  if (s.none()) return index;
  ir::ExprPool& e = k.out.exprs;
  const int element_bits = std::countr_zero(static_cast<uint64_t>(l.element_bytes()));
  const int64_t low = int64_t{1} << (s.base - element_bits), high = low << s.shift;
  ExprId lane;
  if (const auto sum = arith::to_affine(k.ctx, index))
    for (const auto& [term, factor] : sum->terms) {
      const auto vector =
          e[term].op == ir::ExprOp::var ? k.walk.lanes.find(e[term].var()) : k.walk.lanes.end();
      if (vector != k.walk.lanes.end() && factor == 1 && low % vector->second == 0) lane = term;
    }
  if (lane) {
    const ExprId first = k.simplified(e.sub(index, lane));
    if (arith::divisor_of(k.ctx, first) % k.walk.lanes.at(e[lane].var()) == 0)
      index = first;
    else
      lane = ExprId();
  }
  const ExprId key = e.floormod(e.floordiv(index, e.const_int(high)), e.const_int(int64_t{1} << s.bits));
  const ExprId unit = e.binary(ir::ExprOp::bit_xor, index, e.mul(key, low));
  return k.simplified(lane ? e.add(unit, lane) : unit);
}

ExprId in_slot(LoweringContext& k, ValueId value, ExprId index) {
  auto slot = k.names.slots.find(value);
  if (slot == k.names.slots.end()) return index;
  const thread::Memory& m = k.out.memory(k.names.values[value]);
  return k.simplified(k.out.exprs.add(index, k.out.exprs.mul(slot->second, m.elements / m.slots)));
}

ExprId memory_index(LoweringContext& k, ir::BufferId buffer, std::span<const ExprId> indices) {
  const ir::Buffer& b = k.in.program.buffer(buffer);
  ir::ExprPool& e = k.out.exprs;
  if (b.scope != ir::MemScope::global) {
    const plan::ValuePlan& v = value_plan(k, buffer);
    if (v.memory)
      return in_slot(k, value_of(k, buffer), swizzled(k, *v.memory, layout_index(k, *v.memory, 0, indices)));
    return layout_index(k, v.fragment->map(), layout::kRegister, indices);
  }
  ExprId sum = e.const_int(0);
  ExprId stride = e.const_int(1);
  for (size_t d = b.shape.size(); d-- > 0;) {
    if (!b.strides.empty()) stride = lower_expr(k, b.strides[d]);
    sum = e.add(sum, e.mul(indices[d], stride));
    if (b.strides.empty() && d > 0) stride = e.mul(stride, lower_expr(k, b.shape[d]));
  }
  return k.simplified(sum);
}

// A load may stand before the condition that its statement has, and none reads through a null address. Past a
// branch around its statement none is moved.
ExprId presence_predicate(LoweringContext& k, ir::BufferId buffer) {
  if (!k.in.program.buffer(buffer).optional) return ExprId();
  const ExprId there = k.simplified(k.names.vars.at(k.in.program.presence(buffer)));
  return k.out.exprs.is_true(there) ? ExprId() : there;
}

ExprId bounds_predicate(LoweringContext& k, ir::BufferId buffer, std::span<const ExprId> indices,
                        ExprId given) {
  // On-chip indices are checked in range where that is decidable; what is left (the untaken side of a select,
  // padding lanes) must not leave the buffer either.
  const ir::Buffer& b = k.in.program.buffer(buffer);
  ir::ExprPool& e = k.out.exprs;
  const bool tensor = b.scope == ir::MemScope::global;
  if (b.report == ir::Report::prints) return ExprId();  // indices tell what is appended, not where
  ExprId predicate = presence_predicate(k, buffer);
  if (tensor && k.walk.assumed_interior) return predicate;
  struct Requirement {
    ExprId condition;
    Bound bound;
  };
  const auto required = [&](size_t d, bool from_above) {
    const ExprId index = k.simplified(indices[d]);
    if (!from_above) return Requirement{k.simplified(e.le(e.const_int(0), index)), {index, ExprId()}};
    const ExprId extent = lower_expr(k, b.shape[d]);
    return Requirement{k.simplified(e.lt(index, extent)), {index, extent}};
  };
  const auto mark = k.ctx.mark();
  if (given) k.ctx.assume(given);
  std::vector<Requirement> list;
  std::vector<std::pair<size_t, bool>> asked;  // of the list: dimension, from above
  for (size_t d = 0; d < b.shape.size(); ++d)
    for (bool from_above : {false, true}) {
      const Requirement r = required(d, from_above);
      if (e.is_true(r.condition)) continue;
      if (tensor && d == 0 && from_above)
        leave_to_hardware(k, buffer, r.bound.index, r.bound.extent, r.condition, indices);
      list.push_back(r);
      asked.push_back({d, from_above});
    }
  k.ctx.rollback(mark);
  for (size_t i = 0; i < list.size(); ++i) {
    // A predicate is evaluated as a whole: an element read in it keeps its own, which `given` may have told.
    if (given && (reads_memory(k, list[i].condition) || reads_memory(k, list[i].bound.index)))
      list[i] = required(asked[i].first, asked[i].second);
    predicate = both(k, predicate, list[i].condition);
    if (tensor && k.block_threads()) k.walk.bounds.push_back(list[i].bound);
  }
  return predicate;
}

namespace {

bool is_written(const LoweringContext& k, ir::BufferId buffer) {
  return k.at.op && std::any_of(k.at.op->accesses.begin(), k.at.op->accesses.end(),
                                [&](const analysis::OpAccess& a) { return a.write && a.buffer == buffer; });
}

}  // namespace

ExprId load_element(LoweringContext& k, ir::BufferId buffer, std::span<const ExprId> indices, bool inside,
                    ExprId predicate) {
  if (k.in.program.buffer(buffer).scope != ir::MemScope::global && !value_of(k, buffer).valid())
    return k.out.exprs.const_number(0, k.in.program.buffer(buffer).type);  // reported; the program is dropped
  if (in_thread_registers(k, buffer)) return load_followed(k, buffer, indices);
  predicate = store_predicate(k, buffer, indices, predicate, inside);
  // Padding would read what belongs to other blocks.
  if (k.in.program.buffer(buffer).scope == ir::MemScope::global)
    predicate = both(k, k.walk.no_padding, predicate);
  else if (is_written(k, buffer))  // or what other threads write meanwhile
    predicate = both(k, k.walk.inside, predicate);
  std::vector<ExprId> operands = {memory_index(k, buffer, indices)};
  if (predicate) operands.push_back(predicate);
  return k.out.exprs.load(memory_of(k, buffer), k.in.program.buffer(buffer).type, operands);
}

ExprId store_predicate(LoweringContext& k, ir::BufferId buffer, std::span<const ExprId> indices,
                       ExprId predicate, bool inside) {
  if (inside) return both(k, predicate, presence_predicate(k, buffer));
  return both(k, predicate, bounds_predicate(k, buffer, indices));
}

ExprId streaming_condition(LoweringContext& k, const plan::OpPlan& plan, ir::BufferId buffer) {
  const ir::Buffer& b = k.in.program.buffer(buffer);
  if (!plan.streaming.value_or(false) || b.scope != ir::MemScope::global) return ExprId();
  ir::ExprPool& e = k.out.exprs;
  const int64_t element = ir::dtype_bytes(b.type);
  ExprId elements = e.const_int(1);
  for (ExprId extent : b.shape) elements = e.mul(elements, lower_expr(k, extent));
  k.ctx.assume(e.le(e.const_int(0), elements));  // the launch has found the bytes to fit 64 bits
  k.ctx.assume(e.le(elements, e.const_int(INT64_MAX / element)));
  const ExprId bytes = e.mul(elements, element);
  ExprId large = k.simplified(e.le(e.const_int(k.in.target.streaming_bytes), bytes));
  int64_t known = 1;
  return e.is_const_int(large, &known) && known == 0 ? ExprId() : large;
}

}  // namespace tilegen::lower
