// Expressions: checked operands, then the pool's folding constructors.
#include <string>
#include <unordered_set>

#include "builder/builder.h"
#include "ir/reinterpret.h"
#include "support/diag_codes.h"

namespace tilegen::builder {
namespace {

bool class_takes(ir::ExprClass cls, ir::DType t) {
  switch (cls) {
    case ir::ExprClass::arith:
      return !ir::is_bool(t) && !ir::is_storage_only(t);
    case ir::ExprClass::integer:
    case ir::ExprClass::random:
      return ir::is_integer(t) && !ir::is_packed(t);
    case ir::ExprClass::math:
    case ir::ExprClass::test:
      return ir::is_float(t) && !ir::is_storage_only(t);
    case ir::ExprClass::compare:
      return !ir::is_storage_only(t);
    case ir::ExprClass::logic:
      return ir::is_bool(t);
    default:
      return true;
  }
}

const char* class_wants(ir::ExprClass cls) {
  switch (cls) {
    case ir::ExprClass::arith:
      return "a number";
    case ir::ExprClass::integer:
    case ir::ExprClass::random:
      return "an integer";
    case ir::ExprClass::math:
    case ir::ExprClass::test:
      return "a floating type";
    case ir::ExprClass::logic:
      return "a bool";
    case ir::ExprClass::compare:
      return "a type that values are computed in";
    default:
      return "a value";
  }
}

std::string quoted(ir::ExprOp op) { return std::string("'") + ir::expr_text(op) + "'"; }

}  // namespace

bool Builder::check_dtype(std::string_view call, ir::DType t) {
  if (ir::dtype_valid(static_cast<uint32_t>(t))) return true;
  fail(DiagCode::bad_enum, call, "there is no dtype " + std::to_string(static_cast<uint32_t>(t)),
       "use a TL_* dtype");
  return false;
}

bool Builder::check_expr(std::string_view call, std::string_view what, ir::ExprId id) {
  if (id.value < program_.exprs.size()) return true;
  fail(DiagCode::stale_handle, call, std::string(what) + " is not an expression of this builder",
       "pass what an expression call of the same builder returned");
  return false;
}

bool Builder::check_index(std::string_view call, std::string_view what, ir::ExprId id) {
  if (!check_expr(call, what, id)) return false;
  if (program_.exprs.type(id) == ir::DType::i64) return true;
  fail(DiagCode::dtype_mismatch, call,
       std::string(what) + " is " + ir::dtype_name(program_.exprs.type(id)) + ", index arithmetic is i64",
       "cast it to i64");
  return false;
}

bool Builder::check_indices(std::string_view call, ir::BufferId buffer, std::span<const ir::ExprId> indices) {
  const size_t rank = program_.buffer(buffer).shape.size();
  if (indices.size() != rank) {
    fail(DiagCode::rank_mismatch, call,
         buffer_text(buffer) + " has " + std::to_string(rank) + " dimensions, " +
             std::to_string(indices.size()) + " indices were given",
         "give one index per dimension");
    return false;
  }
  for (size_t i = 0; i < rank; ++i)
    if (!check_index(call, "index " + std::to_string(i), indices[i])) return false;
  return true;
}

// Launch-time quantities are evaluated without a kernel, so they cannot read memory or loop variables.
bool Builder::check_leaves(std::string_view call, std::string_view what, ir::ExprId root) {
  const ir::ExprPool& pool = program_.exprs;
  std::unordered_set<ir::ExprId> seen;
  std::vector<ir::ExprId> todo{root};
  while (!todo.empty()) {
    const ir::ExprId id = todo.back();
    todo.pop_back();
    if (!id || !seen.insert(id).second) continue;
    const ir::ExprNode& n = pool[id];
    const ir::VarKind kind = n.op == ir::ExprOp::var ? program_.var(n.var()).kind : ir::VarKind::dim;
    if (n.op == ir::ExprOp::load || (kind != ir::VarKind::dim && kind != ir::VarKind::scalar)) {
      fail(
          DiagCode::bad_shape, call,
          std::string(what) + " depends on " +
              (n.op == ir::ExprOp::load ? "an element of a buffer" : "'" + program_.var(n.var()).name + "'") +
              ", which is not known at launch",
          "use constants, dimensions and scalars");
      return false;
    }
    todo.insert(todo.end(), {n.a, n.b, n.c});
  }
  return true;
}

bool Builder::check_operands(std::string_view call, std::initializer_list<ir::ExprId> operands) {
  int position = 0;
  for (ir::ExprId id : operands) {
    ++position;
    if (!check_expr(call, "operand " + std::to_string(position), id)) return false;
    if (program_.exprs[id].depth >= limits_.expr_depth) {
      fail(DiagCode::limit_nesting, call,
           "the expression is more than " + std::to_string(limits_.expr_depth) + " operations deep",
           "store an intermediate value, or use a loop");
      return false;
    }
  }
  if (static_cast<int64_t>(program_.exprs.size()) < limits_.expr_nodes) return true;
  fail(DiagCode::limit_nodes, call,
       "the program has more than " + std::to_string(limits_.expr_nodes) + " expressions",
       "use loops instead of repeating expressions");
  return false;
}

ir::ExprId Builder::const_int(int64_t v, ir::DType t) {
  constexpr std::string_view kCall = "tl_const_i64";
  if (!ready(kCall) || !check_dtype(kCall, t) || !check_operands(kCall, {})) return {};
  if (ir::is_float(t)) {
    fail(DiagCode::dtype_mismatch, kCall, std::string("an integer literal cannot be ") + ir::dtype_name(t),
         "use tl_const_f64");
    return {};
  }
  if (ir::wrap_to(t, v) != v || (ir::is_u64(t) && v < 0)) {
    fail(DiagCode::dtype_mismatch, kCall, std::to_string(v) + " is not a value of " + ir::dtype_name(t),
         ir::is_u64(t) ? "tl_cast a literal of TL_I64 with the same bits"
                       : "use a wider type, or wrap it yourself");
    return {};
  }
  return program_.exprs.const_int(v, t);
}

ir::ExprId Builder::const_float(double v, ir::DType t) {
  constexpr std::string_view kCall = "tl_const_f64";
  if (!ready(kCall) || !check_dtype(kCall, t) || !check_operands(kCall, {})) return {};
  if (!ir::is_float(t)) {
    fail(DiagCode::dtype_mismatch, kCall, std::string("a floating literal cannot be ") + ir::dtype_name(t),
         "use tl_const_i64, or tl_cast a floating literal");
    return {};
  }
  return program_.exprs.const_float(v, t);
}

ir::ExprId Builder::var(ir::VarId v) {
  constexpr std::string_view kCall = "tl_var";
  if (!ready(kCall) || !check_operands(kCall, {})) return {};
  if (v.value >= program_.vars.size()) {
    fail(DiagCode::stale_handle, kCall, "this is not a variable of this builder",
         "pass what a begin call returned");
    return {};
  }
  return program_.exprs.var(v, program_.var(v).type);
}

ir::ExprId Builder::load(ir::BufferId buffer, std::span<const ir::ExprId> indices) {
  constexpr std::string_view kCall = "tl_load";
  if (!ready(kCall) || !inside_kernel(kCall) || !check_buffer(kCall, "the buffer", buffer) ||
      !check_indices(kCall, buffer, indices) || !check_operands(kCall, {}))
    return {};
  for (ir::ExprId index : indices)
    if (!check_operands(kCall, {index})) return {};
  return program_.exprs.load(buffer, program_.buffer(buffer).type, indices);
}

ir::ExprId Builder::unary(ir::ExprOp op, ir::ExprId a) {
  constexpr std::string_view kCall = "tl_unary";
  if (!ready(kCall)) return {};
  if (static_cast<size_t>(op) >= ir::expr_op_count() || ir::expr_arity(op) != 1 ||
      ir::expr_class(op) == ir::ExprClass::cast) {
    fail(DiagCode::bad_enum, kCall, "there is no such operation of one operand", "use a tl_unary_op");
    return {};
  }
  if (!check_operands(kCall, {a})) return {};
  const ir::DType t = program_.exprs.type(a);
  if (!class_takes(ir::expr_class(op), t)) {
    fail(DiagCode::dtype_mismatch, kCall,
         quoted(op) + " takes " + class_wants(ir::expr_class(op)) + ", not " + ir::dtype_name(t),
         ir::is_storage_only(t) ? "cast the operand to f32" : "cast the operand");
    return {};
  }
  return program_.exprs.unary(op, a);
}

ir::ExprId Builder::binary(ir::ExprOp op, ir::ExprId a, ir::ExprId b) {
  constexpr std::string_view kCall = "tl_binary";
  if (!ready(kCall)) return {};
  if (static_cast<size_t>(op) >= ir::expr_op_count() || ir::expr_arity(op) != 2) {
    fail(DiagCode::bad_enum, kCall, "there is no such operation of two operands", "use a tl_binary_op");
    return {};
  }
  if (!check_operands(kCall, {a, b})) return {};
  const ir::DType ta = program_.exprs.type(a), tb = program_.exprs.type(b);
  if (ta != tb) {
    fail(DiagCode::dtype_mismatch, kCall,
         quoted(op) + " has operands of " + ir::dtype_name(ta) + " and " + ir::dtype_name(tb),
         "cast one of them; nothing is converted silently");
    return {};
  }
  if (!class_takes(ir::expr_class(op), ta)) {
    fail(DiagCode::dtype_mismatch, kCall,
         quoted(op) + " takes " + class_wants(ir::expr_class(op)) + ", not " + ir::dtype_name(ta),
         ir::is_storage_only(ta) ? "cast the operands to f32"
         : op == ir::ExprOp::div ? "use TL_FLOORDIV for integers"
                                 : "cast the operands");
    return {};
  }
  return program_.exprs.binary(op, a, b);
}

ir::ExprId Builder::ternary(ir::ExprOp op, ir::ExprId a, ir::ExprId b, ir::ExprId c) {
  constexpr std::string_view kCall = "tl_ternary";
  if (!ready(kCall)) return {};
  const bool known = static_cast<size_t>(op) < ir::expr_op_count() && ir::expr_arity(op) == 3;
  if (!known || op == ir::ExprOp::select) {
    fail(DiagCode::bad_enum, kCall, "there is no such operation of three operands", "use a tl_ternary_op");
    return {};
  }
  if (!check_operands(kCall, {a, b, c})) return {};
  ir::ExprPool& pool = program_.exprs;
  const bool random = ir::expr_class(op) == ir::ExprClass::random;
  const ir::DType t = pool.type(a);
  for (ir::ExprId other : {b, c})
    if (pool.type(other) != t && !random) {
      fail(DiagCode::dtype_mismatch, kCall,
           quoted(op) + " has operands of " + ir::dtype_name(t) + " and " + ir::dtype_name(pool.type(other)),
           "cast one of them; nothing is converted silently");
      return {};
    }
  for (ir::ExprId operand : {a, b, c})
    if (!class_takes(ir::expr_class(op), pool.type(operand))) {
      fail(DiagCode::dtype_mismatch, kCall,
           quoted(op) + " takes " + class_wants(ir::expr_class(op)) + ", not " +
               ir::dtype_name(pool.type(operand)),
           "cast the operands");
      return {};
    }
  if (random)
    for (ir::ExprId* operand : {&a, &b, &c}) *operand = pool.cast(ir::DType::u64, *operand);
  return pool.ternary(op, a, b, c);
}

ir::ExprId Builder::uniform(ir::ExprId word) {
  constexpr std::string_view kCall = "tl_uniform";
  if (!ready(kCall) || !check_operands(kCall, {word})) return {};
  const ir::DType t = program_.exprs.type(word);
  if (t == ir::DType::u32) return program_.exprs.uniform(word);
  fail(DiagCode::dtype_mismatch, kCall, std::string("it takes u32, not ") + ir::dtype_name(t),
       "give it a word of TL_PHILOX, or cast the operand");
  return {};
}

ir::ExprId Builder::select(ir::ExprId cond, ir::ExprId a, ir::ExprId b) {
  constexpr std::string_view kCall = "tl_select";
  if (!ready(kCall) || !check_operands(kCall, {cond, a, b})) return {};
  const ir::ExprPool& pool = program_.exprs;
  if (!ir::is_bool(pool.type(cond))) {
    fail(DiagCode::dtype_mismatch, kCall,
         std::string("the condition is ") + ir::dtype_name(pool.type(cond)) + ", not bool",
         "compare it with something");
    return {};
  }
  if (pool.type(a) != pool.type(b)) {
    fail(DiagCode::dtype_mismatch, kCall,
         std::string("the choices are ") + ir::dtype_name(pool.type(a)) + " and " +
             ir::dtype_name(pool.type(b)),
         "cast one of them; nothing is converted silently");
    return {};
  }
  return program_.exprs.select(cond, a, b);
}

ir::ExprId Builder::cast(ir::DType t, ir::ExprId a) {
  constexpr std::string_view kCall = "tl_cast";
  if (!ready(kCall) || !check_dtype(kCall, t) || !check_operands(kCall, {a})) return {};
  return program_.exprs.cast(t, a);
}

ir::ExprId Builder::cast_by(ir::CastMode mode, ir::DType t, ir::ExprId a) {
  constexpr std::string_view kCall = "tl_cast_by";
  if (!ready(kCall) || !check_dtype(kCall, t) || !check_operands(kCall, {a})) return {};
  if (const auto wrong = ir::cast_refusal(mode, program_.exprs.type(a), t)) {
    fail(DiagCode::dtype_mismatch, kCall, wrong->message, wrong->hint);
    return {};
  }
  const ir::ExprId value = ir::cast_by(program_.exprs, mode, t, a);
  return check_operands(kCall, {value}) ? value : ir::ExprId();
}

ir::ExprId Builder::bitcast(ir::DType t, ir::ExprId a) {
  constexpr std::string_view kCall = "tl_bitcast";
  if (!ready(kCall) || !check_dtype(kCall, t) || !check_operands(kCall, {a})) return {};
  if (const auto wrong = ir::bits_refusal("it", program_.exprs.type(a), t)) {
    fail(DiagCode::dtype_mismatch, kCall, wrong->message, wrong->hint);
    return {};
  }
  return program_.exprs.bitcast(t, a);
}

ir::DType Builder::type_of(ir::ExprId id) const {
  return id.value < program_.exprs.size() ? program_.exprs.type(id) : ir::DType::none;
}

ir::VarId Builder::as_var(ir::ExprId id) const {
  if (id.value >= program_.exprs.size() || program_.exprs[id].op != ir::ExprOp::var) return {};
  return program_.exprs[id].var();
}

}  // namespace tilegen::builder
