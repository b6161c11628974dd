// Tiles handed from the role that fills them to the role that uses them: a "full" and an "empty" transaction
// barrier a slot, in phases that alternate with every round through the slots.
//
// The producer waits until the slot is empty (at once in the first round), announces the bytes and issues the
// copies. A consumer waits until the slot is full, uses it, and one thread of each of its warpgroups gives it
// back. Both count the uses by themselves: with n iterations of the loop, iteration i of the block's t-th
// tile is number t * n + i. The kernel's body is one iteration of the block's tile. Consumers' loops:
// gpu_channel_loop.cpp.
#include <algorithm>

#include "lower/kernel_lowering.h"

namespace tilegen::lower {

void KernelLowering::declare_channels() {
  const int64_t warpgroups = out_.threads / kWarpgroup;
  for (const plan::ChannelPlan& plan : schedule_.channels) {
    Channel c;
    c.plan = &plan;
    for (size_t v = 0; v < ops_.values.size(); ++v)
      if (std::find(plan.values.begin(), plan.values.end(), ops_.values[v].name) != plan.values.end())
        c.values.insert(static_cast<int>(v));
    int64_t offset = -1;
    for (const plan::MemoryPlan& place : schedule_.memory)
      if (place.value == "channel:" + plan.name) {
        offset = place.offset;
        out_.arena_bytes = std::max(out_.arena_bytes, place.offset + place.bytes);
      }
    if (offset < 0 || c.values.size() != plan.values.size())
      return fail(DiagCode::schedule_illegal, kernel_.name,
                  "channel '" + plan.name +
                      "' has no place in shared memory or names values that the kernel does not have",
                  "plan the program for this target");
    c.full = static_cast<int>(out_.barriers.size());
    out_.barriers.push_back({plan.name + ".full", plan.slots, 1, offset});
    c.empty = static_cast<int>(out_.barriers.size());
    c.shared = std::any_of(ops_.ops.begin(), ops_.ops.end(), [&](const analysis::KernelOp& op) {
      return std::any_of(op.accesses.begin(), op.accesses.end(), [&](const analysis::OpAccess& a) {
        return a.write && c.values.count(a.value) && shared_rows_of(op) > 0;
      });
    });
    out_.barriers.push_back({plan.name + ".empty", plan.slots, warpgroups * (c.shared ? cluster_blocks() : 1),
                             offset + 8 * plan.slots});
    for (int v : c.values) {
      thread::Memory& m = out_.memories[values_[static_cast<size_t>(v)].value];
      m.ordered = true;
      m.alignment = 1024;
    }
    channels_.push_back(std::move(c));
  }
}

// Where warpgroups hand a tile to themselves, or slots in turn, no barrier of all threads belongs between two
// writes.
void KernelLowering::declare_written() {
  written_ = schedule::written_operands(p_, ops_, target_, *schedule_.threads, schedule_.ops,
                                        schedule_.values, schedule_.conversions);
  for (const schedule::WrittenOperand& w : written_) {
    thread::Memory& m = out_.memories[values_[static_cast<size_t>(w.value)].value];
    m.ordered = w.own_rows || m.slots > 1;
    m.alignment = 1024;
  }
}

bool KernelLowering::is_written_operand(int value) const {
  return std::any_of(written_.begin(), written_.end(), [&](const auto& w) { return w.value == value; });
}

bool KernelLowering::in_turn(int value) const {
  return is_written_operand(value) && schedule_.values[static_cast<size_t>(value)].slots > 1;
}

const Channel* KernelLowering::channel_of(int value) const {
  for (const Channel& c : channels_)
    if (c.values.count(value)) return &c;
  return nullptr;
}

bool KernelLowering::has_channels(const std::string& loop) const {
  return std::any_of(channels_.begin(), channels_.end(),
                     [&](const Channel& c) { return c.plan->loop == loop; });
}

ExprId KernelLowering::channel_slot(const Channel& c, ExprId count) {
  return simplified(out_.exprs.floormod(count, out_.exprs.const_int(c.plan->slots)));
}

ExprId KernelLowering::channel_parity(const Channel& c, ExprId count) {
  ir::ExprPool& e = out_.exprs;
  return simplified(e.floormod(e.floordiv(count, e.const_int(c.plan->slots)), e.const_int(2)));
}

// The copies of one iteration; in front of the first of them the wait for the slot.
void KernelLowering::fill_channel(const analysis::KernelOp& op, thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const Channel* c = nullptr;
  for (const analysis::OpAccess& a : op.accesses)
    if (a.write) c = channel_of(a.value);
  const ExprId uses = uses_before(*c), slot = channel_slot(*c, uses);
  const analysis::KernelOp *first = nullptr, *last = nullptr;
  int64_t bytes = 0;
  for (const analysis::KernelOp& other : ops_.ops)
    for (const analysis::OpAccess& a : other.accesses)
      if (a.write && c->values.count(a.value)) {
        if (!first) first = &other;
        last = &other;
        bytes += tensor_load_bytes(other);
      }
  if (first == &op) {
    const ExprId parity = simplified(e.sub(e.const_int(1), channel_parity(*c, uses)));
    out.push_back(out_.add(thread::TransactionWait{c->empty, slot, parity}, op.path));
    out.push_back(out_.add(thread::TransactionArrive{c->full, slot, bytes}, op.path));
  }
  tensor_loads(op, *c, slot, out);
  if (last == &op) count_use(*c, out);
}

// The products of the loop behind overwrite what it clears.
bool KernelLowering::elided(ir::StmtId fill) const {
  const auto op = op_of_.find(fill);
  const plan::OpPlan* plan = op == op_of_.end() ? nullptr : plan::find_op(schedule_, op->second->path);
  return plan && plan->elided.value_or(false);
}

}  // namespace tilegen::lower
