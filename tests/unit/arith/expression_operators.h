// Expressions with operators, so that a test reads like what it is about, and a context to simplify them in.
#pragma once

#include <gtest/gtest.h>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "expression_sampler.h"

namespace tilegen::arith {

using ir::DType;
using ir::ExprId;
using ir::ExprOp;
using testing::expression_text;

struct X {
  ir::ExprPool* pool;
  ExprId id;
};
inline X bin(ExprOp op, X a, X b) { return {a.pool, a.pool->binary(op, a.id, b.id)}; }
inline X num(X like, int64_t v) { return {like.pool, like.pool->const_int(v)}; }
inline X operator+(X a, X b) { return bin(ExprOp::add, a, b); }
inline X operator-(X a, X b) { return bin(ExprOp::sub, a, b); }
inline X operator*(X a, X b) { return bin(ExprOp::mul, a, b); }
inline X operator/(X a, X b) { return bin(ExprOp::floordiv, a, b); }
inline X operator%(X a, X b) { return bin(ExprOp::floormod, a, b); }
inline X operator<(X a, X b) { return bin(ExprOp::lt, a, b); }
inline X operator<=(X a, X b) { return bin(ExprOp::le, a, b); }
inline X operator==(X a, X b) { return bin(ExprOp::eq, a, b); }
inline X operator!=(X a, X b) { return bin(ExprOp::ne, a, b); }
inline X operator&&(X a, X b) { return bin(ExprOp::logical_and, a, b); }
inline X operator||(X a, X b) { return bin(ExprOp::logical_or, a, b); }
inline X operator^(X a, X b) { return bin(ExprOp::bit_xor, a, b); }
inline X operator&(X a, X b) { return bin(ExprOp::bit_and, a, b); }
inline X operator|(X a, X b) { return bin(ExprOp::bit_or, a, b); }
inline X operator!(X a) { return {a.pool, a.pool->unary(ExprOp::logical_not, a.id)}; }
inline X min(X a, X b) { return bin(ExprOp::min, a, b); }
inline X max(X a, X b) { return bin(ExprOp::max, a, b); }
inline X select(X c, X a, X b) { return {c.pool, c.pool->select(c.id, a.id, b.id)}; }
#define NUMERIC(op)                                                                \
  [[maybe_unused]] inline X operator op(X a, int64_t b) { return a op num(a, b); } \
  [[maybe_unused]] inline X operator op(int64_t a, X b) { return num(b, a) op b; }
NUMERIC(+)
NUMERIC(-)
NUMERIC(*) NUMERIC(/) NUMERIC(%) NUMERIC(<) NUMERIC(<=) NUMERIC(==) NUMERIC(!=) NUMERIC(^) NUMERIC(&)
    NUMERIC(|)
#undef NUMERIC

        class Simplify : public ::testing::Test {
 protected:
  X var(const std::string& name, int64_t lo, int64_t hi, int64_t divisor = 1) {
    X v = data(name);
    ctx.bind(ir::VarId(names.size() - 1), lo, hi, divisor);
    return v;
  }
  X digit(const std::string& name, int64_t extent) { return var(name, 0, extent - 1); }
  X dim(const std::string& name, int64_t divisor = 1) { return var(name, 1, int64_t{1} << 48, divisor); }
  X counter(const std::string& name) { return var(name, 0, int64_t{1} << 48); }
  X data(const std::string& name) {
    names.push_back(name);
    return {&pool, pool.var(ir::VarId(names.size() - 1))};
  }
  ir::VarId id(X v) { return pool[v.id].var(); }
  std::string text(ExprId e) { return expression_text(pool, e, names); }
  std::string of(X x) { return text(simplify(ctx, x.id)); }
  bool proves(X x) { return prove(ctx, x.id); }

  ir::ExprPool pool;
  Context ctx{pool};
  std::vector<std::string> names;
};

}  // namespace tilegen::arith
