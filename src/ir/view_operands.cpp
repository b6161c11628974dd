#include "ir/view_operands.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/draft_exprs.h"
#include "ir/op_kinds.h"
#include "ir/text.h"
#include "ir/tile_view.h"

namespace tilegen::ir {

bool operand_fits(TileOp& op, size_t operand, const Region& seen, const Region& box, int transposed) {
  const bool product = op.kind == OpKind::gemm || (op.kind == OpKind::gemm_sparse && operand < 3);
  if (!product) return transposed == 0 && box.extents == seen.extents;
  std::vector<int64_t> rows = several(seen.extents);
  if (transposed == 0) return rows == several(box.extents);
  std::reverse(rows.begin(), rows.end());
  if (transposed > 1 || operand > 1 || rows.size() != 2 || rows != several(box.extents)) return false;
  op.attrs[operand == 0 ? gemm_attr::transpose_a : gemm_attr::transpose_b] ^= 1;
  return true;
}

bool reads_operand(const TileOp& op, size_t operand) {
  const Access access = op_row(op.kind).operands[operand].access;
  if (access != Access::update) return access == Access::read;
  if (op.kind == OpKind::reduce) return op.flag(reduce_attr::accumulate);
  if (op.kind == OpKind::gemm) return !op.flag(gemm_attr::clear);
  return op.kind != OpKind::gemm_sparse || !op.flag(gemm_sparse_attr::clear);
}

Region add_operand_tile(Program& p, const Draft& draft, const Region& seen, int kernel,
                        SourceLocation location) {
  Buffer b;
  b.name = free_tile_name(p, draft, p.buffer(seen.buffer).name);
  b.scope = MemScope::fragment;
  b.type = p.buffer(seen.buffer).type;
  b.kernel = kernel;
  b.location = std::move(location);
  Region whole;
  whole.buffer = BufferId(p.buffers.size());
  whole.extents = seen.extents;
  for (int64_t extent : seen.extents) {
    b.shape.push_back(p.exprs.const_int(extent));
    whole.offsets.push_back(p.exprs.const_int(0));
  }
  p.buffers.push_back(std::move(b));
  return whole;
}

std::string free_label(const Program& p, const Kernel& kernel, const std::string& wanted) {
  std::set<std::string> taken;
  for_each_statement(p, kernel.body, [&](StmtId s, int) { taken.insert(p.stmt(s).label); });
  std::string label = wanted;
  for (int number = 2; taken.contains(label); ++number) label = wanted + "_" + std::to_string(number);
  return label;
}

StmtId add_copy(Program& p, const Region& from, const Region& to, SourceLocation location,
                std::string label) {
  TileOp copy;
  copy.kind = OpKind::copy;
  copy.operands = {from, to};
  p.stmts.push_back({std::move(copy), std::move(location), std::move(label)});
  return StmtId(p.stmts.size() - 1);
}

void insert_around(Program& p, const std::map<StmtId, Around>& around) {
  if (around.empty()) return;
  const auto widen = [&](Block& block) {
    Block out;
    for (StmtId s : block) {
      const auto it = around.find(s);
      if (it != around.end()) out.insert(out.end(), it->second.before.begin(), it->second.before.end());
      out.push_back(s);
      if (it != around.end()) out.insert(out.end(), it->second.after.begin(), it->second.after.end());
    }
    block = std::move(out);
  };
  for (Kernel& k : p.kernels) widen(k.body);
  for (Stmt& s : p.stmts) {
    if (auto* loop = std::get_if<Loop>(&s.node)) widen(loop->body);
    if (auto* branch = std::get_if<Branch>(&s.node)) widen(branch->then_body), widen(branch->else_body);
  }
}

std::string shape_text(const Program& p, std::span<const ExprId> shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + print_expr(p, shape[d]);
  return text + "]";
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

}  // namespace tilegen::ir
