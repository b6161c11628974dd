// Kernels whose warps have tasks of their own: the body is lowered once for the computing threads, which come
// first and see the thread index as ever, and once for the producer, which replays the loops and branches
// around the copies that fill channels and issues them.
//
// A persistent block walks several points of the grid: the roles do so each for itself, as far apart as the
// channels' slots let them.
#include "analysis/block_work.h"
#include "lower/kernel_lowering.h"
#include "lower/statement_exprs.h"

namespace tilegen::lower {

bool KernelLowering::fills_channel(ir::StmtId id) const {
  bool fills = false;
  const ir::Block one = {id};
  ir::for_each_statement(p_, one, [&](ir::StmtId s, int) {
    const auto it = op_of_.find(s);
    if (it == op_of_.end() || !p_.as<ir::TileOp>(s)) return;
    const plan::OpPlan* plan = plan::find_op(schedule_, it->second->path);
    if (!plan || plan->engine != plan::Engine::tensor_copy) return;
    for (const analysis::OpAccess& a : it->second->accesses)
      fills = fills || (a.write && channel_of(a.value));
  });
  return fills;
}

bool KernelLowering::takes_part(ir::StmtId id) const {
  switch (role_) {
    case Role::all: return true;
    case Role::producer: return fills_channel(id);
    case Role::consumer: return !op_of_.count(id) || !fills_channel(id);
  }
  return true;
}

thread::StmtId KernelLowering::only_first_of_warpgroup(thread::Block body, const std::string& origin,
                                                       ExprId also, int64_t threads) {
  ir::ExprPool& e = out_.exprs;
  const ExprId within = simplified(e.floormod(e.var(out_.thread_var), e.const_int(kWarpgroup)));
  const ExprId first =
      threads == 1 ? e.binary(ir::ExprOp::eq, within, e.const_int(0)) : e.lt(within, e.const_int(threads));
  return out_.add(thread::Branch{both(simplified(first), also), std::move(body), {}}, origin);
}

void KernelLowering::for_each_warpgroup(const std::function<thread::Block(int64_t)>& own, thread::Block& out,
                                       const std::string& origin) {
  ir::ExprPool& e = out_.exprs;
  const int64_t warpgroups = *schedule_.threads / kWarpgroup;
  thread::Block rest = own(warpgroups - 1);
  for (int64_t w = warpgroups - 2; w >= 0; --w) {
    const ExprId mine =
        e.binary(ir::ExprOp::eq, e.floordiv(e.var(out_.thread_var), e.const_int(kWarpgroup)), e.const_int(w));
    rest = {out_.add(thread::Branch{simplified(mine), own(w), std::move(rest)}, origin)};
  }
  out.insert(out.end(), rest.begin(), rest.end());
}

void KernelLowering::warpgroup_barrier(thread::Block& out, const std::string& origin) {
  for_each_warpgroup(
      [&](int64_t w) {
        return thread::Block{out_.add(thread::Barrier{static_cast<int>(w) + 1, kWarpgroup, false}, origin)};
      },
      out, origin);
}

bool KernelLowering::counted(const ir::Loop& loop) const {
  return tile_var_.valid() &&
         (analysis::varies_by_block(p_, kernel_, loop) || analysis::pipelines_in_branch(p_, kernel_));
}

MemoryId KernelLowering::count_of(const void* what, const char* name) {
  const auto [count, fresh] = fillings_.try_emplace(what);
  if (fresh) count->second = add_registers(name, ir::DType::i32, 1);
  return count->second;
}

ExprId KernelLowering::held_number(MemoryId number) {
  ir::ExprPool& e = out_.exprs;
  return e.cast(ir::DType::i64, e.load(number, ir::DType::i32, std::vector<ExprId>{e.const_int(0)}));
}

// Known to be a small number, which slots and phases are cheap to tell from.
ExprId KernelLowering::held_count(MemoryId count) {
  ir::ExprPool& e = out_.exprs;
  return e.binary(ir::ExprOp::min, e.binary(ir::ExprOp::max, held_number(count), e.const_int(0)),
                  e.const_int(thread::kMostPersistentPoints));
}

void KernelLowering::add_to_count(MemoryId count, ExprId more, thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const ExprId sum = e.cast(
      ir::DType::i32, simplified(e.add(held_number(count), e.binary(ir::ExprOp::max, more, e.const_int(0)))));
  out.push_back(out_.add(thread::Store{count, e.const_int(0), sum, ExprId(), false, ExprId()}, kernel_.name));
}

ExprId KernelLowering::fillings_before(const ir::Loop& loop, ExprId extent) {
  return counted(loop) ? held_count(count_of(&loop, "fillings")) : repeated(executions_, extent);
}

void KernelLowering::count_fillings(const ir::Loop& loop, ExprId extent, thread::Block& out) {
  if (counted(loop)) add_to_count(count_of(&loop, "fillings"), extent, out);
}

ExprId KernelLowering::uses_before(const Channel& c) {
  const bool some_only =
      tile_var_.valid() && c.plan->loop.empty() && analysis::pipelines_in_branch(p_, kernel_);
  return some_only ? held_count(count_of(&c, "uses")) : executions_;
}

void KernelLowering::count_use(const Channel& c, thread::Block& out) {
  if (tile_var_.valid() && c.plan->loop.empty() && analysis::pipelines_in_branch(p_, kernel_))
    add_to_count(count_of(&c, "uses"), out_.exprs.const_int(1), out);
}

thread::Block KernelLowering::role_body(Role role) {
  ir::ExprPool& e = out_.exprs;
  role_ = role;
  fillings_.clear();
  executions_ = tile_var_.valid() ? e.var(tile_var_) : e.const_int(0);
  thread::Block body;
  block(kernel_.body, body);
  replace_block_indices(body);
  if (claimed()) {
    body = walk_claimed(std::move(body));
  } else if (tile_var_.valid()) {
    const ExprId points = e.binary(ir::ExprOp::min, tiles_, e.const_int(thread::kMostPersistentPoints));
    const ExprId launched = e.var(out_.launched_var), behind = e.sub(points, e.var(out_.block_vars[0]));
    const ExprId extent = e.floordiv(simplified(e.add(behind, e.sub(launched, e.const_int(1)))), launched);
    body = {
        out_.add(thread::Loop{tile_var_, extent, thread::LoopForm::serial, std::move(body)}, kernel_.name)};
  }
  for (const auto& [what, count] : fillings_)
    body.insert(body.begin(), out_.add(thread::Store{count, e.const_int(0), e.const_int(0, ir::DType::i32),
                                                     ExprId(), false, ExprId()},
                                       kernel_.name));
  role_ = Role::all;
  executions_ = ExprId();
  return body;
}

void KernelLowering::specialised_body() {
  ir::ExprPool& e = out_.exprs;
  const plan::RolePlan& plan = *schedule_.roles;
  const int64_t computing = out_.threads;
  declare_channels();
  declare_written();
  if (claimed() && !failed()) declare_claims();
  if (failed()) return;
  thread::Role consumer{"consumer", 0, computing, static_cast<int>(plan.consumer_registers), {}};
  if (takes_turns()) give_first_turn(consumer.body);
  const thread::Block work = role_body(Role::consumer);
  consumer.body.insert(consumer.body.end(), work.begin(), work.end());
  if (takes_turns()) take_back_turn(consumer.body);
  if (stores_in_flight_) {
    thread::Block wait = {out_.add(thread::BulkWait{0, true}, kernel_.name)};
    consumer.body.push_back(only_first_of_warpgroup(std::move(wait), kernel_.name));
  }
  thread::Role producer{
      "producer", computing, plan.producer_threads, static_cast<int>(plan.producer_registers), {}};
  out_.threads = computing + plan.producer_threads;
  ctx_.bind(out_.thread_var, 0, out_.threads - 1);
  producer.body = {out_.add(thread::OneThread{role_body(Role::producer)}, kernel_.name)};
  if (plan.producer_threads > target_.warp) {
    const ExprId first = e.lt(e.var(out_.thread_var), e.const_int(computing + target_.warp));
    producer.body = {out_.add(thread::Branch{first, std::move(producer.body), {}}, kernel_.name)};
  }
  if (cluster_blocks() > 1)
    for (thread::Role* role : {&consumer, &producer})
      role->body.push_back(out_.add(thread::ClusterBarrier{}, kernel_.name));
  out_.body.push_back(out_.add(thread::Roles{{std::move(consumer), std::move(producer)}}, kernel_.name));
}

}  // namespace tilegen::lower
