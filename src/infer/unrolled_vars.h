// Variables of loops that are unrolled: what they index is known once the loops are written out.
#pragma once

#include <set>
#include <span>

#include "ir/program.h"

namespace tilegen::infer {

class UnrolledVars {
 public:
  explicit UnrolledVars(const ir::Program& p) : p_(p) {}
  UnrolledVars(const ir::Program& p, const ir::Block& body) : p_(p) { find(body); }

  // A constant once loops are unrolled, but for `walked`, the variables of an iteration.
  bool fix(ir::ExprId index, std::span<const ir::VarId> walked = {}) const;

 private:
  void find(const ir::Block& block);

  const ir::Program& p_;
  std::set<ir::VarId> vars_;
};

}  // namespace tilegen::infer
