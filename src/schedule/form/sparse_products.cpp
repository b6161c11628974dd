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

// What the schedule, or else the program, says of the product.
plan::OpPlan asked_of(const ir::Program& p, StmtId s, const std::string& kernel, const std::string& path,
                      const plan::Schedule* given) {
  plan::OpPlan asked;
  for (const ir::Annotation& a : p.stmt(s).annotations) {
    if (a.key == "atom") asked.atom = a.values.front();
    if (a.key != "engine") continue;
    for (plan::Engine engine : {plan::Engine::mma, plan::Engine::warpgroup_mma})
      if (a.values.front() == plan::engine_name(engine)) asked.engine = engine;
  }
  const plan::KernelSchedule* schedule = given ? given->find(kernel) : nullptr;
  if (const plan::OpPlan* op = schedule ? plan::find_op(*schedule, path) : nullptr) {
    if (op->engine) asked.engine = op->engine;
    if (!op->atom.empty()) asked.atom = op->atom;
    asked.warps_m = op->warps_m, asked.warps_n = op->warps_n;
  }
  return asked;
}

// Of an instruction of the target.
enum class Named : uint8_t { none, sparse, whole };
Named named_by(const plan::OpPlan& asked, const Target& t) {
  if (const MmaAtom* atom = target::find_mma_atom(t, asked.atom))
    return atom->sparse() ? Named::sparse : Named::whole;
  if (const auto of_warpgroup = target::find_warpgroup_atom(t, asked.atom))
    return of_warpgroup->atom->sparse() ? Named::sparse : Named::whole;
  return Named::none;
}

double cycles_of(const ir::Program& form, const DecodedOperand& d, const plan::GemmPlan& dense,
                 int64_t threads, const Target& t) {
  const cost::Work work = cost::loop_work(form, *form.as<ir::Loop>(d.loop), nullptr, threads, true, t);
  return dense.cycles + work.busy(true);
}

}  // namespace

std::map<StmtId, std::string> expanded_products(const ir::Program& p, const Target& t,
                                                const plan::Schedule* given) {
  std::map<StmtId, std::string> reasons;
  const std::vector<StmtId> products = sparse_products(p);
  if (products.empty()) return reasons;
  const std::vector<std::string> paths = ir::statement_paths(p);
  const auto kernel_of = [&](StmtId s) -> const ir::Kernel& {
    return p.kernels[static_cast<size_t>(p.buffer(p.as<TileOp>(s)->operands[2].buffer).kernel)];
  };
  std::map<StmtId, plan::OpPlan> asked;
  std::vector<StmtId> able;
  for (StmtId s : products) {
    const plan::OpPlan& of = asked[s] = asked_of(p, s, kernel_of(s).name, paths[s.value], given);
    const Named named = named_by(of, t);
    if (named == Named::sparse) continue;
    std::string why = named == Named::whole ? "'" + of.atom + "' is asked for and multiplies whole operands"
                                            : no_instruction(p, *p.as<TileOp>(s), t);
    why.empty() ? able.push_back(s) : void(reasons.emplace(s, std::move(why)));
  }
  if (able.empty()) return reasons;
  ir::Program form = p;
  for (const DecodedOperand& d : decode_sparse(form, t, {able.begin(), able.end()})) {
    const TileOp& sparse = *p.as<TileOp>(d.product);
    const ir::Kernel& kernel = kernel_of(d.product);
    const plan::KernelSchedule* schedule = given ? given->find(kernel.name) : nullptr;
    const int64_t threads = schedule && schedule->threads ? *schedule->threads
                            : kernel.threads > 0          ? kernel.threads
                                                          : t.default_threads;
    const plan::OpPlan& of_product = asked.at(d.product);
    const bool any = of_product == plan::OpPlan();
    const auto plan = [&](const ir::Program& of, const TileOp& op) {
      return plan_gemm(of, op, t, threads, any ? nullptr : &of_product, "", of.stmt(d.product).location);
    };
    const auto own = plan(p, sparse), dense = plan(form, *form.as<TileOp>(d.product));
    if (!own && !any && !dense) continue;  // planning says what is wrong with what is asked for
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
