// Scalar expressions, shared by the tile program and the thread program.
//
// Nodes live in an ExprPool, hash-consed and constant-folded at creation; an operand always has a smaller id
// than its user, so a pass may be one forward sweep over ids. Operand chains are bounded by
// Limits::expr_depth, which makes recursion over an expression safe. All index arithmetic is i64.
//
// Evaluation rules (every executor): an operation on f16 or bf16 is computed as if in f32 and rounded to the
// type after each operation; 8-bit floats are never computed in; integers wrap; contraction of mul+add to a
// fused form is allowed for floats.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "support/id.h"
#include "support/memo_table.h"

namespace tilegen::ir {

using ExprId = Id<struct ExprTag>;
using VarId = Id<struct VarTag>;
using ObjectId =
    Id<struct ObjectTag>;  // what a load names: a Buffer of a Program, a Memory of a ThreadProgram

enum class ExprOp : uint8_t {
#define TILEGEN_EXPR_OP(name, arity, cls, text) name,
#include "ir/expr_ops.def"
#undef TILEGEN_EXPR_OP
};
enum class ExprClass : uint8_t {
  leaf,
  arith,
  integer,
  compare,
  logic,
  math,
  test,
  random,
  cast,
  select,
  native
};

int expr_arity(ExprOp op);
ExprClass expr_class(ExprOp op);
const char* expr_text(ExprOp op);
size_t expr_op_count();
constexpr size_t kMaxNativeResults = 16;
// Of an operation on values of `operand`; casts and leaves have a type of their own.
DType result_type(ExprOp op, DType operand);

struct ExprNode {
  ExprOp op = ExprOp::const_int;
  DType type = DType::none;
  uint16_t depth = 1;
  ExprId a, b, c;                             // operands by arity
  int64_t imm = 0;                            // literal (float: bits of the double) or variable id
  ObjectId object;                            // load
  uint32_t first_index = 0, index_count = 0;  // load: slice of the pool's index array

  double float_value() const { return std::bit_cast<double>(imm); }
  VarId var() const { return VarId(static_cast<size_t>(imm)); }
};

class ExprPool {
 public:
  const ExprNode& operator[](ExprId id) const { return nodes_[id.value]; }
  size_t size() const { return nodes_.size(); }
  DType type(ExprId id) const { return nodes_[id.value].type; }
  std::span<const ExprId> indices(ExprId load) const;

  ExprId const_int(int64_t v, DType t = DType::i64);  // wrapped to t
  ExprId const_float(double v, DType t);              // rounded to t
  ExprId const_number(double v, DType t);             // either, by t
  ExprId var(VarId v, DType t = DType::i64);
  // `indices` of a thread-program load are {linear element index} or {linear element index, predicate}: a
  // false predicate makes the load not happen and give 0.
  ExprId load(ObjectId object, DType t, std::span<const ExprId> indices);
  // Types must already agree as expr_ops.def says; folds constants and the cheap identities (x+0, x*1, x*0
  // for integers, min(x,x), (x+c)+d, select of a constant, nested casts that lose nothing, a predicate that
  // is a literal).
  ExprId unary(ExprOp op, ExprId a);
  ExprId binary(ExprOp op, ExprId a, ExprId b);
  ExprId ternary(ExprOp op, ExprId a, ExprId b, ExprId c);
  ExprId select(ExprId cond, ExprId a, ExprId b);
  ExprId cast(DType t, ExprId a);
  // The bits of `a` as those of a `t`, where same_bits holds; between integers, which wrap, it is a cast.
  ExprId bitcast(DType t, ExprId a);
  // Result `result` of the program's native function `function` (ir/native.h) for these arguments, at least
  // one. `meaning` is the value that it stands for: a literal is the call's value. Whoever does not know
  // native calls sees an operation that yields its first operand.
  ExprId native_call(ExprId meaning, std::span<const ExprId> args, size_t function, size_t result);
  struct NativeCall {
    size_t function = 0, result = 0;
    std::vector<ExprId> args;
  };
  NativeCall native_parts(ExprId call) const;
  // The operation that `like` is, of these operands; those beyond its arity are not looked at.
  ExprId operation(const ExprNode& like, ExprId a, ExprId b, ExprId c);

  // i64 shorthands for index arithmetic
  ExprId add(ExprId a, ExprId b) { return binary(ExprOp::add, a, b); }
  ExprId sub(ExprId a, ExprId b) { return binary(ExprOp::sub, a, b); }
  ExprId mul(ExprId a, ExprId b) { return binary(ExprOp::mul, a, b); }
  ExprId floordiv(ExprId a, ExprId b) { return binary(ExprOp::floordiv, a, b); }
  ExprId floormod(ExprId a, ExprId b) { return binary(ExprOp::floormod, a, b); }
  ExprId ceildiv(ExprId a, ExprId b);
  ExprId uniform(ExprId word);  // f32 in [0, 1) of the upper 24 bits of a u32
  ExprId add(ExprId a, int64_t b) { return add(a, const_int(b)); }
  ExprId mul(ExprId a, int64_t b) { return mul(a, const_int(b)); }
  ExprId lt(ExprId a, ExprId b) { return binary(ExprOp::lt, a, b); }
  ExprId le(ExprId a, ExprId b) { return binary(ExprOp::le, a, b); }
  ExprId logical_and(ExprId a, ExprId b) { return binary(ExprOp::logical_and, a, b); }

  bool is_const(ExprId id) const;
  bool is_const_int(ExprId id, int64_t* out = nullptr) const;  // integer or bool literal
  bool is_true(ExprId id) const;                               // the bool literal 1

 private:
  ExprId intern(ExprNode n, std::span<const ExprId> indices = {});
  std::vector<ExprNode> nodes_;
  std::vector<ExprId> indices_;

  struct Place {
    uint32_t hash = 0;
    ExprId id;
  };
  size_t first_place(uint32_t hash) const { return hash & (places_.size() - 1); }
  void grow_places();
  std::vector<Place> places_;  // of nodes by hash, the next free one after that; a power of two, half full
};

// Copies `root` (and what it needs) from one pool into another, replacing leaves on the way: `leaf` may
// return an id of `to` for any var or load of `from`, or an invalid id to have it copied as it is (its
// indices rewritten). `memo` carries shared nodes across calls with the same substitution.
class ExprRewriter {
 public:
  ExprRewriter(const ExprPool& from, ExprPool& to) : from_(&from), to_(&to) {}
  virtual ~ExprRewriter() = default;
  ExprId rewrite(ExprId root);
  void forget() { memo_.forget(); }

 protected:
  // `by`, as it is, stands for the whole of `e`.
  void replace(ExprId e, ExprId by) { memo_.insert(e, by); }
  virtual ExprId rewrite_var(const ExprNode& n) { return to_->var(n.var(), n.type); }
  virtual ExprId rewrite_load(const ExprNode& n, std::span<const ExprId> indices) {
    return to_->load(n.object, n.type, indices);
  }
  const ExprPool* from_;
  ExprPool* to_;

 private:
  MemoTable<ExprId, ExprId> memo_;
};

// One scalar evaluation step shared by the folder and the reference interpreter: integers in `i`, floats in
// `f`.
struct ScalarValue {
  DType type = DType::none;
  int64_t i = 0;
  double f = 0;
};
ScalarValue eval_unary(ExprOp op, DType result, ScalarValue a);
ScalarValue eval_binary(ExprOp op, DType result, ScalarValue a, ScalarValue b);
ScalarValue eval_ternary(ExprOp op, DType result, ScalarValue a, ScalarValue b, ScalarValue c);
ScalarValue eval_cast(DType to, ScalarValue a);
ScalarValue eval_bitcast(DType to, ScalarValue a);
// Any operation, casts and selects too; operands beyond its arity are not looked at.
ScalarValue eval_operation(ExprOp op, DType result, ScalarValue a, ScalarValue b, ScalarValue c);

}  // namespace tilegen::ir
