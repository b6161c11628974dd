#include "sanitized_run.h"

#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "ir/op_kinds.h"
#include "open_rounding.h"
#include "ops/index_space.h"
#include "ops/op.h"
#include "sanitized_memory.h"

namespace tilegen::differential {

using interp::Storage;
using ir::DType;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::ScalarValue;
using ir::StmtId;
using Kind = SanitizedResult::Kind;

namespace {

class Run {
 public:
  Run(const ir::Program& p, const SanitizedOptions& options)
      : p_(p),
        rounding_(options.rounding, options.seed),
        steps_left_(options.max_steps),
        memories_(p.buffers.size()),
        vars_(p.vars.size()),
        values_(p.exprs.size()),
        stamps_(p.exprs.size(), 0) {}

  SanitizedResult run(std::span<const uint64_t> slots);

 private:
  friend class Sink;

  bool over() const { return result_.kind != Kind::defined; }
  void end(Kind kind, std::string why) {
    if (!over()) result_ = {kind, std::move(why)};
  }
  void step(int64_t count = 1) {
    if ((steps_left_ -= count) < 0) end(Kind::too_long, "the run is too long for a test");
  }

  void bind(std::span<const uint64_t> slots);
  void bind_tensor(ir::BufferId id, uint64_t address);
  void run_kernel(size_t index);
  void run_body(const ir::Block& block);
  void run_statement(StmtId id);
  void run_loop(const ir::Loop& loop);
  void run_parallel(const ir::Loop& loop);
  void run_store(const ir::Store& store);
  void run_op(const ir::TileOp& op);

  ScalarValue eval(ExprId id);
  ScalarValue eval_node(const ExprNode& n, ExprId id);
  ScalarValue eval_load(const ExprNode& n, ExprId id);
  ScalarValue access(ir::BufferId id, std::span<const int64_t> index, const ScalarValue* value);
  void begin_step() { ++stamp_; }
  bool updating_ = false;  // by an atomic operation
  void set(ir::VarId var, int64_t value) { vars_[var.value] = {DType::i64, value, 0}; }

  const ir::Program& p_;
  OpenRounding rounding_;
  SanitizedResult result_;
  int64_t steps_left_;
  std::vector<Memory> memories_;
  std::vector<ScalarValue> vars_, values_;
  std::vector<uint64_t> stamps_;  // by expression: the step that its value belongs to
  uint64_t stamp_ = 1;
  int64_t sets_ = 0, set_ = 0, unit_ = 0;  // set_ 0: statements in order
  int64_t kernel_ = 0, block_ = 0;
};

// Operands of one operation are its units: what it writes through one it may not touch through another. A
// scan in place has one.
class Sink final : public ops::ReferenceSink {
 public:
  Sink(Run& run, const ir::TileOp& op) : run_(run), op_(op) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      for (ExprId e : op.operands[i].offsets) offsets_[i].push_back(run.eval(e).i);
      index_[i].resize(offsets_[i].size());
    }
    if (op.value.valid()) value_ = run.eval(op.value);
    in_place_ = ops::layout_rule(op).scan && op.operands[0].buffer == op.operands[1].buffer &&
                op.operands[0].extents == op.operands[1].extents && offsets_[0] == offsets_[1];
  }

  bool stopped() const override { return run_.over(); }
  ScalarValue read(int operand, std::span<const int64_t> index) override {
    const ScalarValue v = touch(operand, index, nullptr);
    if (ir::is_float(v.type)) terms_[static_cast<size_t>(operand)].add(v.f);
    return v;
  }
  void write(int operand, std::span<const int64_t> index, ScalarValue v) override {
    if (run_.over()) return;
    if (run_.rounding_.moves() && ir::is_float(v.type) && !ops::is_copy(op_) && !ops::is_fill(op_))
      v.f = run_.rounding_.moved(v.type, v.f, error());
    touch(operand, index, &v);
  }
  std::span<const int64_t> extents(int operand) const override {
    return op_.operands[static_cast<size_t>(operand)].extents;
  }
  DType type(int operand) const override {
    return run_.p_.buffer(op_.operands[static_cast<size_t>(operand)].buffer).type;
  }
  ScalarValue value() override { return value_; }
  double products() const { return std::sqrt(elements(0) * elements(1) * elements(2)); }

 private:
  double elements(int operand) const {
    double n = 1;
    for (int64_t e : extents(operand)) n *= static_cast<double>(e);
    return n;
  }
  double error() const {
    const ops::LayoutRule rule = ops::layout_rule(op_);
    if (rule.form == ops::OpForm::contraction)
      return gemm_error(type(0), type(2), op_.flag(ir::gemm_attr::tf32), products_per_element(), terms_[0],
                        terms_[1], terms_[2]);
    if (!rule.scan && !rule.reduction) {  // one of many additions, in any order
      Terms both = terms_[0];
      both.largest = std::max(both.largest, terms_[1].largest);
      both.whole = both.whole && terms_[1].whole;
      return op_.attrs[ir::atomic_attr::kind] == 0 ? sum_error(type(1), 2, both) : 0;
    }
    const ir::ReduceKind kind = rule.scan ? rule.scan->kind : rule.reduction->kind;
    if (kind != ir::ReduceKind::sum) return 0;
    if (rule.scan)
      return sum_error(type(1), static_cast<double>(extents(0)[static_cast<size_t>(rule.scan->axis)]),
                       terms_[0]);
    Terms all = terms_[0];
    all.largest = std::max(all.largest, terms_[1].largest);
    all.whole = all.whole && terms_[1].whole;
    return sum_error(type(1), elements(0) / elements(1) + 1, all);
  }
  double products_per_element() const {
    const double of_values = std::sqrt(elements(0) * elements(1) / elements(2));
    return op_.kind == ir::OpKind::gemm_sparse ? 2 * of_values : of_values;
  }

  ScalarValue touch(int operand, std::span<const int64_t> index, const ScalarValue* value) {
    const auto i = static_cast<size_t>(operand);
    for (size_t d = 0; d < index.size(); ++d)
      index_[i][d] =
          static_cast<int64_t>(static_cast<uint64_t>(offsets_[i][d]) + static_cast<uint64_t>(index[d]));
    run_.unit_ = in_place_ ? 0 : operand;
    run_.updating_ = op_.kind == ir::OpKind::atomic && operand == 1;
    const ScalarValue v = run_.access(op_.operands[i].buffer, index_[i], value);
    run_.updating_ = false;
    return v;
  }

  Run& run_;
  const ir::TileOp& op_;
  bool in_place_ = false;
  std::array<std::vector<int64_t>, ir::kMaxOperands> offsets_, index_;
  std::array<Terms, ir::kMaxOperands> terms_;
  ScalarValue value_;
};

// ---- values ----

ScalarValue Run::eval(ExprId id) {
  const ExprNode& n = p_.exprs[id];
  if (n.op == ExprOp::const_int) return {n.type, n.imm, 0};
  if (n.op == ExprOp::const_float) return {n.type, 0, n.float_value()};
  if (n.op == ExprOp::var) return vars_[n.var().value];
  if (stamps_[id.value] == stamp_) return values_[id.value];
  const ScalarValue v = eval_node(n, id);
  stamps_[id.value] = stamp_;
  return values_[id.value] = v;
}

// What a result does not need is not evaluated, as in the interpreter.
ScalarValue Run::eval_node(const ExprNode& n, ExprId id) {
  if (n.op == ExprOp::load) return eval_load(n, id);
  const ScalarValue a = eval(n.a);
  if (n.op == ExprOp::select) return eval(a.i != 0 ? n.b : n.c);
  if (n.op == ExprOp::logical_and) return a.i == 0 ? a : eval(n.b);
  if (n.op == ExprOp::logical_or) return a.i != 0 ? a : eval(n.b);
  if (n.op == ExprOp::cast) return ir::eval_cast(n.type, a);
  const bool moves = rounding_.moves() && ir::is_float(n.type);
  if (n.op == ExprOp::native_call) {
    if (!moves) return a;
    std::vector<double> arguments;
    for (const ExprId x : p_.exprs.native_parts(id).args) arguments.push_back(eval(x).f);
    return {n.type, 0, rounding_.fast_form(n.type, arguments, a.f)};
  }
  if (ir::expr_arity(n.op) == 1) {
    ScalarValue v = ir::eval_unary(n.op, n.type, a);
    if (moves) v.f = rounding_.unary(n.op, n.type, a.f, v.f);
    return v;
  }
  const ScalarValue b = eval(n.b);
  if (ir::expr_arity(n.op) == 3) return ir::eval_ternary(n.op, n.type, a, b, eval(n.c));
  ScalarValue v = ir::eval_binary(n.op, n.type, a, b);
  if (moves) v.f = rounding_.binary(n.op, n.type, a.f, b.f, v.f);
  return v;
}

ScalarValue Run::eval_load(const ExprNode& n, ExprId id) {
  std::vector<int64_t> index;
  for (ExprId e : p_.exprs.indices(id)) index.push_back(eval(e).i);
  return access(n.object, index, nullptr);
}

// A load, or with a value a store.
ScalarValue Run::access(ir::BufferId id, std::span<const int64_t> index, const ScalarValue* value) {
  const ir::Buffer& b = p_.buffer(id);
  Memory& m = memories_[id.value];
  ScalarValue loaded{b.type, 0, 0};
  step();
  if (over()) return loaded;
  const int64_t at = m.locate(index);
  if (at < 0 && b.scope == ir::MemScope::global) return loaded;
  if (at < 0) {
    end(Kind::undefined, "an access leaves " + b.name);
    return loaded;
  }
  const auto element = static_cast<size_t>(at);
  const bool atomic = updating_ && b.scope == ir::MemScope::global;
  if (set_ != 0 && !m.by_unit[element].touch(set_, unit_, value != nullptr || atomic, atomic))
    end(Kind::undefined, "iterations or operands meet in " + b.name);
  if (!m.by_block.empty() && !m.by_block[element].touch(kernel_, block_, value != nullptr || atomic, atomic))
    end(Kind::undefined, "blocks meet in " + b.name);
  if (value != nullptr) {
    if (m.overlaps) end(Kind::undefined, "elements of " + b.name + " share memory");
    m.storage.store(index, *value);
    if (b.workspace) m.written[element] = true;
    return loaded;
  }
  if (m.storage.load(index, &loaded) == interp::AccessResult::unwritten ||
      (b.workspace && !m.written[element]))
    end(Kind::undefined, b.name + " is read before anything wrote it");
  return loaded;
}

// ---- statements ----

void Run::bind_tensor(ir::BufferId id, uint64_t address) {
  const ir::Buffer& b = p_.buffer(id);
  Memory& m = memories_[id.value];
  std::vector<int64_t> shape;
  for (ExprId e : b.shape) shape.push_back(eval(e).i);
  if (b.optional && address == 0) shape.assign(shape.size(), 0);
  for (ExprId e : b.strides) m.strides.push_back(eval(e).i);
  if (m.strides.empty()) {
    m.strides.resize(shape.size());
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= std::max<int64_t>(shape[d], 1)) m.strides[d] = stride;
  }
  step(m.span(shape));
  if (over()) return;
  m.size_for(m.span(shape));
  m.overlaps = !b.strides.empty() && m.has_overlap(shape);
  m.storage = Storage::global(b.type, std::move(shape), m.strides, std::bit_cast<std::byte*>(address));
}

void Run::bind(std::span<const uint64_t> slots) {
  for (size_t i = 0; i < slots.size(); ++i)
    if (p_.params[i].kind != ir::Param::Kind::tensor)
      vars_[p_.params[i].var.value] = interp::value_from_bits(p_.var(p_.params[i].var).type, slots[i]);
  begin_step();
  for (size_t i = 0; i < slots.size(); ++i)
    if (p_.params[i].kind == ir::Param::Kind::tensor) bind_tensor(p_.params[i].buffer, slots[i]);
}

SanitizedResult Run::run(std::span<const uint64_t> slots) {
  bind(slots);
  for (size_t k = 0; k < p_.kernels.size() && !over(); ++k) run_kernel(k);
  return result_;
}

void Run::run_kernel(size_t number) {
  const ir::Kernel& kernel = p_.kernels[number];
  std::vector<ir::BufferId> owned;
  for (size_t b = 0; b < p_.buffers.size(); ++b) {
    if (p_.buffers[b].kernel != static_cast<int>(number)) continue;
    owned.push_back(ir::BufferId(b));
    const std::vector<int64_t> shape = p_.tile_shape(ir::BufferId(b));
    Memory& m = memories_[b];
    m.strides.assign(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;) m.strides[d - 1] = m.strides[d] * shape[d];
    const int64_t elements = shape.empty() ? 1 : m.strides[0] * shape[0];
    step(elements);
    if (over()) return;
    m.by_unit.resize(static_cast<size_t>(elements));
    m.storage = Storage::on_chip(p_.buffers[b].type, shape);
  }
  kernel_ = ++sets_;
  block_ = -1;
  begin_step();
  std::vector<int64_t> grid;
  for (ExprId e : kernel.grid) grid.push_back(eval(e).i);
  ops::for_each_index(grid, [&](std::span<const int64_t> block) {
    ++block_;
    step();
    for (size_t d = 0; d < block.size(); ++d) set(kernel.block_vars[d], block[d]);
    for (ir::BufferId b : owned) memories_[b.value].storage.forget();
    run_body(kernel.body);
    return !over();
  });
  for (ir::BufferId b : owned) memories_[b.value] = Memory();
}

void Run::run_body(const ir::Block& block) {
  for (StmtId id : block) {
    if (over()) return;
    run_statement(id);
  }
}

void Run::run_statement(StmtId id) {
  if (const auto* loop = p_.as<ir::Loop>(id)) {
    loop->kind == ir::LoopKind::parallel ? run_parallel(*loop) : run_loop(*loop);
  } else if (const auto* branch = p_.as<ir::Branch>(id)) {
    begin_step();
    const bool taken = eval(branch->condition).i != 0;
    run_body(taken ? branch->then_body : branch->else_body);
  } else if (const auto* store = p_.as<ir::Store>(id)) {
    run_store(*store);
  } else if (const auto* op = p_.as<ir::TileOp>(id)) {
    run_op(*op);
  }
}

void Run::run_loop(const ir::Loop& loop) {
  begin_step();
  const int64_t begin = eval(loop.begin).i, extent = eval(loop.extents[0]).i;
  for (int64_t i = 0; i < extent && !over(); ++i) {
    step();
    if (loop.condition) {
      begin_step();
      if (eval(loop.condition).i == 0 || over()) return;
    }
    set(loop.vars[0], static_cast<int64_t>(static_cast<uint64_t>(begin) + static_cast<uint64_t>(i)));
    run_body(loop.body);
  }
}

void Run::run_parallel(const ir::Loop& loop) {
  begin_step();
  std::vector<int64_t> extents;
  for (ExprId e : loop.extents) extents.push_back(eval(e).i);
  set_ = ++sets_;
  unit_ = -1;
  ops::for_each_index(extents, [&](std::span<const int64_t> index) {
    ++unit_;
    step();
    for (size_t d = 0; d < index.size(); ++d) set(loop.vars[d], index[d]);
    run_body(loop.body);
    return !over();
  });
  set_ = 0;
}

void Run::run_store(const ir::Store& store) {
  begin_step();
  std::vector<int64_t> index;
  for (ExprId e : store.indices) index.push_back(eval(e).i);
  ScalarValue v = eval(store.value);
  if (over()) return;
  if (!store.atomic) return void(access(store.buffer, index, &v));
  if (store.atomic == ir::AtomicKind::append) return;  // a print: nothing that the program reads
  const ExprOp op = ir::atomic_operation(*store.atomic);
  const ScalarValue expected = store.expected.valid() ? eval(store.expected) : v;
  std::vector<int64_t> old_place;
  for (size_t i = 0; store.old && i < store.old->indices.size(); ++i)
    old_place.push_back(eval(store.old->indices[i]).i);
  if (over()) return;
  updating_ = true;
  const ScalarValue old = access(store.buffer, index, nullptr);
  const double added = v.f;
  v = ir::eval_atomic(*store.atomic, old, v, expected);
  if (rounding_.moves() && ir::is_float(v.type) && store.atomic < ir::AtomicKind::exchange)
    v.f = rounding_.binary(op, v.type, old.f, added, v.f);
  if (!over()) access(store.buffer, index, &v);
  updating_ = false;
  if (store.old && !over()) access(store.old->buffer, old_place, &old);
}

void Run::run_op(const ir::TileOp& op) {
  begin_step();
  Sink sink(*this, op);
  const bool sparse = op.kind == ir::OpKind::gemm_sparse;
  if (sparse || op.kind == ir::OpKind::gemm) step(static_cast<int64_t>(sink.products() / 16));
  if (const std::string open = sparse ? open_sparse_terms(op, sink) : ""; !open.empty())
    end(Kind::undefined, open);
  if (over()) return;
  set_ = ++sets_;
  ops::op_def(op.kind).reference(op, sink);
  set_ = 0;
}

}  // namespace

SanitizedResult run_sanitized(const ir::Program& program, std::span<const uint64_t> slots,
                              const SanitizedOptions& options) {
  return Run(program, options).run(slots);
}

}  // namespace tilegen::differential
