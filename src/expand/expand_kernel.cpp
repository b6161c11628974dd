// Roles: the kernel's body is expanded once for the computing threads, and once for each producer, which
// replays the loops and branches around the copies of its list and issues them. A persistent block
// walks several tiles of the grid; the roles do so each for itself, as far apart as the slots let them.
#include "expand/expand_kernel.h"

#include <algorithm>

#include "analysis/carried_sums.h"
#include "analysis/copy_groups.h"
#include "analysis/split_loop.h"
#include "analysis/transaction_barriers.h"
#include "expand/expander.h"
#include "expand/preamble.h"
#include "expand/versions.h"
#include "ir/op_kinds.h"
#include "support/diag_codes.h"

namespace tilegen::expand {

Expander::Expander(const ir::Program& p, int kernel, const plan::KernelSchedule& schedule,
                   const target::Target& target, std::shared_ptr<const analysis::KernelOps> collected)
    : p_(p),
      kernel_(p.kernels[static_cast<size_t>(kernel)]),
      schedule_(schedule),
      target_(target),
      paths_(p, kernel),
      tree_(p, kernel_) {
  out_.kernel = kernel;
  out_.schedule = &schedule;
  out_.ops = collected ? std::move(collected)
                       : std::make_shared<const analysis::KernelOps>(analysis::collect_kernel_ops(p, kernel));
  for (const KernelOp& op : ops().ops) {
    op_of_[op.stmt] = &op;
    if (stores_in_bulk(op)) bulk_stores_.push_back(&op);
  }
  shared_stages_ = stores_in_shared_places();
  stages_in_turn_ = stores_in_turn();
  if (kernel_.split) out_.parts = analysis::split_loop(p, kernel, ops(), kernel_.split->loop).sums;
  out_.shares = analysis::sum_shares(p, kernel, ops());
  if (target.has_block_threads()) out_.carried = analysis::carried_sums(p, kernel, ops(), schedule.ops);
}

void Expander::fail(const std::string& op, std::string message, std::string hint) {
  if (!failed())
    error_ = Error(DiagCode::schedule_illegal, op, std::move(message), std::move(hint), kernel_.location);
}

bool Expander::is_written_operand(ValueId v) const {
  return std::any_of(out_.written.begin(), out_.written.end(),
                     [&](const analysis::ThreadWrittenOperand& w) { return w.value == v; });
}

std::vector<int> Expander::pipelines_of(ValueId value) const {
  std::vector<int> lines;
  for (size_t i = 0; i < out_.pipelines.size(); ++i)
    if (out_.pipelines[i].transport == Transport::tensor_copy && out_.pipelines[i].values.count(value))
      lines.push_back(static_cast<int>(i));
  return lines;
}

bool Expander::in_turns(StmtId loop) const {
  const plan::LoopPlan* plan = loop.valid() ? plan::find_loop(schedule_, path(loop)) : nullptr;
  return plan && plan->alternating.value_or(false);
}

void Expander::add_ring(ValueId value, StmtId loop, Transport transport, bool by_turns) {
  for (const Pipeline& line : out_.pipelines)
    if (line.loop == loop && line.transport == transport && line.values.count(value)) return;
  out_.pipelines.push_back({ops().values[value].name,
                            transport,
                            {value},
                            this->value(value).slots,
                            &p_.as<ir::Loop>(loop)->body,
                            loop,
                            {},
                            by_turns});
}

bool Expander::fills_pipeline(StmtId id) const {
  bool fills = false;
  const ir::Block one = {id};
  ir::for_each_statement(p_, one, [&](StmtId s, int) {
    const KernelOp* o = op(s);
    const plan::OpPlan* plan = o && p_.as<ir::TileOp>(s) ? plan_of(*o) : nullptr;
    if (!plan || plan->engine != plan::Engine::tensor_copy) return;
    for (const analysis::OpAccess& a : o->accesses)
      fills = fills || (a.write && !pipelines_of(a.value).empty());
  });
  return fills;
}

bool Expander::is_produced_here(StmtId id) const {
  const ir::Block one = {id};
  bool any = false;
  ir::for_each_statement(p_, one, [&](StmtId s, int) {
    any = any || (op(s) && std::find(producer_->ops.begin(), producer_->ops.end(), op(s)->path) !=
                               producer_->ops.end());
  });
  return any;
}

bool Expander::touches(StmtId id, const std::set<ValueId>& values) const {
  bool any = false;
  const ir::Block one = {id};
  ir::for_each_statement(p_, one, [&](StmtId s, int) {
    if (const KernelOp* o = op(s))
      for (const analysis::OpAccess& a : o->accesses) any = any || values.count(a.value) > 0;
  });
  return any;
}

bool Expander::reads_by_threads(StmtId id, const std::set<ValueId>& values) const {
  bool any = false;
  const ir::Block one = {id};
  ir::for_each_statement(p_, one, [&](StmtId s, int) {
    if (op(s) && !is_product(s) && !(p_.as<ir::TileOp>(s) && fills_pipeline(s)))
      any = any || touches(s, values);
    for (const auto& [where, value] : ops().scalar_reads)
      any = any || (where.first == s && values.count(value));
  });
  return any;
}

bool Expander::uses_tiles(StmtId id, const std::set<ValueId>& tiles) const {
  bool uses = touches(id, tiles);
  const ir::Block one = {id};
  ir::for_each_statement(p_, one, [&](StmtId s, int) {
    for (const auto& [where, value] : ops().scalar_reads)
      uses = uses || (where.first == s && tiles.count(value));
  });
  return uses;
}

bool Expander::used_in(StmtId loop, ValueId v) const {
  return std::all_of(ops().ops.begin(), ops().ops.end(), [&](const KernelOp& o) {
    return std::none_of(o.accesses.begin(), o.accesses.end(),
                        [&](const analysis::OpAccess& a) { return a.value == v; }) ||
           tree_.loop_of(o.stmt) == loop;
  });
}

bool Expander::takes_part(StmtId id) const {
  switch (role_) {
    case RoleKind::all:
      return true;
    case RoleKind::producer:
      return is_produced_here(id);
    case RoleKind::consumer:
      return !op(id) || !fills_pipeline(id);
  }
  return true;
}

bool Expander::elided(StmtId fill) const {
  const plan::OpPlan* plan = op(fill) ? plan_of(*op(fill)) : nullptr;
  return plan && plan->elided.value_or(false);
}

void Expander::declare_pipelines() {
  for (const plan::PipelinePlan& c : schedule_.pipelines) {
    Pipeline line;
    line.name = c.name;
    line.slots = c.slots;
    for (ValueId v : ops().values.ids())
      if (std::find(c.values.begin(), c.values.end(), ops().values[v].name) != c.values.end())
        line.values.insert(v);
    for (OpId i : ops().ops.ids())
      for (const analysis::OpAccess& a : ops().ops[i].accesses)
        if (a.write && line.values.count(a.value)) line.copies.push_back(i);
    if (line.values.size() != c.values.size() || line.copies.empty())
      return fail(kernel_.name, "pipeline '" + c.name + "' names values that the kernel does not have",
                  "plan the program for this target");
    const StmtId first = ops().ops[line.copies.front()].stmt;
    line.home = &tree_.block_of(first);
    line.loop = tree_.loop_of(first);
    if (c.parts > 1 && (line.copies.size() > 1 || !in_turns(line.loop)))
      return fail(
          kernel_.name,
          "pipeline '" + c.name + "' has " + std::to_string(c.parts) +
              " parts, expected one, or one for each of two warpgroups that have its loop's iterations "
              "by turns, of one tile",
          "leave `parts` out to have them planned");
    line.parts = std::max<int64_t>(1, c.parts);
    for (line.part = 0; line.part < line.parts; ++line.part) out_.pipelines.push_back(line);
  }
  out_.written = analysis::written_operands(p_, ops(), target_, *schedule_.threads, schedule_.ops,
                                            schedule_.values, schedule_.conversions);
}

void Expander::block(const ir::Block& b, Block& out) {
  if (role_ == RoleKind::consumer) return consumer_block(*this, b, out);
  for (StmtId id : b) {
    if (failed()) return;
    statement(id, out);
  }
}

void Expander::statement(StmtId id, Block& out) {
  if (!takes_part(id)) return;
  if (const auto* l = p_.as<ir::Loop>(id); l && l->kind != ir::LoopKind::parallel)
    return loop(*l, id, {}, out);
  if (const auto* b = p_.as<ir::Branch>(id)) {
    Branch branch{id, {}, {}};
    block(b->then_body, branch.then_body);
    block(b->else_body, branch.else_body);
    return emit(out, std::move(branch));
  }
  if (const auto* orders = p_.as<ir::TileOp>(id); orders && ir::orders_threads(orders->kind)) {
    if (!ir::is_barrier_op(orders->kind)) return copy_groups(*orders, out);
    if (analysis::has_transaction_barriers(target_)) emit(out, OnBarrier{id});
    return;
  }
  if (role_ == RoleKind::producer) return produce(*op(id), out);
  if (overwrites_stored_tile(*op(id))) {
    emit(out, AwaitStores{});
    emit(out, Barrier{});
  }
  if (stores_copied_tile(*op(id))) {
    emit(out, CommitGroup{});
    emit(out, WaitGroup{0});
  }
  emit(out, Run{id, overwrite_, stages_in_turn_.count(ops().id_of(*op(id))) > 0});
}

// Where the machine has groups. Threads that wait for theirs see what these brought; what others see is for
// barriers.
void Expander::copy_groups(const ir::TileOp& op, Block& out) const {
  if (!analysis::has_copy_groups(target_)) return;
  if (op.kind == ir::OpKind::commit_group) return emit(out, CommitGroup{});
  WaitGroup wait;
  p_.exprs.is_const_int(op.value, &wait.pending);
  emit(out, wait);
}

// The copy engine may still read the tile for a store of an earlier statement, iteration or tile of the grid.
bool Expander::overwrites_stored_tile(const KernelOp& writer) const {
  const bool comes_again = persistent() || !tree_.around(writer.stmt).empty();
  return std::any_of(bulk_stores_.begin(), bulk_stores_.end(), [&](const KernelOp* store) {
    if (store == &writer || (store > &writer && !comes_again)) return false;
    return std::any_of(writer.accesses.begin(), writer.accesses.end(), [&](const analysis::OpAccess& a) {
      return a.write && a.value.valid() && a.value == store->accesses.front().value && !in_registers(a.value);
    });
  });
}

// Of which the staged tile's bytes are another staged tile's too, or an operand's that threads write.
std::set<OpId> Expander::stores_in_shared_places() const {
  std::set<OpId> found;
  for (const KernelOp* store : bulk_stores_) {
    const plan::MemoryPlan* stage = plan::find_memory(schedule_, plan::Storage::stage, store->path);
    if (stage &&
        std::any_of(schedule_.memory.begin(), schedule_.memory.end(), [&](const plan::MemoryPlan& m) {
          return &m != stage && m.offset < stage->offset + stage->bytes && stage->offset < m.offset + m.bytes;
        }))
      found.insert(ops().id_of(*store));
  }
  return found;
}

// Several in a loop's body, of the same iteration: each through a staged tile of its own that takes all
// columns at once.
std::set<OpId> Expander::stores_in_turn() const {
  struct Turn {
    const ir::Block* body;
    int64_t stage;  // of the loop
    auto operator<=>(const Turn&) const = default;
  };
  std::map<Turn, std::set<OpId>> turns;
  for (const KernelOp* store : bulk_stores_) {
    const StmtId loop = tree_.loop_of(store->stmt);
    const plan::MemoryPlan* place = plan::find_memory(schedule_, plan::Storage::stage, store->path);
    if (!place || !loop.valid() || shared_stages_.count(ops().id_of(*store))) continue;
    const auto& fragment = value(store->accesses.front().value).fragment;
    const ir::Buffer& tensor = p_.buffer(p_.as<ir::TileOp>(store->stmt)->operands[1].buffer);
    if (!fragment || place->bytes < fragment->map().elements() * ir::dtype_bytes(tensor.type)) continue;
    int64_t stage = 0;
    if (const plan::LoopPlan* plan = plan::find_loop(schedule_, path(loop)))
      for (const auto& [op, of_op] : plan->stages)
        if (op == store->path) stage = of_op;
    turns[{&tree_.block_of(store->stmt), stage}].insert(ops().id_of(*store));
  }
  std::set<OpId> found;
  for (const auto& [turn, stores] : turns)
    if (stores.size() > 1) found.insert(stores.begin(), stores.end());
  return found;
}

bool Expander::holds_products(StmtId id) const {
  if (is_product(id)) return false;
  bool found = false;
  const ir::Block one = {id};
  ir::for_each_statement(p_, one, [&](StmtId s, int) { found = found || is_product(s); });
  return found;
}

bool Expander::is_product(StmtId id) const {
  const plan::OpPlan* plan = op(id) && p_.as<ir::TileOp>(id) ? plan_of(*op(id)) : nullptr;
  return plan && plan->engine == plan::Engine::warpgroup_mma;
}

void Expander::loop(const ir::Loop& l, StmtId id, const std::vector<int>& around, Block& out) {
  const auto in_parts = [&](bool in_front) {
    if (role_ == RoleKind::producer) return;
    for (const analysis::CarriedSums& c : out_.carried) {
      if (c.loop != id) continue;
      if (in_front && !c.split.empty()) return emit(out, SplitSums{id});
      if (!in_front) return emit(out, JoinSums{id});
    }
  };
  in_parts(true);
  std::optional<Block> expanded;
  if (role_ == RoleKind::consumer && fed(id)) expanded = consumer_loop(*this, l, id, around);
  const bool counted = !l.condition.valid();
  if (counted && target_.has_block_threads() && role_ != RoleKind::producer && !expanded)
    expanded = register_copy_loop(*this, l, id);
  if (counted && target_.has_block_threads() && role_ != RoleKind::producer && !expanded)
    expanded = commit_group_loop(*this, l, id);
  if (expanded) {
    out.insert(out.end(), expanded->begin(), expanded->end());
  } else {
    Serial serial{id, {}};
    block(l.body, serial.body);
    emit(out, std::move(serial));
  }
  in_parts(false);
}

// Before the first copy of a slot the wait for it, after the last its commit.
void Expander::produce(const KernelOp& op, Block& out) {
  std::vector<int> lines;
  for (const analysis::OpAccess& a : op.accesses)
    if (a.write) lines = pipelines_of(a.value);
  for (int number : lines) {
    const Pipeline& line = out_.pipelines[static_cast<size_t>(number)];
    if (&ops().ops[line.copies.front()] == &op) emit(out, Acquire{number});
    emit(out, Issue{op.stmt, false, line.parts > 1 ? line.part : Issue::kWhole});
    if (&ops().ops[line.copies.back()] == &op) emit(out, Commit{number});
  }
}

// A tile leaves by tensor copies, which read it, or where a fragment is staged, while the role goes on.
bool Expander::stores_in_bulk(const KernelOp& o) const {
  const plan::OpPlan* plan = plan_of(o);
  return plan && plan->engine == plan::Engine::tensor_copy && !o.accesses.empty() &&
         o.accesses.front().value.valid() && o.accesses.front().read;
}

Block Expander::tile_loop(RoleKind role, const plan::RolePlan* producer) {
  role_ = role;
  producer_ = producer;
  TileLoop tiles;
  if (specialised() && persistent())
    tiles.walk = !schedule_.persistence->dynamic()    ? Walk::fixed
                 : producer == &(*schedule_.roles)[1] ? Walk::fetch
                                                      : Walk::dynamic;
  // The engine may still read what the tile before has staged.
  if (role == RoleKind::consumer && persistent() && !shared_stages_.empty()) {
    emit(tiles.body, AwaitStores{});
    emit(tiles.body, Barrier{Scope::role});
  }
  block(kernel_.body, tiles.body);
  Block out;
  emit(out, std::move(tiles));
  return out;
}

void Expander::roles() {
  const int64_t threads = *schedule_.threads;
  if (!specialised()) {
    Role all{"all", RoleKind::all, 0, threads, 0, tile_loop(RoleKind::all)};
    if (!bulk_stores_.empty()) emit(all.body, AwaitStores{});
    out_.roles.push_back(std::move(all));
    return;
  }
  declare_pipelines();
  if (failed()) return;
  const bool ordered = std::any_of(schedule_.loops.begin(), schedule_.loops.end(),
                                   [](const plan::LoopPlan& l) { return l.ping_pong.value_or(false); });
  const bool clustered = schedule_.cluster && schedule_.cluster->blocks > 1;
  const int64_t meetings = !kernel_.split ? 0
                           : !out_.shares.empty()
                               ? 1
                               : analysis::meetings_for_sums(clustered ? schedule_.cluster->blocks : 1);
  int64_t first = 0;
  for (const plan::RolePlan& plan : *schedule_.roles) {
    const bool computes = first == 0;
    Role role{plan.name,      computes ? RoleKind::consumer : RoleKind::producer,
              first,          plan.warps * target_.warp,
              plan.registers, {}};
    if (computes && ordered) emit(role.body, Order{Order::Step::begin});
    const Block work = computes ? tile_loop(RoleKind::consumer) : tile_loop(RoleKind::producer, &plan);
    role.body.insert(role.body.end(), work.begin(), work.end());
    if (computes && ordered) emit(role.body, Order{Order::Step::end});
    if (computes && !bulk_stores_.empty()) emit(role.body, AwaitStores{});
    for (int64_t i = 0; i < meetings; ++i)  // where the others reduce parts
      if (!computes) emit(role.body, ClusterBarrier{});
    if (clustered) emit(role.body, ClusterBarrier{});
    first += role.threads;
    out_.roles.push_back(std::move(role));
  }
}

Expected<ScheduledKernel> Expander::run() {
  roles();
  if (failed()) return std::move(*error_);
  return std::move(out_);
}

Expected<ScheduledKernel> expand_kernel(const ir::Program& p, int kernel,
                                        const plan::KernelSchedule& schedule, const target::Target& target,
                                        std::shared_ptr<const analysis::KernelOps> ops) {
  auto expanded = Expander(p, kernel, schedule, target, std::move(ops)).run();
  if (expanded) add_versions(*expanded), add_preamble(*expanded);
  return expanded;
}

}  // namespace tilegen::expand
