// Expressions and addresses: program variables and element loads rewritten for the thread program.
#include "lower/accesses.h"
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

using ir::ExprOp;

// Rewrites a program expression under the variables' current meaning.
class ExprLowering final : public ir::ExprRewriter {
 public:
  explicit ExprLowering(KernelLowering& k) : ExprRewriter(k.p_.exprs, k.out_.exprs), k_(k) {}

 protected:
  ExprId rewrite_var(const ir::ExprNode& n) override {
    auto it = k_.vars_.find(n.var());
    return it == k_.vars_.end() ? to_->const_int(0, n.type) : it->second;
  }
  ExprId rewrite_load(const ir::ExprNode& n, std::span<const ExprId> indices) override {
    auto read = k_.ops_.scalar_reads.find({k_.statement_, n.object});
    k_.scalar_value_ = read == k_.ops_.scalar_reads.end() ? -1 : read->second;
    ExprId element = k_.load_element(n.object, indices, false);
    k_.scalar_value_ = -1;
    return element;
  }

 private:
  KernelLowering& k_;
};

ExprId KernelLowering::lower_expr(ExprId program_expr) {
  const auto taken = taken_.find(program_expr);
  return taken != taken_.end() ? taken->second : ExprLowering(*this).rewrite(program_expr);
}

ExprId KernelLowering::both(ExprId a, ExprId b) {
  if (!a || (a && out_.exprs.is_true(a))) return b && out_.exprs.is_true(b) ? ExprId() : b;
  if (!b || out_.exprs.is_true(b)) return a;
  return out_.exprs.logical_and(a, b);
}

int KernelLowering::value_of(ir::BufferId buffer) {
  if (scalar_value_ >= 0) return scalar_value_;
  int v = current_ ? ops_.value_of(*current_, buffer) : -1;
  if (v >= 0) return v;
  // A scalar of what no op touches.
  int found = -1, count = 0;
  for (size_t i = 0; i < ops_.values.size(); ++i)
    if (ops_.values[i].buffer == buffer) {
      found = static_cast<int>(i);
      ++count;
    }
  if (count == 1) return found;
  fail(DiagCode::target_unsupported, origin_,
       "buffer '" + p_.buffer(buffer).name +
           "' is read between operations while it "
           "holds different values in different places",
       "read it through a buffer that is written once");
  return -1;
}

MemoryId KernelLowering::memory_of(ir::BufferId buffer) {
  if (auto it = globals_.find(buffer); it != globals_.end()) return it->second;
  const int v = value_of(buffer);
  if (auto copy = copies_.find(v); copy != copies_.end()) return copy->second.memory;
  return values_[static_cast<size_t>(v)];
}

ExprId KernelLowering::layout_index(const layout::Layout& l, int output, std::span<const ExprId> indices) {
  ir::ExprPool& e = out_.exprs;
  ExprId sum = e.const_int(0);
  for (const layout::Digit& d : l.digits()) {
    if (d.output != output || d.dim == layout::kReplica || d.stride == 0) continue;
    ExprId digit = e.floordiv(indices[static_cast<size_t>(d.dim)], e.const_int(d.weight));
    // The top digit needs no modulus: indices stay inside the padded extent.
    if (d.weight * d.extent < l.padded_extent(d.dim)) digit = e.floormod(digit, e.const_int(d.extent));
    sum = e.add(sum, e.mul(digit, d.stride));
  }
  return simplified(sum);
}

ExprId KernelLowering::memory_index(ir::BufferId buffer, std::span<const ExprId> indices) {
  const ir::Buffer& b = p_.buffer(buffer);
  ir::ExprPool& e = out_.exprs;
  if (b.scope != ir::MemScope::global) {
    const plan::ValuePlan& v = value_plan(buffer);
    if (v.memory) return in_slot(value_of(buffer), swizzled(*v.memory, layout_index(*v.memory, 0, indices)));
    return layout_index(v.fragment->map(), layout::kRegister, indices);
  }
  ExprId sum = e.const_int(0);
  ExprId stride = e.const_int(1);
  for (size_t d = b.shape.size(); d-- > 0;) {
    if (!b.strides.empty()) stride = lower_expr(b.strides[d]);
    sum = e.add(sum, e.mul(indices[d], stride));
    if (b.strides.empty() && d > 0) stride = e.mul(stride, lower_expr(b.shape[d]));
  }
  return simplified(sum);
}

ExprId KernelLowering::bounds_predicate(ir::BufferId buffer, std::span<const ExprId> indices, ExprId given) {
  // On-chip indices are checked in range where that is decidable; what is left (the untaken side of a select,
  // padding lanes) must not leave the buffer either.
  const ir::Buffer& b = p_.buffer(buffer);
  ir::ExprPool& e = out_.exprs;
  const bool tensor = b.scope == ir::MemScope::global;
  if (tensor && assumed_interior_) return ExprId();
  struct Requirement {
    ExprId condition;
    Bound bound;
  };
  const auto required = [&](size_t d, bool from_above) {
    const ExprId index = simplified(indices[d]);
    if (!from_above) return Requirement{simplified(e.le(e.const_int(0), index)), {index, ExprId()}};
    const ExprId extent = lower_expr(b.shape[d]);
    return Requirement{simplified(e.lt(index, extent)), {index, extent}};
  };
  const auto mark = ctx_.mark();
  if (given) ctx_.assume(given);
  std::vector<Requirement> list;
  std::vector<std::pair<size_t, bool>> asked;  // of the list: dimension, from above
  for (size_t d = 0; d < b.shape.size(); ++d)
    for (bool from_above : {false, true}) {
      const Requirement r = required(d, from_above);
      if (e.is_true(r.condition)) continue;
      list.push_back(r);
      asked.push_back({d, from_above});
    }
  ctx_.rollback(mark);
  ExprId predicate;
  for (size_t i = 0; i < list.size(); ++i) {
    // A predicate is evaluated as a whole: an element read in it keeps its own, which `given` may have told.
    if (given && (reads_memory(list[i].condition) || reads_memory(list[i].bound.index)))
      list[i] = required(asked[i].first, asked[i].second);
    predicate = both(predicate, list[i].condition);
    if (tensor && block_threads()) bounds_.push_back(list[i].bound);
  }
  return predicate;
}

bool KernelLowering::reads_memory(ExprId e) const {
  std::set<ExprId> seen;
  std::vector<Access> loads;
  collect_loads(out_.exprs, e, seen, loads);
  return !loads.empty();
}

ExprId KernelLowering::load_element(ir::BufferId buffer, std::span<const ExprId> indices, bool inside,
                                    ExprId predicate) {
  if (p_.buffer(buffer).scope != ir::MemScope::global && value_of(buffer) < 0)
    return out_.exprs.const_number(0, p_.buffer(buffer).type);  // reported; the program is dropped
  if (in_thread_registers(buffer)) return load_register(held(value_of(buffer)), indices);
  predicate = store_predicate(buffer, indices, predicate, inside);
  // Padding would read what belongs to other blocks.
  if (p_.buffer(buffer).scope == ir::MemScope::global) predicate = both(no_padding_, predicate);
  std::vector<ExprId> operands = {memory_index(buffer, indices)};
  if (predicate) operands.push_back(predicate);
  return out_.exprs.load(memory_of(buffer), p_.buffer(buffer).type, operands);
}

ExprId KernelLowering::store_predicate(ir::BufferId buffer, std::span<const ExprId> indices, ExprId predicate,
                                       bool inside) {
  if (inside) return predicate;
  return both(predicate, bounds_predicate(buffer, indices));
}

ExprId KernelLowering::streaming_condition(const plan::OpPlan& plan, ir::BufferId buffer) {
  const ir::Buffer& b = p_.buffer(buffer);
  if (!plan.streaming.value_or(false) || b.scope != ir::MemScope::global) return ExprId();
  ir::ExprPool& e = out_.exprs;
  const int64_t element = ir::dtype_bytes(b.type);
  ExprId elements = e.const_int(1);
  for (ExprId extent : b.shape) elements = e.mul(elements, lower_expr(extent));
  ctx_.assume(e.le(e.const_int(0), elements));  // the launch has found the bytes to fit 64 bits
  ctx_.assume(e.le(elements, e.const_int(INT64_MAX / element)));
  const ExprId bytes = e.mul(elements, element);
  ExprId large = simplified(e.le(e.const_int(target_.streaming_bytes), bytes));
  int64_t known = 1;
  return e.is_const_int(large, &known) && known == 0 ? ExprId() : large;
}

}  // namespace tilegen::lower
