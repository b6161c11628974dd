#include "analysis/monotonicity.h"

#include <unordered_map>

#include "arith/prove.h"

namespace tilegen::analysis {

namespace {

Monotonicity reversed(Monotonicity m) {
  return m == Monotonicity::increasing   ? Monotonicity::decreasing
         : m == Monotonicity::decreasing ? Monotonicity::increasing
                                         : m;
}
Monotonicity joined(Monotonicity a, Monotonicity b) {
  if (a == Monotonicity::constant || a == b) return b;
  return b == Monotonicity::constant ? a : Monotonicity::unknown;
}

class Analysis {
 public:
  Analysis(const ir::ExprPool& e, ir::VarId var) : e_(e), var_(var) {}

  // Nodes that expressions share are looked at once.
  Monotonicity of(ir::ExprId id) {
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
    const Monotonicity m = arith::depends_on(e_, id, var_) ? compute(e_[id]) : Monotonicity::constant;
    return known_[id] = m;
  }

 private:
  Monotonicity compute(const ir::ExprNode& n) {
    int64_t number = 0;
    switch (n.op) {
      case ir::ExprOp::var:
        return Monotonicity::increasing;
      case ir::ExprOp::add:
      case ir::ExprOp::min:
      case ir::ExprOp::max:
        return joined(of(n.a), of(n.b));
      case ir::ExprOp::sub:
        return joined(of(n.a), reversed(of(n.b)));
      case ir::ExprOp::mul:
        if (e_.is_const_int(n.a, &number)) return number >= 0 ? of(n.b) : reversed(of(n.b));
        if (e_.is_const_int(n.b, &number)) return number >= 0 ? of(n.a) : reversed(of(n.a));
        return Monotonicity::unknown;
      case ir::ExprOp::floordiv:
        return e_.is_const_int(n.b, &number) && number > 0 ? of(n.a) : Monotonicity::unknown;
      default:
        return Monotonicity::unknown;
    }
  }

  const ir::ExprPool& e_;
  const ir::VarId var_;
  std::unordered_map<ir::ExprId, Monotonicity> known_;
};

}  // namespace

Monotonicity monotonicity(const ir::ExprPool& e, ir::ExprId id, ir::VarId var) {
  return Analysis(e, var).of(id);
}

}  // namespace tilegen::analysis
