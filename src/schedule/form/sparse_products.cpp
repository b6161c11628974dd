#include "schedule/form/sparse_products.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "analysis/gemm_shape.h"
#include "cost/expression_work.h"
#include "ir/op_kinds.h"
#include "schedule/form/decode_sparse.h"
#include "schedule/products/gemm_plan.h"

namespace tilegen::schedule {

namespace {

using ir::StmtId;
using ir::TileOp;
using target::MmaAtom;
using target::Target;

std::string number(int64_t v) { return std::to_string(v); }

// Why instructions cannot, by types and shapes alone; empty: they can.
std::string no_instruction(const ir::Program& p, const TileOp& op, const Target& t) {
  if (t.sparse_mma.empty()) return t.name + " multiplies whole operands";
  const analysis::GemmShape s = analysis::gemm_shape(p, op);
  const ir::DType sum = s.c == ir::DType::f16 ? ir::DType::f32 : s.c;
  const auto atom = std::find_if(t.sparse_mma.begin(), t.sparse_mma.end(),
                                 [&](const MmaAtom& a) { return a.a == s.a && a.b == s.b && a.c == sum; });
  if (atom == t.sparse_mma.end())
    return t.name + " multiplies whole operands of " + ir::dtype_name(s.a) + " and " + ir::dtype_name(s.b);
  if (s.k % atom->k != 0)
    return "k is " + number(s.k) + ", no multiple of the " + atom->name + " instruction's " + number(atom->k);
  // Instructions may overhang whole fragments alone, and how many warps share one is not known yet.
  for (size_t i = 0; i < op.operands.size(); ++i)
    if (const ir::Region& r = op.operands[i];
        p.buffer(r.buffer).scope != ir::MemScope::shared && r.extents != p.tile_shape(r.buffer))
      return "operand " + std::string(ir::op_row(op.kind).operands[i].name) + " is a part of fragment '" +
             p.buffer(r.buffer).name + "'";
  return "";
}

double cycles_of(const ir::Program& form, const DecodedOperand& d, const plan::GemmPlan& dense,
                 int64_t threads, const Target& t) {
  const cost::Work work = cost::loop_work(form, *form.as<ir::Loop>(d.loop), nullptr, threads, true, t);
  return dense.cycles + work.busy(true);
}

}  // namespace

std::map<StmtId, std::string> expanded_products(const ir::Program& p, const Target& t) {
  std::map<StmtId, std::string> reasons;
  std::vector<StmtId> able;
  for (StmtId s : sparse_products(p)) {
    std::string why = no_instruction(p, *p.as<TileOp>(s), t);
    why.empty() ? able.push_back(s) : void(reasons.emplace(s, std::move(why)));
  }
  if (able.empty()) return reasons;
  ir::Program form = p;
  for (const DecodedOperand& d : decode_sparse(form, t, {able.begin(), able.end()})) {
    const TileOp& sparse = *p.as<TileOp>(d.product);
    const ir::Kernel& kernel = p.kernels[static_cast<size_t>(p.buffer(sparse.operands[2].buffer).kernel)];
    const int64_t threads = kernel.threads > 0 ? kernel.threads : t.default_threads;
    const auto plan = [&](const ir::Program& of, const TileOp& op) {
      return plan_gemm(of, op, t, threads, nullptr, "", of.stmt(d.product).location);
    };
    const auto own = plan(p, sparse), dense = plan(form, *form.as<TileOp>(d.product));
    if (!own) {
      reasons.emplace(d.product, own.error().diagnostics.front().message);
      continue;
    }
    if (!dense) continue;
    const double expanded = cycles_of(form, d, *dense, threads, t);
    if (own->cycles <= expanded) continue;
    reasons.emplace(d.product, "so it takes " + number(std::llround(expanded)) + " cycles, by " + own->atom +
                                   " " + number(std::llround(own->cycles)));
  }
  return reasons;
}

}  // namespace tilegen::schedule
