#include "thread/index_program.h"

#include <algorithm>
#include <unordered_map>

namespace tilegen::thread {

using ir::ExprId;
using ir::ExprOp;

IndexProgram::IndexProgram(const ir::ExprPool& pool, ExprId root) {
  std::unordered_map<ExprId, int> place;
  // Operands before users, without recursion: expressions may be deep.
  std::vector<ExprId> pending = {root};
  while (!pending.empty()) {
    const ExprId id = pending.back();
    if (!id.valid() || place.count(id)) {
      pending.pop_back();
      continue;
    }
    const ir::ExprNode& n = pool[id];
    bool ready = true;
    if (n.op != ExprOp::load)
      for (ExprId x : {n.a, n.b, n.c})
        if (x.valid() && !place.count(x)) {
          pending.push_back(x);
          ready = false;
        }
    if (!ready) continue;
    pending.pop_back();
    Step s{n.op, n.type, n.type};
    auto at = [&](ExprId x) { return x.valid() ? place.at(x) : -1; };
    if (n.op == ExprOp::load) {
      reads_memory_ = true;
    } else {
      s.a = at(n.a);
      s.b = at(n.b);
      s.c = at(n.c);
      s.imm = n.imm;
      if (n.a.valid()) s.operand_type = pool.type(n.a);
    }
    if (n.op == ExprOp::var) vars_.push_back(n.var());
    place[id] = static_cast<int>(steps_.size());
    steps_.push_back(s);
  }
  std::sort(vars_.begin(), vars_.end());
  values_.resize(steps_.size());
}

bool IndexProgram::depends_on(ir::VarId v) const { return std::binary_search(vars_.begin(), vars_.end(), v); }

std::optional<int64_t> IndexProgram::run(const Step& s, const PointValues& at) const {
  auto value = [&](int i) -> const std::optional<int64_t>& { return values_[static_cast<size_t>(i)]; };
  if (s.op == ExprOp::var) return at[ir::VarId(static_cast<uint32_t>(s.imm))];
  if (s.op == ExprOp::load || ir::is_float(s.type)) return std::nullopt;
  if (s.op == ExprOp::const_int) return s.imm;
  if (ir::is_float(s.operand_type)) return std::nullopt;
  if (s.op == ExprOp::logical_and || s.op == ExprOp::logical_or) {
    const int64_t decides = s.op == ExprOp::logical_or;
    if (value(s.a) == decides || value(s.b) == decides) return decides;
  }
  if (s.op == ExprOp::select) {
    if (!value(s.a)) return value(s.b) == value(s.c) ? value(s.b) : std::nullopt;
    return *value(s.a) ? value(s.b) : value(s.c);
  }
  if (!value(s.a) || (s.b >= 0 && !value(s.b))) return std::nullopt;
  const ir::ScalarValue a{s.operand_type, *value(s.a), 0};
  if (s.op == ExprOp::cast) return ir::eval_cast(s.type, a).i;
  if (s.b < 0) return ir::eval_unary(s.op, s.type, a).i;
  return ir::eval_binary(s.op, s.type, a, {s.operand_type, *value(s.b), 0}).i;
}

std::optional<int64_t> IndexProgram::eval(const PointValues& at) const {
  if (steps_.empty()) return std::nullopt;
  for (size_t i = 0; i < steps_.size(); ++i) values_[i] = run(steps_[i], at);
  return values_.back();
}

}  // namespace tilegen::thread
