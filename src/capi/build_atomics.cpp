// Builder calls: atomic operations.
#include "capi/handles.h"
#include "ir/op_kinds.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

static_assert(TL_ORDER_ACQ_REL - TL_ORDER_RELAXED == static_cast<int>(ir::AtomicOrder::acq_rel));
static_assert(TL_ATOMIC_EXCHANGE - TL_ATOMIC_ADD == static_cast<int>(ir::AtomicKind::exchange));

bool known_atomic(const BuilderCall& c, tl_atomic_kind kind, tl_atomic_kind last) {
  if (kind >= TL_ATOMIC_ADD && kind <= last) return true;
  c.fail(DiagCode::bad_enum, "there is no atomic operation " + std::to_string(kind), "use a tl_atomic_kind");
  return false;
}

}  // namespace

extern "C" {

void tl_atomic(tl_builder* builder, tl_region src, tl_region dst, tl_atomic_kind kind) {
  on_builder(builder, "tl_atomic", [&](const BuilderCall& c) {
    const auto operands = c.boxes(src, dst);
    if (!known_atomic(c, kind, TL_ATOMIC_EXCHANGE)) return;
    int64_t attrs[ir::atomic_attr::count] = {};
    attrs[ir::atomic_attr::kind] = kind - TL_ATOMIC_ADD;
    c->tile_op(ir::OpKind::atomic, operands, attrs, {});
  });
}

void tl_atomic_fetch(tl_builder* builder, tl_region src, tl_region dst, tl_region old, tl_atomic_kind kind) {
  on_builder(builder, "tl_atomic_fetch", [&](const BuilderCall& c) {
    const auto [from, to] = c.boxes(src, dst);
    const ir::Region before = c.region("old", old);
    if (!known_atomic(c, kind, TL_ATOMIC_EXCHANGE) || c.failed()) return;
    c->atomic_fetch({from, to, before, static_cast<ir::AtomicKind>(kind - TL_ATOMIC_ADD)});
  });
}

void tl_store_atomic(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* indices,
                     tl_expr value, tl_atomic_kind kind) {
  on_builder(builder, "tl_store_atomic", [&](const BuilderCall& c) {
    const auto to = c.buffer("buffer", buffer);
    const auto at = c.exprs("indices", rank, indices);
    const auto what = c.expr("value", value);
    if (!known_atomic(c, kind, TL_ATOMIC_EXCHANGE) || c.failed()) return;
    c->atomic_store(to, at, what, static_cast<ir::AtomicKind>(kind - TL_ATOMIC_ADD));
  });
}

void tl_atomic_order(tl_builder* builder, tl_memory_order order) {
  on_builder(builder, "tl_atomic_order", [&](const BuilderCall& c) {
    if (order < TL_ORDER_RELAXED || order > TL_ORDER_ACQ_REL)
      return c.fail(DiagCode::bad_enum, "there is no memory order " + std::to_string(order),
                    "use a tl_memory_order");
    c->atomic_order(static_cast<ir::AtomicOrder>(order - TL_ORDER_RELAXED));
  });
}

tl_expr tl_fetch_atomic(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* indices,
                        tl_expr value, tl_atomic_kind kind, const char* name) {
  return on_builder(builder, "tl_fetch_atomic", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto to = c.buffer("buffer", buffer);
    const auto at = c.exprs("indices", rank, indices);
    const auto what = c.expr("value", value);
    if (!known_atomic(c, kind, TL_ATOMIC_EXCHANGE) || c.failed()) return {0};
    return c.give_var(c->fetch_atomic(to, at, what, static_cast<ir::AtomicKind>(kind - TL_ATOMIC_ADD), {},
                                      name ? name : ""));
  });
}

tl_expr tl_compare_exchange(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* indices,
                            tl_expr expected, tl_expr desired, const char* name) {
  return on_builder(builder, "tl_compare_exchange", tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto to = c.buffer("buffer", buffer);
    const auto at = c.exprs("indices", rank, indices);
    const auto old = c.expr("expected", expected), what = c.expr("desired", desired);
    if (c.failed()) return {0};
    return c.give_var(c->fetch_atomic(to, at, what, ir::AtomicKind::compare_exchange, old, name ? name : ""));
  });
}

void tl_fetch_atomic_to(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* indices,
                        tl_expr value, tl_atomic_kind kind, tl_buffer old, uint32_t old_rank,
                        const tl_expr* old_indices) {
  on_builder(builder, "tl_fetch_atomic_to", [&](const BuilderCall& c) {
    ir::Store what{c.buffer("buffer", buffer), c.exprs("indices", rank, indices), c.expr("value", value)};
    const auto to = c.buffer("old", old);
    const auto at = c.exprs("old_indices", old_rank, old_indices);
    if (!known_atomic(c, kind, TL_ATOMIC_EXCHANGE) || c.failed()) return;
    what.atomic = static_cast<ir::AtomicKind>(kind - TL_ATOMIC_ADD);
    c->fetch_atomic_to(std::move(what), to, at);
  });
}

void tl_compare_exchange_to(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* indices,
                            tl_expr expected, tl_expr desired, tl_buffer old, uint32_t old_rank,
                            const tl_expr* old_indices) {
  on_builder(builder, "tl_compare_exchange_to", [&](const BuilderCall& c) {
    ir::Store what{c.buffer("buffer", buffer), c.exprs("indices", rank, indices), c.expr("desired", desired),
                   ir::AtomicKind::compare_exchange, c.expr("expected", expected)};
    const auto to = c.buffer("old", old);
    const auto at = c.exprs("old_indices", old_rank, old_indices);
    if (!c.failed()) c->fetch_atomic_to(std::move(what), to, at);
  });
}

}  // extern "C"
