// Element-wise ops of a block of many threads.
#include <algorithm>

#include "analysis/projection.h"
#include "lower/accesses.h"
#include "lower/op_lowering.h"

namespace tilegen::lower {

void OpLowering::emit_thread_nest(const layout::Fragment& iteration, int64_t vector, const EmitPoint& emit) {
  check_holders(iteration);
  if (k_.failed()) return;
  const bool registers =
      std::any_of(op_.accesses.begin(), op_.accesses.end(),
                  [&](const analysis::OpAccess& a) { return k_.in_thread_registers(a.buffer); });
  k_.emit_walk(
      {iteration, vector, op_.path, &plan_, !registers},
      [&](const Nest& nest, thread::Block& body) {
        written_.clear();
        emit(nest, body);
      },
      out_);
}

// Threads with copies of a point read on their own what one of them writes: reading and writing need a
// barrier between them, so they may not be parts of one store, nor lanes of one vector.
bool OpLowering::reads_written(ExprId value) {
  std::set<ExprId> seen;
  std::vector<Access> loads;
  collect_loads(k_.out_.exprs, value, seen, loads);
  const bool reads =
      std::any_of(loads.begin(), loads.end(), [&](const Access& a) { return written_.count(a.memory); });
  k_.staged_ = k_.staged_ || reads;
  return reads;
}

void OpLowering::store_from_thread(const Nest& nest, ir::BufferId buffer, std::span<const ExprId> indices,
                                   ExprId value, ExprId condition, thread::Block& body) {
  if (k_.in_thread_registers(buffer)) {
    const int v = k_.value_of(buffer);
    if (v < 0) return;  // reported
    // Every thread that walks the point writes its copy; padding has registers of its own.
    reads_written(value);
    if (some_hold_.count(v)) condition = k_.both(condition, k_.holds(*k_.held(v).fragment, indices));
    k_.store_register(k_.held(v), indices, value, condition, body, op_.path);
    return;
  }
  ExprId predicate = k_.both(k_.both(ExprId(), nest.inside), condition);
  const ExprId bounds = k_.bounds_predicate(buffer, indices, predicate);
  predicate = k_.both(nest.writer, k_.both(predicate, bounds));
  int64_t known = 1;
  if (predicate && k_.out_.exprs.is_const_int(k_.simplified(predicate), &known) && known == 0) return;
  const MemoryId memory = k_.memory_of(buffer);
  if (nest.writer) {
    written_.insert(memory);
    // What one thread writes the others read, here or in a condition.
    for (const analysis::OpAccess& a : op_.accesses)
      k_.staged_ = k_.staged_ || (a.read && a.buffer == buffer);
  }
  if (reads_written(value)) {
    const ir::DType type = k_.out_.memory(memory).type;
    const MemoryId staged = k_.add_registers("staged", type, 1);
    const ExprId zero = k_.out_.exprs.const_int(0);
    body.push_back(k_.out_.add(thread::Store{staged, zero, value, condition, false, ExprId()}, op_.path));
    value = k_.out_.exprs.load(staged, type, std::vector<ExprId>{zero});
  }
  body.push_back(k_.out_.add(
      thread::Store{memory, k_.memory_index(buffer, indices), value, predicate, false, ExprId()}, op_.path));
}

int OpLowering::part_of_fragment() const {
  return analysis::part_of_fragment(k_.p_, op_,
                                    [&](int value) { return k_.plan_of_value(value).fragment.has_value(); });
}

bool OpLowering::walks_part() {
  const int part = part_of_fragment();
  if (part < 0) return false;
  const layout::Fragment& f = *k_.held(op_.accesses[static_cast<size_t>(part)].value).fragment;
  return f.replicas() != f.threads();
}

// operand[point] = value(point) where one operand is a box inside a fragment: every thread walks the elements
// it holds and skips those outside the box.
void OpLowering::emit_part(int operand, const PointValue& value) {
  ir::ExprPool& e = k_.out_.exprs;
  const int part = part_of_fragment();
  const ops::ElementAccess& a = op_.view.accesses[static_cast<size_t>(part)];
  const ir::Region& box = tile_op_->operands[static_cast<size_t>(part)];
  const FragmentView h = k_.held(op_.accesses[static_cast<size_t>(part)].value);
  const ir::BufferId dst = tile_op_->operands[static_cast<size_t>(operand)].buffer;
  int64_t bytes = 1;
  for (const ir::Region& r : tile_op_->operands)
    if (!k_.in_thread_registers(r.buffer))
      bytes = std::max<int64_t>(bytes, ir::dtype_bytes(k_.p_.buffer(r.buffer).type));
  const auto emit = [&](const Nest& walk, thread::Block& body) {
    std::vector<ExprId> point(op_.view.extents.size(), e.const_int(0));
    ExprId inside = k_.both(ExprId(), walk.inside);
    for (size_t d = 0; d < box.offsets.size(); ++d) {
      const ExprId at = k_.simplified(e.sub(walk.point[d], k_.lower_expr(box.offsets[d])));
      if (a.dim_of[d] >= 0) point[static_cast<size_t>(a.dim_of[d])] = at;
      const ExprId low = e.le(e.const_int(0), at), high = e.lt(at, e.const_int(box.extents[d]));
      if (!arith::prove(k_.ctx_, low)) inside = k_.both(inside, k_.simplified(low));
      if (!arith::prove(k_.ctx_, high)) inside = k_.both(inside, k_.simplified(high));
    }
    auto mark = k_.ctx_.mark();
    if (inside) k_.ctx_.assume(inside);
    no_padding_ = inside;
    const ExprId element = value(point);
    no_padding_ = ExprId();
    if (operand == part) {
      k_.store_register(h, walk.point, element, inside, body, op_.path);
    } else {
      Nest nest = walk;
      nest.inside = inside ? inside : e.const_int(1, ir::DType::boolean);
      store_from_thread(nest, dst, element_at(operand, point), element, ExprId(), body);
    }
    k_.ctx_.rollback(mark);
  };
  const int64_t vector = k_.facts_ ? k_.target_.vector_bytes / bytes : plan_.vector;
  k_.emit_walk({*h.fragment, vector, op_.path, &plan_}, emit, out_);
}

// Planning has put conversions where threads need what they do not hold; a schedule that was given may not
// have.
void OpLowering::check_holders(const layout::Fragment& iteration) {
  for (size_t i = 0; i < op_.view.accesses.size(); ++i) {
    const int v = op_.accesses[i].value;
    if (v < 0 || !k_.in_thread_registers(op_.accesses[i].buffer)) continue;
    const ops::ElementAccess& a = op_.view.accesses[i];
    const FragmentView h = k_.held(v);
    const auto needed = analysis::project(iteration, a, h.fragment->shape());
    const bool everywhere = h.fragment->replicas() == h.fragment->threads();
    bool held = needed ? h.fragment->covers(iteration, analysis::index_map(a)) : everywhere;
    if (!held && needed && a.write) {
      // More threads compute the element than hold it: the holders write.
      std::vector<int> same;
      for (int d = 0; d < h.fragment->rank(); ++d) same.push_back(d);
      held = needed->covers(*h.fragment, same);
      some_hold_.insert(v);
    }
    if (a.write && !needed) held = held && iteration.replicas() == iteration.threads();
    if (held) continue;
    if (k_.converted_.count(v))
      return k_.fail(DiagCode::target_unsupported, op_.path,
                     "it needs '" + k_.p_.buffer(a.buffer).name + "' in two layouts at once",
                     "copy it into a second buffer, or go through a shared buffer");
    return k_.fail(DiagCode::schedule_illegal, op_.path,
                   "threads that run this op do not hold the elements of '" + k_.p_.buffer(a.buffer).name +
                       "' it accesses: the value is held as " + h.fragment->to_text() + ", the op runs as " +
                       iteration.to_text(),
                   "leave the op's iteration or the value's layout out of the schedule to have them planned");
  }
}

}  // namespace tilegen::lower
