#include "expression_sampler.h"

#include "support/checked.h"

namespace tilegen::arith::testing {

using ir::DType;
using ir::ExprClass;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::ScalarValue;

std::vector<int64_t> edge_numbers() {
  std::vector<int64_t> list;
  for (int bits : {7, 8, 15, 31, 32, 33, 48, 61, 62})
    for (int64_t beside : {-1, 0, 1})
      for (int64_t sign : {-1, 1}) list.push_back(sign * ((int64_t{1} << bits) + beside));
  for (int64_t up : {0, 1, 2, 7, 100}) {
    list.push_back(INT64_MAX - up);
    list.push_back(INT64_MIN + up);
  }
  return list;
}

Sampler::Sampler(uint64_t seed, SamplerOptions options) : random_(seed), options_(options) {
  auto digit = [&] {
    int64_t extent = int64_t{1} << pick(0, 7);
    if (pick(0, 3) == 0) extent = pick(1, 100);
    return SampledVar{"", true, 0, extent - 1, 1, 0, extent - 1};
  };
  auto interval = [&] {
    int64_t lo = pick(-50, 50), hi = lo + pick(0, 100);
    return SampledVar{"", true, lo, hi, 1, lo, hi};
  };
  auto dimension = [&] {
    int64_t divisor = std::vector<int64_t>{1, 1, 8, 16, 128, 24}[pick(0, 5)];
    int64_t most = options_.edges && pick(0, 1) ? INT64_MAX : int64_t{1} << 48;
    return SampledVar{"", true, pick(0, 1), most, divisor, divisor, pick(0, 3) ? 100000 : most};
  };
  auto far = [&] {
    int64_t a = edge(), b = pick(0, 2) ? edge() : a < INT64_MAX - 100 ? a + pick(0, 100) : a;
    return SampledVar{"", true, std::min(a, b), std::max(a, b), 1, std::min(a, b), std::max(a, b)};
  };
  for (int i = 0; i < 3; i++) vars.push_back(digit());
  for (int i = 0; i < 2; i++) vars.push_back(interval());
  for (int i = 0; i < 2; i++) vars.push_back(dimension());
  for (int i = 0; i < 2 && options_.edges; i++) vars.push_back(far());
  if (options_.data) vars.push_back(SampledVar{"", false, INT64_MIN, INT64_MAX, 1, INT64_MIN, INT64_MAX});
  for (size_t i = 0; i < vars.size(); i++) vars[i].name = "v" + std::to_string(i);
}

void Sampler::bind_all(Context& ctx) const {
  for (size_t i = 0; i < vars.size(); i++)
    if (vars[i].bound) ctx.bind(ir::VarId(i), vars[i].lo, vars[i].hi, vars[i].divisor);
}

ExprId Sampler::random_leaf() {
  if (options_.edges && pick(0, 5) == 0) return pool.const_int(edge());
  if (pick(0, 5) == 0) return pool.const_int(pick(-20, 140));
  return pool.var(ir::VarId(static_cast<size_t>(pick(0, static_cast<int64_t>(vars.size()) - 1))));
}

ExprId Sampler::random_index(int depth) {
  if (depth <= 0) return random_leaf();
  auto sub = [&] { return random_index(depth - 1 - (pick(0, 2) == 0)); };
  const int64_t factors[] = {2, 3, 4, 8, 16, 32, 64, 128, 7, 12, -1, -4};
  auto factor = [&] {
    return pool.const_int(options_.edges && pick(0, 3) == 0 ? edge() : factors[pick(0, 11)]);
  };
  auto divisor = [&] {
    if (options_.edges && pick(0, 3) == 0) return pool.const_int(edge());
    return pick(0, 20) == 0 ? pool.const_int(pick(-8, 0)) : pool.const_int(factors[pick(0, 9)]);
  };
  ExprId a = sub();
  switch (pick(0, 21)) {
    case 0: case 1: case 2: case 3: return pool.add(a, sub());
    case 4: return pool.sub(a, sub());
    case 5: case 6: case 7: return pool.mul(a, factor());
    case 8: return pool.mul(a, random_leaf());
    case 9: case 10: case 11: return pool.floordiv(a, divisor());
    case 12: case 13: case 14: return pool.floormod(a, divisor());
    case 15: return pool.binary(pick(0, 1) ? ExprOp::floordiv : ExprOp::floormod, a, sub());
    case 16: return pool.binary(pick(0, 1) ? ExprOp::min : ExprOp::max, a, sub());
    case 17: {
      ExprId c = random_condition(depth - 2), b = sub();
      return pool.select(c, a, b);
    }
    case 18: {
      ExprId amount = pool.const_int(options_.edges ? pick(-2, 66) : pick(0, 6));
      return pool.binary(pick(0, 1) ? ExprOp::shl : ExprOp::shr, a, amount);
    }
    case 19: {
      const ExprOp ops[] = {ExprOp::bit_and, ExprOp::bit_or, ExprOp::bit_xor};
      ExprId b = pick(0, 1) ? pool.const_int(std::vector<int64_t>{7, 56, 112, -8, 63, 5}[pick(0, 5)]) : sub();
      return pool.binary(ops[pick(0, 2)], a, b);
    }
    case 20: return pool.unary(std::vector<ExprOp>{ExprOp::neg, ExprOp::abs, ExprOp::bit_not}[pick(0, 2)], a);
    default: {
      ExprId index[] = {a};
      if (options_.data && pick(0, 1)) return pool.load(ir::ObjectId(kDataObject), DType::i64, index);
      return pool.cast(DType::i64, pool.load(ir::ObjectId(kSmallObject), DType::i32, index));
    }
  }
}

ExprId Sampler::random_condition(int depth) {
  const ExprOp compares[] = {ExprOp::lt, ExprOp::le, ExprOp::lt, ExprOp::le, ExprOp::eq, ExprOp::ne};
  if (depth > 1 && pick(0, 2) == 0) {
    ExprId a = random_condition(depth - 1);
    if (pick(0, 3) == 0) return pool.unary(ExprOp::logical_not, a);
    ExprId b = random_condition(depth - 1);
    return pool.binary(pick(0, 1) ? ExprOp::logical_and : ExprOp::logical_or, a, b);
  }
  ExprId a = random_index(depth);
  ExprId b = pick(0, 1) ? random_index(depth - 1)
                        : pool.const_int(options_.edges && pick(0, 1) ? edge() : pick(-64, 512));
  return pool.binary(compares[pick(0, 5)], a, b);
}

Assignment Sampler::random_assignment() {
  Assignment a;
  a.memory_seed = random_();
  for (const SampledVar& v : vars) {
    int64_t x = pick(v.sample_lo, v.sample_hi);
    int64_t edge = pick(0, 9);
    if (edge == 0) x = v.sample_lo;
    if (edge == 1) x = v.sample_hi;
    if (!v.bound && edge > 5) x = pick(-300, 300);
    if (edge == 2) x = v.sample_lo < v.sample_hi ? v.sample_lo + 1 : x;
    if (edge == 3) x = v.sample_lo < v.sample_hi ? v.sample_hi - 1 : x;
    x -= v.divisor > 1 ? floor_mod(x, v.divisor) : 0;
    a.vars.push_back(x);
  }
  return a;
}

namespace {

uint64_t mixed(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  h *= 0xbf58476d1ce4e5b9ull;
  return h ^ (h >> 29);
}

}  // namespace

int64_t Sampler::eval(ExprId e, const Assignment& as) const {
  const ExprNode& n = pool[e];
  switch (n.op) {
    case ExprOp::const_int: return n.imm;
    case ExprOp::var: return as.vars[n.var().value];
    case ExprOp::load: {
      uint64_t h = mixed(as.memory_seed, n.object.value);
      for (ExprId i : pool.indices(e)) h = mixed(h, static_cast<uint64_t>(eval(i, as)));
      return ir::wrap_to(n.type, static_cast<int64_t>(h % 3 == 0 ? h % 200 : h));
    }
    case ExprOp::select: return eval(n.a, as) ? eval(n.b, as) : eval(n.c, as);
    default: break;
  }
  const ScalarValue a{pool.type(n.a), eval(n.a, as), 0};
  if (n.op == ExprOp::cast) return ir::eval_cast(n.type, a).i;
  if (!n.b.valid()) return ir::eval_unary(n.op, n.type, a).i;
  return ir::eval_binary(n.op, n.type, a, {pool.type(n.b), eval(n.b, as), 0}).i;
}

std::string Sampler::text(ExprId e) const {
  std::vector<std::string> names;
  for (const SampledVar& v : vars) names.push_back(v.name);
  return expression_text(pool, e, names);
}

std::string expression_text(const ir::ExprPool& pool, ExprId e, const std::vector<std::string>& names) {
  const ExprNode& n = pool[e];
  auto text = [&](ExprId id) { return expression_text(pool, id, names); };
  auto wrapped = [&](ExprId id, bool sum) {
    const ExprNode& m = pool[id];
    bool infix = m.b.valid() && m.op != ExprOp::min && m.op != ExprOp::max && m.op != ExprOp::select;
    bool plain = !infix || (sum && (m.op == ExprOp::add || m.op == ExprOp::sub || m.op == ExprOp::mul));
    return plain ? text(id) : "(" + text(id) + ")";
  };
  switch (n.op) {
    case ExprOp::const_int: return ir::is_bool(n.type) ? (n.imm ? "true" : "false") : std::to_string(n.imm);
    case ExprOp::const_float: return std::to_string(n.float_value());
    case ExprOp::var: return names.at(n.var().value);
    case ExprOp::load: {
      std::string s = "m" + std::to_string(n.object.value) + "[";
      std::span<const ExprId> indices = pool.indices(e);
      for (size_t i = 0; i < indices.size(); i++) s += (i ? ", " : "") + text(indices[i]);
      return s + "]";
    }
    case ExprOp::select: return "select(" + text(n.a) + ", " + text(n.b) + ", " + text(n.c) + ")";
    case ExprOp::cast: return std::string(ir::dtype_name(n.type)) + "(" + text(n.a) + ")";
    case ExprOp::min:
    case ExprOp::max: return std::string(ir::expr_text(n.op)) + "(" + text(n.a) + ", " + text(n.b) + ")";
    default: break;
  }
  if (!n.b.valid()) return std::string(ir::expr_text(n.op)) + "(" + text(n.a) + ")";
  bool sum = n.op == ExprOp::add || n.op == ExprOp::sub || ir::expr_class(n.op) == ExprClass::compare;
  bool right_sum = sum && !(n.op == ExprOp::sub && pool[n.b].op != ExprOp::mul) ;
  std::string op = n.op == ExprOp::mul ? "*" : std::string(" ") + ir::expr_text(n.op) + " ";
  return wrapped(n.a, sum) + op + wrapped(n.b, right_sum);
}

}  // namespace tilegen::arith::testing
