// The table of tile operations and what every row shares: its signature and the matching of shapes.
#include <algorithm>
#include <iterator>

#include "ir/op_kinds.h"
#include "ops/describe.h"
#include "ops/op.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::ops {

// Each op's file defines one of these; a row without its file does not link.
#define TILEGEN_TILE_OP(name, text, operands, attributes, has_value) extern const TileOpDef name##_op;
#include "ir/ops.def"
#undef TILEGEN_TILE_OP

namespace {

constexpr const TileOpDef* kDefs[] = {
#define TILEGEN_TILE_OP(name, text, operands, attributes, has_value) &name##_op,
#include "ir/ops.def"
#undef TILEGEN_TILE_OP
};

constexpr ir::OpKind kKinds[] = {
#define TILEGEN_TILE_OP(name, text, operands, attributes, has_value) ir::OpKind::name,
#include "ir/ops.def"
#undef TILEGEN_TILE_OP
};

constexpr bool rows_stand_in_enum_order() {
  for (size_t i = 0; i < std::size(kKinds); ++i)
    if (static_cast<size_t>(kKinds[i]) != i) return false;
  return true;
}
static_assert(std::size(kDefs) == std::size(kKinds), "every row of ops.def has its definition");
static_assert(rows_stand_in_enum_order(), "OpKind follows ops.def");

bool check_region(const ir::Program& p, const ir::OperandRow& row, const ir::Region& r,
                  const Reporter& report) {
  const ir::Buffer& b = p.buffer(r.buffer);
  const std::string name = std::string(row.name) + " " + b.name;
  if (r.offsets.size() != b.shape.size() || r.extents.size() != b.shape.size()) {
    report.error(DiagCode::rank_mismatch,
                 name + ": the region has " + std::to_string(r.extents.size()) +
                     " dimensions, the buffer has " + std::to_string(b.shape.size()),
                 "give one offset and one extent per dimension of the buffer");
    return false;
  }
  bool ok = true;
  for (size_t d = 0; d < r.extents.size(); ++d) {
    if (r.extents[d] > 0) continue;
    report.error(DiagCode::bad_shape,
                 name + ": extent " + std::to_string(r.extents[d]) + " of dimension " + std::to_string(d) +
                     " of the region is not positive",
                 "region extents are positive constants");
    ok = false;
  }
  return ok;
}

bool check_attribute(const ir::AttrRow& row, int64_t value, const Reporter& report) {
  const bool ok = row.type == ir::AttrType::integer ||
                  (row.type == ir::AttrType::boolean && (value == 0 || value == 1)) ||
                  (row.type == ir::AttrType::enumeration && !ir::attr_value_name(row, value).empty());
  if (ok) return true;
  const std::string legal = row.type == ir::AttrType::boolean ? "0 or 1" : std::string(row.values);
  report.error(DiagCode::bad_attribute,
               "attribute " + std::string(row.name) + " has no value " + std::to_string(value),
               "legal: " + legal);
  return false;
}

}  // namespace

const TileOpDef& op_def(ir::OpKind kind) { return *kDefs[static_cast<size_t>(kind)]; }

bool check_signature(const ir::Program& p, const ir::TileOp& op, const std::string& path,
                     const SourceLocation& loc, std::vector<Diagnostic>& out) {
  const ir::OpRow& row = ir::op_row(op.kind);
  const Reporter report{path, loc, out};
  const std::string text(row.text);
  if (op.operands.size() != row.operands.size()) {
    report.error(DiagCode::bad_attribute,
                 text + " takes " + std::to_string(row.operands.size()) + " operands, got " +
                     std::to_string(op.operands.size()),
                 "pass every operand of " + text);
    return false;
  }
  bool ok = true;
  for (size_t i = 0; i < row.operands.size(); ++i)
    ok &= check_region(p, row.operands[i], op.operands[i], report);
  for (size_t i = 0; i < row.attrs.size(); ++i) ok &= check_attribute(row.attrs[i], op.attrs[i], report);
  if (op.value.valid() != row.has_value) {
    report.error(DiagCode::bad_attribute, text + (row.has_value ? " needs a value" : " takes no value"),
                 row.has_value ? "pass a scalar expression" : "leave the value out");
    ok = false;
  }
  return ok;
}

bool accumulates_in(ir::DType src, ir::DType dst) {
  if (ir::is_storage_only(src)) return false;
  if (src == dst) return true;
  if (src == ir::DType::f16 || src == ir::DType::bf16) return dst == ir::DType::f32;
  return ir::is_integer(src) && ir::dtype_bits(src) < 32 && dst == ir::DType::i32;
}

std::vector<int> matched_dims(const ir::Region& r, size_t rank) {
  size_t surplus = r.extents.size() > rank ? r.extents.size() - rank : 0;
  std::vector<int> dims;
  for (size_t d = 0; d < r.extents.size(); ++d) {
    if (surplus > 0 && r.extents[d] == 1)
      --surplus;
    else
      dims.push_back(static_cast<int>(d));
  }
  return dims;
}

std::optional<std::vector<DimGroup>> matched_groups(const ir::Region& a, const ir::Region& b) {
  std::vector<DimGroup> groups;
  if (a.extents == b.extents) {
    for (int d = 0; d < static_cast<int>(a.extents.size()); ++d) groups.push_back({{d}, {d}});
    return groups;
  }
  const std::vector<int> dims_a = matched_dims(a, 0), dims_b = matched_dims(b, 0);
  const auto extent = [](const ir::Region& r, int d) { return r.extents[static_cast<size_t>(d)]; };
  if (dims_a.size() == dims_b.size() &&
      (a.extents.size() == b.extents.size() ||
       !std::equal(dims_a.begin(), dims_a.end(), dims_b.begin(),
                   [&](int of_a, int of_b) { return extent(a, of_a) == extent(b, of_b); })))
    return std::nullopt;
  size_t i = 0, j = 0;
  while (i < dims_a.size() && j < dims_b.size()) {
    DimGroup g;
    const auto take = [](const ir::Region& r, const std::vector<int>& dims, size_t& at, std::vector<int>& to,
                         int64_t& product) {
      if (at == dims.size()) return false;
      to.push_back(dims[at]);
      const auto more = checked_mul(product, r.extents[static_cast<size_t>(dims[at++])]);
      product = more.value_or(0);
      return more.has_value();
    };
    int64_t of_a = 1, of_b = 1;
    if (!take(a, dims_a, i, g.a, of_a) || !take(b, dims_b, j, g.b, of_b)) return std::nullopt;
    while (of_a != of_b)
      if (!(of_a < of_b ? take(a, dims_a, i, g.a, of_a) : take(b, dims_b, j, g.b, of_b))) return std::nullopt;
    if (g.a.size() > 1 && g.b.size() > 1) return std::nullopt;
    groups.push_back(std::move(g));
  }
  return i == dims_a.size() && j == dims_b.size() ? std::optional(std::move(groups)) : std::nullopt;
}

}  // namespace tilegen::ops
