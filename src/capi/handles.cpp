#include "capi/handles.h"

#include "support/diag_codes.h"

namespace tilegen::capi {
namespace {

const char* kind_text(HandleKind kind) {
  switch (kind) {
    case HandleKind::none:
      break;
    case HandleKind::expr:
      return "an expression";
    case HandleKind::buffer:
      return "a buffer";
    case HandleKind::region:
      return "a region";
    case HandleKind::scope:
      return "a scope";
  }
  return "nothing";
}

}  // namespace

std::optional<uint32_t> BuilderCall::index(std::string_view what, HandleKind kind, uint64_t bits) const {
  if (failed()) return std::nullopt;
  const auto serial = static_cast<uint32_t>(bits >> 40);
  const auto actual = static_cast<HandleKind>(static_cast<uint8_t>(bits >> 32));
  if (bits != 0 && serial == b_->serial && actual == kind) return static_cast<uint32_t>(bits);
  const std::string expected = std::string(what) + " should be " + kind_text(kind);
  if (bits == 0)
    fail(DiagCode::stale_handle, expected + ", it is none", "pass what a call on this builder returned");
  else if (serial != b_->serial)
    fail(DiagCode::stale_handle, expected + " of this builder, it belongs to another",
         "values cannot be shared between builders; make it anew");
  else
    fail(DiagCode::stale_handle,
         expected + ", it is " + kind_text(actual <= HandleKind::scope ? actual : HandleKind::none),
         "pass a value of the right kind");
  return std::nullopt;
}

std::string_view BuilderCall::text(std::string_view what, const char* s) const {
  return given(what, s) ? std::string_view(s) : std::string_view();
}

bool BuilderCall::given(std::string_view what, const void* pointer) const {
  if (failed()) return false;
  if (pointer) return true;
  fail(DiagCode::null_argument, std::string(what) + " is NULL", "pass a valid pointer");
  return false;
}

bool BuilderCall::countable(std::string_view what, uint32_t count) const {
  if (failed()) return false;
  if (count <= b_->builder.limits().rank) return true;
  fail(DiagCode::limit_nesting,
       "'" + std::string(what) + "' has " + std::to_string(count) + " elements, the most is " +
           std::to_string(b_->builder.limits().rank),
       "fold dimensions together");
  return false;
}

bool BuilderCall::known_flags(uint32_t flags, uint32_t known) const {
  if (failed()) return false;
  if ((flags & ~known) == 0) return true;
  fail(DiagCode::bad_enum, "flags " + std::to_string(flags) + " have unknown bits",
       "combine the flags of this call");
  return false;
}

ir::ExprId BuilderCall::expr(std::string_view what, tl_expr h) const {
  const auto i = index(what, HandleKind::expr, h.bits);
  return i ? ir::ExprId(*i) : ir::ExprId();
}

ir::BufferId BuilderCall::buffer(std::string_view what, tl_buffer h) const {
  const auto i = index(what, HandleKind::buffer, h.bits);
  return i ? ir::BufferId(*i) : ir::BufferId();
}

ir::Region BuilderCall::region(std::string_view what, tl_region h) const {
  const auto i = index(what, HandleKind::region, h.bits);
  if (i && *i < b_->regions.size()) return b_->regions[*i];
  if (i)
    fail(DiagCode::stale_handle, std::string(what) + " is not a region of this builder", "use tl_region_of");
  return {};
}

uint64_t BuilderCall::scope(tl_scope h) const {
  const auto i = index("the scope", HandleKind::scope, h.bits);
  if (i && *i < b_->scopes.size()) return b_->scopes[*i];
  if (i)
    fail(DiagCode::stale_handle, "the scope is not one of this builder", "pass what a begin call returned");
  return 0;
}

// A value beyond the table must not be narrowed to one of it.
ir::DType BuilderCall::dtype(tl_dtype value) const {
  if (failed()) return ir::DType::none;
  if (ir::dtype_valid(value)) return static_cast<ir::DType>(value);
  fail(DiagCode::bad_enum, "there is no dtype " + std::to_string(value), "use a tl_dtype, e.g. TL_F32");
  return ir::DType::none;
}

std::vector<ir::ExprId> BuilderCall::exprs(std::string_view what, uint32_t count,
                                           const tl_expr* values) const {
  if (!countable(what, count) || (count > 0 && !given(what, values))) return {};
  std::vector<ir::ExprId> ids;
  for (uint32_t i = 0; i < count && !failed(); ++i)
    ids.push_back(expr(std::string(what) + "[" + std::to_string(i) + "]", values[i]));
  return ids;
}

std::vector<int64_t> BuilderCall::numbers(std::string_view what, uint32_t count,
                                          const int64_t* values) const {
  if (!countable(what, count) || (count > 0 && !given(what, values))) return {};
  return std::vector<int64_t>(values, values + count);
}

std::vector<std::string_view> BuilderCall::names(uint32_t count, const char* const* values) const {
  if (!values || !countable("names", count)) return {};
  std::vector<std::string_view> all;
  for (uint32_t i = 0; i < count; ++i)
    all.push_back(values[i] ? std::string_view(values[i]) : std::string_view());
  return all;
}

tl_region BuilderCall::give(std::optional<ir::Region> r) const {
  if (!r) return {0};
  if (static_cast<int64_t>(b_->regions.size()) >= b_->builder.limits().expr_nodes) {
    fail(DiagCode::limit_nodes,
         "the program has more than " + std::to_string(b_->regions.size()) + " regions",
         "use loops instead of repeating statements");
    return {0};
  }
  b_->regions.push_back(std::move(*r));
  return {pack(HandleKind::region, static_cast<uint32_t>(b_->regions.size() - 1))};
}

tl_region BuilderCall::give_place(std::optional<ir::Region> r) const {
  const tl_region made = give(std::move(r));
  if (made.bits != 0) b_->places.insert(b_->regions.size() - 1);
  return made;
}

std::array<ir::Region, 2> BuilderCall::boxes(tl_region src, tl_region dst) const {
  std::array<ir::Region, 2> all{region("src", src), region("dst", dst)};
  if (failed()) return all;
  bool is_place[2];
  for (int i : {0, 1})
    is_place[i] = b_->places.contains(*index("a box", HandleKind::region, (i ? dst : src).bits));
  for (int i : {0, 1})
    if (is_place[i] && !is_place[1 - i]) b_->builder.take_extents(call_, all[i], all[1 - i]);
  return all;
}

tl_scope BuilderCall::give_scope(uint64_t token) const {
  if (token == 0) return {0};
  b_->scopes.push_back(token);
  return {pack(HandleKind::scope, static_cast<uint32_t>(b_->scopes.size() - 1))};
}

}  // namespace tilegen::capi
