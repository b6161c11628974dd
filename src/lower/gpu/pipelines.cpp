// Pipelines between roles: a "full" and an "empty" transaction barrier a slot, in phases that alternate with
// every round through the slots.
//
// The producer waits until the slot is empty (at once in the first round), announces the bytes and issues the
// copies. A consumer waits until the slot is full, uses it, and one thread of each of its warpgroups gives it
// back. Both count the uses by themselves: with n iterations of the loop, iteration i of the block's t-th
// tile is number t * n + i. The kernel's body is one iteration of the block's tile.
#include "lower/gpu/pipelines.h"

#include <algorithm>

#include "analysis/written_operand.h"
#include "arith/prove.h"
#include "lower/gpu/counts.h"
#include "lower/gpu/registers.h"
#include "lower/gpu/tensor.h"
#include "lower/gpu/warpgroups.h"
#include "lower/lowering_context.h"
#include "lower/scheduled_lowering.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

using expand::Transport;

namespace {

const PipelineBarriers& pipeline_of(const LoweringContext& k, const analysis::KernelOp& copy, int64_t part) {
  const OpId id = k.in.ops.id_of(copy);
  return *std::find_if(k.role.pipelines.begin(), k.role.pipelines.end(), [&](const PipelineBarriers& line) {
    const auto& copies = line.pipeline->copies;
    return std::find(copies.begin(), copies.end(), id) != copies.end() && brings(*line.pipeline, part);
  });
}

// Parity of the phase that the `count`th use of a pipeline has.
ExprId pipeline_parity(LoweringContext& k, const PipelineBarriers& line, ExprId count) {
  ir::ExprPool& e = k.out.exprs;
  return k.simplified(e.floormod(e.floordiv(count, e.const_int(line.pipeline->slots)), e.const_int(2)));
}

}  // namespace

void declare_pipelines(LoweringContext& k) {
  const int64_t warpgroups = k.out.threads / k.in.target.warpgroup;
  for (const expand::Pipeline& p : k.in.scheduled.pipelines) {
    PipelineBarriers line;
    line.pipeline = &p;
    k.role.pipelines.push_back(line);
    if (p.transport != Transport::tensor_copy) continue;
    const plan::MemoryPlan* place = plan::find_memory(k.in.schedule, plan::Storage::barriers, p.name);
    if (!place)
      return k.fail(DiagCode::schedule_illegal, k.in.kernel.name,
                    "pipeline '" + p.name + "' has no place in shared memory",
                    "plan the program for this target");
    k.out.arena_bytes = std::max(k.out.arena_bytes, place->offset + place->bytes);
    const int64_t bytes = k.in.target.transaction_barrier_bytes * p.slots,
                  offset = place->offset + p.part * 2 * bytes;
    const std::string name = expand::name_of(p);
    line.full = static_cast<int>(k.out.barriers.size());
    k.out.barriers.push_back({name + ".full", p.slots, 1, offset});
    line.empty = static_cast<int>(k.out.barriers.size());
    line.shared = std::any_of(p.copies.begin(), p.copies.end(),
                              [&](OpId copy) { return shared_rows_of(k, k.in.ops.ops[copy]) > 0; });
    k.out.barriers.push_back(
        {name + ".empty", p.slots, warpgroups * (line.shared ? k.cluster_blocks() : 1), offset + bytes});
    for (ValueId v : p.values)
      k.out.memories[k.names.values[v].value].alignment = k.in.target.tensor_tile_alignment;
    k.role.pipelines.back() = line;
  }
  for (const analysis::ThreadWrittenOperand& w : k.in.scheduled.written)
    k.out.memories[k.names.values[w.value].value].alignment = k.in.target.tensor_tile_alignment;
}

ExprId pipeline_slot(LoweringContext& k, const PipelineBarriers& line, ExprId count) {
  return k.simplified(k.out.exprs.floormod(count, k.out.exprs.const_int(line.pipeline->slots)));
}

void issue_tensor_copy(LoweringContext& k, const analysis::KernelOp& op, int64_t part, thread::Block& out) {
  const PipelineBarriers& line = pipeline_of(k, op, part);
  tensor_loads(k, op, line, pipeline_slot(k, line, uses_before(k, line)), out);
}

// Of a pipeline that is filled once a tile, the use of this one.
ExprId ScheduledLowering::use_number(const PipelineBarriers& line, expand::Iteration at) {
  if (!line.pipeline->loop.valid() || !scope_) return uses_before(k_, line);
  return k_.simplified(e_.add(scope_->filled, number_of(at)));
}

void ScheduledLowering::lower(const expand::Acquire& s, thread::Block& out) {
  const PipelineBarriers& line = k_.role.pipelines[static_cast<size_t>(s.pipeline)];
  const ExprId uses = uses_before(k_, line), slot = pipeline_slot(k_, line, uses);
  int64_t bytes = 0;
  for (OpId copy : line.pipeline->copies)
    bytes += tensor_load_bytes(k_, k_.in.ops.ops[copy]) / line.pipeline->parts;
  const std::string& origin = k_.in.ops.ops[line.pipeline->copies.front()].path;
  const ExprId parity = k_.simplified(e_.sub(e_.const_int(1), pipeline_parity(k_, line, uses)));
  out.push_back(k_.out.add(thread::TransactionWait{line.empty, slot, parity}, origin));
  out.push_back(k_.out.add(thread::TransactionArrive{line.full, slot, bytes}, origin));
}

// The engine's bytes complete the phase.
void ScheduledLowering::lower(const expand::Commit& s, thread::Block& out) {
  count_use(k_, k_.role.pipelines[static_cast<size_t>(s.pipeline)], out);
}

ExprId ScheduledLowering::answer_of(const PipelineBarriers& line) {
  if (!scope_->answers.valid())
    scope_->answers =
        add_registers(k_, "answers", ir::DType::i32, static_cast<int64_t>(k_.role.pipelines.size()));
  return e_.const_int(&line - k_.role.pipelines.data());
}

void ScheduledLowering::lower(const expand::Wait& s, thread::Block& out) {
  const PipelineBarriers& line = k_.role.pipelines[static_cast<size_t>(s.pipeline)];
  const ExprId number = use_number(line, s.at);
  if (!line.pipeline->loop.valid() && line.pipeline->slots > 1)
    for (ValueId v : line.pipeline->values) k_.names.slots[v] = pipeline_slot(k_, line, number);
  thread::TransactionWait wait{line.full, pipeline_slot(k_, line, number), pipeline_parity(k_, line, number),
                               ExprId()};
  if (s.peeked) {
    const ExprId at = answer_of(line);
    const ExprId answer = e_.load(scope_->answers, ir::DType::i32, std::vector<ExprId>{at});
    wait.unless = e_.binary(ir::ExprOp::ne, answer, e_.const_int(0, ir::DType::i32));
  }
  emit(std::move(wait), out);
}

void ScheduledLowering::lower(const expand::Peek& s, thread::Block& out) {
  const PipelineBarriers& line = k_.role.pipelines[static_cast<size_t>(s.pipeline)];
  const ExprId number = use_number(line, s.at), at = answer_of(line);
  emit(thread::TransactionTest{line.full, pipeline_slot(k_, line, number), pipeline_parity(k_, line, number),
                               scope_->answers, at},
       out);
}

// One thread of each warpgroup gives the slot back; to every block that fills it, where blocks share tiles.
void ScheduledLowering::lower(const expand::Release& s, thread::Block& out) {
  const PipelineBarriers& line = k_.role.pipelines[static_cast<size_t>(s.pipeline)];
  ExprId condition;
  if (s.where_exists) {
    const bool at_end = s.at.from == expand::Iteration::From::end;
    const ExprId counter = at_end ? scope_->extent : scope_->newest;
    const ExprId some = at_end ? any_iteration() : e_.lt(e_.const_int(0), counter);
    if (!arith::prove(k_.ctx, some))
      condition = at_end ? some : e_.unary(ir::ExprOp::logical_not, e_.le(counter, e_.const_int(0)));
  }
  const ExprId number = use_number(line, s.at);
  thread::Block arrive;
  thread::TransactionArrive freed{line.empty, pipeline_slot(k_, line, number), 0, {}};
  const int64_t blocks = line.shared ? k_.cluster_blocks() : 1;
  if (blocks > 1)
    freed.block = k_.simplified(e_.floormod(e_.var(k_.out.thread_var), e_.const_int(k_.in.target.warpgroup)));
  emit(std::move(freed), arrive);
  out.push_back(only_first_of_warpgroup(k_, std::move(arrive), origin(), condition, blocks));
  count_use(k_, line, out);
}

MemoryId ScheduledLowering::registers_at(const expand::ValueAt& v) {
  for (const PipelineBarriers& line : k_.role.pipelines)
    if (line.pipeline->transport == Transport::registers && line.pipeline->values.count(v.value))
      return registers_of(v.value, pipeline_slot(k_, line, number_of(v.at)));
  return k_.names.values[v.value];
}

void ScheduledLowering::lower(const expand::Await& s, thread::Block& out) {
  thread::WarpgroupWait wait{s.pending, {}};
  for (const expand::ValueAt& v : s.values)
    wait.registers.push_back(v.at.from == expand::Iteration::From::none ? k_.names.values[v.value]
                                                                        : registers_at(v));
  wait.after_work = s.after_work;
  k_.role.products_pending = s.pending;
  emit(std::move(wait), out);
}

}  // namespace tilegen::lower
