// Builder calls: kernels, loops and ifs, and what leaves them; blocks of threads.
#include "capi/handles.h"
#include "ir/lane_exchange.h"
#include "ir/op_kinds.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

static_assert(TL_SHUFFLE_DOWN - TL_SHUFFLE_INDEX == static_cast<int>(ir::LaneOp::shuffle_down));
static_assert(TL_VOTE_BALLOT - TL_VOTE_ANY ==
              static_cast<int>(ir::LaneOp::ballot) - static_cast<int>(ir::LaneOp::any));
static_assert(TL_VOTE_MATCH_ANY - TL_VOTE_ANY ==
              static_cast<int>(ir::LaneOp::match_any) - static_cast<int>(ir::LaneOp::any));

// Public values start at 1 because 0 is never valid.
std::optional<ir::LoopKind> loop_kind(tl_loop_kind kind) {
  switch (kind) {
    case TL_LOOP_SERIAL:
      return ir::LoopKind::serial;
    case TL_LOOP_UNROLL:
      return ir::LoopKind::unroll;
    case TL_LOOP_VECTORIZED:
      return ir::LoopKind::vectorized;
    case TL_LOOP_PIPELINED:
      return ir::LoopKind::pipelined;
  }
  return std::nullopt;
}

std::optional<ir::LoopKind> known_loop(const BuilderCall& c, tl_loop_kind kind) {
  const auto known = loop_kind(kind);
  if (!known)
    c.fail(DiagCode::bad_enum, "there is no loop kind " + std::to_string(kind), "use a tl_loop_kind");
  return known;
}

// Hands the variables of a scope out, or none for each when it was not opened.
tl_scope give_scope_and_vars(const BuilderCall& c, uint64_t token, const std::vector<ir::VarId>& vars,
                             tl_expr* out) {
  for (size_t i = 0; i < vars.size(); ++i) out[i] = token != 0 ? c.give_var(vars[i]) : tl_expr{0};
  return c.give_scope(token);
}

// A call that does nothing still defines its outputs.
void clear(tl_expr* out, uint32_t count) {
  constexpr uint32_t kSane = 64;
  for (uint32_t i = 0; out && count <= kSane && i < count; ++i) out[i] = {0};
}

}  // namespace

extern "C" {

tl_scope tl_begin_kernel(tl_builder* builder, const char* name, uint32_t rank, const tl_expr* grid,
                         int64_t threads, const char* const* names, tl_expr* out_blocks) {
  const tl_scope scope =
      on_builder(builder, "tl_begin_kernel", tl_scope{0}, [&](const BuilderCall& c) -> tl_scope {
        const auto text = c.text("name", name);
        const auto extents = c.exprs("grid", rank, grid);
        const auto var_names = c.names(rank, names);
        if (!c.given("out_blocks", out_blocks)) return {0};
        std::vector<ir::VarId> vars(rank);
        const uint64_t token = c->begin_kernel(text, extents, threads, vars, var_names);
        return give_scope_and_vars(c, token, vars, out_blocks);
      });
  if (scope.bits == 0) clear(out_blocks, rank);
  return scope;
}

tl_scope tl_begin_loop(tl_builder* builder, tl_loop_kind kind, tl_expr begin, tl_expr end, int64_t num_stages,
                       const char* name, tl_expr* out_var) {
  const tl_scope scope =
      on_builder(builder, "tl_begin_loop", tl_scope{0}, [&](const BuilderCall& c) -> tl_scope {
        const auto loop = known_loop(c, kind);
        if (!loop) return {0};
        const auto from = c.expr("begin", begin), to = c.expr("end", end);
        if (!c.given("out_var", out_var)) return {0};
        std::vector<ir::VarId> var(1);
        const uint64_t token = c->begin_loop(*loop, from, to, num_stages, name ? name : "", &var[0]);
        return give_scope_and_vars(c, token, var, out_var);
      });
  if (scope.bits == 0) clear(out_var, 1);
  return scope;
}

tl_scope tl_begin_counted_loop(tl_builder* builder, tl_loop_kind kind, tl_expr begin, tl_expr count,
                               tl_expr condition, int64_t num_stages, const char* name, tl_expr* out_var) {
  const tl_scope scope =
      on_builder(builder, "tl_begin_counted_loop", tl_scope{0}, [&](const BuilderCall& c) -> tl_scope {
        const auto loop = known_loop(c, kind);
        if (!loop) return {0};
        const auto from = c.expr("begin", begin), trips = c.expr("count", count);
        const auto holds = condition.bits == 0 ? ir::ExprId() : c.expr("condition", condition);
        if (!c.given("out_var", out_var)) return {0};
        std::vector<ir::VarId> var(1);
        const uint64_t token =
            c->begin_counted_loop(*loop, from, trips, holds, num_stages, name ? name : "", &var[0]);
        return give_scope_and_vars(c, token, var, out_var);
      });
  if (scope.bits == 0) clear(out_var, 1);
  return scope;
}

tl_scope tl_begin_parallel(tl_builder* builder, uint32_t rank, const int64_t* extents,
                           const char* const* names, tl_expr* out_vars) {
  const tl_scope scope =
      on_builder(builder, "tl_begin_parallel", tl_scope{0}, [&](const BuilderCall& c) -> tl_scope {
        const auto sizes = c.numbers("extents", rank, extents);
        const auto var_names = c.names(rank, names);
        if (!c.given("out_vars", out_vars)) return {0};
        std::vector<ir::VarId> vars(rank);
        const uint64_t token = c->begin_parallel(sizes, vars, var_names);
        return give_scope_and_vars(c, token, vars, out_vars);
      });
  if (scope.bits == 0) clear(out_vars, rank);
  return scope;
}

tl_scope tl_begin_threads(tl_builder* builder, uint32_t rank, const int64_t* extents,
                          const char* const* names, tl_expr* out_vars) {
  const tl_scope scope =
      on_builder(builder, "tl_begin_threads", tl_scope{0}, [&](const BuilderCall& c) -> tl_scope {
        const auto sizes = c.numbers("extents", rank, extents);
        const auto var_names = c.names(rank, names);
        if (!c.given("out_vars", out_vars)) return {0};
        std::vector<ir::VarId> vars(rank);
        const uint64_t token = c->begin_threads(sizes, vars, var_names);
        return give_scope_and_vars(c, token, vars, out_vars);
      });
  if (scope.bits == 0) clear(out_vars, rank);
  return scope;
}

tl_expr tl_shuffle(tl_builder* builder, tl_shuffle_kind kind, tl_expr value, tl_expr lane) {
  return on_builder(builder, "tl_shuffle", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto given = c.expr("value", value), number = c.expr("lane", lane);
    if (kind < TL_SHUFFLE_INDEX || kind > TL_SHUFFLE_DOWN)
      c.fail(DiagCode::bad_enum, "there is no shuffle " + std::to_string(kind), "use a tl_shuffle_kind");
    if (c.failed()) return {0};
    return c.give(
        c->lane_call("tl_shuffle", {static_cast<ir::LaneOp>(kind - TL_SHUFFLE_INDEX), given, number}));
  });
}

tl_expr tl_vote(tl_builder* builder, tl_vote_kind kind, tl_expr condition) {
  return on_builder(builder, "tl_vote", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto asked = c.expr("condition", condition);
    if (kind < TL_VOTE_ANY || kind > TL_VOTE_MATCH_ANY)
      c.fail(DiagCode::bad_enum, "there is no vote " + std::to_string(kind), "use a tl_vote_kind");
    if (c.failed()) return {0};
    const int any = static_cast<int>(ir::LaneOp::any);
    return c.give(c->lane_call(
        "tl_vote", {static_cast<ir::LaneOp>(any + static_cast<int>(kind - TL_VOTE_ANY)), asked, {}}));
  });
}

tl_expr tl_id(tl_builder* builder, tl_id_kind kind) {
  return on_builder(builder, "tl_id", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    if (kind < TL_ID_THREAD || kind > TL_ID_CLUSTER_BLOCKS)
      c.fail(DiagCode::bad_enum, "there is no number " + std::to_string(kind), "use a tl_id_kind");
    if (c.failed()) return {0};
    return c.give(c->number_of(static_cast<ir::IdOp>(kind - TL_ID_THREAD)));
  });
}

void tl_barrier(tl_builder* builder) {
  on_builder(builder, "tl_barrier", [&](const BuilderCall& c) { c->barrier(); });
}

void tl_copy_async(tl_builder* builder, tl_region from, tl_region to) {
  on_builder(builder, "tl_copy_async", [&](const BuilderCall& c) {
    const ir::Region src = c.region("from", from), dst = c.region("to", to);
    if (!c.failed()) c->async_copy(src, dst);
  });
}

void tl_commit_group(tl_builder* builder) {
  on_builder(builder, "tl_commit_group",
             [&](const BuilderCall& c) { c->copy_group(ir::OpKind::commit_group, 0); });
}

void tl_wait_group(tl_builder* builder, uint32_t pending) {
  on_builder(builder, "tl_wait_group",
             [&](const BuilderCall& c) { c->copy_group(ir::OpKind::wait_group, pending); });
}

void tl_copy_bulk(tl_builder* builder, tl_region from, tl_region to) {
  on_builder(builder, "tl_copy_bulk", [&](const BuilderCall& c) {
    const ir::Region src = c.region("from", from), dst = c.region("to", to);
    if (!c.failed()) c->async_copy(src, dst, true);
  });
}

void tl_mbarrier_arrive(tl_builder* builder, tl_region barrier, int64_t first, int64_t threads,
                        uint32_t flags) {
  on_builder(builder, "tl_mbarrier_arrive", [&](const BuilderCall& c) {
    const ir::Region at = c.region("barrier", barrier);
    if (c.failed() || !c.known_flags(flags, TL_ARRIVE_COPIES | TL_ARRIVE_ELECTED)) return;
    c->barrier_op(ir::OpKind::mbarrier_arrive, at, {}, first, threads, (flags & TL_ARRIVE_COPIES) != 0,
                  (flags & TL_ARRIVE_ELECTED) != 0);
  });
}

void tl_mbarrier_wait(tl_builder* builder, tl_region barrier, tl_expr parity, int64_t first,
                      int64_t threads) {
  on_builder(builder, "tl_mbarrier_wait", [&](const BuilderCall& c) {
    const ir::Region at = c.region("barrier", barrier);
    const ir::ExprId of = c.expr("parity", parity);
    if (!c.failed()) c->barrier_op(ir::OpKind::mbarrier_wait, at, of, first, threads);
  });
}

void tl_barrier_sync(tl_builder* builder, tl_region barrier, int64_t first, int64_t threads) {
  on_builder(builder, "tl_barrier_sync", [&](const BuilderCall& c) {
    const ir::Region at = c.region("barrier", barrier);
    if (!c.failed()) c->barrier_op(ir::OpKind::barrier_sync, at, {}, first, threads);
  });
}

void tl_barrier_arrive(tl_builder* builder, tl_region barrier, int64_t first, int64_t threads) {
  on_builder(builder, "tl_barrier_arrive", [&](const BuilderCall& c) {
    const ir::Region at = c.region("barrier", barrier);
    if (!c.failed()) c->barrier_op(ir::OpKind::barrier_arrive, at, {}, first, threads);
  });
}

tl_scope tl_begin_if(tl_builder* builder, tl_expr condition) {
  return on_builder(builder, "tl_begin_if", tl_scope{0}, [&](const BuilderCall& c) -> tl_scope {
    const auto cond = c.expr("condition", condition);
    return c.failed() ? tl_scope{0} : c.give_scope(c->begin_if(cond));
  });
}

void tl_begin_else(tl_builder* builder, tl_scope if_scope) {
  on_builder(builder, "tl_begin_else", [&](const BuilderCall& c) {
    const uint64_t token = c.scope(if_scope);
    if (!c.failed()) c->begin_else(token);
  });
}

tl_scope tl_begin_switch(tl_builder* builder, tl_expr value) {
  return on_builder(builder, "tl_begin_switch", tl_scope{0}, [&](const BuilderCall& c) {
    const auto what = c.expr("value", value);
    return c.failed() ? tl_scope{0} : c.give_scope(c->begin_switch(what));
  });
}

tl_scope tl_begin_case(tl_builder* builder, tl_scope switch_scope, uint32_t count, const int64_t* values) {
  return on_builder(builder, "tl_begin_case", tl_scope{0}, [&](const BuilderCall& c) {
    const uint64_t token = c.scope(switch_scope);
    if (c.failed()) return tl_scope{0};
    if (count > 0 && !c.given("values", values)) return tl_scope{0};
    return c.give_scope(c->begin_case(token, std::span(values, count)));
  });
}

void tl_end(tl_builder* builder, tl_scope scope) {
  on_builder(builder, "tl_end", [&](const BuilderCall& c) {
    const uint64_t token = c.scope(scope);
    if (!c.failed()) c->end(token);
  });
}

tl_scope tl_begin_while(tl_builder* builder, tl_expr condition) {
  return on_builder(builder, "tl_begin_while", tl_scope{0}, [&](const BuilderCall& c) {
    const auto cond = c.expr("condition", condition);
    return c.failed() ? tl_scope{0} : c.give_scope(c->begin_while(cond));
  });
}

void tl_break(tl_builder* builder) {
  on_builder(builder, "tl_break", [&](const BuilderCall& c) { c->jump(ir::Draft::Jump::break_loop); });
}

void tl_continue(tl_builder* builder) {
  on_builder(builder, "tl_continue", [&](const BuilderCall& c) { c->jump(ir::Draft::Jump::next_iteration); });
}

void tl_return(tl_builder* builder) {
  on_builder(builder, "tl_return", [&](const BuilderCall& c) { c->jump(ir::Draft::Jump::leave_kernel); });
}

}  // extern "C"
