// What two groups come to: a combination's results of their values.
#include "ir/combination.h"

namespace tilegen::ir {
namespace {

using Exprs = std::vector<ExprId>;

// The groups' values in the place of the variables that stand for them.
class Substitution : public ExprRewriter {
 public:
  Substitution(ExprPool& pool, const Combine& by, const Exprs& left, const Exprs& right)
      : ExprRewriter(pool, pool), by_(by), left_(left), right_(right) {}

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    for (size_t i = 0; i < by_.left.size(); ++i) {
      if (by_.left[i] == n.var()) return left_[i];
      if (by_.right[i] == n.var()) return right_[i];
    }
    return to_->var(n.var(), n.type);
  }

 private:
  const Combine& by_;
  const Exprs &left_, &right_;
};

}  // namespace

Exprs combined(ExprPool& e, const Combine& by, const Exprs& left, const Exprs& right) {
  Substitution groups(e, by, left, right);
  Exprs results;
  for (ExprId r : by.results) results.push_back(groups.rewrite(r));
  return results;
}

}  // namespace tilegen::ir
