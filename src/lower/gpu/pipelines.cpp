// Pipelines between roles: a "full" and an "empty" transaction barrier a slot, in phases that alternate with
// every round through the slots.
//
// The producer waits until the slot is empty (at once in the first round), announces the bytes and issues the
// copies. A consumer waits until the slot is full, uses it, and one thread of each of its warpgroups gives it
// back. Both count the uses by themselves: with n iterations of the loop, iteration i of the block's t-th
// tile is number t * n + i. The kernel's body is one iteration of the block's tile.
#include <algorithm>

#include "lower/scheduled_lowering.h"

namespace tilegen::lower {

using expand::Transport;

void KernelLowering::declare_pipelines() {
  const int64_t warpgroups = out_.threads / target_.warpgroup;
  for (const expand::Pipeline& p : scheduled_.pipelines) {
    PipelineBarriers line;
    line.pipeline = &p;
    pipelines_.push_back(line);
    if (p.transport != Transport::tensor_copy) continue;
    const plan::MemoryPlan* place = plan::find_memory(schedule_, plan::Storage::barriers, p.name);
    if (!place)
      return fail(DiagCode::schedule_illegal, kernel_.name,
                  "pipeline '" + p.name + "' has no place in shared memory",
                  "plan the program for this target");
    out_.arena_bytes = std::max(out_.arena_bytes, place->offset + place->bytes);
    line.full = static_cast<int>(out_.barriers.size());
    out_.barriers.push_back({p.name + ".full", p.slots, 1, place->offset});
    line.empty = static_cast<int>(out_.barriers.size());
    line.shared = std::any_of(p.copies.begin(), p.copies.end(),
                              [&](size_t copy) { return shared_rows_of(ops_.ops[copy]) > 0; });
    out_.barriers.push_back({p.name + ".empty", p.slots, warpgroups * (line.shared ? cluster_blocks() : 1),
                             place->offset + target_.transaction_barrier_bytes * p.slots});
    for (int v : p.values) {
      thread::Memory& m = out_.memories[values_[static_cast<size_t>(v)].value];
      m.ordered = true;
      m.alignment = target_.tensor_tile_alignment;
    }
    pipelines_.back() = line;
  }
  // Where warpgroups hand a tile to themselves, or slots in turn, no barrier of all threads belongs between
  // two writes.
  for (const analysis::ThreadWrittenOperand& w : scheduled_.written) {
    thread::Memory& m = out_.memories[values_[static_cast<size_t>(w.value)].value];
    m.ordered = w.own_rows || m.slots > 1;
    m.alignment = target_.tensor_tile_alignment;
  }
}

const PipelineBarriers& KernelLowering::pipeline_of(const analysis::KernelOp& copy) const {
  const size_t number = static_cast<size_t>(&copy - ops_.ops.data());
  return *std::find_if(pipelines_.begin(), pipelines_.end(), [&](const PipelineBarriers& line) {
    const auto& copies = line.pipeline->copies;
    return std::find(copies.begin(), copies.end(), number) != copies.end();
  });
}

ExprId KernelLowering::pipeline_slot(const PipelineBarriers& line, ExprId count) {
  return simplified(out_.exprs.floormod(count, out_.exprs.const_int(line.pipeline->slots)));
}

ExprId KernelLowering::pipeline_parity(const PipelineBarriers& line, ExprId count) {
  ir::ExprPool& e = out_.exprs;
  return simplified(e.floormod(e.floordiv(count, e.const_int(line.pipeline->slots)), e.const_int(2)));
}

void KernelLowering::issue_tensor_copy(const analysis::KernelOp& op, thread::Block& out) {
  const PipelineBarriers& line = pipeline_of(op);
  tensor_loads(op, line, pipeline_slot(line, uses_before(line)), out);
}

// Of a pipeline that is filled once a tile, the use of this one.
ExprId ScheduledLowering::use_number(const PipelineBarriers& line, expand::Iteration at) {
  if (!line.pipeline->loop.valid() || !scope_) return k_.uses_before(line);
  return k_.simplified(e_.add(scope_->filled, number_of(at)));
}

void ScheduledLowering::lower(const expand::Acquire& s, thread::Block& out) {
  const PipelineBarriers& line = k_.pipelines_[static_cast<size_t>(s.pipeline)];
  const ExprId uses = k_.uses_before(line), slot = k_.pipeline_slot(line, uses);
  int64_t bytes = 0;
  for (size_t copy : line.pipeline->copies) bytes += k_.tensor_load_bytes(k_.ops_.ops[copy]);
  const std::string& origin = k_.ops_.ops[line.pipeline->copies.front()].path;
  const ExprId parity = k_.simplified(e_.sub(e_.const_int(1), k_.pipeline_parity(line, uses)));
  out.push_back(k_.out_.add(thread::TransactionWait{line.empty, slot, parity}, origin));
  out.push_back(k_.out_.add(thread::TransactionArrive{line.full, slot, bytes}, origin));
}

// The engine's bytes complete the phase.
void ScheduledLowering::lower(const expand::Commit& s, thread::Block& out) {
  k_.count_use(k_.pipelines_[static_cast<size_t>(s.pipeline)], out);
}

ExprId ScheduledLowering::answer_of(const PipelineBarriers& line) {
  if (!scope_->answers.valid())
    scope_->answers = k_.add_registers("answers", ir::DType::i32, static_cast<int64_t>(k_.pipelines_.size()));
  return e_.const_int(&line - k_.pipelines_.data());
}

void ScheduledLowering::lower(const expand::Wait& s, thread::Block& out) {
  const PipelineBarriers& line = k_.pipelines_[static_cast<size_t>(s.pipeline)];
  const ExprId number = use_number(line, s.at);
  if (!line.pipeline->loop.valid() && line.pipeline->slots > 1)
    for (int v : line.pipeline->values) k_.slots_[v] = k_.pipeline_slot(line, number);
  thread::TransactionWait wait{line.full, k_.pipeline_slot(line, number), k_.pipeline_parity(line, number),
                               ExprId()};
  if (s.peeked) {
    const ExprId at = answer_of(line);
    const ExprId answer = e_.load(scope_->answers, ir::DType::i32, std::vector<ExprId>{at});
    wait.unless = e_.binary(ir::ExprOp::ne, answer, e_.const_int(0, ir::DType::i32));
  }
  emit(std::move(wait), out);
}

void ScheduledLowering::lower(const expand::Peek& s, thread::Block& out) {
  const PipelineBarriers& line = k_.pipelines_[static_cast<size_t>(s.pipeline)];
  const ExprId number = use_number(line, s.at), at = answer_of(line);
  emit(thread::TransactionTest{line.full, k_.pipeline_slot(line, number), k_.pipeline_parity(line, number),
                               scope_->answers, at},
       out);
}

// One thread of each warpgroup gives the slot back; to every block that fills it, where blocks share tiles.
void ScheduledLowering::lower(const expand::Release& s, thread::Block& out) {
  const PipelineBarriers& line = k_.pipelines_[static_cast<size_t>(s.pipeline)];
  ExprId condition;
  if (s.where_exists) {
    const bool at_end = s.at.from == expand::Iteration::From::end;
    const ExprId counter = at_end ? scope_->extent : scope_->newest;
    const ExprId some = at_end ? any_iteration() : e_.lt(e_.const_int(0), counter);
    if (!arith::prove(k_.ctx_, some))
      condition = at_end ? some : e_.unary(ir::ExprOp::logical_not, e_.le(counter, e_.const_int(0)));
  }
  const ExprId number = use_number(line, s.at);
  thread::Block arrive;
  thread::TransactionArrive freed{line.empty, k_.pipeline_slot(line, number), 0, {}};
  const int64_t blocks = line.shared ? k_.cluster_blocks() : 1;
  if (blocks > 1)
    freed.block = k_.simplified(e_.floormod(e_.var(k_.out_.thread_var), e_.const_int(k_.target_.warpgroup)));
  emit(std::move(freed), arrive);
  out.push_back(k_.only_first_of_warpgroup(std::move(arrive), origin(), condition, blocks));
  k_.count_use(line, out);
}

MemoryId ScheduledLowering::registers_at(const expand::ValueAt& v) {
  for (const PipelineBarriers& line : k_.pipelines_)
    if (line.pipeline->transport == Transport::registers && line.pipeline->values.count(v.value))
      return registers_of(v.value, k_.pipeline_slot(line, number_of(v.at)));
  return k_.values_[static_cast<size_t>(v.value)];
}

void ScheduledLowering::lower(const expand::Await& s, thread::Block& out) {
  thread::WarpgroupWait wait{s.pending, {}};
  for (const expand::ValueAt& v : s.values)
    wait.registers.push_back(v.at.from == expand::Iteration::From::none
                                 ? k_.values_[static_cast<size_t>(v.value)]
                                 : registers_at(v));
  wait.behind_work = s.behind_work;
  emit(std::move(wait), out);
}

}  // namespace tilegen::lower
