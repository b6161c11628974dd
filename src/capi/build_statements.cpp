// Builder calls: tiles, regions, views and statements.
#include <algorithm>
#include <iterator>

#include "capi/handles.h"
#include "ir/op_kinds.h"
#include "support/diag_codes.h"

using namespace tilegen;
using namespace tilegen::capi;

namespace {

std::optional<ir::MemScope> mem_scope(tl_mem_scope scope) {
  switch (scope) {
    case TL_SCOPE_GLOBAL:
      return ir::MemScope::global;
    case TL_SCOPE_SHARED:
      return ir::MemScope::shared;
    case TL_SCOPE_FRAGMENT:
      return ir::MemScope::fragment;
    case TL_SCOPE_LOCAL:
      return ir::MemScope::local;
  }
  return std::nullopt;
}

static_assert(TL_REDUCE_SUM - 1 == static_cast<int>(ir::ReduceKind::sum) &&
              TL_REDUCE_MAX - 1 == static_cast<int>(ir::ReduceKind::max) &&
              TL_REDUCE_MIN - 1 == static_cast<int>(ir::ReduceKind::min) &&
              TL_REDUCE_ABSMAX - 1 == static_cast<int>(ir::ReduceKind::absmax) &&
              TL_REDUCE_PRODUCT - 1 == static_cast<int>(ir::ReduceKind::product) &&
              TL_REDUCE_XOR - 1 == static_cast<int>(ir::ReduceKind::bit_xor) &&
              TL_REDUCE_ABSSUM - 1 == static_cast<int>(ir::ReduceKind::abssum));
static_assert(TL_POLICY_SQUARE - 1 == static_cast<int>(ir::WarpPolicy::square) &&
              TL_POLICY_FULL_ROW - 1 == static_cast<int>(ir::WarpPolicy::full_row) &&
              TL_POLICY_FULL_COL - 1 == static_cast<int>(ir::WarpPolicy::full_col));
static_assert(TL_ATOMIC_XOR - TL_ATOMIC_ADD == static_cast<int>(ir::AtomicKind::bit_xor) &&
              TL_ATOMIC_AND - TL_ATOMIC_ADD == static_cast<int>(ir::AtomicKind::bit_and));

tl_expr name_value(tl_builder* builder, const char* call, const char* name, tl_expr value, bool assignable) {
  return on_builder(builder, call, tl_expr{0}, [&](const BuilderCall& c) -> tl_expr {
    const auto what = c.expr("value", value);
    if (c.failed()) return {0};
    const ir::VarId var = c->let(name ? name : "", what, assignable);
    return var ? c.give_var(var) : tl_expr{0};
  });
}

// Of ir::scan_attr; whether the call has them.
bool scan_attributes(const BuilderCall& c, tl_reduce_kind kind, uint32_t axis, uint32_t flags,
                     std::span<int64_t> attrs) {
  if (!c.known_flags(flags, TL_SCAN_REVERSE | TL_SCAN_EXCLUSIVE)) return false;
  static constexpr tl_reduce_kind kKinds[] = {TL_REDUCE_SUM, TL_REDUCE_MAX, TL_REDUCE_MIN, TL_REDUCE_PRODUCT};
  const auto* known = std::find(std::begin(kKinds), std::end(kKinds), kind);
  if (known == std::end(kKinds)) {
    c.fail(DiagCode::bad_enum, "there is no scan of kind " + std::to_string(kind),
           "use TL_REDUCE_SUM, TL_REDUCE_MAX, TL_REDUCE_MIN or TL_REDUCE_PRODUCT");
    return false;
  }
  attrs[ir::scan_attr::kind] = known - std::begin(kKinds);
  attrs[ir::scan_attr::axis] = axis;
  attrs[ir::scan_attr::reverse] = (flags & TL_SCAN_REVERSE) != 0;
  attrs[ir::scan_attr::exclusive] = (flags & TL_SCAN_EXCLUSIVE) != 0;
  return true;
}

}  // namespace

extern "C" {

tl_buffer tl_alloc(tl_builder* builder, const char* name, tl_mem_scope scope, tl_dtype dtype, uint32_t rank,
                   const int64_t* shape) {
  return on_builder(builder, "tl_alloc", tl_buffer{0}, [&](const BuilderCall& c) -> tl_buffer {
    const auto text = c.text("name", name);
    const auto where = mem_scope(scope);
    if (!where) {
      c.fail(DiagCode::bad_enum, "there is no memory scope " + std::to_string(scope), "use a tl_mem_scope");
      return {0};
    }
    const auto type = c.dtype(dtype);
    const auto extents = c.numbers("shape", rank, shape);
    return c.failed() ? tl_buffer{0} : c.give(c->alloc(text, *where, type, extents));
  });
}

tl_region tl_region_of(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* offsets,
                       const int64_t* extents) {
  return on_builder(builder, "tl_region_of", tl_region{0}, [&](const BuilderCall& c) -> tl_region {
    const auto of = c.buffer("buffer", buffer);
    const auto at = c.exprs("offsets", rank, offsets);
    const auto sizes = c.numbers("extents", rank, extents);
    if (!c.failed() && rank == 0)
      c.fail(DiagCode::rank_mismatch, "the region has no dimensions", "use tl_whole");
    return c.failed() ? tl_region{0} : c.give(c->region(of, at, sizes));
  });
}

tl_region tl_region_at(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* offsets) {
  return on_builder(builder, "tl_region_at", tl_region{0}, [&](const BuilderCall& c) -> tl_region {
    const auto of = c.buffer("buffer", buffer);
    const auto at = c.exprs("offsets", rank, offsets);
    if (!c.failed() && rank == 0)
      c.fail(DiagCode::rank_mismatch, "the box has no dimensions", "use tl_whole");
    const std::vector<int64_t> ones(rank, 1);
    return c.failed() ? tl_region{0} : c.give_place(c->region(of, at, ones));
  });
}

tl_buffer tl_view_reshape(tl_builder* builder, tl_buffer tile, uint32_t rank, const int64_t* shape) {
  return on_builder(builder, "tl_view_reshape", tl_buffer{0}, [&](const BuilderCall& c) -> tl_buffer {
    const auto of = c.buffer("tile", tile);
    const auto extents = c.numbers("shape", rank, shape);
    return c.failed() ? tl_buffer{0} : c.give(c->view(of, ir::TileView::Form::reshape, extents));
  });
}

tl_buffer tl_view_transpose(tl_builder* builder, tl_buffer tile, uint32_t rank, const int64_t* order) {
  return on_builder(builder, "tl_view_transpose", tl_buffer{0}, [&](const BuilderCall& c) -> tl_buffer {
    const auto of = c.buffer("tile", tile);
    const auto dims = c.numbers("order", rank, order);
    return c.failed() ? tl_buffer{0} : c.give(c->view(of, ir::TileView::Form::transpose, dims));
  });
}

tl_buffer tl_view_reinterpret(tl_builder* builder, tl_buffer tile, tl_dtype dtype) {
  return on_builder(builder, "tl_view_reinterpret", tl_buffer{0}, [&](const BuilderCall& c) -> tl_buffer {
    const auto of = c.buffer("tile", tile);
    const auto type = c.dtype(dtype);
    return c.failed() ? tl_buffer{0} : c.give(c->view(of, type));
  });
}

tl_buffer tl_view_slice(tl_builder* builder, tl_region box) {
  return on_builder(builder, "tl_view_slice", tl_buffer{0}, [&](const BuilderCall& c) -> tl_buffer {
    const auto of = c.region("box", box);
    return c.failed() ? tl_buffer{0} : c.give(c->view(of));
  });
}

tl_buffer tl_view_reshape_to(tl_builder* builder, tl_buffer tensor, uint32_t rank, const tl_expr* extents) {
  return on_builder(builder, "tl_view_reshape_to", tl_buffer{0}, [&](const BuilderCall& c) -> tl_buffer {
    const auto of = c.buffer("tensor", tensor);
    const auto shape = c.exprs("extents", rank, extents);
    return c.failed() ? tl_buffer{0} : c.give(c->view_reshaped(of, shape));
  });
}

tl_buffer tl_view_box(tl_builder* builder, tl_buffer tensor, uint32_t rank, const tl_expr* offsets,
                      const tl_expr* extents) {
  return on_builder(builder, "tl_view_box", tl_buffer{0}, [&](const BuilderCall& c) -> tl_buffer {
    const auto of = c.buffer("tensor", tensor);
    const auto at = c.exprs("offsets", rank, offsets), shape = c.exprs("extents", rank, extents);
    return c.failed() ? tl_buffer{0} : c.give(c->view_box(of, at, shape));
  });
}

tl_region tl_whole(tl_builder* builder, tl_buffer buffer) {
  return on_builder(builder, "tl_whole", tl_region{0}, [&](const BuilderCall& c) -> tl_region {
    const auto of = c.buffer("buffer", buffer);
    return c.failed() ? tl_region{0} : c.give(c->region(of, {}, {}));
  });
}

void tl_copy(tl_builder* builder, tl_region src, tl_region dst) {
  on_builder(builder, "tl_copy", [&](const BuilderCall& c) {
    const auto operands = c.boxes(src, dst);
    if (!c.failed()) c->tile_op(ir::OpKind::copy, operands, {}, {});
  });
}

void tl_fill(tl_builder* builder, tl_region dst, tl_expr value) {
  on_builder(builder, "tl_fill", [&](const BuilderCall& c) {
    const ir::Region operands[] = {c.region("dst", dst)};
    const auto what = c.expr("value", value);
    if (!c.failed()) c->tile_op(ir::OpKind::fill, operands, {}, what);
  });
}

void tl_gemm(tl_builder* builder, tl_region a, tl_region b, tl_region c_region, uint32_t flags,
             tl_warp_policy policy) {
  on_builder(builder, "tl_gemm", [&](const BuilderCall& c) {
    const ir::Region operands[] = {c.region("a", a), c.region("b", b), c.region("c", c_region)};
    if (!c.known_flags(flags, TL_GEMM_TRANSPOSE_A | TL_GEMM_TRANSPOSE_B | TL_GEMM_CLEAR | TL_GEMM_TF32 |
                                  TL_GEMM_PROMOTE))
      return;
    if (policy > TL_POLICY_FULL_COL)
      return c.fail(DiagCode::bad_enum, "there is no warp policy " + std::to_string(policy),
                    "use a tl_warp_policy");
    int64_t attrs[ir::gemm_attr::count] = {};
    attrs[ir::gemm_attr::transpose_a] = (flags & TL_GEMM_TRANSPOSE_A) != 0;
    attrs[ir::gemm_attr::transpose_b] = (flags & TL_GEMM_TRANSPOSE_B) != 0;
    attrs[ir::gemm_attr::policy] = policy == TL_POLICY_DEFAULT ? 0 : policy - TL_POLICY_SQUARE;
    attrs[ir::gemm_attr::clear] = (flags & TL_GEMM_CLEAR) != 0;
    attrs[ir::gemm_attr::tf32] = (flags & TL_GEMM_TF32) != 0;
    attrs[ir::gemm_attr::promote] = (flags & TL_GEMM_PROMOTE) != 0;
    c->tile_op(ir::OpKind::gemm, operands, attrs, {});
  });
}

void tl_gemm_sparse(tl_builder* builder, tl_region values, tl_region meta, tl_region b, tl_region c_region,
                    uint32_t flags, tl_warp_policy policy) {
  on_builder(builder, "tl_gemm_sparse", [&](const BuilderCall& c) {
    const ir::Region operands[] = {c.region("values", values), c.region("b", b), c.region("c", c_region),
                                   c.region("meta", meta)};
    if (!c.known_flags(flags, TL_GEMM_TRANSPOSE_A | TL_GEMM_TRANSPOSE_B | TL_GEMM_CLEAR)) return;
    if (policy > TL_POLICY_FULL_COL)
      return c.fail(DiagCode::bad_enum, "there is no warp policy " + std::to_string(policy),
                    "use a tl_warp_policy");
    int64_t attrs[ir::gemm_sparse_attr::count] = {};
    attrs[ir::gemm_sparse_attr::transpose_a] = (flags & TL_GEMM_TRANSPOSE_A) != 0;
    attrs[ir::gemm_sparse_attr::transpose_b] = (flags & TL_GEMM_TRANSPOSE_B) != 0;
    attrs[ir::gemm_sparse_attr::policy] = policy == TL_POLICY_DEFAULT ? 0 : policy - TL_POLICY_SQUARE;
    attrs[ir::gemm_sparse_attr::clear] = (flags & TL_GEMM_CLEAR) != 0;
    c->tile_op(ir::OpKind::gemm_sparse, operands, attrs, {});
  });
}

void tl_reduce(tl_builder* builder, tl_region src, tl_region dst, tl_reduce_kind kind, uint32_t axis,
               uint32_t flags) {
  on_builder(builder, "tl_reduce", [&](const BuilderCall& c) {
    const ir::Region operands[] = {c.region("src", src), c.region("dst", dst)};
    if (!c.known_flags(flags, TL_REDUCE_ACCUMULATE)) return;
    if (kind < TL_REDUCE_SUM || kind > TL_REDUCE_ABSSUM)
      return c.fail(DiagCode::bad_enum, "there is no reduction " + std::to_string(kind),
                    "use a tl_reduce_kind");
    int64_t attrs[ir::reduce_attr::count] = {};
    attrs[ir::reduce_attr::kind] = kind - TL_REDUCE_SUM;
    attrs[ir::reduce_attr::axis] = axis;
    attrs[ir::reduce_attr::accumulate] = (flags & TL_REDUCE_ACCUMULATE) != 0;
    c->tile_op(ir::OpKind::reduce, operands, attrs, {});
  });
}

void tl_arg_reduce(tl_builder* builder, tl_region src, tl_region value, tl_region index, tl_reduce_kind kind,
                   uint32_t axis) {
  on_builder(builder, "tl_arg_reduce", [&](const BuilderCall& c) {
    const ir::Region from = c.region("src", src), what = c.region("value", value),
                     at = c.region("index", index);
    if (kind != TL_REDUCE_MAX && kind != TL_REDUCE_MIN)
      return c.fail(DiagCode::bad_enum, "there is no place of reduction " + std::to_string(kind),
                    "use TL_REDUCE_MAX or TL_REDUCE_MIN");
    if (!c.failed()) c->arg_reduce(from, what, at, kind == TL_REDUCE_MAX, axis);
  });
}

void tl_scan(tl_builder* builder, tl_region src, tl_region dst, tl_reduce_kind kind, uint32_t axis,
             uint32_t flags) {
  on_builder(builder, "tl_scan", [&](const BuilderCall& c) {
    const ir::Region operands[] = {c.region("src", src), c.region("dst", dst)};
    int64_t attrs[ir::scan_attr::count] = {};
    if (scan_attributes(c, kind, axis, flags, attrs)) c->tile_op(ir::OpKind::scan, operands, attrs, {});
  });
}

void tl_scan_carry(tl_builder* builder, tl_region src, tl_region dst, tl_region carry, tl_reduce_kind kind,
                   uint32_t axis, uint32_t flags) {
  on_builder(builder, "tl_scan_carry", [&](const BuilderCall& c) {
    const ir::Region from = c.region("src", src), to = c.region("dst", dst), kept = c.region("carry", carry);
    int64_t attrs[ir::scan_attr::count] = {};
    if (scan_attributes(c, kind, axis, flags, attrs) && !c.failed()) c->scan_carry(from, to, kept, attrs);
  });
}

void tl_cumsum(tl_builder* builder, tl_region src, tl_region dst, uint32_t axis, uint32_t flags) {
  on_builder(builder, "tl_cumsum", [&](const BuilderCall& c) {
    const ir::Region operands[] = {c.region("src", src), c.region("dst", dst)};
    if (!c.known_flags(flags, TL_CUMSUM_REVERSE)) return;
    int64_t attrs[ir::cumsum_attr::count] = {};
    attrs[ir::cumsum_attr::axis] = axis;
    attrs[ir::cumsum_attr::reverse] = (flags & TL_CUMSUM_REVERSE) != 0;
    c->tile_op(ir::OpKind::cumsum, operands, attrs, {});
  });
}

void tl_store(tl_builder* builder, tl_buffer buffer, uint32_t rank, const tl_expr* indices, tl_expr value) {
  on_builder(builder, "tl_store", [&](const BuilderCall& c) {
    const auto to = c.buffer("buffer", buffer);
    const auto at = c.exprs("indices", rank, indices);
    const auto what = c.expr("value", value);
    if (!c.failed()) c->store(to, at, what);
  });
}

void tl_assert(tl_builder* builder, tl_expr condition, const char* message) {
  on_builder(builder, "tl_assert", [&](const BuilderCall& c) {
    const auto what = c.expr("condition", condition);
    const auto text = c.text("message", message);
    if (!c.failed()) c->assertion(what, text);
  });
}

void tl_print(tl_builder* builder, const char* text, uint32_t count, const tl_expr* values) {
  on_builder(builder, "tl_print", [&](const BuilderCall& c) {
    const auto what = c.text("text", text);
    const auto list = count == 0 ? std::vector<ir::ExprId>() : c.exprs("values", count, values);
    if (!c.failed()) c->print(what, list);
  });
}

void tl_print_tile(tl_builder* builder, const char* text, tl_region region) {
  on_builder(builder, "tl_print_tile", [&](const BuilderCall& c) {
    const auto what = c.text("text", text);
    const ir::Region of = c.region("region", region);
    if (!c.failed()) c->print_tile(what, of);
  });
}

tl_expr tl_let(tl_builder* builder, const char* name, tl_expr value) {
  return name_value(builder, "tl_let", name, value, false);
}

tl_expr tl_var(tl_builder* builder, const char* name, tl_expr value) {
  return name_value(builder, "tl_var", name, value, true);
}

void tl_assign(tl_builder* builder, tl_expr var, tl_expr value) {
  on_builder(builder, "tl_assign", [&](const BuilderCall& c) {
    const auto to = c.expr("var", var), what = c.expr("value", value);
    if (!c.failed()) c->assign(to, what);
  });
}

}  // extern "C"
