// Points of a parallel loop, one by one: what its expressions are there. Not used outside of packed types.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace tilegen::ir {

class AtPoint : public ExprRewriter {
 public:
  AtPoint(const ExprPool& from, ExprPool& to, const std::vector<VarId>& vars, const std::vector<int64_t>& at)
      : ExprRewriter(from, to), vars_(vars), at_(at) {}

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    const auto it = std::find(vars_.begin(), vars_.end(), n.var());
    return it == vars_.end() ? to_->var(n.var(), n.type)
                             : to_->const_int(at_[static_cast<size_t>(it - vars_.begin())], n.type);
  }

 private:
  const std::vector<VarId>& vars_;
  const std::vector<int64_t>& at_;
};

// A sum of multiples of what is no sum, and a constant.
struct Sum {
  std::map<ExprId, int64_t> atoms;
  int64_t constant = 0;
};
inline Sum sum_of(const ExprPool& pool, ExprId root) {
  Sum sum;
  std::vector<std::pair<ExprId, int64_t>> todo{{root, 1}};
  while (!todo.empty()) {
    const auto [e, times] = todo.back();
    todo.pop_back();
    const ExprNode& n = pool[e];
    int64_t value = 0;
    if (pool.is_const_int(e, &value)) {
      sum.constant += times * value;
    } else if (n.op == ExprOp::add || n.op == ExprOp::sub) {
      todo.emplace_back(n.a, times);
      todo.emplace_back(n.b, n.op == ExprOp::add ? times : -times);
    } else if (n.op == ExprOp::mul && pool.is_const_int(n.b, &value)) {
      todo.emplace_back(n.a, times * value);
    } else if (n.op == ExprOp::mul && pool.is_const_int(n.a, &value)) {
      todo.emplace_back(n.b, times * value);
    } else {
      sum.atoms[e] += times;
    }
  }
  std::erase_if(sum.atoms, [](const auto& atom) { return atom.second == 0; });
  return sum;
}

class LoopPoints {
 public:
  LoopPoints(const Program& p, const Loop& loop) {
    for (ExprId extent : loop.extents) {
      int64_t& known = extents_.emplace_back(0);
      if (count_ < 0 || !p.exprs.is_const_int(extent, &known) || known > kMaxPoints ||
          (count_ *= known) > kMaxPoints)
        count_ = -1;
    }
  }
  // So many that looking at `places` indices in each of them is little work.
  bool are_few(int64_t places) const { return count_ >= 0 && count_ * places <= kMaxPlaces; }
  int64_t count() const { return count_; }
  std::vector<int64_t> at(int64_t t) const {
    std::vector<int64_t> point(extents_.size(), 0);
    for (size_t d = extents_.size(); d-- > 0; t /= extents_[d]) point[d] = t % extents_[d];
    return point;
  }

 private:
  static constexpr int64_t kMaxPoints = 65536, kMaxPlaces = 131072;
  int64_t count_ = 1;  // -1: not known, or more
  std::vector<int64_t> extents_;
};

}  // namespace tilegen::ir
