#include "thread/index_program.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace tilegen::thread {

using ir::ExprId;
using ir::ExprOp;

namespace {

// What a load stands for; invalid: nothing known.
template <class Id>
Id held(const ir::ExprPool& pool, ExprId load,
        const std::map<std::pair<ir::ObjectId, int64_t>, Id>& registers) {
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
    const bool data = n.op == ExprOp::load && loads && loads->data.count(n.object) > 0;
    bool ready = true;
    const auto need = [&](ExprId x) {
      if (!x.valid() || place.count(x)) return;
      pending.push_back(x);
      ready = false;
    };
    if (data)
      for (ExprId x : pool.indices(id)) need(x);
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
        if (pool.indices(id).size() > 1) s.b = at(pool.indices(id)[1]);
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
    s.index = n.op != ExprOp::load && n.type == ir::DType::i64 && s.operand_type == ir::DType::i64 &&
              s.b >= 0 && s.c < 0;
    if (n.op == ExprOp::var) vars_.push_back(n.var());
    place[id] = static_cast<int>(steps_.size());
    steps_.push_back(s);
  }
  std::sort(vars_.begin(), vars_.end());
  vars_.erase(std::unique(vars_.begin(), vars_.end()), vars_.end());
  last_.resize(vars_.size());
  values_.resize(steps_.size());
  for (const Step& s : steps_) {
    uint64_t depends = s.data.valid() ? kData : 0;
    for (int operand : {s.a, s.b, s.c})
      if (operand >= 0) depends |= depends_[static_cast<size_t>(operand)];
    if (s.op == ExprOp::var) depends |= bit_of(ir::VarId(static_cast<size_t>(s.imm)));
    depends_.push_back(depends);
  }
}

uint64_t IndexProgram::bit_of(ir::VarId v) const {
  const auto at = std::lower_bound(vars_.begin(), vars_.end(), v) - vars_.begin();
  return uint64_t{1} << (at % kDataBit);
}

bool IndexProgram::depends_on(ir::VarId v) const { return std::binary_search(vars_.begin(), vars_.end(), v); }

IndexProgram::Value IndexProgram::of_type(ir::DType type, int64_t v) {
  const ir::ScalarValue value = ir::eval_cast(type, {ir::DType::i64, v, 0});
  return {value.i, true, value.f};
}

// The operations that indices are made of; the rest goes the general way.
IndexProgram::Value IndexProgram::run(const Step& s, const PointValues& at) const {
  if (s.op == ExprOp::var) {
    const auto& v = at[ir::VarId(static_cast<size_t>(s.imm))];
    return v ? (ir::is_float(s.type) ? of_type(s.type, *v) : Value{*v, true}) : Value{};
  }
  if (s.op == ExprOp::const_int) return {s.imm, true};
  if (s.data.valid()) {
    const Value inside = s.b < 0 ? Value{1, true} : values_[static_cast<size_t>(s.b)];
    if (!inside.known || inside.v == 0) return {0, inside.known};
    const Value index = values_[static_cast<size_t>(s.a)];
    const auto element = index.known ? at.element(s.data, index.v) : std::nullopt;
    if (element) return {*element, true};
    const auto step = at.data(s.data);
    return index.known && step ? of_type(s.type, (index.v + 1) * *step) : Value{};
  }
  const bool compares = ir::is_bool(s.type) && s.operand_type == ir::DType::i64 && s.b >= 0 && s.c < 0;
  if (!s.index && !compares) return run_other(s);
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
    case ExprOp::min:
      return {std::min(a.v, b.v), true};
    case ExprOp::max:
      return {std::max(a.v, b.v), true};
    case ExprOp::lt:
      return {a.v < b.v, true};
    case ExprOp::le:
      return {a.v <= b.v, true};
    case ExprOp::eq:
      return {a.v == b.v, true};
    case ExprOp::ne:
      return {a.v != b.v, true};
    default:
      break;
  }
  return run_other(s);
}

IndexProgram::Value IndexProgram::run_other(const Step& s) const {
  auto value = [&](int i) { return values_[static_cast<size_t>(i)]; };
  auto is = [&](int i, int64_t v) { return value(i).known && value(i).v == v; };
  auto scalar = [&](int i) { return ir::ScalarValue{s.operand_type, value(i).v, value(i).f}; };
  auto known = [](const ir::ScalarValue& v) { return Value{v.i, true, v.f}; };
  if (s.op == ExprOp::load) return {};
  if (s.op == ExprOp::const_float) return {0, true, std::bit_cast<double>(s.imm)};
  if (s.op == ExprOp::logical_and || s.op == ExprOp::logical_or) {
    const int64_t decides = s.op == ExprOp::logical_or;
    if (is(s.a, decides) || is(s.b, decides)) return {decides, true};
  }
  if (s.op == ExprOp::select) {
    if (value(s.a).known) return value(s.a).v ? value(s.b) : value(s.c);
    return !ir::is_float(s.type) && value(s.b).known && is(s.c, value(s.b).v) ? value(s.b) : Value{};
  }
  if (!value(s.a).known || (s.b >= 0 && !value(s.b).known)) return {};
  if (s.c >= 0 && !value(s.c).known) return {};
  auto operand = [&](int i) { return i < 0 ? ir::ScalarValue() : scalar(i); };
  return known(ir::eval_operation(s.op, s.type, scalar(s.a), operand(s.b), operand(s.c)));
}

std::optional<int64_t> IndexProgram::eval(const PointValues& at) const {
  if (steps_.empty()) return std::nullopt;
  uint64_t changed = kData;
  for (size_t i = 0; i < vars_.size(); ++i) {
    const auto& now = at[vars_[i]];
    if (now != last_[i]) changed |= uint64_t{1} << (i % kDataBit);
    last_[i] = now;
  }
  if (!evaluated_ || changed != kData || !data_.empty())
    for (size_t i = 0; i < steps_.size(); ++i)
      if (!evaluated_ || (depends_[i] & changed)) values_[i] = run(steps_[i], at);
  evaluated_ = true;
  if (!values_.back().known) return std::nullopt;
  return values_.back().v;
}

void IndexProgram::eval_along(ir::VarId v, int64_t count, const PointValues& at,
                              std::vector<std::optional<int64_t>>& values) const {
  values.assign(static_cast<size_t>(count), std::nullopt);
  if (steps_.empty()) return;
  if (!v.valid() || !depends_on(v)) return values.assign(static_cast<size_t>(count), eval(at));
  evaluated_ = false;  // values are kept for steps that do not depend on v alone
  rows_.resize(steps_.size());
  const auto varies = [&](int i) { return i >= 0 && !rows_[static_cast<size_t>(i)].empty(); };
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    rows_[i].clear();
    const bool is_v = s.op == ExprOp::var && s.imm == static_cast<int64_t>(v.value);
    if (is_v || varies(s.a) || varies(s.b) || varies(s.c))
      run_along(i, count, at);
    else
      values_[i] = run(s, at);
  }
  for (size_t i = 0; i < values.size(); ++i)
    if (const Value& value = rows_.back()[i]; value.known) values[i] = value.v;
}

void IndexProgram::run_along(size_t step, int64_t count, const PointValues& at) const {
  const Step& s = steps_[step];
  std::vector<Value>& row = rows_[step];
  row.resize(static_cast<size_t>(count));
  if (s.op == ExprOp::var) {
    for (int64_t i = 0; i < count; ++i) row[static_cast<size_t>(i)] = {i, true};
    return;
  }
  const auto row_of = [&](int operand) -> const Value* {
    return operand >= 0 && !rows_[static_cast<size_t>(operand)].empty()
               ? rows_[static_cast<size_t>(operand)].data()
               : nullptr;
  };
  const Value *a = row_of(s.a), *b = row_of(s.b), *c = row_of(s.c);
  const auto one = [&](size_t i) {
    if (a) values_[static_cast<size_t>(s.a)] = a[i];
    if (b) values_[static_cast<size_t>(s.b)] = b[i];
    if (c) values_[static_cast<size_t>(s.c)] = c[i];
    return run(s, at);
  };
  // The common ones without a decision for each element.
  const auto each = [&](auto operation) {
    const Value fixed_a = a ? Value{} : values_[static_cast<size_t>(s.a)],
                fixed_b = b ? Value{} : values_[static_cast<size_t>(s.b)];
    for (size_t i = 0; i < row.size(); ++i) {
      const Value &x = a ? a[i] : fixed_a, &y = b ? b[i] : fixed_b;
      row[i] = x.known && y.known ? operation(x.v, y.v, i) : Value{};
    }
  };
  const auto wrap = [](uint64_t v) { return Value{static_cast<int64_t>(v), true}; };
  const bool compares = s.operand_type == ir::DType::i64 && s.b >= 0;
  if (s.index && s.op == ExprOp::add)
    return each([&](uint64_t x, uint64_t y, size_t) { return wrap(x + y); });
  if (s.index && s.op == ExprOp::sub)
    return each([&](uint64_t x, uint64_t y, size_t) { return wrap(x - y); });
  if (s.index && s.op == ExprOp::mul)
    return each([&](uint64_t x, uint64_t y, size_t) { return wrap(x * y); });
  if (s.index && s.op == ExprOp::bit_xor)
    return each([&](uint64_t x, uint64_t y, size_t) { return wrap(x ^ y); });
  if (s.index && s.op == ExprOp::floordiv)
    return each([&](int64_t x, int64_t y, size_t i) {
      return x >= 0 && y > 0 ? Value{x / y, true} : one(i);
    });
  if (s.index && s.op == ExprOp::floormod)
    return each([&](int64_t x, int64_t y, size_t i) {
      return x >= 0 && y > 0 ? Value{x % y, true} : one(i);
    });
  if (compares && s.op == ExprOp::lt)
    return each([](int64_t x, int64_t y, size_t) { return Value{x < y, true}; });
  for (size_t i = 0; i < row.size(); ++i) row[i] = one(i);
}

}  // namespace tilegen::thread
