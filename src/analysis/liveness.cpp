#include "analysis/liveness.h"

namespace tilegen::analysis {

namespace {

// Statements that get numbers: a parallel loop is one.
int64_t numbered(const ir::Program& p, const ir::Block& block) {
  int64_t n = 0;
  for (ir::StmtId id : block) {
    ++n;
    if (const auto* loop = p.as<ir::Loop>(id); loop && loop->kind != ir::LoopKind::parallel)
      n += numbered(p, loop->body);
    if (const auto* branch = p.as<ir::Branch>(id))
      n += numbered(p, branch->then_body) + numbered(p, branch->else_body);
  }
  return n;
}

}  // namespace

Liveness::Liveness(const ir::Program& p, int kernel, const KernelOps& ops) : values_(ops.values.size()) {
  number(p, p.kernels[static_cast<size_t>(kernel)].body, LiveRange{});
  const ir::KernelPaths paths(p, kernel);
  for (const auto& [id, place] : number_) by_path_.emplace(paths[id.value], id);
  for (const KernelOp& op : ops.ops)
    for (const OpAccess& a : op.accesses)
      if (a.value.valid()) values_[a.value].extend(around(op.stmt));
  for (const auto& [where, value] : ops.scalar_reads)
    if (value.valid()) values_[value].extend(of_scalars(where.first));
}

void Liveness::number(const ir::Program& p, const ir::Block& block, LiveRange outer_loop) {
  for (ir::StmtId id : block) {
    const int64_t at = next_++;
    number_[id] = at;
    outer_[id] = outer_loop;
    if (const auto* loop = p.as<ir::Loop>(id); loop && loop->kind != ir::LoopKind::parallel) {
      body_[id] = {at, at + numbered(p, loop->body)};
      outer_[id] = outer_loop.empty() ? body_[id] : outer_loop;
      number(p, loop->body, outer_[id]);
    }
    if (const auto* branch = p.as<ir::Branch>(id)) {
      number(p, branch->then_body, outer_loop);
      number(p, branch->else_body, outer_loop);
    }
  }
}

LiveRange Liveness::around(ir::StmtId s) const {
  const LiveRange loop = outer_.at(s);
  return loop.empty() ? LiveRange{number_.at(s), number_.at(s)} : loop;
}

// What a loop's bounds read is read in every iteration.
LiveRange Liveness::of_scalars(ir::StmtId s) const {
  LiveRange live = around(s);
  if (const auto body = body_.find(s); body != body_.end()) live.extend(body->second);
  return live;
}

LiveRange Liveness::of_statement(const std::string& path) const {
  const auto at = by_path_.find(path);
  return at == by_path_.end() ? kAlwaysLive : LiveRange{number_.at(at->second), number_.at(at->second)};
}

LiveRange Liveness::behind_loop(const std::string& path) const {
  const auto at = by_path_.find(path);
  const auto body = at == by_path_.end() ? body_.end() : body_.find(at->second);
  return body == body_.end() ? kAlwaysLive : LiveRange{body->second.last + 1, INT64_MAX};
}

}  // namespace tilegen::analysis
