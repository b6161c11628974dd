#include "thread/index_program.h"

#include <algorithm>
#include <unordered_map>

namespace tilegen::thread {

using ir::ExprId;
using ir::ExprOp;

namespace {

// What a load stands for; invalid: nothing known.
template <class Id>
Id held(const ir::ExprPool& pool, ExprId load, const std::map<std::pair<ir::ObjectId, int64_t>, Id>& registers) {
  const auto indices = pool.indices(load);
  int64_t element = 0;
  if (indices.size() != 1 || !pool.is_const_int(indices[0], &element)) return Id();
  const auto it = registers.find({pool[load].object, element});
  return it == registers.end() ? Id() : it->second;
}

}  // namespace

IndexProgram::IndexProgram(const ir::ExprPool& pool, ExprId root, const KnownLoads* loads) {
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
    if (n.op == ExprOp::load && loads)
      if (const ExprId stands_for = held(pool, id, loads->named)) {
        const auto known = place.find(stands_for);
        if (known == place.end()) {
          pending.push_back(stands_for);
        } else {
          place[id] = known->second;
        }
        continue;
      }
    const bool data = n.op == ExprOp::load && loads && loads->data.count(n.object) > 0 && pool.indices(id).size() == 1;
    bool ready = true;
    const auto need = [&](ExprId x) {
      if (!x.valid() || place.count(x)) return;
      pending.push_back(x);
      ready = false;
    };
    if (data) need(pool.indices(id)[0]);
    if (n.op != ExprOp::load)
      for (ExprId x : {n.a, n.b, n.c}) need(x);
    if (!ready) continue;
    pending.pop_back();
    Step s{n.op, n.type, n.type};
    auto at = [&](ExprId x) { return x.valid() ? place.at(x) : -1; };
    if (n.op == ExprOp::load) {
      const ir::VarId variable = loads ? held(pool, id, loads->changing) : ir::VarId();
      reads_memory_ = reads_memory_ || !variable.valid();
      if (variable.valid()) {
        s.op = ExprOp::var;
        s.imm = static_cast<int64_t>(variable.value);
        vars_.push_back(variable);
      }
      if (data) {
        s.a = at(pool.indices(id)[0]);
        s.data = n.object;
        data_.insert(n.object);
      }
    } else {
      s.a = at(n.a);
      s.b = at(n.b);
      s.c = at(n.c);
      s.imm = n.imm;
      if (n.a.valid()) s.operand_type = pool.type(n.a);
    }
    s.index = n.type == ir::DType::i64 && s.operand_type == ir::DType::i64 && s.b >= 0 && s.c < 0;
    if (n.op == ExprOp::var) vars_.push_back(n.var());
    place[id] = static_cast<int>(steps_.size());
    steps_.push_back(s);
  }
  std::sort(vars_.begin(), vars_.end());
  values_.resize(steps_.size());
}

bool IndexProgram::depends_on(ir::VarId v) const { return std::binary_search(vars_.begin(), vars_.end(), v); }

// The operations that indices are made of; the rest goes the general way.
IndexProgram::Value IndexProgram::run(const Step& s, const PointValues& at) const {
  if (s.op == ExprOp::var) {
    const auto& v = at[ir::VarId(static_cast<size_t>(s.imm))];
    return v ? Value{*v, true} : Value{};
  }
  if (s.op == ExprOp::const_int) return {s.imm, true};
  if (s.data.valid()) {
    const Value index = values_[static_cast<size_t>(s.a)];
    const auto element = index.known ? at.element(s.data, index.v) : std::nullopt;
    if (element) return {*element, true};
    const auto step = at.data(s.data);
    return index.known && step ? Value{ir::wrap_to(s.type, (index.v + 1) * *step), true} : Value{};
  }
  if (!s.index) return run_other(s);
  const Value a = values_[static_cast<size_t>(s.a)], b = values_[static_cast<size_t>(s.b)];
  if (!a.known || !b.known) return {};
  auto wrap = [](uint64_t v) { return Value{static_cast<int64_t>(v), true}; };
  const uint64_t x = static_cast<uint64_t>(a.v), y = static_cast<uint64_t>(b.v);
  switch (s.op) {
    case ExprOp::add:
      return wrap(x + y);
    case ExprOp::sub:
      return wrap(x - y);
    case ExprOp::mul:
      return wrap(x * y);
    case ExprOp::bit_xor:
      return wrap(x ^ y);
    case ExprOp::floordiv:
      if (a.v >= 0 && b.v > 0) return {a.v / b.v, true};
      break;
    case ExprOp::floormod:
      if (a.v >= 0 && b.v > 0) return {a.v % b.v, true};
      break;
    default:
      break;
  }
  return run_other(s);
}

IndexProgram::Value IndexProgram::run_other(const Step& s) const {
  auto value = [&](int i) { return values_[static_cast<size_t>(i)]; };
  auto is = [&](int i, int64_t v) { return value(i).known && value(i).v == v; };
  if (s.op == ExprOp::load || ir::is_float(s.type) || ir::is_float(s.operand_type)) return {};
  if (s.op == ExprOp::logical_and || s.op == ExprOp::logical_or) {
    const int64_t decides = s.op == ExprOp::logical_or;
    if (is(s.a, decides) || is(s.b, decides)) return {decides, true};
  }
  if (s.op == ExprOp::select) {
    if (value(s.a).known) return value(s.a).v ? value(s.b) : value(s.c);
    return value(s.b).known && is(s.c, value(s.b).v) ? value(s.b) : Value{};
  }
  if (!value(s.a).known || (s.b >= 0 && !value(s.b).known)) return {};
  const ir::ScalarValue a{s.operand_type, value(s.a).v, 0};
  if (s.op == ExprOp::cast) return {ir::eval_cast(s.type, a).i, true};
  if (s.b < 0) return {ir::eval_unary(s.op, s.type, a).i, true};
  return {ir::eval_binary(s.op, s.type, a, {s.operand_type, value(s.b).v, 0}).i, true};
}

std::optional<int64_t> IndexProgram::eval(const PointValues& at) const {
  if (steps_.empty()) return std::nullopt;
  for (size_t i = 0; i < steps_.size(); ++i) values_[i] = run(steps_[i], at);
  if (!values_.back().known) return std::nullopt;
  return values_.back().v;
}

}  // namespace tilegen::thread
