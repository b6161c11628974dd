#include "schedule/products/zero_init.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/op_kinds.h"
#include "ir/statement_paths.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::ValueId;

namespace {

bool is_zero(const ir::ExprNode& n) {
  if (n.op == ir::ExprOp::const_int) return n.imm == 0;
  return n.op == ir::ExprOp::const_float && n.float_value() == 0;
}

class ZeroInit {
 public:
  ZeroInit(const ir::Program& p, int kernel, const analysis::KernelOps& ops, const plan::KernelSchedule& s)
      : p_(p), paths_(p, kernel), s_(s) {
    for (const KernelOp& op : ops.ops) op_of_[op.stmt] = &op;
    for (const analysis::Value& v : ops.values) shapes_.push_back(v.shape);
  }

  // Paths of the fills.
  std::set<std::string> found(const ir::Block& block) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (i + 1 < block.size() && clears_for(block[i], block[i + 1])) fills_.insert(paths_[block[i].value]);
      if (const auto* loop = p_.as<ir::Loop>(block[i]); loop && !op_of_.count(block[i])) found(loop->body);
      if (const auto* branch = p_.as<ir::Branch>(block[i])) {
        found(branch->then_body);
        found(branch->else_body);
      }
    }
    return fills_;
  }

 private:
  const plan::OpPlan* plan(ir::StmtId id) const {
    const auto op = op_of_.find(id);
    return op == op_of_.end() ? nullptr : plan::find_op(s_, op->second->path);
  }

  bool clears_for(ir::StmtId fill, ir::StmtId next) const {
    const auto* clear = p_.as<ir::TileOp>(fill);
    if (!clear || !ops::is_fill(*clear) || !is_zero(p_.exprs[clear->value]) ||
        op_of_.at(fill)->accesses.empty())
      return false;
    const ir::TileOp* product = is_product(next) ? p_.as<ir::TileOp>(next) : nullptr;
    if (const auto* loop = p_.as<ir::Loop>(next); loop && !op_of_.count(next)) {
      const bool fed = std::any_of(s_.pipelines.begin(), s_.pipelines.end(),
                                   [&](const plan::PipelinePlan& c) { return c.loop == paths_[next.value]; });
      product = fed ? only_product(loop->body) : nullptr;
      if (product && product->flag(ir::gemm_attr::promote)) return false;
    }
    if (!product) return false;
    const ir::Region &cleared = clear->operands[0], &sum = product->operands[2];
    const ValueId value = op_of_.at(fill)->accesses[0].value;
    return value.valid() && cleared.buffer == sum.buffer && cleared.extents == sum.extents &&
           cleared.extents == shapes_[value];
  }

  bool is_product(ir::StmtId id) const {
    const plan::OpPlan* how = plan(id);
    return how && p_.as<ir::TileOp>(id) && how->engine == plan::Engine::warpgroup_mma;
  }

  // Of warpgroups, beside copies of the producer.
  const ir::TileOp* only_product(const ir::Block& body) const {
    const ir::TileOp* product = nullptr;
    for (ir::StmtId id : body) {
      const plan::OpPlan* how = plan(id);
      if (how && p_.as<ir::TileOp>(id) && how->engine == plan::Engine::tensor_copy) continue;
      if (product || !is_product(id)) return nullptr;
      product = p_.as<ir::TileOp>(id);
    }
    return product;
  }

  const ir::Program& p_;
  const ir::KernelPaths paths_;
  const plan::KernelSchedule& s_;
  std::map<ir::StmtId, const KernelOp*> op_of_;
  IdVector<ValueId, std::vector<int64_t>> shapes_;
  std::set<std::string> fills_;
};

}  // namespace

void plan_zero_init(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                    const plan::KernelSchedule* given, plan::KernelSchedule& s) {
  if (!s.has_producer()) return;
  const std::set<std::string> fills =
      ZeroInit(p, kernel, ops, s).found(p.kernels[static_cast<size_t>(kernel)].body);
  for (plan::OpPlan& op : s.ops) {
    if (!fills.count(op.op)) continue;
    const plan::OpPlan* own = given ? plan::find_op(*given, op.op) : nullptr;
    op.elided = !own || own->elided.value_or(true);
  }
}

}  // namespace tilegen::schedule
