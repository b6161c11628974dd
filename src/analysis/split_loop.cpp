#include "analysis/split_loop.h"

#include <algorithm>

#include "analysis/block_tree.h"
#include "analysis/linear_sums.h"
#include "analysis/loads.h"
#include "analysis/uniformity.h"
#include "support/checked.h"

namespace tilegen::analysis {

namespace {

constexpr int64_t kSumBytes = 4;  // what a block can read of another's registers

class Finder {
 public:
  Finder(const ir::Program& p, int kernel, const KernelOps& ops, ir::StmtId loop)
      : p_(p), kernel_(kernel), ops_(ops), loop_(loop), tree_(p, p.kernels[static_cast<size_t>(kernel)]) {}

  SplitLoop find() {
    SplitLoop found;
    found.refusal = refusal(found.sums);
    return found;
  }

 private:
  bool inside(ir::StmtId s) const {
    const auto around = tree_.around(s);
    return std::find(around.begin(), around.end(), loop_) != around.end();
  }
  const std::string& buffer_name(ValueId v) const { return p_.buffer(ops_.values[v].buffer).name; }

  std::string refusal(std::vector<ValueId>& sums) const {
    const auto* loop = p_.as<ir::Loop>(loop_);
    if (!loop || loop->kind == ir::LoopKind::parallel || loop->vars.size() != 1)
      return "it is no serial loop";
    if (loop->condition.valid()) return "a condition ends it";
    if (tree_.parent(loop_).valid()) return "it stands in a loop or branch";
    if (!is_uniform(p_, loop->begin) || !is_uniform(p_, loop->extents[0]))
      return "its bounds are read from memory that the kernel may write";
    if (std::string why = other_work(); !why.empty()) return why;
    for (ValueId v : ops_.values.ids()) {
      bool sum = false;
      if (std::string why = carried(v, sum); !why.empty()) return why;
      if (sum) sums.push_back(v);
    }
    return sums.empty() ? "it leaves no sums" : "";
  }

  // What runs as often as there are blocks, or beside them, must not show.
  std::string other_work() const {
    bool before = true, after = false;
    for (ir::StmtId id : p_.kernels[static_cast<size_t>(kernel_)].body) {
      before = before && id != loop_;
      after = after || (!before && id != loop_);
    }
    if (!after) return "nothing follows it";
    for (const KernelOp& op : ops_.ops) {
      const bool in = inside(op.stmt);
      const ir::StmtId top = tree_.member(p_.kernels[static_cast<size_t>(kernel_)].body, op.stmt);
      for (const OpAccess& a : op.accesses)
        if (a.write && !a.value.valid() && (in || tree_.precedes(top, loop_)))
          return op.path + " writes tensor '" + p_.buffer(a.buffer).name + "'";
      if (!in && op.form == OpForm::contraction) return op.path + " is a product beside it";
    }
    return "";
  }

  // A parallel loop that does nothing to the value but acc[i, j] = acc[i, j] + x, or less x.
  bool only_adds(const KernelOp& op, ValueId v) const {
    const auto* loop = p_.as<ir::Loop>(op.stmt);
    if (!loop || loop->kind != ir::LoopKind::parallel) return false;
    const ir::BufferId buffer = ops_.values[v].buffer;
    return std::all_of(loop->body.begin(), loop->body.end(), [&](ir::StmtId s) {
      const auto* store = p_.as<ir::Store>(s);
      return store && !store->old &&
             !std::any_of(store->indices.begin(), store->indices.end(),
                          [&](ir::ExprId e) { return reads_any(p_.exprs, e, {buffer}); }) &&
             (store->buffer == buffer ? is_sum_with_old(*store)
                                      : !reads_any(p_.exprs, store->value, {buffer}));
    });
  }
  bool is_sum_with_old(const ir::Store& s) const {
    const ir::ExprNode& n = p_.exprs[s.value];
    const auto is_old = [&](ir::ExprId e) {
      const ir::ExprNode& x = p_.exprs[e];
      return x.op == ir::ExprOp::load && x.object == s.buffer &&
             std::ranges::equal(p_.exprs.indices(e), s.indices);
    };
    const auto own = [&](ir::ExprId e) { return !reads_any(p_.exprs, e, {s.buffer}); };
    return (n.op == ir::ExprOp::add && ((is_old(n.a) && own(n.b)) || (is_old(n.b) && own(n.a)))) ||
           (n.op == ir::ExprOp::sub && is_old(n.a) && own(n.b));
  }

  // Empty: an iteration sees nothing of the value that another one left, or the value is a sum.
  std::string carried(ValueId v, bool& sum) const {
    bool written = false, used_outside = false, only_sums = true;
    for (const KernelOp& op : ops_.ops)
      for (const OpAccess& a : op.accesses) {
        if (a.value != v) continue;
        if (!inside(op.stmt)) {
          used_outside = true;
          continue;
        }
        written = written || a.write;
        only_sums = only_sums && (op.form == OpForm::contraction ? a.read && a.write : only_adds(op, v));
      }
    for (const auto& [where, read] : ops_.scalar_reads)
      if (read == v) inside(where.first) ? void(only_sums = false) : void(used_outside = true);
    if (!written) return "";
    if (!used_outside && !ops_.exposed.count(v)) return "";
    const std::string name = "'" + buffer_name(v) + "'";
    if (!only_sums || !used_outside)
      return "its iterations hand " + name + " to each other, other than as a sum";
    if (ops_.values[v].scope != ir::MemScope::fragment) return name + " is no fragment";
    if (ir::dtype_bytes(p_.buffer(ops_.values[v].buffer).type) != kSumBytes)
      return name + " has elements of other than " + std::to_string(kSumBytes) + " bytes";
    if (!begins_as_zero(p_, kernel_, ops_, loop_, v)) return name + " is not 0 when it begins";
    sum = true;
    return "";
  }

  const ir::Program& p_;
  const int kernel_;
  const KernelOps& ops_;
  const ir::StmtId loop_;
  const BlockTree tree_;
};

}  // namespace

SplitLoop split_loop(const ir::Program& p, int kernel, const KernelOps& ops, ir::StmtId loop) {
  return Finder(p, kernel, ops, loop).find();
}

int64_t parts_at_once(int64_t registers, int64_t others) {
  constexpr int64_t kRegisters = 64;  // that loads fill at once
  int64_t at_once = std::clamp<int64_t>(kRegisters / std::max<int64_t>(1, registers), 1, others);
  while (others % at_once != 0) --at_once;
  return at_once;
}

namespace {

constexpr int64_t kFewBlocks = 3;

}  // namespace

int64_t share_of_sums(int64_t registers, int64_t blocks) {
  if (blocks <= kFewBlocks) return 0;
  int64_t share = ceil_div(registers, blocks);
  while (registers % share != 0) ++share;
  return share;
}

int64_t meetings_for_sums(int64_t blocks) { return blocks <= kFewBlocks ? 1 : 2; }

}  // namespace tilegen::analysis
