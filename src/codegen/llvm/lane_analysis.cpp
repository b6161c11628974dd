#include "codegen/llvm/lane_analysis.h"

#include <numeric>

#include "support/checked.h"

namespace tilegen::codegen {
namespace {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

constexpr LaneForm kVarying{false, 0, false};

int64_t gcd(int64_t a, int64_t b) {
  if (a == INT64_MIN || b == INT64_MIN) return 1;
  return std::gcd(a, b);
}

}  // namespace

void LaneAnalysis::enter(ir::VarId lane_var, int64_t width, int64_t base_divisor) {
  lane_ = lane_var;
  width_ = width;
  base_divisor_ = base_divisor;
  forms_.clear();
  divisors_.clear();
}

LaneForm LaneAnalysis::form(ExprId e) {
  if (!lane_.valid()) return {};
  if (auto it = forms_.find(e); it != forms_.end()) return it->second;
  LaneForm f = compute_form(e);
  f.of_lane = mentions_lane(e);
  forms_.emplace(e, f);
  return f;
}

bool LaneAnalysis::mentions_lane(ExprId e) {
  const ExprNode& n = (*exprs_)[e];
  if (n.op == ExprOp::var) return n.var() == lane_;
  if (n.op == ExprOp::load) {
    for (ExprId i : exprs_->indices(e))
      if (form(i).of_lane) return true;
    return false;
  }
  const int arity = ir::expr_arity(n.op);
  return (arity > 0 && form(n.a).of_lane) || (arity > 1 && form(n.b).of_lane) ||
         (arity > 2 && form(n.c).of_lane);
}

LaneForm LaneAnalysis::compute_form(ExprId e) {
  const ExprNode& n = (*exprs_)[e];
  switch (n.op) {
    case ExprOp::const_int:
    case ExprOp::const_float:
      return {};
    case ExprOp::var:
      return n.var() == lane_ ? LaneForm{true, 1, true} : LaneForm{};
    case ExprOp::load:
      for (ExprId i : exprs_->indices(e))
        if (!form(i).uniform()) return kVarying;
      return {};
    default:
      break;
  }
  LaneForm a = form(n.a), b, c;
  int arity = ir::expr_arity(n.op);
  if (arity > 1) b = form(n.b);
  if (arity > 2) c = form(n.c);
  if (a.uniform() && b.uniform() && c.uniform()) return {};
  if (n.type != ir::DType::i64 || !a.affine || !b.affine) return kVarying;
  std::optional<int64_t> stride;
  int64_t k = 0;
  switch (n.op) {
    case ExprOp::add:
      stride = checked_add(a.stride, b.stride);
      break;
    case ExprOp::sub:
      stride = checked_sub(a.stride, b.stride);
      break;
    case ExprOp::neg:
      stride = checked_sub(0, a.stride);
      break;
    case ExprOp::mul:
      if (exprs_->is_const_int(n.b, &k))
        stride = checked_mul(a.stride, k);
      else if (exprs_->is_const_int(n.a, &k))
        stride = checked_mul(b.stride, k);
      break;
    case ExprOp::floordiv:
      if (exprs_->is_const_int(n.b, &k) && k > 0 && exact(n.a)) {
        if (quotient_uniform(n.a, k))
          stride = 0;
        else if (a.stride % k == 0)
          stride = a.stride / k;
      }
      break;
    case ExprOp::floormod:
      if (exprs_->is_const_int(n.b, &k) && k > 0 && exact(n.a)) {
        if (quotient_uniform(n.a, k))
          stride = a.stride;
        else if (a.stride % k == 0)
          stride = 0;
      }
      break;
    default:
      break;
  }
  return stride ? LaneForm{true, *stride, true} : kVarying;
}

bool LaneAnalysis::quotient_uniform(ExprId e, int64_t d) {
  LaneForm f = form(e);
  if (!f.affine || d > INT64_MAX / 2) return false;  // sums of two numbers below d
  int64_t constant = 0;
  if (!split(e, 1, d, constant)) return false;
  auto span = checked_mul(f.stride, width_ - 1);
  if (!span) return false;
  auto last = checked_add(constant, *span);
  return last && *last >= 0 && *last < d;
}

// Adds to `constant` (kept in [0, d)) what is known of sign * e modulo d, lane part left out; false if
// unknown.
bool LaneAnalysis::split(ExprId e, int64_t sign, int64_t d, int64_t& constant) {
  const ExprNode& n = (*exprs_)[e];
  if (n.op == ExprOp::add || n.op == ExprOp::sub)
    return split(n.a, sign, d, constant) && split(n.b, n.op == ExprOp::add ? sign : -sign, d, constant);
  if (n.op == ExprOp::const_int) {
    constant = floor_mod(constant + sign * floor_mod(n.imm, d), d);
    return true;
  }
  int64_t known = divisor(e);  // at lane 0, where the lane part is 0
  return known == 0 || known % d == 0;
}

int64_t LaneAnalysis::divisor(ExprId e) {
  if (auto it = divisors_.find(e); it != divisors_.end()) return it->second;
  int64_t d = compute_divisor(e);
  if (!exact(e)) d &= -d;  // wrapping keeps powers of two
  divisors_.emplace(e, d);
  return d;
}

int64_t LaneAnalysis::compute_divisor(ExprId e) {
  const ExprNode& n = (*exprs_)[e];
  if (n.type != ir::DType::i64) return 1;
  switch (n.op) {
    case ExprOp::const_int:
      return n.imm == INT64_MIN ? 1 : std::abs(n.imm);
    case ExprOp::var: {
      if (n.var() == lane_) return base_divisor_;
      const ir::Var& v = program_->vars[n.var().value];
      return v.kind == ir::VarKind::dim && v.divisor > 0 ? v.divisor : 1;
    }
    case ExprOp::neg:
      return divisor(n.a);
    case ExprOp::add:
    case ExprOp::sub:
    case ExprOp::min:
    case ExprOp::max:
      return gcd(divisor(n.a), divisor(n.b));
    case ExprOp::select:
      return gcd(divisor(n.b), divisor(n.c));
    case ExprOp::mul: {
      int64_t a = divisor(n.a), b = divisor(n.b);
      auto p = checked_mul(a, b);
      return p ? *p : std::max(a, b);
    }
    case ExprOp::floormod:
      return gcd(divisor(n.a), divisor(n.b));
    case ExprOp::floordiv: {
      int64_t k = 0, a = divisor(n.a);
      return exprs_->is_const_int(n.b, &k) && k > 0 && a % k == 0 ? a / k : 1;
    }
    default:
      return 1;
  }
}

}  // namespace tilegen::codegen
