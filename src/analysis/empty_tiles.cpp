#include "analysis/empty_tiles.h"

#include <algorithm>
#include <set>

#include "analysis/monotonicity.h"

namespace tilegen::analysis {

namespace {

class TestCollector {
 public:
  TestCollector(const ir::Program& p, const KernelOps& ops) : p_(p), e_(p.exprs) {
    for (const KernelOp& op : ops.ops)
      if (std::any_of(op.accesses.begin(), op.accesses.end(),
                      [](const OpAccess& a) { return a.write && !a.value.valid(); }))
        writers_.insert(op.stmt);
  }

  std::vector<StoreTest> collect(const ir::Kernel& kernel) {
    known_.insert(kernel.block_vars.begin(), kernel.block_vars.end());
    block(kernel.body);
    const bool one_always =
        std::any_of(tests_.begin(), tests_.end(), [](const StoreTest& t) { return t.empty(); });
    return one_always ? std::vector<StoreTest>() : std::move(tests_);
  }

 private:
  void block(const ir::Block& b) {
    for (ir::StmtId id : b) statement(id);
  }

  void statement(ir::StmtId id) {
    if (const auto* loop = p_.as<ir::Loop>(id)) {
      std::vector<ir::VarId> ranged;
      for (size_t i = 0; i < loop->vars.size(); ++i) {
        int64_t begin = 0, extent = 0;
        const bool constant = (!loop->begin.valid() || e_.is_const_int(loop->begin, &begin)) &&
                              e_.is_const_int(loop->extents[i], &extent);
        if (constant && extent > 0) ranges_[loop->vars[i]] = {begin, begin + extent - 1};
      }
      block(loop->body);
      for (ir::VarId v : loop->vars) ranges_.erase(v);
    } else if (const auto* branch = p_.as<ir::Branch>(id)) {
      const size_t outside = holding_.size();
      require(branch->condition, true);
      block(branch->then_body);
      holding_.resize(outside);
      require(branch->condition, false);
      block(branch->else_body);
      holding_.resize(outside);
    } else if (const auto* store = p_.as<ir::Store>(id)) {
      if (p_.buffer(store->buffer).scope == ir::MemScope::global) tests_.push_back(holding_);
    } else if (writers_.count(id) > 0) {
      tests_.push_back(holding_);
    }
  }

  // What is no comparison, or cannot be told, is left out: the test passes more often then.
  void require(ir::ExprId condition, bool holds) {
    const ir::ExprNode& n = e_[condition];
    switch (n.op) {
      case ir::ExprOp::logical_not:
        return require(n.a, !holds);
      case ir::ExprOp::logical_and:
      case ir::ExprOp::logical_or:
        if (holds != (n.op == ir::ExprOp::logical_and)) return;
        require(n.a, holds);
        return require(n.b, holds);
      case ir::ExprOp::lt:
        return holds ? compare(n.a, n.b, false) : compare(n.b, n.a, true);
      case ir::ExprOp::le:
        return holds ? compare(n.a, n.b, true) : compare(n.b, n.a, false);
      default:
        return;
    }
  }

  void compare(ir::ExprId a, ir::ExprId b, bool or_equal) {
    if (e_.type(a) != ir::DType::i64) return;
    StoreComparison c{a, b, or_equal, {}, {}};
    if (settle(a, false, c.in_a) && settle(b, true, c.in_b)) holding_.push_back(std::move(c));
  }

  // Which numbers of the variables inside the block make `e` largest, or smallest.
  bool settle(ir::ExprId e, bool largest, std::map<ir::VarId, int64_t>& at) const {
    std::set<ir::VarId> inside;
    if (!told(e, inside)) return false;
    for (ir::VarId v : inside) {
      const Monotonicity t = monotonicity(e_, e, v);
      if (t == Monotonicity::unknown) return false;
      const auto [least, most] = ranges_.at(v);
      at[v] = (t == Monotonicity::increasing) == largest ? most : least;
    }
    return true;
  }

  // By block indices, dims, scalars, tensors that nobody writes, and variables inside with known ranges.
  bool told(ir::ExprId root, std::set<ir::VarId>& inside) const {
    std::vector<ir::ExprId> todo = {root};
    std::set<ir::ExprId> seen;
    while (!todo.empty()) {
      const ir::ExprId id = todo.back();
      todo.pop_back();
      if (!id.valid() || !seen.insert(id).second) continue;
      const ir::ExprNode& n = e_[id];
      if (n.op == ir::ExprOp::load) {
        if (!p_.buffer(n.object).read_only) return false;
        todo.insert(todo.end(), e_.indices(id).begin(), e_.indices(id).end());
      } else if (n.op == ir::ExprOp::var) {
        const ir::VarKind kind = p_.var(n.var()).kind;
        if (ranges_.count(n.var()) > 0)
          inside.insert(n.var());
        else if (kind != ir::VarKind::dim && kind != ir::VarKind::scalar && known_.count(n.var()) == 0)
          return false;
      }
      for (ir::ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
    }
    return true;
  }

  const ir::Program& p_;
  const ir::ExprPool& e_;
  std::set<ir::StmtId> writers_;
  std::set<ir::VarId> known_;  // block indices
  std::map<ir::VarId, std::pair<int64_t, int64_t>> ranges_;
  StoreTest holding_;  // around the statement that is looked at
  std::vector<StoreTest> tests_;
};

}  // namespace

std::vector<StoreTest> store_tests(const ir::Program& p, const ir::Kernel& kernel, const KernelOps& ops) {
  return TestCollector(p, ops).collect(kernel);
}

}  // namespace tilegen::analysis
