#include "schedule/grid/occupancy_plan.h"

#include <algorithm>
#include <set>

#include "analysis/exchange.h"
#include "analysis/run_ahead.h"
#include "schedule/accesses/cache_plan.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::ValueId;

namespace {

// Addresses of a few tensors, conditions and what an expression is computed through; what any kernel may
// have; and the values with which a thread has enough to do at once without more warps beside it.
constexpr int64_t kOtherRegisters = 24, kMinRegisters = 64, kManyValues = 40;
constexpr int64_t kFewTensors = 6, kAddressRegisters = 2;

// Where a wave issues in order: operands of products and addresses beside values and loads under way, and the
// blocks that are enough to have products of one beside what another does between its own.
constexpr int64_t kProductRegisters = 56, kBlocksInTurn = 2;

int64_t words(int64_t elements, ir::DType type) { return ceil_div(elements * ir::dtype_bytes(type), 4); }

// Registers of 4 bytes that a thread holds values in, and partial results of them.
int64_t value_words(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                    const plan::KernelSchedule& s) {
  int64_t sum = 0;
  const analysis::ValuePlans values = s.values;
  for (ValueId v : values.ids())
    if (values[v].fragment)
      sum += words(values[v].fragment->registers(), p.buffer(ops.values[v].buffer).type);
  for (const analysis::KernelOp& op : ops.ops) {
    const plan::OpPlan& plan = s.ops[ops.id_of(op).index()];
    for (const analysis::OpConversion& c : analysis::conversions_of(p, ops, op, values, s.conversions))
      sum += words(c.form.registers(), p.buffer(ops.values[c.value].buffer).type);
    if (op.scan && plan.iteration)
      sum += words(2 * plan.iteration->registers(), p.buffer(op.accesses.back().buffer).type);
    const auto* reduce = p.as<ir::TileOp>(op.stmt);
    if (op.form != analysis::OpForm::reduction || !reduce || !plan.iteration) continue;
    const int axis = ops::layout_rule(*reduce).reduction->axis;
    const plan::ValuePlan& result = values[op.accesses[1].value];
    const bool fetched = analysis::reduction_exchange(p, op, *plan.iteration, result, t).through_scratch;
    sum += words(plan.iteration->reduce(axis, true).registers() * std::max<int64_t>(plan.chains, 1) + fetched,
                 p.buffer(reduce->operands[1].buffer).type);
  }
  return sum;
}

// Registers besides those of values: an expression over 8-byte elements takes twice as many, and each tensor
// beyond the few an address.
int64_t other_words(const ir::Program& p, const analysis::KernelOps& ops) {
  std::set<ir::BufferId> tensors;
  for (const analysis::KernelOp& op : ops.ops)
    for (const analysis::OpAccess& access : op.accesses)
      if (!access.value.valid()) tensors.insert(access.buffer);
  const bool wide = std::any_of(tensors.begin(), tensors.end(),
                                [&](ir::BufferId b) { return ir::dtype_bytes(p.buffer(b).type) > 4; });
  return kOtherRegisters * (wide ? 2 : 1) +
         kAddressRegisters * std::max<int64_t>(static_cast<int64_t>(tensors.size()) - kFewTensors, 0);
}

// Of copies that load ahead.
int64_t loaded_words(const ir::Program& p, const analysis::KernelOps& ops, const plan::KernelSchedule& s) {
  int64_t sum = 0;
  for (analysis::OpId i : ops.ops.ids()) {
    const plan::OpPlan& plan = s.ops[i.index()];
    if (plan.engine == plan::Engine::register_copy && plan.iteration)
      sum += words(plan.iteration->registers(), p.buffer(ops.ops[i].accesses.front().buffer).type);
  }
  return sum;
}

// Of the copy that has most loads under way, where a thread goes on while they are: it issues all of them
// before it deposits the first.
int64_t copied_words(const ir::Program& p, const analysis::KernelOps& ops, const plan::KernelSchedule& s) {
  int64_t most = 0;
  for (analysis::OpId i : ops.ops.ids()) {
    const plan::OpPlan& plan = s.ops[i.index()];
    if (analysis::is_tile_load(p, ops.ops[i]) && plan.iteration)
      most = std::max(most,
                      words(plan.iteration->registers(), p.buffer(ops.ops[i].accesses.front().buffer).type));
  }
  return most;
}

int64_t blocks_by_shared(const target::Target& t, const plan::KernelSchedule& s) {
  int64_t shared = 1;
  for (const plan::MemoryPlan& m : s.memory) shared = std::max(shared, m.offset + m.bytes);
  return t.shared_bytes / shared;
}

// Products of registers: as many blocks as have room for all that theirs hold, two at most.
int64_t blocks_in_turn(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                       const plan::KernelSchedule& s, int64_t values) {
  const int64_t registers = values + loaded_words(p, ops, s) + kProductRegisters;
  const int64_t blocks = std::min({t.registers_per_multiprocessor / (*s.threads * registers),
                                   blocks_by_shared(t, s), t.threads_per_multiprocessor / *s.threads});
  return std::clamp<int64_t>(blocks, 1, kBlocksInTurn);
}

}  // namespace

Checked plan_most_registers(const ir::Kernel& kernel, const target::Target& t,
                            const plan::KernelSchedule* given, plan::KernelSchedule& s) {
  const int64_t most = given && given->launch ? given->launch->registers : 0;
  if (most == 0) return Unit{};
  std::string why;
  if (!takes_hints(t)) why = "code for " + t.name + " is not told how many registers a thread may have";
  if (s.has_producer()) why = "the kernel has roles, which have registers of their own";
  if (!why.empty())
    return Error(DiagCode::schedule_illegal, kernel.name,
                 "the given launch has at most `registers` " + std::to_string(most) + ": " + why,
                 s.has_producer()
                     ? "leave `registers` out, give those of each role, role_registers = [240, 24], or have "
                       "threads copy, `engine` async_copy, which leaves no producer"
                     : "leave `registers` out, or give `min_blocks`",
                 kernel.location);
  if (!s.launch) s.launch.emplace();
  s.launch->registers = most;
  return Unit{};
}

void plan_min_blocks(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                     const plan::KernelSchedule* given, plan::KernelSchedule& s) {
  if (t.registers_per_multiprocessor == 0) return;
  if (!s.launch) s.launch.emplace();
  const bool multiplies = std::any_of(s.ops.begin(), s.ops.end(), [](const plan::OpPlan& op) {
    return op.engine == plan::Engine::mma || op.engine == plan::Engine::warpgroup_mma;
  });
  const int64_t threads = *s.threads, values = value_words(p, ops, t, s);
  s.launch->min_blocks = 1;
  if (!multiplies && values <= kManyValues) {
    const int64_t copied = t.register_copies ? copied_words(p, ops, s) : 0;
    const int64_t registers = std::max(values + copied + other_words(p, ops), kMinRegisters);
    int64_t blocks = std::min(t.registers_per_multiprocessor / (threads * registers),
                              t.threads_per_multiprocessor / threads);
    if (t.register_copies) blocks = std::min(blocks, blocks_by_shared(t, s));
    s.launch->min_blocks = std::max<int64_t>(blocks, 1);
  }
  if (multiplies && t.register_copies) s.launch->min_blocks = blocks_in_turn(p, ops, t, s, values);
  if (given && given->launch && given->launch->min_blocks > 0)
    s.launch->min_blocks = given->launch->min_blocks;
}

}  // namespace tilegen::schedule
