// The nodes that expressions reach, each once.
#pragma once

#include <span>

#include "ir/expr.h"
#include "support/small_set.h"

namespace tilegen::ir {

class ExprNodes {
 public:
  ExprNodes(const ExprPool& pool, ExprId root) : pool_(pool), open_{root} {}
  ExprNodes(const ExprPool& pool, std::span<const ExprId> roots) : pool_(pool) {
    for (ExprId root : roots) open_.push_back(root);
  }

  // One that was not there before; invalid: there are no more.
  ExprId next() {
    if (at_.valid()) open_operands();
    at_ = {};
    while (!open_.empty() && !at_.valid()) {
      const ExprId e = open_.back();
      open_.pop_back();
      if (e.valid() && seen_.insert(e)) at_ = e, ++count_;
    }
    return at_;
  }
  // What the last one reaches does not come, but where others reach it.
  void skip_operands() { at_ = {}; }
  // Comes, too.
  void add(ExprId root) { open_.push_back(root); }
  size_t count() const { return count_; }  // so far

 private:
  void open_operands() {
    const ExprNode& n = pool_[at_];
    for (ExprId operand : {n.a, n.b, n.c})
      if (operand.valid()) open_.push_back(operand);
    if (n.op != ExprOp::load) return;
    for (ExprId index : pool_.indices(at_)) open_.push_back(index);
  }

  const ExprPool& pool_;
  SmallVector<ExprId, 32> open_;
  SmallSet<ExprId, 32> seen_;
  size_t count_ = 0;
  ExprId at_;
};

}  // namespace tilegen::ir
