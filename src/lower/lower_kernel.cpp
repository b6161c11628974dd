#include "lower/lower_kernel.h"

#include <algorithm>
#include <utility>

#include "lower/op_lowering.h"
#include "lower/scheduled_lowering.h"
#include "ops/op.h"
#include "plan/slots.h"
#include "sync/plant_barriers.h"

namespace tilegen::lower {

using ir::ExprOp;

KernelLowering::KernelLowering(const ir::Program& p, const expand::ScheduledKernel& scheduled,
                               const target::Target& t)
    : p_(p),
      scheduled_(scheduled),
      kernel_index_(scheduled.kernel),
      kernel_(p.kernels[static_cast<size_t>(scheduled.kernel)]),
      schedule_(*scheduled.schedule),
      target_(t),
      ops_(*scheduled.ops),
      paths_(p, scheduled.kernel),
      tree_(p, kernel_),
      ctx_(out_.exprs) {
  for (const analysis::KernelOp& op : ops_.ops) op_of_[op.stmt] = &op;
}

void KernelLowering::fail(DiagCode code, const std::string& op, std::string message, std::string hint) {
  if (!failed())
    error_ = Error(code, op, std::move(message), std::move(hint),
                   current_ ? current_->location : kernel_.location);
}

void KernelLowering::declare_parameters() {
  out_.name = kernel_.name;
  out_.machine = target_;
  out_.threads = *schedule_.threads;
  out_.dependent = schedule_.launch && schedule_.launch->dependent.value_or(false);
  if (block_threads() && schedule_.launch)
    out_.min_blocks = std::max<int64_t>(schedule_.launch->min_blocks, 1);
  const std::vector<int64_t> greatest = ir::greatest_values(p_);
  for (const ir::Param& param : p_.params) {
    if (param.kind == ir::Param::Kind::tensor) continue;
    const ir::Var& v = p_.var(param.var);
    VarId var = out_.add_var(v.name, v.kind);
    out_.vars[var.value].type = v.type;
    out_.vars[var.value].lower = v.lower;
    out_.vars[var.value].upper = greatest[param.var.value];
    out_.vars[var.value].divisor = v.divisor;
    vars_[param.var] = out_.exprs.var(var, v.type);
    if (v.kind == ir::VarKind::dim) ctx_.bind(var, v.lower, greatest[param.var.value], v.divisor);
  }
  for (const ir::Param& param : p_.params) {
    thread::Param slot;
    if (param.kind == ir::Param::Kind::tensor) {
      const ir::Buffer& b = p_.buffer(param.buffer);
      thread::Memory m;
      m.name = b.name;
      m.space = thread::Space::global;
      m.type = b.type;
      m.alignment = ir::dtype_bytes(b.type);
      m.read_only = b.read_only;
      m.param = static_cast<int>(out_.params.size());
      slot = {thread::Param::Kind::tensor, b.name, b.type, VarId(), out_.add_memory(std::move(m))};
      globals_[param.buffer] = slot.memory;
    } else {
      const ir::Var& v = p_.var(param.var);
      slot.kind = v.kind == ir::VarKind::dim ? thread::Param::Kind::dim : thread::Param::Kind::scalar;
      slot.name = v.name;
      slot.type = v.type;
      slot.var = out_.exprs[vars_[param.var]].var();
    }
    out_.params.push_back(std::move(slot));
  }
}

void KernelLowering::declare_grid() {
  for (size_t d = 0; d < kernel_.grid.size(); ++d) {
    ExprId extent = simplified(lower_expr(kernel_.grid[d]));
    VarId var = out_.add_var(p_.var(kernel_.block_vars[d]).name, ir::VarKind::block_index);
    bind_counter(var, extent);
    ctx_.assume(out_.exprs.lt(out_.exprs.var(var), extent));
    out_.grid.push_back(extent);
    out_.block_vars.push_back(var);
    vars_[kernel_.block_vars[d]] = out_.exprs.var(var);
  }
}

void KernelLowering::declare_values() {
  for (size_t v = 0; v < ops_.values.size(); ++v) {
    const plan::ValuePlan& plan = schedule_.values[v];
    const ir::Buffer& b = p_.buffer(ops_.values[v].buffer);
    thread::Memory m;
    m.name = plan.value;
    m.type = b.type;
    m.space = plan.memory ? thread::Space::shared : thread::Space::local;
    m.elements = plan.memory ? plan.memory->output_extent(0) : plan.fragment->registers();
    m.alignment = std::max(target_.vector_bytes, 16);
    m.in_registers = !target_.addressable_registers() && !plan.memory;
    if (block_threads() && plan.memory) {
      m.slots = plan.slots;
      m.elements = plan::slot_elements(plan, m.type, target_.banks.row_bytes()) * plan.slots;
    }
    if (const plan::MemoryPlan* place = plan::find_memory(schedule_, plan::Storage::value, plan.value)) {
      m.arena_offset = place->offset;
      out_.arena_bytes = std::max(out_.arena_bytes, place->offset + place->bytes);
    }
    values_.push_back(out_.add_memory(m));
    if (!m.in_registers || plan.slots < 2) continue;
    std::vector<MemoryId>& slots = register_slots_[static_cast<int>(v)];
    slots = {values_.back()};
    for (int64_t s = 1; s < plan.slots; ++s) {
      m.name = plan.value + "@slot" + std::to_string(s);
      slots.push_back(out_.add_memory(m));
    }
  }
}

const std::string& KernelLowering::begin_operation(ir::StmtId id) {
  origin_ = paths_[id.value];
  statement_ = id;
  const auto op = op_of_.find(id);
  current_ = op == op_of_.end() ? nullptr : op->second;
  return paths_[id.value];
}

void KernelLowering::operation(ir::StmtId id, thread::Block& out) {
  const std::string& path = begin_operation(id);
  const plan::OpPlan* plan = plan::find_op(schedule_, path);
  if (inside_grid_ && writes_tensor(id)) {
    thread::Branch own{std::exchange(inside_grid_, ExprId()), {}, {}};
    operation(id, own.then_body);
    inside_grid_ = own.condition;
    out.push_back(out_.add(std::move(own), path));
    return;
  }
  take_scalars(id, out, path);
  if (block_threads()) begin_conversions(*current_, out);
  if (block_threads()) begin_copies(*current_, *plan, out);
  thread::Branch skip_if_identity{{}, {}, {}, true};
  if (plan->skip_if_identity && !plan->skip_if_identity->empty())
    skip_if_identity.condition = some_factor_is_not_one(*current_, *plan->skip_if_identity);
  OpLowering lowering(*this, *current_, *plan, skip_if_identity.condition ? skip_if_identity.then_body : out);
  if (const auto* op = p_.as<ir::TileOp>(id))
    ops::op_def(op->kind).lower(*op, lowering);
  else
    lowering.parallel_loop();
  if (skip_if_identity.condition) out.push_back(out_.add(std::move(skip_if_identity), path));
  if (block_threads()) end_copies(*current_, out);
  if (block_threads()) end_conversions(*current_, out);
  taken_.clear();
  current_ = nullptr;
}

void KernelLowering::declare() {
  declare_parameters();
  if (block_threads()) declare_assumptions();
  block_threads() ? declare_linear_grid() : declare_grid();
  declare_values();
}

Expected<plan::AccessFacts> KernelLowering::find_facts() {
  facts_.emplace();
  declare();
  ScheduledLowering(*this, scheduled_).run();
  if (failed()) return std::move(error_);
  return std::move(*facts_);
}

Expected<thread::ThreadProgram> KernelLowering::run() {
  declare();
  const std::set<int> moved = block_threads() ? moved_unwritten() : std::set<int>();
  for (size_t v = 0; block_threads() && v < ops_.values.size(); ++v)
    if (schedule_.values[v].fragment)
      clear_unheld(held(static_cast<int>(v)), out_.body, kernel_.name, moved.count(static_cast<int>(v)) > 0);
  ScheduledLowering(*this, scheduled_).run();
  if (failed()) return std::move(error_);
  if (block_threads())
    if (Checked planted = sync::plant_barriers(out_); !planted) return planted.error();
  return std::move(out_);
}

Expected<thread::ThreadProgram> lower_kernel(const ir::Program& p, const expand::ScheduledKernel& scheduled,
                                             const target::Target& target) {
  return KernelLowering(p, scheduled, target).run();
}

}  // namespace tilegen::lower
