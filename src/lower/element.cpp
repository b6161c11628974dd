// Element-wise ops: copies, fills, parallel loops, lone stores.
#include <algorithm>

#include "analysis/run_ahead.h"
#include "arith/prove.h"
#include "lower/accesses.h"
#include "lower/addressing.h"
#include "lower/gpu/access_facts.h"
#include "lower/gpu/followed_indices.h"
#include "lower/gpu/full_tile.h"
#include "lower/gpu/registers.h"
#include "lower/iteration.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "ops/element_view.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

using ops::ElementAccess;

namespace {

bool takes_old_values(const ir::Program& p, ir::StmtId stmt) {
  bool found = false;
  const ir::Block one = {stmt};
  ir::for_each_statement(p, one, [&](ir::StmtId s, int) {
    const auto* store = p.as<ir::Store>(s);
    found = found || (store && (store->old || store->expected.valid()));
  });
  return found;
}

}  // namespace

ir::DType OpLowering::type(int operand) const {
  return k_.in.program.buffer(tile_op_->operands[static_cast<size_t>(operand)].buffer).type;
}

ExprId OpLowering::value() { return lower_expr(k_, tile_op_->value); }

std::vector<ExprId> OpLowering::element_at(int operand, std::span<const ExprId> point) const {
  const ir::Region& r = tile_op_->operands[static_cast<size_t>(operand)];
  const ElementAccess& a = op_.view.accesses[static_cast<size_t>(operand)];
  ir::ExprPool& e = k_.out.exprs;
  std::vector<ExprId> indices;
  for (size_t d = 0; d < r.offsets.size(); ++d) {
    ExprId offset = lower_expr(k_, r.offsets[d]);
    if (a.dim_of[d] >= 0) offset = e.add(offset, point[static_cast<size_t>(a.dim_of[d])]);
    if (!a.terms.empty() && !a.terms[d].empty()) {
      for (const ops::IndexTerm& t : a.terms[d]) {
        ExprId part = point[static_cast<size_t>(t.dim)];
        if (t.divisor != 1) part = e.floordiv(part, e.const_int(t.divisor));
        if (t.modulus != 0) part = e.floormod(part, e.const_int(t.modulus));
        offset = e.add(offset, e.mul(part, t.weight));
      }
      offset = k_.simplified(offset);
    }
    indices.push_back(offset);
  }
  return indices;
}

ExprId OpLowering::load(int operand, std::span<const ExprId> point) {
  if (k_.at.half == LoweredStatement::Half::deposit) return load_register(k_, loaded(), point);
  // Elsewhere bounds alone keep padding lanes out of memory.
  return load_element(k_, tile_op_->operands[static_cast<size_t>(operand)].buffer, element_at(operand, point),
                      k_.walk.interior, k_.walk.interior || k_.block_threads() ? no_padding_ : ExprId());
}

std::vector<int64_t> OpLowering::iteration_extents() const {
  return op_.form == analysis::OpForm::element ? op_.view.extents : tile_op_->operands[0].extents;
}

// Condition, free of iteration variables, under which a tile op's whole regions are in bounds: their first
// and last points are. Invalid when that is proven anyway.
ExprId OpLowering::interior_condition() {
  if (!tile_op_ || op_.form != analysis::OpForm::element) return ExprId();
  ir::ExprPool& e = k_.out.exprs;
  ExprId condition;
  std::vector<ExprId> origin(op_.view.extents.size(), e.const_int(0));
  for (size_t i = 0; i < tile_op_->operands.size(); ++i) {
    const ir::Buffer& b = k_.in.program.buffer(tile_op_->operands[i].buffer);
    if (b.scope != ir::MemScope::global) continue;
    std::vector<ExprId> corner = element_at(static_cast<int>(i), origin);
    for (size_t d = 0; d < b.shape.size(); ++d) {
      const int64_t extent = tile_op_->operands[i].extents[d];
      ExprId first = k_.simplified(corner[d]);
      ExprId low = e.le(e.const_int(0), first),
             high = e.le(first, e.sub(lower_expr(k_, b.shape[d]), e.const_int(extent)));
      if (!arith::prove(k_.ctx, low)) condition = both(k_, condition, k_.simplified(low));
      if (!arith::prove(k_.ctx, high)) condition = both(k_, condition, k_.simplified(high));
    }
  }
  return condition;
}

void OpLowering::emit_nest(const layout::Fragment& iteration, int64_t vector, const EmitPoint& emit) {
  if (k_.block_threads()) return emit_thread_nest(iteration, vector, emit);
  if (k_.facts) {
    if (interior_condition()) facts_of(k_, op_.path).edge_operations[vector];
    return;
  }
  if (k_.condition_search) {
    k_.condition_search->found = both(k_, k_.condition_search->found, interior_condition());
    return;
  }
  auto mark = k_.ctx.mark();
  Nest nest = make_nest(k_, iteration, vector, iteration_extents());
  thread::Block body;
  emit(nest, body);
  thread::Block loops = wrap(k_, nest, 0, nest.loops.size(), std::move(body), op_.path);
  out_.insert(out_.end(), loops.begin(), loops.end());
  k_.ctx.rollback(mark);
}

void OpLowering::for_each_point(int operand, const PointValue& value) {
  if (plan_.engine == plan::Engine::async_copy && plan_.iteration && k_.block_threads()) {
    if (!k_.facts) return async_copy_points(moved(operand));
    if (!find_async_facts(moved(operand))) return;
  }
  if (plan_.engine == plan::Engine::tensor_copy && k_.block_threads() && store_in_bulk(operand)) return;
  if (plan_.matrix_stores.value_or(false)) {
    if (!k_.facts) store_matrices(operand);
    return;
  }
  if (k_.block_threads() && walks_part()) return emit_part(operand, value);
  if (!has_iteration()) return;
  if (k_.at.half != LoweredStatement::Half::none) return load_or_deposit(operand, value);
  if (plan_.transposing.value_or(false)) return load_and_deposit(operand, value);
  ir::BufferId dst = tile_op_->operands[static_cast<size_t>(operand)].buffer;
  emit_nest(*plan_.iteration, plan_.vector, [&](const Nest& nest, thread::Block& body) {
    if (!k_.block_threads()) no_padding_ = both(k_, ExprId(), nest.inside);
    store_element(nest, dst, element_at(operand, nest.point), value(nest.point), ExprId(), body);
  });
}

void OpLowering::update_each_point(int operand, ir::AtomicKind kind, const PointValue& value) {
  atomic_ = kind;
  for_each_point(operand, value);
  atomic_.reset();
}

void OpLowering::store_element(const Nest& nest, ir::BufferId buffer, std::span<const ExprId> indices,
                               ExprId value, ExprId condition, thread::Block& body) {
  if (k_.block_threads()) return store_from_thread(nest, buffer, indices, value, condition, body);
  ExprId predicate = both(k_, both(k_, ExprId(), nest.inside), condition);
  predicate = store_predicate(k_, buffer, indices, predicate, tile_op_ && k_.walk.interior);
  ExprId streaming = streaming_condition(k_, plan_, buffer);
  body.push_back(
      k_.out.add(thread::Store{memory_of(k_, buffer), memory_index(k_, buffer, indices), value, predicate,
                               !atomic_ && streaming.valid(), atomic_ ? ExprId() : streaming, atomic_,
                               fetch_.expected, fetch_.old, fetch_.index, order_},
                 op_.path));
}

ExprId OpLowering::frozen_condition(const Nest& nest, ExprId condition, ExprId around, thread::Block& body) {
  ir::ExprPool& e = k_.out.exprs;
  bool vector = !nest.loops.empty() && nest.loops.back().form == thread::LoopForm::vectorized;
  thread::Memory m;
  m.name = "condition" + std::to_string(k_.out.memories.size());
  m.space = thread::Space::local;
  m.type = ir::DType::boolean;
  m.elements = vector ? nest.loops.back().extent : 1;
  m.alignment = vector ? nest.loops.back().extent : 1;
  m.in_registers = true;
  MemoryId memory = k_.out.add_memory(std::move(m));
  ExprId lane = vector ? e.var(nest.loops.back().var) : e.const_int(0);
  // A thread that is not in the if around reads nothing of what is written in there.
  if (!k_.block_threads()) around = ExprId();
  if (around.valid())
    body.push_back(
        k_.out.add(thread::Store{memory, lane, e.const_int(0, ir::DType::boolean), ExprId(), false, ExprId()},
                   op_.path));
  body.push_back(k_.out.add(thread::Store{memory, lane, condition, around, false, ExprId()}, op_.path));
  return e.load(memory, ir::DType::boolean, std::vector<ExprId>{lane});
}

bool OpLowering::reads_what_is_written(ExprId condition) const {
  std::set<MemoryId> written;
  for (const analysis::OpAccess& a : op_.accesses)
    if (a.write) written.insert(memory_of(k_, a.buffer));
  std::set<ExprId> seen;
  std::vector<Access> loads;
  collect_loads(k_.out.exprs, condition, seen, loads);
  return std::any_of(loads.begin(), loads.end(), [&](const Access& a) {
    return std::any_of(written.begin(), written.end(),
                       [&](MemoryId m) { return may_alias(k_.out, m, a.memory); });
  });
}

// What the store expects, and where its old value goes. A tensor's bounds may stop the store, but 0 is its
// old value then. Gives the store's condition: the place is inside its tile.
ExprId OpLowering::begin_fetch(const ir::Store& s, std::span<const ExprId> indices, const Nest& nest,
                               ExprId condition, thread::Block& body) {
  fetch_ = {};
  if (s.expected.valid()) fetch_.expected = lower_expr(k_, s.expected);
  if (!s.old) return condition;
  std::vector<ExprId> place;
  for (ExprId index : s.old->indices) place.push_back(k_.simplified(lower_expr(k_, index)));
  const ExprId given = both(k_, both(k_, ExprId(), nest.inside), condition);
  condition = both(k_, condition, bounds_predicate(k_, s.old->buffer, place, given));
  if (bounds_predicate(k_, s.buffer, indices, given).valid()) {
    const ExprId zero = k_.out.exprs.const_number(0, k_.in.program.buffer(s.buffer).type);
    store_element(nest, s.old->buffer, place, zero, condition, body);
  }
  fetch_.old = memory_of(k_, s.old->buffer);
  fetch_.index = memory_index(k_, s.old->buffer, place);
  return condition;
}

// Planning leaves it out where no thread walks over elements; a given schedule may do so elsewhere.
bool OpLowering::has_iteration() {
  if (plan_.iteration) return true;
  k_.fail(DiagCode::schedule_illegal, op_.path,
          std::string("the schedule has no iteration layout for it, which engine '") +
              plan::engine_name(*plan_.engine) + "' needs here",
          "leave the op out of the schedule to have it planned");
  return false;
}

void OpLowering::parallel_loop() {
  if (!has_iteration()) return;
  const auto* loop = k_.in.program.as<ir::Loop>(op_.stmt);
  const auto* lone = k_.in.program.as<ir::Store>(op_.stmt);
  if (plan_.engine == plan::Engine::async_copy && k_.block_threads()) {
    const auto* store = loop ? analysis::moving_store(k_.in.program, op_) : nullptr;
    if (!store)
      return k_.fail(
          DiagCode::schedule_illegal, op_.path,
          "the schedule gives asynchronous copies, but it does more than move elements of a tensor to a tile",
          "leave the engine out to let the planner choose");
    if (!k_.facts) return async_copy_points(moved(*loop, *store));
    if (!find_async_facts(moved(*loop, *store))) return;
  }
  // Old values come one after the other.
  const int64_t vector = takes_old_values(k_.in.program, op_.stmt) ? 1 : plan_.vector;
  emit_nest(*plan_.iteration, vector, [&](const Nest& nest, thread::Block& body) {
    if (loop)
      for (size_t i = 0; i < loop->vars.size(); ++i) k_.names.vars[loop->vars[i]] = nest.point[i];
    if (k_.block_threads()) follow_indices(k_, op_);
    ir::ExprPool& e = k_.out.exprs;
    auto emit_store = [&](const ir::Store& s, ExprId condition) {
      std::vector<ExprId> indices;
      for (ExprId index : s.indices) indices.push_back(k_.simplified(lower_expr(k_, index)));
      if (s.atomic) condition = begin_fetch(s, indices, nest, condition, body);
      atomic_ = s.atomic;
      order_ = s.order;
      store_element(nest, s.buffer, indices, lower_expr(k_, s.value), condition, body);
      atomic_.reset();
      order_ = {};
      fetch_ = {};
    };
    std::function<void(const ir::Block&, ExprId)> statements = [&](const ir::Block& b, ExprId condition) {
      for (ir::StmtId id : b) {
        if (const auto* store = k_.in.program.as<ir::Store>(id)) {
          emit_store(*store, condition);
        } else if (const auto* branch = k_.in.program.as<ir::Branch>(id)) {
          ExprId taken = k_.simplified(lower_expr(k_, branch->condition));
          if (!k_.block_threads() || reads_what_is_written(taken))
            taken = frozen_condition(nest, taken, condition, body);
          else
            record_condition(k_, taken);
          statements(branch->then_body, both(k_, condition, taken));
          statements(branch->else_body, both(k_, condition, e.unary(ir::ExprOp::logical_not, taken)));
        }
      }
    };
    if (lone)
      emit_store(*lone, ExprId());
    else
      statements(loop->body, ExprId());
  });
}

}  // namespace tilegen::lower
