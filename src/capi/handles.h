// The 64-bit values that name things inside a builder: serial of the builder (24 bits), kind (8), index (32).
// The serial makes a value of another builder recognisable, the kind one that was cast from another type.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/guard.h"

namespace tilegen::capi {

enum class HandleKind : uint8_t { none, expr, buffer, region, scope };
constexpr uint32_t kSerialMask = (1u << 24) - 1;

constexpr uint64_t pack_handle(uint32_t serial, HandleKind kind, uint32_t index) {
  return uint64_t{serial} << 40 | uint64_t{static_cast<uint8_t>(kind)} << 32 | index;
}

// One call on a builder: decodes handles, reports what is wrong with them under the call's name. Every method
// gives an invalid value once the builder has failed, so a call may decode all of its arguments and go on.
class BuilderCall {
 public:
  BuilderCall(tl_builder* b, const char* call) : b_(b), call_(call) {}

  builder::Builder* operator->() const { return &b_->builder; }
  bool failed() const { return b_->builder.failed(); }
  void fail(DiagCode code, std::string message, std::string hint) const {
    b_->builder.fail(code, call_, std::move(message), std::move(hint));
  }

  std::string_view text(std::string_view what, const char* s) const;  // required
  ir::ExprId expr(std::string_view what, tl_expr h) const;
  ir::BufferId buffer(std::string_view what, tl_buffer h) const;
  ir::Region region(std::string_view what, tl_region h) const;
  uint64_t scope(tl_scope h) const;
  ir::DType dtype(tl_dtype value) const;
  std::vector<ir::ExprId> exprs(std::string_view what, uint32_t count, const tl_expr* values) const;
  std::vector<int64_t> numbers(std::string_view what, uint32_t count, const int64_t* values) const;
  std::vector<std::string_view> names(uint32_t count, const char* const* values) const;
  bool known_flags(uint32_t flags, uint32_t known) const;
  bool given(std::string_view what, const void* pointer) const;
  // The number of dimensions is read from the caller before anything else is known to be sane.
  bool countable(std::string_view what, uint32_t count) const;

  tl_expr give(ir::ExprId id) const { return {id ? pack(HandleKind::expr, id.value) : 0}; }
  tl_buffer give(ir::BufferId id) const { return {id ? pack(HandleKind::buffer, id.value) : 0}; }
  tl_region give(std::optional<ir::Region> r) const;
  tl_region give_place(std::optional<ir::Region> r) const;
  // Source and destination of a copy; one that has no extents takes those of the other.
  std::array<ir::Region, 2> boxes(tl_region src, tl_region dst) const;
  tl_scope give_scope(uint64_t token) const;
  tl_expr give_var(ir::VarId v) const { return v ? give(b_->builder.var(v)) : tl_expr{0}; }

 private:
  uint64_t pack(HandleKind kind, uint32_t index) const { return pack_handle(b_->serial, kind, index); }
  std::optional<uint32_t> index(std::string_view what, HandleKind kind, uint64_t bits) const;

  tl_builder* b_;
  const char* call_;
};

// Runs one call on a builder: a no-op for NULL and for a builder that has failed.
template <class R, class Body>
R on_builder(tl_builder* b, const char* call, R none, Body&& body) noexcept {
  if (!b || b->out_of_memory || b->builder.failed()) return none;
  try {
    BuilderCall c(b, call);
    R result = body(c);
    return c.failed() ? none : result;
  } catch (...) {
    b->out_of_memory = true;
    return none;
  }
}
template <class Body>
void on_builder(tl_builder* b, const char* call, Body&& body) noexcept {
  on_builder(b, call, 0, [&](const BuilderCall& c) {
    body(c);
    return 0;
  });
}

}  // namespace tilegen::capi
