#include "runtime/scalar_code.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

namespace tilegen::runtime {
namespace {

using ir::DType;
using ir::ExprOp;

bool computes(DType t) { return t == DType::i64 || t == DType::boolean; }

// Whether the second operand is a literal that needs no step of its own.
bool has_literal(const ir::ExprPool& pool, const ir::ExprNode& n) {
  return n.type == DType::i64 && ir::expr_arity(n.op) == 2 && pool[n.b].op == ExprOp::const_int &&
         pool[n.b].type == DType::i64;
}

int8_t shift_of(int64_t divisor) {
  return std::has_single_bit(static_cast<uint64_t>(divisor))
             ? static_cast<int8_t>(std::countr_zero(static_cast<uint64_t>(divisor)))
             : -1;
}

}  // namespace

// Only what is written in this order: a value that overflows on its way must overflow here, too.
template <class SlotOf>
std::optional<ScalarCode::Ratio> ScalarCode::as_ratio(const ir::ExprPool& pool, ir::ExprId id,
                                                      const SlotOf& slot_of) {
  Ratio r;
  const ir::ExprNode* n = &pool[id];
  const auto take = [&](ExprOp op, int64_t& imm) {
    if (n->op != op || !has_literal(pool, *n)) return false;
    imm = pool[n->b].imm;
    n = &pool[n->a];
    return true;
  };
  if (n->op == ExprOp::floordiv && has_literal(pool, *n) && pool[n->b].imm > 0)
    take(ExprOp::floordiv, r.divisor);
  r.shift = shift_of(r.divisor);
  if (!take(ExprOp::add, r.offset) && take(ExprOp::sub, r.offset) &&
      __builtin_sub_overflow(int64_t{0}, r.offset, &r.offset))
    return std::nullopt;
  if (n->op == ExprOp::const_int && n->type == DType::i64 && n == &pool[id]) {
    r.scale = 0, r.offset = n->imm;
    return r;
  }
  take(ExprOp::mul, r.scale);
  if (n->op != ExprOp::var || n->type != DType::i64) return std::nullopt;
  const int slot = slot_of(n->var());
  if (slot < 0) return std::nullopt;
  r.slot = static_cast<uint32_t>(slot);
  return r;
}

std::optional<ScalarCode> ScalarCode::compile(const ir::ExprPool& pool, std::span<const ir::ExprId> roots,
                                              const std::function<int(ir::VarId)>& slot_of) {
  // Operands have smaller ids than their users: the sorted set of reachable ids is an order of evaluation.
  ScalarCode code;
  if (roots.size() > kMaxSteps) return std::nullopt;
  for (ir::ExprId root : roots)
    if (const auto r = as_ratio(pool, root, slot_of)) code.ratios_.push_back(*r);
  if (code.ratios_.size() == roots.size()) return code;
  code.ratios_.clear();
  std::map<uint32_t, uint16_t> place;
  std::vector<ir::ExprId> todo(roots.begin(), roots.end());
  while (!todo.empty()) {
    const ir::ExprId id = todo.back();
    todo.pop_back();
    if (!id || !place.emplace(id.value, 0).second) continue;
    if (place.size() > kMaxSteps) return std::nullopt;
    const ir::ExprNode& n = pool[id];
    if (as_ratio(pool, id, slot_of)) continue;
    todo.insert(todo.end(), {n.a, has_literal(pool, n) ? ir::ExprId() : n.b, n.c});
  }
  for (auto& [id, step_index] : place) {
    const ir::ExprNode& n = pool[ir::ExprId(static_cast<size_t>(id))];
    Step step;
    step.op = n.op;
    step.type = n.type;
    step.imm = n.imm;
    if (const auto r = as_ratio(pool, ir::ExprId(static_cast<size_t>(id)), slot_of)) {
      step.ratio = true;
      step.imm = static_cast<int64_t>(code.ratios_.size());
      code.ratios_.push_back(*r);
      step_index = static_cast<uint16_t>(code.steps_.size());
      code.steps_.push_back(step);
      continue;
    }
    if (n.op == ExprOp::var) {
      const int slot = slot_of(n.var());
      if (slot < 0 || ir::is_float(n.type)) return std::nullopt;
      step.imm = slot;
    } else if (n.op == ExprOp::load || n.op == ExprOp::const_float || ir::is_float(n.type)) {
      return std::nullopt;
    } else if (n.op != ExprOp::const_int && !computes(n.type)) {
      return std::nullopt;
    }
    // A cast may widen any integer; everything else works on i64 and bool.
    for (ir::ExprId operand : {n.a, n.b, n.c})
      if (operand && n.op != ExprOp::cast && !computes(pool[operand].type)) return std::nullopt;
    if (n.a) step.a = place.at(n.a.value);
    step.immediate = has_literal(pool, n);
    if (step.immediate)
      step.imm = pool[n.b].imm;
    else if (n.b)
      step.b = place.at(n.b.value);
    if (n.c) step.c = place.at(n.c.value);
    if (n.op == ExprOp::floordiv && step.immediate && step.imm > 0) step.shift = shift_of(step.imm);
    step_index = static_cast<uint16_t>(code.steps_.size());
    code.steps_.push_back(step);
  }
  for (ir::ExprId root : roots) code.roots_.push_back(place.at(root.value));
  return code;
}

// The operations that extents and grids are made of; false for the others.
inline bool ScalarCode::plain(const Step& step, int64_t a, int64_t b, int64_t* out, bool* exact) {
  switch (step.op) {
    case ExprOp::add:
      *exact &= !__builtin_add_overflow(a, b, out);
      return true;
    case ExprOp::sub:
      *exact &= !__builtin_sub_overflow(a, b, out);
      return true;
    case ExprOp::mul:
      *exact &= !__builtin_mul_overflow(a, b, out);
      return true;
    case ExprOp::floordiv:
      if (step.shift >= 0) return *out = a >> step.shift, true;  // rounds down
      if (a < 0 || b <= 0) return false;
      *out = a / b;
      return true;
    case ExprOp::floormod:
      if (a < 0 || b <= 0) return false;
      *out = a % b;
      return true;
    case ExprOp::min:
      *out = std::min(a, b);
      return true;
    case ExprOp::max:
      *out = std::max(a, b);
      return true;
    default:
      return false;
  }
}

int64_t ScalarCode::other(const Step& s, int64_t a, int64_t b) {
  const ir::ScalarValue x{DType::i64, a, 0}, y{DType::i64, b, 0};
  return s.op == ExprOp::cast            ? ir::eval_cast(s.type, x).i
         : ir::expr_arity(s.op) == 1 ? ir::eval_unary(s.op, s.type, x).i
                                     : ir::eval_binary(s.op, s.type, x, y).i;
}

[[gnu::hot]] bool ScalarCode::run_steps(std::span<const int64_t> slots, std::span<int64_t> out) const {
  int64_t values[kMaxSteps];
  bool exact = true;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    if (s.ratio) {
      values[i] = value(ratios_[static_cast<size_t>(s.imm)], slots, &exact);
    } else if (s.op == ExprOp::const_int) {
      values[i] = s.imm;
    } else if (s.op == ExprOp::var) {
      const int64_t v = slots[static_cast<size_t>(s.imm)];
      values[i] = s.type == DType::i64 ? v : ir::wrap_to(s.type, v);
    } else if (s.op == ExprOp::select) {
      values[i] = values[s.a] != 0 ? values[s.b] : values[s.c];
    } else {
      const int64_t a = values[s.a], b = s.immediate ? s.imm : values[s.b];
      if (s.type != DType::i64 || !plain(s, a, b, &values[i], &exact)) values[i] = other(s, a, b);
    }
  }
  for (size_t r = 0; r < roots_.size(); ++r) out[r] = values[roots_[r]];
  return exact;
}

}  // namespace tilegen::runtime
