#include "schedule/reductions/conditional_rescale.h"

#include <algorithm>
#include <set>

#include "analysis/iteration_values.h"
#include "analysis/loads.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::KernelOps;
using analysis::OpId;
using analysis::ValueId;
using ir::BufferId;
using ir::ExprId;
using ir::ExprOp;

namespace {

constexpr int64_t kWorthwhile = 16;  // elements of a thread for each factor

// The stores of a parallel loop, those of branches included.
std::vector<const ir::Store*> stores_of(const ir::Program& p, const KernelOp& op) {
  std::vector<const ir::Store*> stores;
  const auto* loop = p.as<ir::Loop>(op.stmt);
  if (!loop || loop->kind != ir::LoopKind::parallel) return stores;
  ir::for_each_statement(p, loop->body, [&](ir::StmtId s, int) {
    if (const auto* store = p.as<ir::Store>(s)) stores.push_back(store);
  });
  return stores;
}

class AsOne : public ir::ExprRewriter {
 public:
  AsOne(const ir::ExprPool& from, ir::ExprPool& to, BufferId factor)
      : ExprRewriter(from, to), factor_(factor) {}

 protected:
  ExprId rewrite_load(const ir::ExprNode& n, std::span<const ExprId> indices) override {
    return n.object == factor_ ? to_->const_number(1, n.type) : to_->load(n.object, n.type, indices);
  }

 private:
  const BufferId factor_;
};

// Where the factor is 1 each element is stored as it was.
bool changes_nothing(const ir::Program& p, const std::vector<const ir::Store*>& stores, BufferId factor) {
  ir::ExprPool pool;
  AsOne as_one(p.exprs, pool, factor);
  return std::all_of(stores.begin(), stores.end(), [&](const ir::Store* s) {
    if (s->buffer == factor || s->atomic) return false;
    std::vector<ExprId> indices;
    for (ExprId index : s->indices) indices.push_back(as_one.rewrite(index));
    return as_one.rewrite(s->value) == pool.load(s->buffer, p.buffer(s->buffer).type, indices);
  });
}

// Values of which the op changes nothing where they are 1.
std::vector<ValueId> factors_of(const ir::Program& p, const KernelOps& ops, const KernelOp& op) {
  std::vector<ValueId> factors;
  const std::vector<const ir::Store*> stores = stores_of(p, op);
  if (stores.empty()) return factors;
  std::set<BufferId> read;
  analysis::any_load(p.exprs, stores.front()->value, [&](ExprId, const ir::ExprNode& n) {
    if (ops.value_of(op, n.object).valid()) read.insert(n.object);
    return false;
  });
  for (BufferId factor : read)
    if (changes_nothing(p, stores, factor)) factors.push_back(ops.value_of(op, factor));
  return factors;
}

class RowFactors {
 public:
  RowFactors(const ir::Program& p, const KernelOps& ops, const target::Target& t,
             const plan::KernelSchedule* given, infer::InferResult& layouts)
      : p_(p), ops_(ops), target_(t), given_(given), layouts_(layouts) {}

  Checked run() {
    for (OpId i : ops_.ops.ids()) {
      const KernelOp& op = ops_.ops[i];
      layouts_.ops[i].skip_if_identity.reset();
      const std::vector<ValueId> factors =
          target_.has_block_threads() ? factors_of(p_, ops_, op) : std::vector<ValueId>();
      const plan::OpPlan* g = given_ ? plan::find_op(*given_, op.path) : nullptr;
      if (g && g->skip_if_identity) {
        const bool possible = std::any_of(factors.begin(), factors.end(), [&](ValueId factor) {
          return name(factor) == *g->skip_if_identity && in_registers(op, factor);
        });
        if (!g->skip_if_identity->empty() && !possible)
          return Error(DiagCode::schedule_illegal, op.path,
                       "the given schedule leaves it out where '" + *g->skip_if_identity +
                           "' is 1, which is no factor, held in registers, of all that it computes",
                       "leave `skip_if_identity` out of the schedule", op.location);
        layouts_.ops[i].skip_if_identity = *g->skip_if_identity;
      } else if (!factors.empty()) {
        layouts_.ops[i].skip_if_identity = chosen(op, factors);
      }
    }
    return Unit{};
  }

 private:
  std::string name(ValueId value) const { return ops_.values[value].name; }
  const plan::ValuePlan& plan_of(ValueId value) const { return layouts_.values[value]; }
  bool in_registers(ValueId value) const { return plan_of(value).fragment && !plan_of(value).memory; }
  bool in_registers(const KernelOp& op, ValueId factor) const {
    return in_registers(factor) &&
           std::all_of(op.accesses.begin(), op.accesses.end(), [&](const analysis::OpAccess& a) {
             return !a.write || (a.value.valid() && in_registers(a.value));
           });
  }

  // The factor that is asked for; empty where none is worth it.
  std::string chosen(const KernelOp& op, const std::vector<ValueId>& factors) {
    for (ValueId factor : factors) {
      if (!mostly_one(op, factor)) continue;
      if (!in_registers(op, factor)) {
        note(op, "'" + name(factor) + "' or what it scales is not held in registers");
        continue;
      }
      std::set<ValueId> scaled;
      for (const analysis::OpAccess& a : op.accesses)
        if (a.write) scaled.insert(a.value);
      int64_t elements = 0;
      for (ValueId value : scaled) elements += plan_of(value).fragment->registers();
      const int64_t each = elements / plan_of(factor).fragment->registers();
      if (each >= kWorthwhile) return name(factor);
      note(op, "a thread has " + std::to_string(each) + " elements for each of '" + name(factor) + "', and " +
                   std::to_string(kWorthwhile) + " are worth the question");
    }
    return "";
  }

  void note(const KernelOp& op, const std::string& why) {
    layouts_.notes.push_back({op.path, "computed also where its factor is 1: " + why});
  }

  // In some loop around the op.
  bool mostly_one(const KernelOp& op, ValueId factor) const {
    const BufferId tile = ops_.values[factor].buffer;
    for (size_t s = 0; s < p_.stmts.size(); ++s) {
      const auto* loop = p_.as<ir::Loop>(ir::StmtId(s));
      if (!loop || loop->kind == ir::LoopKind::parallel) continue;
      bool inside = false;
      ir::for_each_statement(p_, loop->body, [&](ir::StmtId at, int) { inside |= at == op.stmt; });
      if (inside && analysis::IterationValues(p_, ir::StmtId(s), op.stmt).is_one_where_unchanged(tile))
        return true;
    }
    return false;
  }

  const ir::Program& p_;
  const KernelOps& ops_;
  const target::Target& target_;
  const plan::KernelSchedule* given_;
  infer::InferResult& layouts_;
};

}  // namespace

Checked plan_conditional_rescale(const ir::Program& p, const KernelOps& ops, const target::Target& t,
                                 const plan::KernelSchedule* given, infer::InferResult& layouts) {
  return RowFactors(p, ops, t, given, layouts).run();
}

}  // namespace tilegen::schedule
