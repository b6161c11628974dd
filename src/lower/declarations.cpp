#include "lower/declarations.h"

#include <algorithm>

#include "lower/addressing.h"
#include "lower/gpu/registers.h"
#include "lower/loop_bounds.h"
#include "lower/lowering_context.h"
#include "plan/slots.h"

namespace tilegen::lower {

namespace {

thread::Caching caching_of(const std::string& word) {
  return word == "evict_first"   ? thread::Caching::evict_first
         : word == "evict_last"  ? thread::Caching::evict_last
         : word == "no_allocate" ? thread::Caching::no_allocate
                                 : thread::Caching::usual;
}

// All ops that read a tensor say the same of its lines, and all that write it.
void tell_caches(const LoweringContext& k, ir::BufferId tensor, thread::Memory& m) {
  for (analysis::OpId i : k.in.ops.ops.ids())
    for (const analysis::OpAccess& a : k.in.ops.ops[i].accesses) {
      if (a.value.valid() || a.buffer != tensor) continue;
      const thread::Caching caching = caching_of(k.in.schedule.ops[i.index()].cache);
      if (a.read) m.loads = caching;
      if (a.write) m.stores = caching;
    }
}

}  // namespace

void declare_parameters(LoweringContext& k) {
  k.out.name = k.in.kernel.name;
  k.out.machine = k.in.target;
  k.out.natives = k.in.program.natives;
  k.out.threads = *k.in.schedule.threads;
  k.out.dependent = k.in.schedule.launch && k.in.schedule.launch->dependent.value_or(false);
  k.out.overlapping_blocks = k.in.schedule.overlap && !k.in.schedule.overlap->along.empty();
  if (k.block_threads() && k.in.schedule.launch)
    k.out.min_blocks = std::max<int64_t>(k.in.schedule.launch->min_blocks, 1);
  if (k.block_threads() && k.in.schedule.launch) k.out.most_registers = k.in.schedule.launch->registers;
  const std::vector<int64_t> greatest = ir::greatest_values(k.in.program);
  for (const ir::Param& param : k.in.program.params) {
    if (param.kind == ir::Param::Kind::tensor) continue;
    const ir::Var& v = k.in.program.var(param.var);
    VarId var = k.out.add_var(v.name, v.kind);
    k.out.vars[var.value].type = v.type;
    k.out.vars[var.value].lower = v.lower;
    k.out.vars[var.value].upper = greatest[param.var.value];
    k.out.vars[var.value].divisor = v.divisor;
    k.names.vars[param.var] = k.out.exprs.var(var, v.type);
    if (v.kind == ir::VarKind::dim) k.ctx.bind(var, v.lower, greatest[param.var.value], v.divisor);
  }
  for (const ir::Param& param : k.in.program.params) {
    thread::Param slot;
    if (param.kind == ir::Param::Kind::tensor) {
      const ir::Buffer& b = k.in.program.buffer(param.buffer);
      thread::Memory m;
      m.name = b.name;
      m.space = thread::Space::global;
      m.type = b.type;
      m.alignment = ir::dtype_bytes(b.type);
      m.read_only = b.read_only;
      m.param = static_cast<int>(k.out.params.size());
      tell_caches(k, param.buffer, m);
      slot = {thread::Param::Kind::tensor, b.name, b.type, VarId(), k.out.add_memory(std::move(m))};
      k.names.globals[param.buffer] = slot.memory;
    } else {
      const ir::Var& v = k.in.program.var(param.var);
      slot.kind = v.kind == ir::VarKind::dim ? thread::Param::Kind::dim : thread::Param::Kind::scalar;
      slot.name = v.name;
      slot.type = v.type;
      slot.var = k.out.exprs[k.names.vars[param.var]].var();
    }
    k.out.params.push_back(std::move(slot));
  }
}

void declare_grid(LoweringContext& k) {
  for (size_t d = 0; d < k.in.kernel.grid.size(); ++d) {
    ExprId extent = k.simplified(lower_expr(k, k.in.kernel.grid[d]));
    VarId var = k.out.add_var(k.in.program.var(k.in.kernel.block_vars[d]).name, ir::VarKind::block_index);
    bind_counter(k, var, extent);
    k.ctx.assume(k.out.exprs.lt(k.out.exprs.var(var), extent));
    k.out.grid.push_back(extent);
    k.out.block_vars.push_back(var);
    k.names.vars[k.in.kernel.block_vars[d]] = k.out.exprs.var(var);
  }
}

void declare_values(LoweringContext& k) {
  for (ValueId v : k.in.ops.values.ids()) {
    const plan::ValuePlan& plan = k.in.schedule.values[v.index()];
    const ir::Buffer& b = k.in.program.buffer(k.in.ops.values[v].buffer);
    thread::Memory m;
    m.name = plan.value;
    m.type = b.type;
    m.space = plan.memory ? thread::Space::shared : thread::Space::local;
    m.elements = plan.memory ? plan.memory->output_extent(0) : plan.fragment->registers();
    m.alignment = std::max(k.in.target.vector_bytes, 16);
    m.in_registers = !k.in.target.addressable_registers() && !plan.memory;
    if (k.block_threads() && plan.memory) {
      m.slots = plan.slots;
      m.elements = plan::slot_elements(plan, m.type, k.in.target.banks.row_bytes()) * plan.slots;
    }
    if (const plan::MemoryPlan* place = plan::find_memory(k.in.schedule, plan::Storage::value, plan.value)) {
      m.arena_offset = place->offset;
      k.out.arena_bytes = std::max(k.out.arena_bytes, place->offset + place->bytes);
    }
    const MemoryId memory = k.out.add_memory(m);
    k.names.values.push_back(memory);
    if (!m.in_registers || plan.slots < 2) continue;
    std::vector<MemoryId>& slots = k.names.register_slots[v];
    slots = {memory};
    for (int64_t s = 1; s < plan.slots; ++s) {
      m.name = plan.value + "@slot" + std::to_string(s);
      slots.push_back(k.out.add_memory(m));
    }
  }
  for (const analysis::KernelOp& op : k.in.ops.ops) {
    const plan::OpPlan* plan = plan::find_op(k.in.schedule, op.path);
    if (plan && plan->iteration &&
        (plan->engine == plan::Engine::register_copy || plan->transposing.value_or(false)))
      k.names.loaded[op.stmt] = add_registers(
          k, "loaded", k.in.program.buffer(op.accesses.front().buffer).type, plan->iteration->registers());
  }
}

}  // namespace tilegen::lower
