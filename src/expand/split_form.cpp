#include "expand/split_form.h"

#include <algorithm>
#include <bit>

#include "analysis/split_loop.h"
#include "expand/share_form.h"
#include "expand/workspace_split.h"
#include "ir/statement_paths.h"
#include "ir/text.h"

namespace tilegen::expand {

namespace {

constexpr size_t kMaxGridRank = 3;  // of a grid, with that of the parts

std::string free_name(const ir::Program& p) {
  std::string name = "part";
  const auto taken = [&](const auto& v) { return v.name == name; };
  while (std::any_of(p.vars.begin(), p.vars.end(), taken)) name += "_";
  return name;
}

std::string part_refusal(const target::Target& t, int64_t parts, SplitThrough through) {
  if (through == SplitThrough::workspace) {
    if (!t.has_block_threads()) return t.name + " has no blocks of threads";
    if (parts < 2 || parts > kMaxWorkspaceParts)
      return "expected 2 to " + std::to_string(kMaxWorkspaceParts) + " parts, got " + std::to_string(parts);
    return "";
  }
  if (!t.tensor_copy) return t.name + " has no copy engine, and only kernels with a producer form clusters";
  if (parts < 2 || parts > t.max_cluster || !std::has_single_bit(static_cast<uint64_t>(parts)))
    return std::to_string(parts) + " parts are no power of two from 2 to " + std::to_string(t.max_cluster);
  return "";
}

}  // namespace

SplitThrough split_through(const plan::SplitPlan& plan) {
  for (SplitThrough through : {SplitThrough::cluster_shares, SplitThrough::workspace})
    if (plan.through == split_through_name(through)) return through;
  return SplitThrough::cluster;
}

SplitThrough split_through(const plan::SplitPlan& plan, const target::Target& t) {
  if (!plan.through.empty()) return split_through(plan);
  return part_refusal(t, plan.parts, SplitThrough::cluster).empty() ? SplitThrough::cluster
                                                                    : SplitThrough::workspace;
}

const char* split_through_name(SplitThrough through) {
  switch (through) {
    case SplitThrough::cluster:
      return "cluster";
    case SplitThrough::cluster_shares:
      return "cluster_shares";
    case SplitThrough::workspace:
      return "workspace";
  }
  return "";
}

std::string split_refusal(const ir::Program& p, int kernel, const target::Target& t, ir::StmtId loop,
                          int64_t parts, SplitThrough through, const analysis::KernelOps* ops) {
  if (std::string why = part_refusal(t, parts, through); !why.empty()) return why;
  const ir::Kernel& k = p.kernels[static_cast<size_t>(kernel)];
  if (k.grid.size() >= kMaxGridRank) return "the grid has three dimensions";
  analysis::KernelOps collected;
  if (!ops) ops = &(collected = analysis::collect_kernel_ops(p, kernel));
  std::string why = analysis::split_loop(p, kernel, *ops, loop).refusal;
  if (why.empty() && through == SplitThrough::cluster_shares)
    why = share_refusal(p, kernel, loop, parts, *ops);
  return why;
}

Written written_as(const ir::Program& p) {
  if (p.written) return p.written;
  return std::make_shared<const ir::Program::Written>(
      ir::Program::Written{ir::program_hash(p), ir::statement_paths(p)});
}

ir::Program split_form(const ir::Program& p, int kernel, ir::StmtId loop, int64_t parts, SplitThrough through,
                       const Written& written) {
  ir::Program form = p;
  form.written = written ? written : written_as(p);
  ir::Var part;
  part.name = free_name(p);
  part.kind = ir::VarKind::block_index;
  const ir::VarId var(form.vars.size());
  form.vars.push_back(std::move(part));
  ir::Kernel& k = form.kernels[static_cast<size_t>(kernel)];
  ir::ExprPool& e = form.exprs;
  k.grid.insert(k.grid.begin(), e.const_int(parts));
  k.block_vars.insert(k.block_vars.begin(), var);

  auto& l = std::get<ir::Loop>(form.stmts[loop.value].node);
  int64_t trips = 0;
  const bool even = e.is_const_int(l.extents[0], &trips) && trips % parts == 0;
  const ir::ExprId all = l.extents[0], own = e.ceildiv(all, e.const_int(parts));
  const ir::ExprId before = e.mul(e.var(var), own);
  l.begin = e.add(l.begin, before);
  l.extents[0] =
      even ? own
           : e.binary(ir::ExprOp::max, e.const_int(0), e.binary(ir::ExprOp::min, own, e.sub(all, before)));
  if (through == SplitThrough::workspace) meet_in_workspace(form, kernel, loop, var, parts);
  if (through == SplitThrough::cluster_shares) share_sums(form, kernel, loop, var, parts);
  (through == SplitThrough::workspace ? k.workspace_split : k.split) = ir::Kernel::Split{loop, var};
  return form;
}

ir::StmtId loop_of_path(const ir::Program& p, int kernel, const std::string& path) {
  const ir::KernelPaths paths(p, kernel);
  ir::StmtId found;
  ir::for_each_statement(p, p.kernels[static_cast<size_t>(kernel)].body, [&](ir::StmtId id, int) {
    if (p.as<ir::Loop>(id) && paths[id.value] == path) found = id;
  });
  return found;
}

}  // namespace tilegen::expand
