// The table after ops.def: names, operands and attributes of every tile operation, as plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tilegen::ir {

// The kinds and the slots of their attributes are in op_kinds.h: what names none is not compiled anew for a
// new row.
enum class OpKind : uint8_t;

enum class Access : uint8_t { read, write, update };
enum class AttrType : uint8_t { boolean, integer, enumeration };

struct OperandRow {
  std::string_view name;
  Access access;
};
struct AttrRow {
  std::string_view name;
  AttrType type;
  std::string_view values;  // enumeration: "first|second"
};
constexpr int kMaxAttrs = 6;
constexpr int kMaxOperands = 4;

struct OpRow {
  OpKind kind;
  std::string_view text;
  std::span<const OperandRow> operands;
  std::span<const AttrRow> attrs;
  bool has_value;
};

const OpRow& op_row(OpKind kind);
std::span<const OpRow> op_rows();
std::optional<OpKind> op_from_text(std::string_view text);

// Name of value `v` of an enumeration attribute, or empty; and back, or -1.
std::string_view attr_value_name(const AttrRow& row, int64_t v);
int64_t attr_value_from_name(const AttrRow& row, std::string_view name);

enum class WarpPolicy : int64_t { square, full_row, full_col };
enum class ReduceKind : int64_t { sum, max, min, absmax, product, bit_and, bit_or, bit_xor, abssum };

// What an atomic operation makes of the old value and another one: tile operations have the kinds up to
// exchange. compare_exchange stores the value where the old one is what was expected. append makes a record,
// of index and value, in a buffer of Report::prints, whose first word counts them.
enum class AtomicKind : int64_t {
  add,
  min,
  max,
  bit_and,
  bit_or,
  bit_xor,
  exchange,
  compare_exchange,
  append
};
constexpr int kAtomicKinds = 8;  // that programs name
// What an atomic operation on an element of a tensor orders among the blocks of a device. release: what the
// block did to tensors before, a block that acquires the element afterwards finds done. acquire: what the
// block does behind it comes after what was released there before. A block is one party: its threads wait
// for each other where that needs it. Of an element of a shared tile the threads of the block are parties.
enum class AtomicOrder : uint8_t { relaxed, acquire, release, acq_rel };
constexpr bool acquires(AtomicOrder o) { return o == AtomicOrder::acquire || o == AtomicOrder::acq_rel; }
constexpr bool releases(AtomicOrder o) { return o == AtomicOrder::release || o == AtomicOrder::acq_rel; }
constexpr int kAtomicOrders = 4;
std::string_view order_text(AtomicOrder order);
std::optional<AtomicOrder> order_from_text(std::string_view text);
// Names of statements on one element: "atomic_add" ...
std::string_view atomic_text(AtomicKind kind);
std::optional<AtomicKind> atomic_from_text(std::string_view text);

}  // namespace tilegen::ir
