#include "expand/overlap_form.h"

#include <algorithm>

#include "analysis/independent_rows.h"
#include "analysis/shared_rows.h"
#include "check/index_form.h"
#include "expand/split_form.h"
#include "ir/store_parts.h"
#include "ir/text.h"
#include "ops/op.h"

namespace tilegen::expand {

namespace {

using analysis::IndependentRows;
using ir::ExprId;

// Other expressions in the place of some.
class Replacement : public ir::ExprRewriter {
 public:
  explicit Replacement(ir::ExprPool& pool) : ExprRewriter(pool, pool) {}
  using ExprRewriter::replace;
};

class WithoutIndex : public ir::ExprRewriter {
 public:
  WithoutIndex(ir::ExprPool& pool, ir::VarId index) : ExprRewriter(pool, pool), index_(index) {}

 private:
  ExprId rewrite_var(const ir::ExprNode& n) override {
    return n.var() == index_ ? to_->const_int(0) : ExprRewriter::rewrite_var(n);
  }
  const ir::VarId index_;
};

template <class Rewrite>
void rewrite_statement(ir::Stmt& s, const Rewrite& rewrite) {
  const auto one = [&](ExprId& e) {
    if (e.valid()) e = rewrite(e);
  };
  if (auto* loop = std::get_if<ir::Loop>(&s.node)) {
    one(loop->begin), one(loop->condition);
    for (ExprId& e : loop->extents) one(e);
  } else if (auto* branch = std::get_if<ir::Branch>(&s.node)) {
    one(branch->condition);
  } else if (auto* store = std::get_if<ir::Store>(&s.node)) {
    ir::visit_exprs(*store, one);
  } else if (auto* op = std::get_if<ir::TileOp>(&s.node)) {
    for (ir::Region& r : op->operands)
      for (ExprId& e : r.offsets) one(e);
    one(op->value);
  }
}

// More than one tile, which may not divide the size.
bool has_last_tile(const ir::Program& p, ExprId size, int64_t tile) {
  if (tile <= 1 || analysis::is_multiple(p, size, tile)) return false;
  const ir::ExprNode& n = p.exprs[size];
  int64_t most = INT64_MAX;
  if (n.op == ir::ExprOp::var) most = p.var(n.var()).upper;
  p.exprs.is_const_int(size, &most);
  return most > tile;
}

// Whether some tile that is loaded into memory may reach beyond its tensor along a dimension that the index
// walks.
bool may_reach_beyond(const ir::Program& p, const ir::Kernel& kernel, ir::VarId index) {
  check::IndexForms forms(p);
  bool found = false;
  ir::for_each_statement(p, kernel.body, [&](ir::StmtId id, int) {
    const auto* copy = p.as<ir::TileOp>(id);
    if (!copy || !ops::is_copy(*copy) || p.buffer(copy->operands[0].buffer).scope != ir::MemScope::global ||
        p.buffer(copy->operands[1].buffer).scope != ir::MemScope::shared)
      return;
    const ir::Region& r = copy->operands[0];
    for (size_t d = 0; d < r.offsets.size(); ++d)
      found = found ||
              has_last_tile(p, p.buffer(r.buffer).shape[d], std::abs(forms.coefficient(r.offsets[d], index)));
  });
  return found;
}

void move_last_tile(ir::Program& p, ir::Kernel& kernel, ir::VarId index, const IndependentRows& rows) {
  ir::ExprPool& e = p.exprs;
  const ExprId tile = e.const_int(rows.tile);
  const ir::ExprNode extent = e[rows.extent];
  const bool has_a_tile = extent.op == ir::ExprOp::var && p.var(extent.var()).lower >= rows.tile;
  ExprId last = e.sub(rows.extent, tile);
  if (!has_a_tile) last = e.binary(ir::ExprOp::max, e.const_int(0), last);
  const ExprId first = e.binary(ir::ExprOp::min, e.mul(e.var(index), tile), last);
  WithoutIndex rest(e, index);
  Replacement moved(e);
  std::vector<std::pair<ExprId, ExprId>> pairs;
  for (ExprId row : rows.rows) pairs.emplace_back(row, e.add(first, rest.rewrite(row)));
  for (const auto& [row, by] : pairs) moved.replace(row, by);
  ir::for_each_statement(p, kernel.body, [&](ir::StmtId id, int) {
    rewrite_statement(p.stmts[id.value], [&](ExprId x) { return moved.rewrite(x); });
  });
}

}  // namespace

Overlap find_overlap(const ir::Program& p, int kernel, const target::Target& t) {
  Overlap found;
  if (!t.tensor_copy) return found;
  const ir::Kernel& k = p.kernels[static_cast<size_t>(kernel)];
  std::optional<ir::Program> form;  // with those found
  for (ir::VarId index : k.block_vars) {
    if (!may_reach_beyond(p, k, index)) continue;
    const IndependentRows rows = analysis::independent_rows(form ? *form : p, kernel, index);
    if (rows.refusal.empty()) {
      found.along.push_back(p.var(index).name);
      form = overlap_form(form ? *form : p, kernel, {p.var(index).name});
    } else if (found.refusal.empty()) {
      found.refusal =
          "the last tile along '" + p.var(index).name +
          "' may reach beyond a tensor, where the copy engine fills it with zeros slowly, and cannot "
          "overlap the one before: " +
          rows.refusal;
    }
  }
  return found;
}

std::string overlap_refusal(const ir::Program& p, int kernel, const std::string& along) {
  const auto index = analysis::block_index(p, p.kernels[static_cast<size_t>(kernel)], along);
  if (!index) return "the kernel has no block index '" + along + "'";
  return analysis::independent_rows(p, kernel, *index).refusal;
}

ir::Program overlap_form(const ir::Program& p, int kernel, const std::vector<std::string>& along) {
  ir::Program form = p;
  if (!form.written)
    form.written = std::make_shared<const ir::Program::Written>(
        ir::Program::Written{ir::program_hash(p), ir::statement_paths(p)});
  for (const std::string& name : along) {
    ir::Kernel& k = form.kernels[static_cast<size_t>(kernel)];
    const auto index = analysis::block_index(form, k, name);
    const IndependentRows rows = analysis::independent_rows(form, kernel, *index);
    if (rows.refusal.empty()) move_last_tile(form, k, *index, rows);
  }
  return form;
}

std::optional<ir::Program> scheduled_form(const ir::Program& p, const plan::Schedule& s) {
  std::optional<ir::Program> form;
  for (size_t k = 0; k < p.kernels.size() && k < s.kernels.size(); ++k) {
    const plan::KernelSchedule& plan = s.kernels[k];
    const auto kernel = static_cast<int>(k);
    if (plan.overlap && !plan.overlap->along.empty())
      form = overlap_form(form ? *form : p, kernel, plan.overlap->along);
    if (!plan.split || plan.split->parts < 2) continue;
    const ir::Program& so_far = form ? *form : p;
    if (const ir::StmtId loop = loop_of_path(so_far, kernel, plan.split->loop); loop.valid())
      form = split_form(so_far, kernel, loop, plan.split->parts, split_through(*plan.split));
  }
  return form;
}

}  // namespace tilegen::expand
