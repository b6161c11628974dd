// The hash-consed pool, which folds what it makes (ir/expr_folds.h).
#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>

#include "ir/expr.h"
#include "ir/expr_folds.h"

namespace tilegen::ir {
namespace {

struct OpTableRow {
  int arity;
  ExprClass cls;
  const char* text;
};

constexpr OpTableRow kOps[] = {
#define TILEGEN_EXPR_OP(name, arity, cls, text) {arity, ExprClass::cls, text},
#include "ir/expr_ops.def"
#undef TILEGEN_EXPR_OP
};

const OpTableRow& op_table_row(ExprOp op) { return kOps[static_cast<size_t>(op)]; }

constexpr int kMaxDepth = 65535;

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdull;
}

uint64_t hash_node(const ExprNode& n, std::span<const ExprId> indices) {
  uint64_t h = mix(static_cast<uint64_t>(n.op), static_cast<uint64_t>(n.type));
  h = mix(h, uint64_t{n.a.value} << 32 | n.b.value);
  h = mix(h, uint64_t{n.c.value} << 32 | n.object.value);
  h = mix(h, static_cast<uint64_t>(n.imm));
  for (ExprId id : indices) h = mix(h, id.value);
  return h ^ h >> 32;
}

ScalarValue value_of(const ExprNode& n) {
  if (n.op == ExprOp::const_float) return {n.type, 0, n.float_value()};
  return {n.type, n.imm, 0};
}

[[maybe_unused]] bool operand_fits(ExprOp op, DType t) {
  switch (expr_class(op)) {
    case ExprClass::arith:
      return (is_integer(t) || is_float(t)) && !is_storage_only(t);
    case ExprClass::integer:
      return is_integer(t) && !is_packed(t);
    case ExprClass::math:
    case ExprClass::test:
      return is_float(t) && !is_storage_only(t);
    case ExprClass::logic:
      return is_bool(t);
    case ExprClass::random:
      return is_u64(t);
    case ExprClass::native:
      return true;
    case ExprClass::compare:
      return t != DType::none && !is_storage_only(t);
    default:
      return t != DType::none;
  }
}

}  // namespace

int expr_arity(ExprOp op) { return op_table_row(op).arity; }
ExprClass expr_class(ExprOp op) { return op_table_row(op).cls; }
const char* expr_text(ExprOp op) { return op_table_row(op).text; }
size_t expr_op_count() { return std::size(kOps); }

DType result_type(ExprOp op, DType operand) {
  const ExprClass cls = expr_class(op);
  if (cls == ExprClass::random) return DType::u32;
  return cls == ExprClass::compare || cls == ExprClass::test ? DType::boolean : operand;
}

std::span<const ExprId> ExprPool::indices(ExprId load) const {
  const ExprNode& n = nodes_[load.value];
  return {indices_.data() + n.first_index, n.index_count};
}

ExprId ExprPool::intern(ExprNode n, std::span<const ExprId> indices) {
  if (2 * (nodes_.size() + 1) > places_.size()) grow_places();
  const auto hash = static_cast<uint32_t>(hash_node(n, indices));
  size_t at = first_place(hash);
  for (; places_[at].id.valid(); at = (at + 1) & (places_.size() - 1)) {
    if (places_[at].hash != hash) continue;
    const ExprId id = places_[at].id;
    const ExprNode& m = nodes_[id.value];
    if (m.op == n.op && m.type == n.type && m.a == n.a && m.b == n.b && m.c == n.c && m.imm == n.imm &&
        m.object == n.object && std::ranges::equal(this->indices(id), indices))
      return id;
  }
  int depth = 0;
  const auto deepen = [&](ExprId id) {
    if (id.valid()) depth = std::max<int>(depth, nodes_[id.value].depth);
  };
  deepen(n.a), deepen(n.b), deepen(n.c);
  for (ExprId id : indices) deepen(id);
  n.depth = static_cast<uint16_t>(std::min(depth + 1, kMaxDepth));

  const std::vector<ExprId> copied(indices.begin(), indices.end());  // `indices` may be a slice of indices_
  n.first_index = static_cast<uint32_t>(indices_.size());
  n.index_count = static_cast<uint32_t>(copied.size());
  indices_.insert(indices_.end(), copied.begin(), copied.end());
  const ExprId id(nodes_.size());
  nodes_.push_back(n);
  places_[at] = {hash, id};
  return id;
}

void ExprPool::grow_places() {
  std::vector<Place> more(std::max<size_t>(64, 2 * places_.size()));
  more.swap(places_);
  for (const Place& p : more) {
    if (!p.id.valid()) continue;
    size_t at = first_place(p.hash);
    while (places_[at].id.valid()) at = (at + 1) & (places_.size() - 1);
    places_[at] = p;
  }
}

ExprId ExprPool::const_int(int64_t v, DType t) {
  assert(is_integer(t) || is_bool(t));
  ExprNode n;
  n.op = ExprOp::const_int;
  n.type = t;
  n.imm = wrap_to(t, v);
  return intern(n);
}

ExprId ExprPool::const_float(double v, DType t) {
  assert(is_float(t));
  ExprNode n;
  n.op = ExprOp::const_float;
  n.type = t;
  const bool keeps_infinity = t == DType::e5m2 && std::isinf(v);
  n.imm = std::bit_cast<int64_t>(keeps_infinity ? v : round_to(t, v));
  return intern(n);
}

ExprId ExprPool::const_number(double v, DType t) {
  if (is_float(t)) return const_float(v, t);
  return const_int(is_bool(t) ? v != 0 : saturate_to(t, v), t);
}

ExprId ExprPool::var(VarId v, DType t) {
  ExprNode n;
  n.op = ExprOp::var;
  n.type = t;
  n.imm = v.value;
  return intern(n);
}

ExprId ExprPool::load(ObjectId object, DType t, std::span<const ExprId> indices) {
  // Only a predicate is a bool: element indices are i64.
  if (indices.size() == 2 && is_bool(type(indices[1]))) {
    int64_t holds = 0;
    if (is_const_int(indices[1], &holds)) {
      if (holds == 0) return const_number(0, t);
      indices = indices.first(1);
    }
  }
  ExprNode n;
  n.op = ExprOp::load;
  n.type = t;
  n.object = object;
  return intern(n, indices);
}

ExprId ExprPool::unary(ExprOp op, ExprId a) {
  const ExprNode x = nodes_[a.value];
  assert(expr_arity(op) == 1 && expr_class(op) != ExprClass::cast && operand_fits(op, x.type));
  const DType t = result_type(op, x.type);
  if (is_const(a)) {
    const ScalarValue v = eval_unary(op, t, value_of(x));
    return is_float(t) ? const_float(v.f, t) : const_int(v.i, t);
  }
  const bool cancels = op == ExprOp::neg || op == ExprOp::logical_not || op == ExprOp::bit_not;
  if (cancels && x.op == op) return x.a;
  if (is_idempotent(op) && x.op == op) return a;
  ExprNode n;
  n.op = op;
  n.type = t;
  n.a = a;
  return intern(n);
}

ExprId ExprPool::binary(ExprOp op, ExprId a, ExprId b) {
  const ExprNode x = nodes_[a.value], y = nodes_[b.value];
  const bool native = expr_class(op) == ExprClass::native;
  assert(expr_arity(op) == 2 && (native || x.type == y.type) && operand_fits(op, x.type));
  const DType t = result_type(op, x.type);
  if (!native && is_const(a) && is_const(b)) {
    const ScalarValue v = eval_binary(op, t, value_of(x), value_of(y));
    return is_float(t) ? const_float(v.f, t) : const_int(v.i, t);
  }
  const Literal right(y);
  Fold fold = a == b ? fold_same(op, is_float(x.type)) : fold_literal(op, t, Literal(x), right);
  if (fold.kind == Fold::Kind::left) return a;
  if (fold.kind == Fold::Kind::right) return b;
  if (fold.kind == Fold::Kind::integer) return const_int(fold.value, t);
  // (x + c) + d and (x * c) * d, which hold for wrapping integers only.
  if ((op == ExprOp::add || op == ExprOp::mul) && x.op == op && right.is_int && is_const_int(x.b))
    return binary(op, x.a, binary(op, x.b, b));
  ExprNode n;
  n.op = op;
  n.type = t;
  n.a = a;
  n.b = b;
  return intern(n);
}

ExprId ExprPool::ternary(ExprOp op, ExprId a, ExprId b, ExprId c) {
  if (op == ExprOp::select) return select(a, b, c);
  const ExprNode x = nodes_[a.value], y = nodes_[b.value], z = nodes_[c.value];
  const bool native = expr_class(op) == ExprClass::native;
  assert(expr_arity(op) == 3 && (native || (x.type == y.type && y.type == z.type)) &&
         operand_fits(op, x.type));
  if (native && is_const(a)) return a;
  const DType t = result_type(op, x.type);
  if (is_const(a) && is_const(b) && is_const(c)) {
    const ScalarValue v = eval_ternary(op, t, value_of(x), value_of(y), value_of(z));
    return is_float(t) ? const_float(v.f, t) : const_int(v.i, t);
  }
  ExprNode n;
  n.op = op;
  n.type = t;
  n.a = a;
  n.b = b;
  n.c = c;
  return intern(n);
}

ExprId ExprPool::native_call(ExprId meaning, std::span<const ExprId> args, size_t function, size_t result) {
  assert(!args.empty() && result < kMaxNativeResults);
  ExprId operands = args.back();
  for (size_t i = args.size() - 1; i-- > 0;) operands = binary(ExprOp::operands, args[i], operands);
  const size_t number = function * kMaxNativeResults + result;
  return ternary(ExprOp::native_call, meaning, operands, const_int(static_cast<int64_t>(number)));
}

ExprPool::NativeCall ExprPool::native_parts(ExprId call) const {
  const ExprNode& n = nodes_[call.value];
  assert(n.op == ExprOp::native_call);
  const auto number = static_cast<size_t>(nodes_[n.c.value].imm);
  NativeCall parts{number / kMaxNativeResults, number % kMaxNativeResults, {}};
  ExprId at = n.b;
  for (; nodes_[at.value].op == ExprOp::operands; at = nodes_[at.value].b)
    parts.args.push_back(nodes_[at.value].a);
  parts.args.push_back(at);
  return parts;
}

ExprId ExprPool::operation(const ExprNode& like, ExprId a, ExprId b, ExprId c) {
  if (like.op == ExprOp::cast) return cast(like.type, a);
  if (like.op == ExprOp::bitcast) return bitcast(like.type, a);
  switch (expr_arity(like.op)) {
    case 1:
      return unary(like.op, a);
    case 2:
      return binary(like.op, a, b);
    default:
      return ternary(like.op, a, b, c);
  }
}

ExprId ExprPool::select(ExprId cond, ExprId a, ExprId b) {
  assert(is_bool(type(cond)) && type(a) == type(b));
  int64_t holds = 0;
  if (a == b) return a;
  if (is_const_int(cond, &holds)) return holds != 0 ? a : b;
  ExprNode n;
  n.op = ExprOp::select;
  n.type = type(a);
  n.a = cond;
  n.b = a;
  n.c = b;
  return intern(n);
}

ExprId ExprPool::cast(DType t, ExprId a) {
  const ExprNode x = nodes_[a.value];
  if (x.type == t) return a;
  if (is_const(a)) {
    const ScalarValue v = eval_cast(t, value_of(x));
    return is_float(t) ? const_float(v.f, t) : const_int(v.i, t);
  }
  if (x.op == ExprOp::cast && widens(type(x.a), x.type)) return cast(t, x.a);
  ExprNode n;
  n.op = ExprOp::cast;
  n.type = t;
  n.a = a;
  return intern(n);
}

ExprId ExprPool::bitcast(DType t, ExprId a) {
  const ExprNode x = nodes_[a.value];
  if (x.type == t) return a;
  assert(same_bits(t, x.type));
  // What only named the bits anew is passed by.
  const bool renamed = x.op == ExprOp::bitcast || (x.op == ExprOp::cast && !is_float(x.type) &&
                                                   !is_float(type(x.a)) && same_bits(x.type, type(x.a)));
  if (renamed) return bitcast(t, x.a);
  if (!is_float(t) && !is_float(x.type)) return cast(t, a);
  if (is_const(a)) {
    const ScalarValue v = eval_bitcast(t, value_of(x));
    return is_float(t) ? const_float(v.f, t) : const_int(v.i, t);
  }
  ExprNode n;
  n.op = ExprOp::bitcast;
  n.type = t;
  n.a = a;
  return intern(n);
}

ExprId ExprPool::ceildiv(ExprId a, ExprId b) {
  int64_t divisor = 0;
  if (is_const_int(b, &divisor) && divisor > 0) return floordiv(add(a, divisor - 1), b);
  return unary(ExprOp::neg, floordiv(unary(ExprOp::neg, a), b));
}

ExprId ExprPool::uniform(ExprId word) {
  const ExprId upper = binary(ExprOp::shr, word, const_int(8, DType::u32));
  return binary(ExprOp::mul, cast(DType::f32, upper), const_float(0x1p-24, DType::f32));
}

bool ExprPool::is_const(ExprId id) const {
  const ExprOp op = nodes_[id.value].op;
  return op == ExprOp::const_int || op == ExprOp::const_float;
}

bool ExprPool::is_const_int(ExprId id, int64_t* out) const {
  const ExprNode& n = nodes_[id.value];
  if (n.op != ExprOp::const_int) return false;
  if (out != nullptr) *out = n.imm;
  return true;
}

bool ExprPool::is_true(ExprId id) const {
  const ExprNode& n = nodes_[id.value];
  return n.op == ExprOp::const_int && is_bool(n.type) && n.imm == 1;
}

}  // namespace tilegen::ir
