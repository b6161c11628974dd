#include "schedule/form/decode_sparse.h"

#include "analysis/gemm_shape.h"
#include "ir/compress.h"
#include "ir/op_kinds.h"
#include "ir/point_loops.h"
#include "ops/op.h"
#include "schedule/form/sparse_products.h"

namespace tilegen::schedule {

namespace {

using ir::ExprId;
using ir::ExprOp;
using ir::Exprs;
using ir::kSparseGroup;
using ir::kSparseKept;
using ir::Region;
using ir::StmtId;
using ir::TileOp;
enum : int { kA, kB, kC, kMeta };

// Element (m, k) of a region of two dimensions, and others of extent 1.
Exprs element(ir::ExprPool& e, const Region& r, int m_dim, int k_dim, ExprId m, ExprId k) {
  Exprs at = r.offsets;
  at[static_cast<size_t>(m_dim)] = e.add(at[static_cast<size_t>(m_dim)], m);
  at[static_cast<size_t>(k_dim)] = e.add(at[static_cast<size_t>(k_dim)], k);
  return at;
}

// Each warp has rows of its own; warpgroups take the rows of a tile before they share them.
bool rows_are_own(const TileOp& op, const target::Target& t) {
  return !t.warpgroup_mma.empty() ||
         op.attrs[ir::gemm_sparse_attr::policy] == static_cast<int64_t>(ir::WarpPolicy::full_row);
}

// The loop, appended to `block`, and the product that `op` becomes.
TileOp decode(ir::Program& p, const TileOp& op, const target::Target& t, const SourceLocation& location,
              ir::Block& block) {
  ir::ExprPool& e = p.exprs;
  const Region &values = op.operands[kA], &meta = op.operands[kMeta];
  const ir::DType type = p.buffer(values.buffer).type;
  const int64_t bits = ir::dtype_bits(p.buffer(meta.buffer).type);
  std::vector<int> dims = ops::matched_dims(values, 2);
  if (op.flag(ir::gemm_sparse_attr::transpose_a)) std::swap(dims[0], dims[1]);
  const std::vector<int> words = ops::matched_dims(meta, 2);
  const ir::Extents shape = {values.extents[static_cast<size_t>(dims[0])],
                             values.extents[static_cast<size_t>(dims[1])] / kSparseKept * kSparseGroup};
  ir::PointLoops loops(p, location, block, p.buffer(op.operands[kC].buffer).kernel);
  const ir::BufferId tile = loops.tile(
      "expanded", rows_are_own(op, t) ? ir::MemScope::fragment : ir::MemScope::shared, type, shape);
  const Exprs point = loops.begin(shape);
  const ExprId m = point[0], k = point[1];
  const auto number = [&](int64_t v) { return e.const_int(v); };
  const auto low = [&](int64_t v) { return e.const_int(v, ir::DType::u32); };
  const auto of_group = [&](ExprId x) { return e.binary(ExprOp::bit_and, x, low(kSparseGroup - 1)); };
  ExprId word = loops.load(meta.buffer, element(e, meta, words[0], words[1], m, e.floordiv(k, number(bits))));
  if (bits != 32) word = e.cast(ir::DType::u32, word);
  const ExprId group = e.floordiv(e.floormod(k, number(bits)), number(kSparseGroup));
  const ExprId places = e.binary(ExprOp::shr, word, e.cast(ir::DType::u32, e.mul(group, kSparseGroup)));
  const ExprId at = e.cast(ir::DType::u32, e.floormod(k, number(kSparseGroup)));
  const ExprId first_place = e.mul(e.floordiv(k, number(kSparseGroup)), kSparseKept);
  const ExprId first = loops.load(values.buffer, element(e, values, dims[0], dims[1], m, first_place));
  const ExprId second =
      loops.load(values.buffer, element(e, values, dims[0], dims[1], m, e.add(first_place, 1)));
  const ExprId is_first = e.binary(ExprOp::eq, of_group(places), at);
  const ExprId is_second =
      e.binary(ExprOp::eq, of_group(e.binary(ExprOp::shr, places, low(ir::kSparsePlaceBits))), at);
  loops.store(tile, point, e.select(is_second, second, e.select(is_first, first, e.const_number(0, type))));

  TileOp dense;
  dense.kind = ir::OpKind::gemm;
  dense.operands.assign(op.operands.begin(), op.operands.begin() + kMeta);
  dense.operands[kA] = {tile, {number(0), number(0)}, shape};
  dense.attrs = op.attrs;
  dense.attrs[ir::gemm_attr::transpose_a] = 0;
  return dense;
}

// The loop, appended to `block`, and the product with words in shared memory.
TileOp with_shared_words(ir::Program& p, const TileOp& op, const SourceLocation& location, ir::Block& block) {
  ir::ExprPool& e = p.exprs;
  const Region& meta = op.operands[kMeta];
  ir::PointLoops loops(p, location, block, p.buffer(op.operands[kC].buffer).kernel);
  const ir::Extents shape = meta.extents;
  const ir::BufferId tile = loops.tile("words", ir::MemScope::shared, p.buffer(meta.buffer).type, shape);
  const Exprs point = loops.begin(shape);
  loops.store(tile, point, loops.load(meta.buffer, ir::element_of(e, meta, point)));
  TileOp moved = op;
  moved.operands[kMeta] = {tile, Exprs(shape.size(), e.const_int(0)), shape};
  return moved;
}

bool is_sparse(const ir::Program& p, StmtId s) {
  const TileOp* op = p.as<TileOp>(s);
  return op && op->kind == ir::OpKind::gemm_sparse;
}

// The block with loops in front of its sparse products.
ir::Block decoded(ir::Program& p, const target::Target& t, const std::set<StmtId>& expanded,
                  const ir::Block& block, std::vector<DecodedOperand>& out) {
  ir::Block with;
  for (StmtId s : block) {
    const bool expands = expanded.count(s) > 0;
    if (is_sparse(p, s) &&
        (expands || p.buffer(p.as<TileOp>(s)->operands[kMeta].buffer).scope != ir::MemScope::shared)) {
      const TileOp op = *p.as<TileOp>(s);
      const SourceLocation location = p.stmt(s).location;
      TileOp made = expands ? decode(p, op, t, location, with) : with_shared_words(p, op, location, with);
      p.stmts[s.value].node = std::move(made);
      out.push_back({s, with.back()});
    }
    with.push_back(s);
  }
  return with;
}

}  // namespace

std::vector<StmtId> sparse_products(const ir::Program& p) {
  std::vector<StmtId> all;
  for (size_t s = 0; s < p.stmts.size(); ++s)
    if (is_sparse(p, StmtId(s))) all.push_back(StmtId(s));
  return all;
}

std::vector<DecodedOperand> decode_sparse(ir::Program& p, const target::Target& t,
                                          const std::set<StmtId>& expanded) {
  std::vector<DecodedOperand> all;
  const auto in = [&](const ir::Block& block) {
    for (StmtId s : block)
      if (is_sparse(p, s)) return true;
    return false;
  };
  for (ir::Kernel& k : p.kernels)
    if (in(k.body)) k.body = decoded(p, t, expanded, ir::Block(k.body), all);
  for (size_t s = 0, count = p.stmts.size(); s < count; ++s) {
    if (const auto* loop = std::get_if<ir::Loop>(&p.stmts[s].node); loop && in(loop->body)) {
      ir::Block body = decoded(p, t, expanded, ir::Block(loop->body), all);
      std::get<ir::Loop>(p.stmts[s].node).body = std::move(body);
    } else if (const auto* branch = std::get_if<ir::Branch>(&p.stmts[s].node);
               branch && (in(branch->then_body) || in(branch->else_body))) {
      const ir::Branch of = *branch;
      ir::Block then_body = decoded(p, t, expanded, of.then_body, all),
                else_body = decoded(p, t, expanded, of.else_body, all);
      auto& to = std::get<ir::Branch>(p.stmts[s].node);
      to.then_body = std::move(then_body);
      to.else_body = std::move(else_body);
    }
  }
  return all;
}

std::vector<plan::Note> decoding_notes(const ir::Program& p, const target::Target& t,
                                       const plan::Schedule* given) {
  std::vector<plan::Note> notes;
  const std::map<StmtId, std::string> expanded = expanded_products(p, t, given);
  if (expanded.empty()) return notes;
  const std::vector<std::string> paths = ir::statement_paths(p);
  for (const auto& [s, why] : expanded)
    notes.push_back({paths[s.value], "its operand is expanded beside it: " + why});
  return notes;
}

}  // namespace tilegen::schedule
