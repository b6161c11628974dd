// Element-wise ops of a block of many threads.
#include <algorithm>

#include "analysis/lane_reads.h"
#include "analysis/projection.h"
#include "arith/prove.h"
#include "ir/store_parts.h"
#include "lower/accesses.h"
#include "lower/addressing.h"
#include "lower/gpu/element_nest.h"
#include "lower/gpu/followed_indices.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "ops/element_view.h"
#include "support/diag_codes.h"
#include "support/small_set.h"

namespace tilegen::lower {

void OpLowering::emit_thread_nest(const layout::Fragment& iteration, int64_t vector, const EmitPoint& emit) {
  k_.walk.of_lanes.clear();
  check_holders(iteration);
  if (k_.failed()) return;
  const bool masks = may_mask();
  const bool looked_at = k_.facts && k_.facts->for_estimate && moves_registers_alone();
  if (looked_at && !masks) return;
  const bool registers =
      k_.at.half != LoweredStatement::Half::none ||
      std::any_of(op_.accesses.begin(), op_.accesses.end(),
                  [&](const analysis::OpAccess& a) { return in_thread_registers(k_, a.buffer); });
  emit_walk(
      k_,
      {iteration, k_.walk.of_lanes.empty() && !looked_at ? vector : 1, op_.path, &plan_, !registers, masks},
      [&](const Nest& nest, thread::Block& body) {
        written_.clear();
        k_.walk.inside = both(k_, ExprId(), nest.inside);
        k_.walk.point = &nest.point;
        k_.walk.body = &body;
        k_.walk.iteration = &iteration;
        emit(nest, body);
        k_.walk.followed.clear();
        k_.walk.point = nullptr;
        k_.walk.body = nullptr;
        k_.walk.iteration = nullptr;
        k_.walk.inside = ExprId();
      },
      out_);
}

// Every element that the op touches is in registers, at a place of its own for each point: no access is a
// vector, and nothing of it is out of bounds.
bool OpLowering::moves_registers_alone() const {
  const auto of_point = [](const ops::ElementAccess& a) {
    for (size_t d = 0; d < a.dim_of.size(); ++d)
      if (a.unknown[d].valid() || a.offset[d] != 0 || !(a.terms.empty() || a.terms[d].empty())) return false;
    return true;
  };
  return k_.at.half == LoweredStatement::Half::none && k_.walk.of_lanes.empty() &&
         std::all_of(op_.accesses.begin(), op_.accesses.end(),
                     [&](const analysis::OpAccess& a) {
                       return a.value.valid() && in_thread_registers(k_, a.buffer);
                     }) &&
         std::all_of(op_.view.accesses.begin(), op_.view.accesses.end(), of_point);
}

// Selects and branches of the user's, elements of registers at computed places, which may not be there, and
// stores of threads that hold an element where others do not.
bool OpLowering::may_mask() const {
  const ir::Program& p = k_.in.program;
  const auto computed = [&](ExprId index) { return p.exprs[index].op != ir::ExprOp::var; };
  bool found = !some_hold_.empty();
  std::vector<ExprId> todo;
  if (tile_op_) {
    todo.push_back(tile_op_->value);
    for (const ir::Region& r : tile_op_->operands)
      found = found || (in_thread_registers(k_, r.buffer) &&
                        !std::all_of(r.offsets.begin(), r.offsets.end(), [&](ExprId offset) {
                          int64_t at = 1;
                          return p.exprs.is_const_int(offset, &at) && at == 0;
                        }));
  }
  const auto statement = [&](ir::StmtId id) {
    found = found || p.as<ir::Branch>(id);
    const auto* store = p.as<ir::Store>(id);
    if (!store) return;
    found = found || std::any_of(store->indices.begin(), store->indices.end(), computed);
    ir::visit_exprs(*store, [&](ExprId e) { todo.push_back(e); });
  };
  statement(op_.stmt);
  if (const auto* loop = p.as<ir::Loop>(op_.stmt))
    ir::for_each_statement(p, loop->body, [&](ir::StmtId id, int) { statement(id); });
  SmallSet<ExprId, 32> seen;
  while (!found && !todo.empty()) {
    const ExprId at = todo.back();
    todo.pop_back();
    if (!at || !seen.insert(at)) continue;
    const ir::ExprNode& n = p.exprs[at];
    const auto indices = n.op == ir::ExprOp::load ? p.exprs.indices(at) : decltype(p.exprs.indices(at)){};
    found = n.op == ir::ExprOp::select || std::any_of(indices.begin(), indices.end(), computed);
    for (ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
  }
  return found;
}

// Threads with copies of a point read on their own what one of them writes: reading and writing need a
// barrier between them, so they may not be parts of one store, nor lanes of one vector.
bool OpLowering::reads_written(ExprId value) {
  std::set<ExprId> seen;
  std::vector<Access> loads;
  collect_loads(k_.out.exprs, value, seen, loads);
  const bool reads =
      std::any_of(loads.begin(), loads.end(), [&](const Access& a) { return written_.count(a.memory); });
  k_.walk.staged = k_.walk.staged || reads;
  return reads;
}

void OpLowering::store_from_thread(const Nest& nest, ir::BufferId buffer, std::span<const ExprId> indices,
                                   ExprId value, ExprId condition, thread::Block& body) {
  if (in_thread_registers(k_, buffer)) {
    const ValueId v = value_of(k_, buffer);
    if (!v.valid()) return;  // reported
    // Every thread that walks the point writes its copy; padding has registers of its own.
    reads_written(value);
    const std::vector<ExprId> element = followed_indices(k_, buffer, indices);
    if (some_hold_.count(v))
      condition = both(k_, condition, holds(k_, *fragment_view(k_, v).fragment, element));
    store_register(k_, fragment_view(k_, v), element, value, condition, body, op_.path);
    return;
  }
  ExprId predicate = both(k_, both(k_, ExprId(), nest.inside), condition);
  const ExprId bounds = bounds_predicate(k_, buffer, indices, predicate);
  predicate = both(k_, nest.writer, both(k_, predicate, bounds));
  int64_t known = 1;
  if (predicate && k_.out.exprs.is_const_int(k_.simplified(predicate), &known) && known == 0) return;
  const MemoryId memory = memory_of(k_, buffer);
  if (nest.writer && !atomic_) {  // in a loop nothing reads what is combined
    written_.insert(memory);
    // What one thread writes the others read, here or in a condition.
    for (const analysis::OpAccess& a : op_.accesses)
      k_.walk.staged = k_.walk.staged || (a.read && a.buffer == buffer);
  }
  if (nest.writer && fetch_.old.valid()) written_.insert(fetch_.old);
  // Old values come one after the other, and all threads read what one has got.
  if (atomic_ && (fetch_.old.valid() || fetch_.expected.valid())) k_.walk.staged = true;
  if (reads_written(value)) {
    const ir::DType type = k_.out.memory(memory).type;
    const MemoryId staged = add_registers(k_, "staged", type, 1);
    const ExprId zero = k_.out.exprs.const_int(0);
    body.push_back(k_.out.add(thread::Store{staged, zero, value, condition, false, ExprId()}, op_.path));
    value = k_.out.exprs.load(staged, type, std::vector<ExprId>{zero});
  }
  body.push_back(
      k_.out.add(thread::Store{memory, memory_index(k_, buffer, indices), value, predicate, false, ExprId(),
                               atomic_, fetch_.expected, fetch_.old, fetch_.index, order_},
                 op_.path));
}

int OpLowering::part_of_fragment() const {
  return analysis::part_of_fragment(
      k_.in.program, op_, [&](ValueId value) { return k_.plan_of_value(value).fragment.has_value(); });
}

bool OpLowering::walks_part() {
  const int part = part_of_fragment();
  if (part < 0) return false;
  const layout::Fragment& f = *fragment_view(k_, op_.accesses[static_cast<size_t>(part)].value).fragment;
  return f.replicas() != f.threads();
}

// operand[point] = value(point) where one operand is a box inside a fragment: every thread walks the elements
// it holds and skips those outside the box.
void OpLowering::emit_part(int operand, const PointValue& value) {
  ir::ExprPool& e = k_.out.exprs;
  const int part = part_of_fragment();
  const ops::ElementAccess& a = op_.view.accesses[static_cast<size_t>(part)];
  const ir::Region& box = tile_op_->operands[static_cast<size_t>(part)];
  const FragmentView h = fragment_view(k_, op_.accesses[static_cast<size_t>(part)].value);
  const ir::BufferId dst = tile_op_->operands[static_cast<size_t>(operand)].buffer;
  int64_t bytes = 1;
  for (const ir::Region& r : tile_op_->operands)
    if (!in_thread_registers(k_, r.buffer))
      bytes = std::max<int64_t>(bytes, ir::dtype_bytes(k_.in.program.buffer(r.buffer).type));
  const auto emit = [&](const Nest& walk, thread::Block& body) {
    std::vector<ExprId> point(op_.view.extents.size(), e.const_int(0));
    ExprId inside = both(k_, ExprId(), walk.inside);
    for (size_t d = 0; d < box.offsets.size(); ++d) {
      const ExprId at = k_.simplified(e.sub(walk.point[d], lower_expr(k_, box.offsets[d])));
      if (a.dim_of[d] >= 0) point[static_cast<size_t>(a.dim_of[d])] = at;
      const ExprId low = e.le(e.const_int(0), at), high = e.lt(at, e.const_int(box.extents[d]));
      if (!arith::prove(k_.ctx, low)) inside = both(k_, inside, k_.simplified(low));
      if (!arith::prove(k_.ctx, high)) inside = both(k_, inside, k_.simplified(high));
    }
    auto mark = k_.ctx.mark();
    if (inside) k_.ctx.assume(inside);
    no_padding_ = inside;
    const ExprId element = value(point);
    no_padding_ = ExprId();
    if (operand == part) {
      store_register(k_, h, walk.point, element, inside, body, op_.path);
    } else {
      Nest nest = walk;
      nest.inside = inside ? inside : e.const_int(1, ir::DType::boolean);
      store_from_thread(nest, dst, element_at(operand, point), element, ExprId(), body);
    }
    k_.ctx.rollback(mark);
  };
  const int64_t vector = k_.facts ? k_.in.target.vector_bytes / bytes : plan_.vector;
  emit_walk(k_, {*h.fragment, vector, op_.path, &plan_}, emit, out_);
}

// Planning has put conversions where threads need what they do not hold; a schedule that was given may not
// have.
void OpLowering::check_holders(const layout::Fragment& iteration) {
  for (size_t i = 0; i < op_.view.accesses.size(); ++i) {
    const ValueId v = op_.accesses[i].value;
    if (!v.valid() || !in_thread_registers(k_, op_.accesses[i].buffer)) continue;
    const ops::ElementAccess& a = op_.view.accesses[i];
    const FragmentView h = fragment_view(k_, v);
    const auto needed = analysis::project(iteration, a, h.fragment->shape());
    const bool everywhere = h.fragment->replicas() == h.fragment->threads();
    bool held = analysis::covers(*h.fragment, iteration, a) || (!needed && everywhere);
    if (!held && needed && a.write) {
      // More threads compute the element than hold it: the holders write.
      std::vector<int> same;
      for (int d = 0; d < h.fragment->rank(); ++d) same.push_back(d);
      held = needed->covers(*h.fragment, same);
      some_hold_.insert(v);
    }
    if (a.write && !needed) held = held && iteration.replicas() == iteration.threads();
    if (!held && !k_.forms.converted.count(v)) {
      const ir::DType type = k_.in.program.buffer(a.buffer).type;
      held = analysis::held_by_lanes(*h.fragment, iteration, a, type, k_.in.target);
      if (held) k_.walk.of_lanes.insert(i);
    }
    if (held) continue;
    if (k_.forms.converted.count(v))
      return k_.fail(DiagCode::target_unsupported, op_.path,
                     "it needs '" + k_.in.program.buffer(a.buffer).name + "' in two layouts at once",
                     "copy it into a second buffer, or go through a shared buffer");
    return k_.fail(DiagCode::schedule_illegal, op_.path,
                   "threads that run this op do not hold the elements of '" +
                       k_.in.program.buffer(a.buffer).name + "' it accesses: the value is held as " +
                       h.fragment->to_text() + ", the op runs as " + iteration.to_text(),
                   "leave the op's iteration or the value's layout out of the schedule to have them planned");
  }
}

}  // namespace tilegen::lower
