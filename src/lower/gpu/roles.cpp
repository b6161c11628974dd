// Kernels whose warps have tasks of their own: the computing threads come first and see the thread index as
// ever, one thread of the producer issues its copies.
//
// A persistent block walks several tiles of the grid: the roles do so each for itself, as far apart as the
// pipelines' slots let them.
#include "lower/gpu/grid.h"
#include "lower/gpu/tile_scheduler.h"
#include "lower/gpu/warpgroups.h"
#include "lower/lowering_context.h"
#include "lower/scheduled_lowering.h"
#include "lower/statement_exprs.h"

namespace tilegen::lower {

// All barriers are as they were when every warpgroup has had as many turns as the others, so that none is
// left with arrivals at the end.
void ScheduledLowering::lower(const expand::Order& s, thread::Block& out) {
  using Step = expand::Order::Step;
  const int64_t threads = k_.in.target.warpgroup, warpgroups = *k_.in.schedule.threads / threads;
  const auto each = [&](bool pass) {
    for_each_warpgroup(
        k_,
        [&](int64_t w) {
          const int64_t whose = pass ? (w + 1) % warpgroups : w;
          return thread::Block{k_.out.add(order_barrier(k_, whose, pass), origin())};
        },
        out, origin());
  };
  const auto one = [&](ExprId mine, bool arrive_only) {
    emit(thread::Branch{mine, {k_.out.add(order_barrier(k_, 0, arrive_only), origin())}, {}}, out);
  };
  const ExprId tid = e_.var(k_.out.thread_var);
  switch (s.step) {
    case Step::begin:
      return one(e_.le(e_.const_int((warpgroups - 1) * threads), tid), true);
    case Step::wait:
      return each(false);
    case Step::pass:
      return each(true);
    case Step::end:
      return one(e_.lt(tid, e_.const_int(threads)), false);
  }
}

void ScheduledLowering::lower(const expand::Barrier& s, thread::Block& out) {
  if (s.scope == expand::Scope::warpgroup) return warpgroup_barrier(k_, out, origin());
  role_barrier(k_, out, origin());
}

void ScheduledLowering::lower(const expand::AwaitStores&, thread::Block& out) {
  thread::Block wait = {k_.out.add(thread::BulkWait{0, true}, origin())};
  out.push_back(only_first_of_warpgroup(k_, std::move(wait), origin()));
}

// That its index tells.
ExprId ScheduledLowering::tiles_of_block() {
  const ExprId all = points(k_);
  const ExprId launched = e_.var(k_.out.launched_var), rest = e_.sub(all, e_.var(k_.out.block_vars[0]));
  return e_.floordiv(k_.simplified(e_.add(rest, e_.sub(launched, e_.const_int(1)))), launched);
}

// What a block does for one tile of the grid, in the loop over its tiles.
void ScheduledLowering::lower(const expand::TileLoop& s, thread::Block& out) {
  thread::Block body;
  if (k_.role.kind == expand::RoleKind::all) {
    lower(s.body, out);
    if (!k_.failed()) replace_block_indices(k_, out);
    return;
  }
  k_.role.fillings.clear();
  k_.role.iteration_counts = k_.grid.tile_var.valid() ? e_.var(k_.grid.tile_var) : e_.const_int(0);
  lower(s.body, body);
  replace_block_indices(k_, body);
  if (s.walk == expand::Walk::dynamic || s.walk == expand::Walk::fetch) {
    body = k_.tile_scheduler->walk(std::move(body), s.walk == expand::Walk::fetch);
  } else if (s.walk == expand::Walk::fixed) {
    body = {k_.out.add(
        thread::Loop{k_.grid.tile_var, tiles_of_block(), thread::LoopForm::serial, std::move(body)},
        origin())};
  }
  for (const auto& [what, count] : k_.role.fillings)
    body.insert(body.begin(),
                k_.out.add(thread::Store{count, e_.const_int(0), e_.const_int(0, ir::DType::i32), ExprId(),
                                         false, ExprId()},
                           origin()));
  out.insert(out.end(), body.begin(), body.end());
  k_.role.iteration_counts = ExprId();
}

thread::Role ScheduledLowering::lower_role(const expand::Role& r) {
  thread::Role role{r.name, r.first_thread, r.threads, static_cast<int>(r.registers), {}};
  k_.role.kind = r.kind;
  if (r.kind != expand::RoleKind::producer) {
    lower(r.body, role.body);
  } else {
    k_.out.threads = r.first_thread + r.threads;
    k_.ctx.bind(k_.out.thread_var, 0, k_.out.threads - 1);
    thread::Block one;
    const auto last = r.body.size();
    for (size_t i = 0; i < last; ++i)
      if (!std::holds_alternative<expand::ClusterBarrier>(r.body[i].node))
        std::visit([&](const auto& node) { lower(node, one); }, r.body[i].node);
    role.body = {k_.out.add(thread::OneThread{std::move(one)}, k_.in.kernel.name)};
    if (r.threads > k_.in.target.warp) {
      const ExprId first = e_.lt(e_.var(k_.out.thread_var), e_.const_int(r.first_thread + k_.in.target.warp));
      role.body = {k_.out.add(thread::Branch{first, std::move(role.body), {}}, k_.in.kernel.name)};
    }
    for (const expand::Stmt& s : r.body)
      if (const auto* meet = std::get_if<expand::ClusterBarrier>(&s.node)) lower(*meet, role.body);
  }
  k_.role.kind = expand::RoleKind::all;
  return role;
}

void ScheduledLowering::roles() {
  if (k_.dynamic() && !k_.failed()) k_.tile_scheduler->declare();
  thread::Roles roles;
  for (const expand::Role& r : scheduled_.roles) {
    if (k_.failed()) return;
    roles.roles.push_back(lower_role(r));
  }
  emit(std::move(roles), k_.out.body);
}

}  // namespace tilegen::lower
