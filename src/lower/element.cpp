// Element-wise ops: copies, fills, parallel loops, lone stores.
#include <algorithm>

#include "lower/accesses.h"
#include "lower/op_lowering.h"

namespace tilegen::lower {

using ops::ElementAccess;

ir::DType OpLowering::type(int operand) const {
  return k_.p_.buffer(tile_op_->operands[static_cast<size_t>(operand)].buffer).type;
}

ExprId OpLowering::value() { return k_.lower_expr(tile_op_->value); }

std::vector<ExprId> OpLowering::element_at(int operand, std::span<const ExprId> point) const {
  const ir::Region& r = tile_op_->operands[static_cast<size_t>(operand)];
  const ElementAccess& a = op_.view.accesses[static_cast<size_t>(operand)];
  std::vector<ExprId> indices;
  for (size_t d = 0; d < r.offsets.size(); ++d) {
    ExprId offset = k_.lower_expr(r.offsets[d]);
    indices.push_back(a.dim_of[d] < 0 ? offset
                                      : k_.out_.exprs.add(offset, point[static_cast<size_t>(a.dim_of[d])]));
  }
  return indices;
}

ExprId OpLowering::load(int operand, std::span<const ExprId> point) {
  // Elsewhere bounds alone keep padding lanes out of memory.
  return k_.load_element(tile_op_->operands[static_cast<size_t>(operand)].buffer, element_at(operand, point),
                         k_.interior_, k_.interior_ || k_.block_threads() ? no_padding_ : ExprId());
}

std::vector<int64_t> OpLowering::iteration_extents() const {
  return op_.form == analysis::OpForm::element ? op_.view.extents : tile_op_->operands[0].extents;
}

// Condition, free of iteration variables, under which a tile op's whole regions are in bounds: their first
// and last points are. Invalid when that is proven anyway.
ExprId OpLowering::interior_condition() {
  if (!tile_op_ || op_.form != analysis::OpForm::element) return ExprId();
  ir::ExprPool& e = k_.out_.exprs;
  ExprId condition;
  std::vector<ExprId> origin(op_.view.extents.size(), e.const_int(0));
  for (size_t i = 0; i < tile_op_->operands.size(); ++i) {
    const ir::Buffer& b = k_.p_.buffer(tile_op_->operands[i].buffer);
    if (b.scope != ir::MemScope::global) continue;
    const ElementAccess& a = op_.view.accesses[i];
    std::vector<ExprId> corner = element_at(static_cast<int>(i), origin);
    for (size_t d = 0; d < b.shape.size(); ++d) {
      int64_t extent = a.dim_of[d] < 0 ? 1 : op_.view.extents[static_cast<size_t>(a.dim_of[d])];
      ExprId first = k_.simplified(corner[d]);
      ExprId low = e.le(e.const_int(0), first),
             high = e.le(first, e.sub(k_.lower_expr(b.shape[d]), e.const_int(extent)));
      if (!arith::prove(k_.ctx_, low)) condition = k_.both(condition, k_.simplified(low));
      if (!arith::prove(k_.ctx_, high)) condition = k_.both(condition, k_.simplified(high));
    }
  }
  return condition;
}

void OpLowering::emit_nest(const layout::Fragment& iteration, int64_t vector, const EmitPoint& emit) {
  if (k_.block_threads()) return emit_thread_nest(iteration, vector, emit);
  auto emit_once = [&](thread::Block& out) {
    auto mark = k_.ctx_.mark();
    Nest nest = k_.make_nest(iteration, vector, iteration_extents());
    thread::Block body;
    emit(nest, body);
    thread::Block loops = k_.wrap(nest, 0, nest.loops.size(), std::move(body), op_.path);
    out.insert(out.end(), loops.begin(), loops.end());
    k_.ctx_.rollback(mark);
  };
  const ExprId interior = interior_condition();
  if (k_.facts_) {
    if (interior) k_.facts_of(op_.path).edge_operations[vector];
    return;
  }
  if (!interior || !plan_.full_tile_version.value_or(false)) return emit_once(out_);
  thread::Branch branch{interior, {}, {}};
  k_.interior_ = true;
  emit_once(branch.then_body);
  k_.interior_ = false;
  emit_once(branch.else_body);
  out_.push_back(k_.out_.add(std::move(branch), op_.path));
}

void OpLowering::for_each_point(int operand, const PointValue& value) {
  if (plan_.engine == plan::Engine::async_copy && plan_.iteration && k_.block_threads()) {
    if (!k_.facts_) return async_copy_points(operand);
    find_async_facts(operand);
  }
  if (plan_.engine == plan::Engine::tensor_copy && k_.block_threads() && store_in_bulk(operand)) return;
  if (plan_.matrix_stores.value_or(false)) {
    if (!k_.facts_) store_matrices(operand);
    return;
  }
  if (k_.block_threads() && walks_part()) return emit_part(operand, value);
  if (!has_iteration()) return;
  ir::BufferId dst = tile_op_->operands[static_cast<size_t>(operand)].buffer;
  emit_nest(*plan_.iteration, plan_.vector, [&](const Nest& nest, thread::Block& body) {
    if (!k_.block_threads()) no_padding_ = k_.both(ExprId(), nest.inside);
    store_element(nest, dst, element_at(operand, nest.point), value(nest.point), ExprId(), body);
  });
}

void OpLowering::store_element(const Nest& nest, ir::BufferId buffer, std::span<const ExprId> indices,
                               ExprId value, ExprId condition, thread::Block& body) {
  if (k_.block_threads()) return store_from_thread(nest, buffer, indices, value, condition, body);
  ExprId predicate = k_.both(k_.both(ExprId(), nest.inside), condition);
  predicate = k_.store_predicate(buffer, indices, predicate, tile_op_ && k_.interior_);
  ExprId streaming = k_.streaming_condition(plan_, buffer);
  body.push_back(k_.out_.add(thread::Store{k_.memory_of(buffer), k_.memory_index(buffer, indices), value,
                                           predicate, streaming.valid(), streaming},
                             op_.path));
}

ExprId OpLowering::frozen_condition(const Nest& nest, ExprId condition, thread::Block& body) {
  ir::ExprPool& e = k_.out_.exprs;
  bool vector = !nest.loops.empty() && nest.loops.back().form == thread::LoopForm::vectorized;
  thread::Memory m;
  m.name = "condition" + std::to_string(k_.out_.memories.size());
  m.space = thread::Space::local;
  m.type = ir::DType::boolean;
  m.elements = vector ? nest.loops.back().extent : 1;
  m.alignment = vector ? nest.loops.back().extent : 1;
  m.in_registers = true;
  MemoryId memory = k_.out_.add_memory(std::move(m));
  ExprId lane = vector ? e.var(nest.loops.back().var) : e.const_int(0);
  body.push_back(k_.out_.add(thread::Store{memory, lane, condition, ExprId(), false, ExprId()}, op_.path));
  return e.load(memory, ir::DType::boolean, std::vector<ExprId>{lane});
}

bool OpLowering::reads_what_is_written(ExprId condition) const {
  std::set<MemoryId> written;
  for (const analysis::OpAccess& a : op_.accesses)
    if (a.write) written.insert(k_.memory_of(a.buffer));
  std::set<ExprId> seen;
  std::vector<Access> loads;
  collect_loads(k_.out_.exprs, condition, seen, loads);
  return std::any_of(loads.begin(), loads.end(), [&](const Access& a) {
    return std::any_of(written.begin(), written.end(),
                       [&](MemoryId m) { return may_alias(k_.out_, m, a.memory); });
  });
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
  const auto* loop = k_.p_.as<ir::Loop>(op_.stmt);
  const auto* lone = k_.p_.as<ir::Store>(op_.stmt);
  emit_nest(*plan_.iteration, plan_.vector, [&](const Nest& nest, thread::Block& body) {
    if (loop)
      for (size_t i = 0; i < loop->vars.size(); ++i) k_.vars_[loop->vars[i]] = nest.point[i];
    ir::ExprPool& e = k_.out_.exprs;
    auto emit_store = [&](const ir::Store& s, ExprId condition) {
      std::vector<ExprId> indices;
      for (ExprId index : s.indices) indices.push_back(k_.simplified(k_.lower_expr(index)));
      store_element(nest, s.buffer, indices, k_.lower_expr(s.value), condition, body);
    };
    std::function<void(const ir::Block&, ExprId)> statements = [&](const ir::Block& b, ExprId condition) {
      for (ir::StmtId id : b) {
        if (const auto* store = k_.p_.as<ir::Store>(id)) {
          emit_store(*store, condition);
        } else if (const auto* branch = k_.p_.as<ir::Branch>(id)) {
          ExprId taken = k_.simplified(k_.lower_expr(branch->condition));
          if (!k_.block_threads() || reads_what_is_written(taken))
            taken = frozen_condition(nest, taken, body);
          else
            k_.record_condition(taken);
          statements(branch->then_body, k_.both(condition, taken));
          statements(branch->else_body, k_.both(condition, e.unary(ir::ExprOp::logical_not, taken)));
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
