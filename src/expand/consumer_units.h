// What a consumer's loop over pipelines issues: statements of its body in the order that the schedule gives.
#pragma once

#include <algorithm>

#include "expand/expander.h"

namespace tilegen::expand {

struct ConsumerUnit {
  StmtId stmt;
  int64_t lag = 0;                  // iterations behind the newest
  StmtId cleared_by;                // a fill that it stands for: its products overwrite
  bool product = false;             // of warpgroups
  bool waits = false;               // ... that has waited for its instructions
  bool holds_products = false;      // a branch or loop with products of its own, which it awaits
  std::set<ValueId> reads, writes;  // values in registers, and tiles that threads write for products
  std::set<ValueId> registers;      // of a product: operands in registers
  std::set<ValueId> slotted;        // such tiles that it writes, with slots that iterations use in turn
  std::vector<int> first, last;     // pipelines whose use begins and ends with it
};

// The product does not add to its sums.
bool overwrites(const ConsumerUnit& product);
// What the product reads beside its sums.
std::set<ValueId> operands(const ConsumerUnit& product);
bool meet(const std::set<ValueId>& a, const std::set<ValueId>& b);

// The unit must not run beside the product: they share sums, or the unit changes its operand, or touches one
// that is in registers. Products that add to the same sums do; one that overwrites them leaves the registers
// of the earlier one to others, while it may still write them. `same` tells of a value whether both mean the
// same slot of it.
template <class Same>
bool disturbs(const ConsumerUnit& u, const ConsumerUnit& product, Same&& same) {
  const auto shared = [&](const std::set<ValueId>& a, const std::set<ValueId>& b) {
    return std::any_of(a.begin(), a.end(), [&](ValueId v) { return b.count(v) > 0 && same(v); });
  };
  if (u.product && !overwrites(u) && u.writes == product.writes && shared(u.writes, product.writes))
    return shared(u.writes, operands(product));
  return shared(u.writes, product.reads) || shared(u.reads, product.writes) ||
         shared(u.writes, product.writes) || (!u.product && shared(u.reads, product.registers));
}

// Where the loop has iterations: a length below 0 leaves none over, whatever its remainder is.
template <class Node>
WhereIterations where_some(Node node) {
  WhereIterations some;
  emit(some.then_body, std::move(node));
  return some;
}

// A statement by itself: what it is and touches.
ConsumerUnit unit_of(const Expander& x, StmtId id);

struct ConsumerUnits {
  // `in_order`: of the program, with nothing that lags.
  ConsumerUnits(Expander& x, const ir::Loop& loop, StmtId id, bool in_order);

  std::vector<ConsumerUnit> units;  // in the order of issue
  int64_t most_lag = 0;
  bool ordered = false;      // warpgroups take turns to issue an iteration's products
  bool alternating = false;  // iterations are one warpgroup's and the other's by turns

 private:
  const KernelOp* first_op(StmtId id) const;
  void use_of(int pipeline);

  Expander& x_;
};

}  // namespace tilegen::expand
