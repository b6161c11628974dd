#include "ir/bulk_copy.h"

#include <charconv>
#include <string>

#include "ir/copy_groups.h"
#include "ir/point_loops.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

std::vector<int64_t> box_of(const Region& r) {
  std::vector<int64_t> box;
  for (int64_t n : r.extents)
    if (n > 1) box.push_back(n);
  return box;
}

std::string box_text(const Region& r) {
  std::string text;
  for (int64_t n : r.extents) text += (text.empty() ? "" : "x") + std::to_string(n);
  return text;
}

std::vector<ExprId> element_at(Program& p, const Region& r, const std::vector<VarId>& vars) {
  std::vector<ExprId> indices;
  size_t next = 0;
  for (size_t d = 0; d < r.offsets.size(); ++d)
    indices.push_back(r.extents[d] > 1 ? p.exprs.add(r.offsets[d], p.exprs.var(vars[next++])) : r.offsets[d]);
  return indices;
}

}  // namespace

std::optional<Diagnostic> bulk_copy_refusal(const Program& p, const Region& from, const Region& to) {
  if (auto refused = tile_load_refusal("copy_bulk", p, from, to)) return refused;
  const Buffer &src = p.buffer(from.buffer), &dst = p.buffer(to.buffer);
  const std::vector<int64_t> box = box_of(from);
  if (box.empty() || box != box_of(to) || from.extents.back() == 1 || to.extents.back() == 1)
    return diagnostic(DiagCode::shape_mismatch,
                      "copy_bulk copies a box of " + src.name + ", " + box_text(from) + ", to one of " +
                          dst.name + ", " + box_text(to) +
                          ", expected the same ranges on both sides, the last index of each among them",
                      "give both the box's extents: X[row :+ 4, at :+ 128] -> tile[slot, 0 :+ 4, 0 :+ 128]");
  if (bulk_chunk(box.back(), dtype_bytes(src.type)) > 0) return std::nullopt;
  return diagnostic(DiagCode::bad_shape,
                    "copy_bulk copies rows of " + std::to_string(box.back()) + " elements of " +
                        dtype_name(src.type) + ", expected whole words of 4 bytes",
                    "let a row of the box have a multiple of 4 bytes");
}

StmtId add_bulk_copy(Program& p, Draft& draft, const Region& from, const Region& to,
                     const SourceLocation& location, Block& block) {
  Loop loop;
  loop.kind = LoopKind::parallel;
  loop.begin = p.exprs.const_int(0);
  for (int64_t n : box_of(from)) {
    Var v;
    v.name = "part";
    v.location = location;
    loop.vars.emplace_back(p.vars.size());
    p.vars.push_back(std::move(v));
    loop.extents.push_back(p.exprs.const_int(n));
  }
  const ExprId value = p.exprs.load(from.buffer, p.buffer(from.buffer).type, element_at(p, from, loop.vars));
  loop.body = {StmtId(p.stmts.size())};
  p.stmts.push_back({Store{to.buffer, element_at(p, to, loop.vars), value}, location});
  const StmtId made(p.stmts.size());
  p.stmts.push_back({std::move(loop), location});
  draft.bulk_copies.insert(made);
  block.push_back(made);
  return made;
}

int64_t bulk_chunk(int64_t row_elements, int64_t element_bytes) {
  for (int64_t bytes : {16, 8, 4})
    if (bytes % element_bytes == 0 && row_elements * element_bytes % bytes == 0) return bytes / element_bytes;
  return 0;
}

// Quotients of lanes and of warps by themselves, where rows are made of whole warps or warps of whole rows:
// lanes beside each other are seen to copy what lies so.
std::vector<ExprId> bulk_coordinates(ExprPool& e, const std::vector<int64_t>& box, int64_t chunk, ExprId warp,
                                     ExprId lane, ExprId element) {
  constexpr int64_t kWarp = 32;
  std::vector<ExprId> at(box.size());
  const int64_t in_row = box.back() / chunk;
  ExprId part, row;
  if (box.size() == 1) {
    part = e.add(e.mul(warp, kWarp), lane);
  } else if (in_row % kWarp == 0) {
    const ExprId warps = e.const_int(in_row / kWarp);
    part = e.add(e.mul(e.floormod(warp, warps), kWarp), lane);
    row = e.floordiv(warp, warps);
  } else if (kWarp % in_row == 0) {
    part = e.floormod(lane, e.const_int(in_row));
    row = e.add(e.mul(warp, kWarp / in_row), e.floordiv(lane, e.const_int(in_row)));
  } else {
    const ExprId number = e.add(e.mul(warp, kWarp), lane);
    part = e.floormod(number, e.const_int(in_row));
    row = e.floordiv(number, e.const_int(in_row));
  }
  at.back() = e.add(e.mul(part, chunk), element);
  for (size_t d = box.size() - 1; d-- > 0; row = e.floordiv(row, e.const_int(box[d])))
    at[d] = d > 0 ? e.floormod(row, e.const_int(box[d])) : row;
  return at;
}

std::vector<int64_t> bulk_box(const Stmt& loop) {
  std::vector<int64_t> box;
  for (const Annotation& a : loop.annotations)
    if (a.key == kBulk)
      for (const std::string& text : a.values)
        std::from_chars(text.data(), text.data() + text.size(), box.emplace_back(0));
  return box;
}

}  // namespace tilegen::ir
