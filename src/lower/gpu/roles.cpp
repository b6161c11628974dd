// Kernels whose warps have tasks of their own: the computing threads come first and see the thread index as
// ever, one thread of the producer issues its copies.
//
// A persistent block walks several tiles of the grid: the roles do so each for itself, as far apart as the
// pipelines' slots let them.
#include "lower/scheduled_lowering.h"
#include "lower/statement_exprs.h"
#include "thread/named_barriers.h"

namespace tilegen::lower {

thread::StmtId KernelLowering::only_first_of_warpgroup(thread::Block body, const std::string& origin,
                                                       ExprId also, int64_t threads) {
  ir::ExprPool& e = out_.exprs;
  const ExprId within = simplified(e.floormod(e.var(out_.thread_var), e.const_int(target_.warpgroup)));
  const ExprId first =
      threads == 1 ? e.binary(ir::ExprOp::eq, within, e.const_int(0)) : e.lt(within, e.const_int(threads));
  return out_.add(thread::Branch{both(simplified(first), also), std::move(body), {}}, origin);
}

void KernelLowering::for_each_warpgroup(const std::function<thread::Block(int64_t)>& own, thread::Block& out,
                                        const std::string& origin) {
  ir::ExprPool& e = out_.exprs;
  const int64_t warpgroups = *schedule_.threads / target_.warpgroup;
  thread::Block rest = own(warpgroups - 1);
  for (int64_t w = warpgroups - 2; w >= 0; --w) {
    const ExprId mine = e.binary(
        ir::ExprOp::eq, e.floordiv(e.var(out_.thread_var), e.const_int(target_.warpgroup)), e.const_int(w));
    rest = {out_.add(thread::Branch{simplified(mine), own(w), std::move(rest)}, origin)};
  }
  out.insert(out.end(), rest.begin(), rest.end());
}

void KernelLowering::warpgroup_barrier(thread::Block& out, const std::string& origin) {
  for_each_warpgroup(
      [&](int64_t w) {
        return thread::Block{
            out_.add(thread::Barrier{static_cast<int>(w) + 1, target_.warpgroup, false}, origin)};
      },
      out, origin);
}

bool KernelLowering::counted(ir::StmtId s) const {
  return analysis::runs_irregularly(p_, kernel_, tree_, s, tile_var_.valid());
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
                  e.const_int(thread::kMaxPersistentPoints));
}

void KernelLowering::add_to_count(MemoryId count, ExprId more, thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  const ExprId sum = e.cast(
      ir::DType::i32, simplified(e.add(held_number(count), e.binary(ir::ExprOp::max, more, e.const_int(0)))));
  out.push_back(out_.add(thread::Store{count, e.const_int(0), sum, ExprId(), false, ExprId()}, kernel_.name));
}

ExprId KernelLowering::fillings_before(ir::StmtId loop, ExprId extent) {
  return counted(loop) ? held_count(count_of(&p_.stmt(loop), "fillings"))
                       : repeated(iteration_counts_, extent);
}

void KernelLowering::count_fillings(ir::StmtId loop, ExprId extent, thread::Block& out) {
  if (counted(loop)) add_to_count(count_of(&p_.stmt(loop), "fillings"), extent, out);
}

bool KernelLowering::uses_counted(const PipelineBarriers& c) const {
  return !c.pipeline->loop.valid() && counted(ops_.ops[c.pipeline->copies.front()].stmt);
}

ExprId KernelLowering::uses_before(const PipelineBarriers& c) {
  return uses_counted(c) ? held_count(count_of(c.pipeline, "uses")) : iteration_counts_;
}

void KernelLowering::count_use(const PipelineBarriers& c, thread::Block& out) {
  if (uses_counted(c)) add_to_count(count_of(c.pipeline, "uses"), out_.exprs.const_int(1), out);
}

namespace {

thread::Barrier order_barrier(int64_t warpgroup, int64_t threads, bool arrive_only) {
  return {thread::kFirstOrderBarrier + static_cast<int>(warpgroup), threads, arrive_only};
}

}  // namespace

// A barrier counts both: the warpgroup that waits and the one that arrives. All are as they were when every
// warpgroup has had as many turns as the others, so that none is left with arrivals at the end.
void ScheduledLowering::lower(const expand::Order& s, thread::Block& out) {
  using Step = expand::Order::Step;
  const int64_t threads = k_.target_.warpgroup, warpgroups = *k_.schedule_.threads / threads;
  const auto each = [&](bool pass) {
    k_.for_each_warpgroup(
        [&](int64_t w) {
          const int64_t whose = pass ? (w + 1) % warpgroups : w;
          return thread::Block{k_.out_.add(order_barrier(whose, 2 * threads, pass), origin())};
        },
        out, origin());
  };
  const auto one = [&](ExprId mine, bool arrive_only) {
    emit(thread::Branch{mine, {k_.out_.add(order_barrier(0, 2 * threads, arrive_only), origin())}, {}}, out);
  };
  const ExprId tid = e_.var(k_.out_.thread_var);
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
  if (s.scope == expand::Scope::warpgroup) return k_.warpgroup_barrier(out, origin());
  k_.role_barrier(out, origin());
}

void ScheduledLowering::lower(const expand::AwaitStores&, thread::Block& out) {
  thread::Block wait = {k_.out_.add(thread::BulkWait{0, true}, origin())};
  out.push_back(k_.only_first_of_warpgroup(std::move(wait), origin()));
}

// What a block does for one tile of the grid, in the loop over its tiles.
void ScheduledLowering::lower(const expand::TileLoop& s, thread::Block& out) {
  thread::Block body;
  if (k_.role_ == expand::RoleKind::all) {
    lower(s.body, out);
    if (!k_.failed()) k_.replace_block_indices(out);
    return;
  }
  k_.fillings_.clear();
  k_.iteration_counts_ = k_.tile_var_.valid() ? e_.var(k_.tile_var_) : e_.const_int(0);
  lower(s.body, body);
  k_.replace_block_indices(body);
  if (s.walk == expand::Walk::dynamic || s.walk == expand::Walk::fetch) {
    body = k_.walk_dynamic(std::move(body), s.walk == expand::Walk::fetch);
  } else if (s.walk == expand::Walk::fixed) {
    const ExprId points = k_.points();
    const ExprId launched = e_.var(k_.out_.launched_var),
                 behind = e_.sub(points, e_.var(k_.out_.block_vars[0]));
    const ExprId extent =
        e_.floordiv(k_.simplified(e_.add(behind, e_.sub(launched, e_.const_int(1)))), launched);
    body = {
        k_.out_.add(thread::Loop{k_.tile_var_, extent, thread::LoopForm::serial, std::move(body)}, origin())};
  }
  for (const auto& [what, count] : k_.fillings_)
    body.insert(body.begin(),
                k_.out_.add(thread::Store{count, e_.const_int(0), e_.const_int(0, ir::DType::i32), ExprId(),
                                          false, ExprId()},
                            origin()));
  out.insert(out.end(), body.begin(), body.end());
  k_.iteration_counts_ = ExprId();
}

thread::Role ScheduledLowering::lower_role(const expand::Role& r) {
  thread::Role role{r.name, r.first_thread, r.threads, static_cast<int>(r.registers), {}};
  k_.role_ = r.kind;
  if (r.kind != expand::RoleKind::producer) {
    lower(r.body, role.body);
  } else {
    k_.out_.threads = r.first_thread + r.threads;
    k_.ctx_.bind(k_.out_.thread_var, 0, k_.out_.threads - 1);
    thread::Block one;
    const auto last = r.body.size();
    for (size_t i = 0; i < last; ++i)
      if (!std::holds_alternative<expand::ClusterBarrier>(r.body[i].node))
        std::visit([&](const auto& node) { lower(node, one); }, r.body[i].node);
    role.body = {k_.out_.add(thread::OneThread{std::move(one)}, k_.kernel_.name)};
    if (r.threads > k_.target_.warp) {
      const ExprId first = e_.lt(e_.var(k_.out_.thread_var), e_.const_int(r.first_thread + k_.target_.warp));
      role.body = {k_.out_.add(thread::Branch{first, std::move(role.body), {}}, k_.kernel_.name)};
    }
    for (const expand::Stmt& s : r.body)
      if (const auto* meet = std::get_if<expand::ClusterBarrier>(&s.node)) lower(*meet, role.body);
  }
  k_.role_ = expand::RoleKind::all;
  return role;
}

void ScheduledLowering::roles() {
  if (k_.dynamic() && !k_.failed()) k_.declare_tile_scheduler();
  thread::Roles roles;
  for (const expand::Role& r : scheduled_.roles) {
    if (k_.failed()) return;
    roles.roles.push_back(lower_role(r));
  }
  emit(std::move(roles), k_.out_.body);
}

}  // namespace tilegen::lower
