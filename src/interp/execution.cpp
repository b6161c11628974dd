// The iterations of a parallel loop run in row-major order, which is one of the orders the language allows.
#include "interp/execution.h"

#include <algorithm>
#include <bit>

#include "interp/interpreter.h"
#include "interp/op_sink.h"
#include "ops/index_space.h"
#include "ops/op.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::interp {

using ir::StmtId;

Checked Execution::bind_tensor(ir::BufferId id, uint64_t address) {
  const ir::Buffer& b = program_.buffer(id);
  std::vector<int64_t> shape, strides;
  for (ir::ExprId e : b.shape) shape.push_back(evaluator_.eval_index(e));
  for (ir::ExprId e : b.strides) strides.push_back(evaluator_.eval_index(e));
  if (strides.empty()) {
    strides.resize(shape.size());
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      strides[d] = stride;
      const auto next = checked_mul(stride, shape[d]);
      if (!next)
        return Error(DiagCode::overflow, b.name, "the size of tensor " + b.name + " does not fit 64 bits",
                     "pass smaller dimensions", b.location);
      stride = *next;
    }
  }
  if (b.optional && address == 0) shape.assign(shape.size(), 0);  // nothing is inside
  buffers_[id.value] =
      Storage::global(b.type, std::move(shape), std::move(strides), std::bit_cast<std::byte*>(address));
  return Unit{};
}

Checked Execution::bind(std::span<const uint64_t> params) {
  if (params.size() != program_.params.size())
    return Error(DiagCode::launch_arity, program_.name,
                 "expected " + std::to_string(program_.params.size()) + " parameters, got " +
                     std::to_string(params.size()),
                 "pass one slot per parameter of the program");
  for (size_t i = 0; i < params.size(); ++i) {
    const ir::Param& param = program_.params[i];
    if (param.kind != ir::Param::Kind::tensor)
      evaluator_.set(param.var, value_from_bits(program_.var(param.var).type, params[i]));
  }
  evaluator_.begin_step();
  for (size_t i = 0; i < params.size(); ++i) {
    const ir::Param& param = program_.params[i];
    if (param.kind != ir::Param::Kind::tensor) continue;
    if (Checked bound = bind_tensor(param.buffer, params[i]); !bound) return bound;
  }
  return Unit{};
}

Checked Execution::outcome() const {
  if (!evaluator_.failed()) return Unit{};
  if (!evaluator_.fault())
    return cancellation_->error(
        failed_at_.valid() ? ir::statement_paths(program_)[failed_at_.value] : program_.name,
        "while the program was interpreted");
  const Fault& fault = *evaluator_.fault();
  Diagnostic d;
  d.code = fault.code;
  d.message = fault.message;
  d.hint = fault.hint;
  d.stage = "interpret";
  if (failed_at_.valid()) {
    d.op = ir::statement_paths(program_)[failed_at_.value];
    d.location = program_.stmt(failed_at_).location;
  }
  return Error(std::move(d));
}

Checked Execution::check_grid(const ir::Kernel& kernel, std::span<const int64_t> grid) const {
  if (std::any_of(grid.begin(), grid.end(), [](int64_t extent) { return extent <= 0; })) return Unit{};
  const auto blocks = checked_product(grid);
  if (blocks && *blocks <= kMaxBlocks) return Unit{};
  return Error(DiagCode::launch_limit, kernel.name,
               "the grid has " + (blocks ? std::to_string(*blocks) : "more than 2^63") + " blocks; at most " +
                   std::to_string(kMaxBlocks) + " are interpreted",
               "launch with smaller dimensions", kernel.location);
}

Expected<std::vector<int64_t>> Execution::grid_of(const ir::Kernel& kernel) {
  std::vector<int64_t> grid;
  evaluator_.begin_step();
  for (ir::ExprId e : kernel.grid) grid.push_back(evaluator_.eval_index(e));
  if (Checked fits = check_grid(kernel, grid); !fits) return fits.error();
  return grid;
}

std::vector<ir::BufferId> Execution::place_tiles(size_t kernel) {
  std::vector<ir::BufferId> owned;
  for (size_t b = 0; b < program_.buffers.size(); ++b) {
    if (program_.buffers[b].kernel != static_cast<int>(kernel)) continue;
    owned.push_back(ir::BufferId(b));
    buffers_[b] = Storage::on_chip(program_.buffers[b].type, program_.tile_shape(ir::BufferId(b)));
  }
  return owned;
}

void Execution::run_block(const ir::Block& block) {
  for (StmtId id : block) {
    run_statement(id);
    if (evaluator_.failed()) {
      blame(id);
      return;
    }
  }
}

void Execution::run_statement(StmtId id) {
  if (const auto* loop = program_.as<ir::Loop>(id)) {
    loop->kind == ir::LoopKind::parallel ? run_parallel(*loop) : run_loop(*loop);
  } else if (const auto* branch = program_.as<ir::Branch>(id)) {
    const bool taken = holds(*branch);
    if (!evaluator_.failed()) run_block(taken ? branch->then_body : branch->else_body);
  } else if (const auto* store = program_.as<ir::Store>(id)) {
    run_store(*store);
  } else if (const auto* op = program_.as<ir::TileOp>(id)) {
    evaluator_.begin_step();
    OpSink sink(program_, evaluator_, *op);
    if (!evaluator_.failed()) ops::op_def(op->kind).reference(*op, sink);
  }
}

Execution::Bounds Execution::bounds_of(const ir::Loop& loop) {
  evaluator_.begin_step();
  const int64_t begin = evaluator_.eval_index(loop.begin);
  return {begin, evaluator_.eval_index(loop.extents[0])};
}

bool Execution::holds(const ir::Branch& branch) {
  evaluator_.begin_step();
  return evaluator_.eval(branch.condition).i != 0;
}

bool Execution::goes_on(const ir::Loop& loop) {
  if (!loop.condition.valid()) return true;
  evaluator_.begin_step();
  return evaluator_.eval(loop.condition).i != 0;
}

void Execution::run_loop(const ir::Loop& loop) {
  const Bounds bounds = bounds_of(loop);
  for (int64_t i = 0; i < bounds.extent && !evaluator_.failed(); ++i) {
    evaluator_.count_work();
    evaluator_.set(loop.vars[0], iteration_at(bounds.begin, i));
    if (!goes_on(loop) || evaluator_.failed()) return;
    run_block(loop.body);
  }
}

void Execution::run_parallel(const ir::Loop& loop) {
  std::vector<int64_t> extents;
  evaluator_.begin_step();
  for (ir::ExprId e : loop.extents) extents.push_back(evaluator_.eval_index(e));
  ops::for_each_index(extents, [&](std::span<const int64_t> index) {
    evaluator_.count_work();
    for (size_t d = 0; d < index.size(); ++d) evaluator_.set(loop.vars[d], index[d]);
    run_block(loop.body);
    return !evaluator_.failed();
  });
}

void Execution::run_store(const ir::Store& store) {
  evaluator_.begin_step();
  index_.clear();
  for (ir::ExprId e : store.indices) index_.push_back(evaluator_.eval_index(e));
  ir::ScalarValue value = evaluator_.eval(store.value);
  if (evaluator_.failed()) return;
  if (store.atomic == ir::AtomicKind::append) return buffers_[store.buffer.value].append(index_, value);
  if (!store.atomic) return evaluator_.store(store.buffer, index_, value);
  const ir::ScalarValue expected = store.expected.valid() ? evaluator_.eval(store.expected) : value;
  std::vector<int64_t> place;
  for (size_t i = 0; store.old && i < store.old->indices.size(); ++i)
    place.push_back(evaluator_.eval_index(store.old->indices[i]));
  const ir::ScalarValue old = evaluator_.load(store.buffer, index_);
  if (evaluator_.failed()) return;
  evaluator_.store(store.buffer, index_, ir::eval_atomic(*store.atomic, old, value, expected));
  if (store.old && !evaluator_.failed()) evaluator_.store(store.old->buffer, place, old);
}

}  // namespace tilegen::interp
