// State of expanding one kernel, shared by the files of this folder. Not used outside it.
#pragma once

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/block_tree.h"
#include "expand/scheduled_kernel.h"
#include "ir/statement_paths.h"

namespace tilegen::expand {

using analysis::KernelOp;

// Bodies of the role being expanded. A statement of the program is expanded for the roles that take part in
// it.
class Expander {
 public:
  Expander(const ir::Program& p, int kernel, const plan::KernelSchedule& schedule,
           const target::Target& target, std::shared_ptr<const analysis::KernelOps> collected);

  Expected<ScheduledKernel> run();

  // A statement of the program, with those inside it.
  void statement(StmtId id, Block& out);
  void block(const ir::Block& b, Block& out);
  // The same, of a loop that is all that uses the pipelines `around` it.
  void loop(const ir::Loop& l, StmtId id, const std::vector<int>& around, Block& out);
  // Blocks of the cluster share the loop's iterations.
  bool shared_by_blocks(StmtId loop) const { return kernel_.split && kernel_.split->loop == loop; }
  // A producer fills tiles of the loop's iterations.
  bool fed(StmtId loop) const { return fed_by_producer(out_, loop); }
  bool is_product(StmtId id) const;  // of warpgroups
  // The warpgroup that has made the product's left operand has it in registers.
  bool has_left_in_registers(StmtId id) const {
    const plan::OpPlan* plan = op(id) ? plan_of(*op(id)) : nullptr;
    return plan && plan->left_in_registers.value_or(false);
  }
  bool holds_products(StmtId id) const;  // none itself, with some inside
  // The products of the statement after it overwrite what the fill clears.
  bool elided(StmtId fill) const;

  const ir::Program& program() const { return p_; }
  const plan::KernelSchedule& schedule() const { return schedule_; }
  const analysis::KernelOps& ops() const { return *out_.ops; }
  const std::vector<Pipeline>& pipelines() const { return out_.pipelines; }
  const std::vector<analysis::ThreadWrittenOperand>& written() const { return out_.written; }
  const std::vector<ValueId>& parts() const { return out_.parts; }
  const std::vector<analysis::SumShare>& shares() const { return out_.shares; }
  const std::string& path(StmtId id) const { return paths_[id.value]; }
  // nullptr for a loop or branch
  const KernelOp* op(StmtId id) const {
    const auto it = op_of_.find(id);
    return it == op_of_.end() ? nullptr : it->second;
  }
  // The schedule's ops stand in the kernel's order where planning has listed them all.
  const plan::OpPlan* plan_of(const KernelOp& op) const {
    const auto i = static_cast<size_t>(&op - &*ops().ops.begin());
    const bool there = i < schedule_.ops.size() && schedule_.ops[i].op == op.path;
    return there ? &schedule_.ops[i] : plan::find_op(schedule_, op.path);
  }
  const plan::ValuePlan& value(ValueId v) const { return schedule_.values[v.index()]; }
  // All that uses the value stands in the loop's body, in no loop inside.
  bool used_in(StmtId loop, ValueId v) const;
  bool in_registers(ValueId v) const { return !value(v).memory.has_value(); }
  bool is_written_operand(ValueId v) const;
  // Written by threads into slots that iterations use in turn.
  bool has_slots(ValueId v) const { return is_written_operand(v) && value(v).slots > 1; }
  // Iterations of a loop have it in other registers, in turn.
  int64_t register_slots(ValueId v) const {
    return in_registers(v) ? std::max<int64_t>(1, value(v).slots) : 1;
  }
  bool persistent() const { return schedule_.persistence && schedule_.persistence->persistent; }
  // The statement, or one inside it, is a copy that the producer makes.
  bool fills_pipeline(StmtId id) const;
  // The same of the producer that is being expanded.
  bool is_produced_here(StmtId id) const;
  // The statement, or one inside it, reads or writes one of the values.
  bool touches(StmtId id, const std::set<ValueId>& values) const;
  // Threads read one of the values in the statement; a product reads as the copy engine does.
  bool reads_by_threads(StmtId id, const std::set<ValueId>& values) const;
  // The loop fills slots of the value without a producer.
  void add_ring(ValueId value, StmtId loop, Transport transport, bool by_turns = false);
  // The statement, or one inside it, has one of the tiles among its operands or scalars.
  bool uses_tiles(StmtId id, const std::set<ValueId>& tiles) const;
  // Products made from here on do not add to their sums, which `fill` would clear.
  void set_overwrite(bool overwrite, StmtId fill = StmtId()) {
    overwrite_ = overwrite;
    elided_ = fill;
  }
  bool overwrites() const { return overwrite_; }
  StmtId elided_fill() const { return elided_; }
  // A fragment leaves through a staged tile in whose place another tile was.
  bool stages_in_shared_place(StmtId id) const {
    return op(id) && shared_stages_.count(ops().id_of(*op(id))) > 0;
  }
  // The copy engine stores one of the tiles, and reads it while its threads go on.
  bool stores_from(const std::set<ValueId>& tiles) const;
  // Of a slot that the engine stores from, when it has read it.
  void release(Release slot, Block& out) const;
  const analysis::BlockTree& tree() const { return tree_; }
  void fail(const std::string& op, std::string message, std::string hint);
  bool failed() const { return error_.has_value(); }

 private:
  bool specialised() const { return schedule_.has_producer(); }
  void declare_pipelines();
  std::vector<int> pipelines_of(ValueId value) const;
  bool in_turns(StmtId loop) const;
  bool takes_part(StmtId id) const;
  void produce(const KernelOp& op, Block& out);
  bool stores_in_bulk(const KernelOp& o) const;
  bool overwrites_stored_tile(const KernelOp& writer) const;
  bool stores_copied_tile(const KernelOp& store) const;
  void copy_groups(const ir::TileOp& op, Block& out) const;
  std::set<OpId> stores_in_shared_places() const;
  std::set<OpId> stores_in_turn() const;
  Block tile_loop(RoleKind role, const plan::RolePlan* producer = nullptr);
  void roles();

  const ir::Program& p_;
  const ir::Kernel& kernel_;
  const plan::KernelSchedule& schedule_;
  const target::Target& target_;
  ScheduledKernel out_;
  const ir::KernelPaths paths_;
  const analysis::BlockTree tree_;
  std::map<StmtId, const KernelOp*> op_of_;
  std::vector<const KernelOp*> bulk_stores_;
  std::set<OpId> shared_stages_, stages_in_turn_;
  RoleKind role_ = RoleKind::all;
  const plan::RolePlan* producer_ = nullptr;  // the one being expanded
  bool overwrite_ = false;
  StmtId elided_;  // the fill that `overwrite_` stands for
  std::optional<Error> error_;
};

// A consumer's loop over tiles that come through pipelines (consumer_loop.cpp). `around`: pipelines that are
// filled before the loop, and used in it only.
Block consumer_loop(Expander& x, const ir::Loop& loop, StmtId id, const std::vector<int>& around);

// A consumer's block that is no such loop's body (consumer_block.cpp).
void consumer_block(Expander& x, const ir::Block& b, Block& out);

// A loop whose copies run ahead of what uses them through registers (register_copies.cpp). Nothing where the
// schedule has no such copy.
std::optional<Block> register_copy_loop(Expander& x, const ir::Loop& loop, StmtId id);

// A loop whose copies run ahead of what uses them in commit groups (commit_groups.cpp). Nothing where the
// schedule has no copy of the loop run ahead.
std::optional<Block> commit_group_loop(Expander& x, const ir::Loop& loop, StmtId id);

template <class Node>
void emit(Block& out, Node node) {
  out.push_back(Stmt{std::move(node)});
}

}  // namespace tilegen::expand
