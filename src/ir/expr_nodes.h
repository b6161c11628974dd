// The nodes that expressions reach, each once.
#pragma once

#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace tilegen::ir {

class ExprNodes {
 public:
  ExprNodes(const ExprPool& pool, std::vector<ExprId> roots) : pool_(pool), open_(std::move(roots)) {}

  // One that was not there before; invalid: there are no more.
  ExprId next() {
    if (at_.valid()) open_operands();
    at_ = {};
    while (!open_.empty() && !at_.valid()) {
      const ExprId e = open_.back();
      open_.pop_back();
      if (e.valid() && seen_.insert(e).second) at_ = e;
    }
    return at_;
  }
  // What the last one reaches does not come, but where others reach it.
  void skip_operands() { at_ = {}; }
  // Comes, too.
  void add(ExprId root) { open_.push_back(root); }
  size_t count() const { return seen_.size(); }  // so far

 private:
  void open_operands() {
    const ExprNode& n = pool_[at_];
    open_.insert(open_.end(), {n.a, n.b, n.c});
    if (n.op != ExprOp::load) return;
    for (ExprId index : pool_.indices(at_)) open_.push_back(index);
  }

  const ExprPool& pool_;
  std::vector<ExprId> open_;
  std::unordered_set<ExprId> seen_;
  ExprId at_;
};

}  // namespace tilegen::ir
