#include "schedule/pipeline_plan.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace tilegen::schedule {

namespace {

constexpr int64_t kDefaultStages = 3;

class LoopPlanner {
 public:
  LoopPlanner(const ir::Program& p, const infer::KernelOps& ops, const target::Target& t,
              const std::vector<int64_t>& bytes, const ArenaBytes& arena, const plan::KernelSchedule* given,
              PipelineResult& out)
      : p_(p),
        ops_(ops),
        target_(t),
        bytes_(bytes),
        arena_(arena),
        given_(given),
        out_(out),
        paths_(ir::statement_paths(p)) {}

  void loop(ir::StmtId id, const ir::Loop& loop) {
    plan::LoopPlan plan;
    plan.loop = paths_[id.value];
    std::vector<const infer::KernelOp*> body = body_ops(loop);
    std::set<ir::BufferId> written;
    for (const auto* op : body)
      for (const auto& a : op->accesses)
        if (a.write) written.insert(a.buffer);
    std::vector<const infer::KernelOp*> ahead;
    for (const auto* op : body)
      if (runs_ahead(loop, *op, body, written)) ahead.push_back(op);

    if (const plan::LoopPlan* g = given_ ? plan::find_loop(*given_, plan.loop) : nullptr) {
      plan = *g;
    } else if (!target_.async_copy) {
      plan.num_stages = 1;
      plan.reason = "one thread per block: nothing to overlap, loads are prefetched by the hardware";
      for (const auto* op : body) plan.stages.push_back({op->path, 0});
    } else {
      plan.num_stages = fitting_stages(loop, ahead, plan);
      for (const auto* op : body)
        plan.stages.push_back(
            {op->path, std::find(ahead.begin(), ahead.end(), op) != ahead.end() ? 0 : plan.num_stages - 1});
    }
    if (plan.num_stages > 1)
      for (const auto* op : ahead)
        for (const auto& a : op->accesses)
          if (a.write && a.value >= 0) out_.slots[a.value] = std::max(out_.slots[a.value], plan.num_stages);
    out_.loops.push_back(std::move(plan));
  }

 private:
  std::vector<const infer::KernelOp*> body_ops(const ir::Loop& loop) const {
    std::set<ir::StmtId> inside;
    ir::for_each_statement(p_, loop.body, [&](ir::StmtId s, int) { inside.insert(s); });
    std::vector<const infer::KernelOp*> body;
    for (const auto& op : ops_.ops)
      if (inside.count(op.stmt)) body.push_back(&op);
    return body;
  }

  // Whether the copy may run in an earlier iteration; a copy between the right memories that may not is
  // noted.
  bool runs_ahead(const ir::Loop& loop, const infer::KernelOp& op,
                  const std::vector<const infer::KernelOp*>& body, const std::set<ir::BufferId>& written) {
    const auto* tile_op = p_.as<ir::TileOp>(op.stmt);
    if (!tile_op || tile_op->kind != ir::OpKind::copy) return false;
    ir::BufferId src = tile_op->operands[0].buffer, dst = tile_op->operands[1].buffer;
    if (p_.buffer(src).scope != ir::MemScope::global || p_.buffer(dst).scope != ir::MemScope::shared)
      return false;
    const std::string why = what_holds_back(loop, op, *tile_op, body, written);
    if (!why.empty() && target_.async_copy) out_.notes.push_back({op.path, "does not run ahead: " + why});
    return why.empty();
  }

  std::string what_holds_back(const ir::Loop& loop, const infer::KernelOp& op, const ir::TileOp& copy,
                              const std::vector<const infer::KernelOp*>& body,
                              const std::set<ir::BufferId>& written) const {
    if (std::find(loop.body.begin(), loop.body.end(), op.stmt) == loop.body.end())
      return "it stands in a branch or loop inside";
    if (written.count(copy.operands[0].buffer)) return "the loop writes its source";
    const ir::Region& to = copy.operands[1];
    for (const ir::Region& r : copy.operands)
      for (ir::ExprId offset : r.offsets)
        if (loads_any(offset, written)) return "its place depends on what the loop computes";
    const std::vector<int64_t> shape = p_.tile_shape(to.buffer);
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t offset = 1;
      if (to.extents[d] != shape[d] || !p_.exprs.is_const_int(to.offsets[d], &offset) || offset != 0)
        return "it fills only a part of its tile";
    }
    int value = -1;
    for (const auto& a : op.accesses)
      if (a.write) value = a.value;
    bool behind = false;  // statements behind the copy
    for (const auto* other : body) {
      if (other == &op) {
        behind = true;
        continue;
      }
      for (const auto& a : other->accesses) {
        if (a.value != value) continue;
        if (a.write) return "another operation writes the tile too";
        if (!behind) return "the tile is read in front of it";
      }
    }
    for (const auto& other : ops_.ops)
      if (std::find(body.begin(), body.end(), &other) == body.end())
        for (const auto& a : other.accesses)
          if (a.value == value) return "the tile is used outside the loop";
    std::set<ir::StmtId> inside;
    ir::for_each_statement(p_, loop.body, [&](ir::StmtId s, int) { inside.insert(s); });
    for (const auto& [where, read] : ops_.scalar_reads)
      if (read == value && !inside.count(where.first)) return "the tile is used outside the loop";
    return "";
  }

  bool loads_any(ir::ExprId root, const std::set<ir::BufferId>& buffers) const {
    std::vector<ir::ExprId> todo = {root};
    while (!todo.empty()) {
      const ir::ExprId id = todo.back();
      todo.pop_back();
      if (!id.valid()) continue;
      const ir::ExprNode& n = p_.exprs[id];
      todo.insert(todo.end(), {n.a, n.b, n.c});
      if (n.op != ir::ExprOp::load) continue;
      if (buffers.count(n.object)) return true;
      for (ir::ExprId index : p_.exprs.indices(id)) todo.push_back(index);
    }
    return false;
  }

  int64_t fitting_stages(const ir::Loop& loop, const std::vector<const infer::KernelOp*>& ahead,
                         plan::LoopPlan& plan) {
    if (ahead.empty()) {
      plan.reason = "no copy from global to shared memory can run ahead";
      out_.notes.push_back({plan.loop, "not pipelined: " + plan.reason});
      return 1;
    }
    int64_t wanted = loop.num_stages > 0 ? loop.num_stages : kDefaultStages;
    int64_t ring = 0;
    auto arena = [&](int64_t stages) {
      std::map<int, int64_t> slots = out_.slots;
      for (const auto* op : ahead)
        for (const auto& a : op->accesses)
          if (a.write && a.value >= 0) slots[a.value] = std::max(slots[a.value], stages);
      return arena_(slots);
    };
    for (const auto* op : ahead)
      for (const auto& a : op->accesses)
        if (a.write && a.value >= 0) ring += bytes_[static_cast<size_t>(a.value)];
    int64_t stages = wanted;
    while (stages > 1 && arena(stages) > target_.shared_bytes) --stages;
    const int64_t total = arena(1);
    plan.reason = (loop.num_stages > 0 ? "asked for" : "default") + std::string(" ") +
                  std::to_string(wanted) + " stages";
    if (stages < wanted) {
      std::string why = std::to_string(wanted) + " stages of " + std::to_string(ring) + " bytes and " +
                        std::to_string(total - ring) + " bytes of other tiles exceed " +
                        std::to_string(target_.shared_bytes) + " bytes of shared memory";
      plan.reason += ", " + std::to_string(stages) + " fit";
      out_.notes.push_back({plan.loop, "fewer stages: " + why});
    }
    return stages;
  }

  const ir::Program& p_;
  const infer::KernelOps& ops_;
  const target::Target& target_;
  const std::vector<int64_t>& bytes_;
  const ArenaBytes& arena_;
  const plan::KernelSchedule* given_;
  PipelineResult& out_;
  std::vector<std::string> paths_;
};

}  // namespace

PipelineResult plan_pipelines(const ir::Program& p, int kernel, const infer::KernelOps& ops,
                              const target::Target& target, const std::vector<int64_t>& bytes,
                              const ArenaBytes& arena, const plan::KernelSchedule* given) {
  PipelineResult out;
  LoopPlanner planner(p, ops, target, bytes, arena, given, out);
  ir::for_each_statement(p, p.kernels[static_cast<size_t>(kernel)].body, [&](ir::StmtId id, int) {
    const auto* loop = p.as<ir::Loop>(id);
    if (loop && loop->kind == ir::LoopKind::pipelined) planner.loop(id, *loop);
  });
  return out;
}

}  // namespace tilegen::schedule
