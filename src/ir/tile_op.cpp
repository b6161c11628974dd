#include "ir/tile_op.h"

#include <iterator>

#include "ir/op_kinds.h"

namespace tilegen::ir {
namespace {

// One namespace per op with its rows. Each array ends in an unused row, because an op may have no attributes
// and an array may not be empty.
namespace rows {
#define TILEGEN_OPERAND(name, access) {#name, Access::access},
#define TILEGEN_ATTR_BOOL(name) {#name, AttrType::boolean, ""},
#define TILEGEN_ATTR_INT(name) {#name, AttrType::integer, ""},
#define TILEGEN_ATTR_ENUM(name, values) {#name, AttrType::enumeration, values},
#define TILEGEN_TILE_OP(name, text, operand_list, attr_list, has_value)          \
  namespace name {                                                               \
  constexpr OperandRow kOperands[] = {operand_list{"", Access::read}};           \
  constexpr AttrRow kAttrs[] = {attr_list{"", AttrType::boolean, ""}};           \
  static_assert(std::size(kOperands) <= kMaxOperands + 1, "raise kMaxOperands"); \
  static_assert(std::size(kAttrs) <= kMaxAttrs + 1, "raise kMaxAttrs");          \
  }
#include "ir/ops.def"
#undef TILEGEN_TILE_OP
#undef TILEGEN_OPERAND
#undef TILEGEN_ATTR_BOOL
#undef TILEGEN_ATTR_INT
#undef TILEGEN_ATTR_ENUM
}  // namespace rows

constexpr OpRow kRows[] = {
#define TILEGEN_TILE_OP(name, text, operand_list, attr_list, has_value)                        \
  {OpKind::name, text, std::span(rows::name::kOperands, std::size(rows::name::kOperands) - 1), \
   std::span(rows::name::kAttrs, std::size(rows::name::kAttrs) - 1), has_value != 0},
#include "ir/ops.def"
#undef TILEGEN_TILE_OP
};

constexpr bool rows_are_in_order() {
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (static_cast<size_t>(kRows[i].kind) != i) return false;
  return true;
}
static_assert(rows_are_in_order(), "OpKind must list the ops in the order of ops.def");

// In the order of AtomicKind, as the values of the attribute `kind` are.
constexpr std::string_view kAtomicTexts[] = {
    "atomic_add", "atomic_min", "atomic_max",      "atomic_and",
    "atomic_or",  "atomic_xor", "atomic_exchange", "atomic_compare_exchange",
    "print"};
static_assert(std::size(kAtomicTexts) == kAtomicKinds + 1);

}  // namespace

const OpRow& op_row(OpKind kind) { return kRows[static_cast<size_t>(kind)]; }
std::span<const OpRow> op_rows() { return kRows; }

std::optional<OpKind> op_from_text(std::string_view text) {
  for (const OpRow& row : kRows)
    if (row.text == text) return row.kind;
  return std::nullopt;
}

static constexpr std::string_view kOrderTexts[kAtomicOrders] = {"relaxed", "acquire", "release", "acq_rel"};

std::string_view order_text(AtomicOrder order) { return kOrderTexts[static_cast<size_t>(order)]; }

std::optional<AtomicOrder> order_from_text(std::string_view text) {
  for (size_t i = 0; i < kAtomicOrders; ++i)
    if (kOrderTexts[i] == text) return static_cast<AtomicOrder>(i);
  return std::nullopt;
}

std::string_view atomic_text(AtomicKind kind) { return kAtomicTexts[static_cast<size_t>(kind)]; }

std::optional<AtomicKind> atomic_from_text(std::string_view text) {
  for (size_t i = 0; i < kAtomicKinds; ++i)
    if (kAtomicTexts[i] == text) return static_cast<AtomicKind>(i);
  return std::nullopt;
}

std::string_view attr_value_name(const AttrRow& row, int64_t v) {
  if (row.type != AttrType::enumeration || v < 0) return {};
  std::string_view rest = row.values;
  for (; v > 0; --v) {
    const size_t bar = rest.find('|');
    if (bar == std::string_view::npos) return {};
    rest.remove_prefix(bar + 1);
  }
  return rest.substr(0, rest.find('|'));
}

int64_t attr_value_from_name(const AttrRow& row, std::string_view name) {
  for (int64_t v = 0;; ++v) {
    const std::string_view value = attr_value_name(row, v);
    if (value.empty()) return -1;
    if (value == name) return v;
  }
}

}  // namespace tilegen::ir
