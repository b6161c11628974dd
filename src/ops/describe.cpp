#include "ops/describe.h"

#include "ir/text.h"
#include "ops/op.h"
#include "support/diag_codes.h"

namespace tilegen::ops {

std::string extents_text(std::span<const int64_t> extents) {
  std::string text = "[";
  for (size_t i = 0; i < extents.size(); ++i) text += (i ? ", " : "") + std::to_string(extents[i]);
  return text + "]";
}

std::string region_text(const ir::Program& p, const ir::Region& r) {
  return p.buffer(r.buffer).name + extents_text(r.extents);
}

std::string operand_text(const ir::Program& p, const ir::Region& r) {
  const ir::Buffer& b = p.buffer(r.buffer);
  return region_text(p, r) + " (" + ir::dtype_name(b.type) + ", " + ir::scope_name(b.scope) + ")";
}

void Reporter::error(DiagCode code, std::string message, std::string hint) const {
  Diagnostic d;
  d.code = code;
  d.op = path;
  d.message = std::move(message);
  d.hint = std::move(hint);
  d.location = location;
  d.stage = "check";
  out.push_back(std::move(d));
}

namespace {

// Offsets are compared as constants or as the same (hash-consed) expression; anything else is undecided.
bool provably_overlap(const ir::Program& p, const ir::Region& a, const ir::Region& b) {
  if (a.buffer != b.buffer) return false;
  for (size_t d = 0; d < a.extents.size(); ++d) {
    if (a.offsets[d] == b.offsets[d]) continue;
    int64_t x = 0, y = 0;
    if (!p.exprs.is_const_int(a.offsets[d], &x) || !p.exprs.is_const_int(b.offsets[d], &y)) return false;
    if (x < y ? y - x >= a.extents[d] : x - y >= b.extents[d]) return false;
  }
  return true;
}

}  // namespace

void check_no_overlap(const ir::Program& p, const ir::TileOp& op, const Reporter& report, bool in_place) {
  const ir::OpRow& row = ir::op_row(op.kind);
  for (size_t w = 0; w < row.operands.size(); ++w) {
    if (row.operands[w].access == ir::Access::read) continue;
    for (size_t r = 0; r < row.operands.size(); ++r) {
      const ir::Region &to = op.operands[w], &from = op.operands[r];
      if (r == w || !provably_overlap(p, to, from)) continue;
      if (in_place && to.offsets == from.offsets && to.extents == from.extents) continue;
      report.error(DiagCode::parallel_race,
                   std::string(row.operands[w].name) + " " + ir::print_region(p, op.operands[w]) +
                       " overlaps " + std::string(row.operands[r].name) + " " +
                       ir::print_region(p, op.operands[r]) + "; the elements of one " +
                       std::string(row.text) + " have no order",
                   "write to a buffer of its own and copy it back");
    }
  }
}

void check_matched(const ir::Program& p, const ir::Region& src, const ir::Region& dst,
                   const Reporter& report) {
  if (matched_groups(src, dst)) return;
  report.error(
      DiagCode::shape_mismatch,
      "src " + operand_text(p, src) + " and dst " + operand_text(p, dst) + " have different extents",
      "give both regions the same extents; when the ranks differ, dimensions of extent 1 may be left "
      "out, and neighbouring dimensions of one region may be one of the other");
}

}  // namespace tilegen::ops
