#include "ir/text_grammar.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ir/program.h"
#include "ir/text.h"

namespace tilegen::ir::text {
namespace {

struct InfixRow {
  std::string_view text;
  Level level;
};
constexpr std::array<InfixRow, 19> kInfix = {{
    {"or", kOr},      {"and", kAnd},   {"<", kCompare}, {"<=", kCompare}, {"==", kCompare},
    {"!=", kCompare}, {"|", kBits},    {"^", kBits},    {"&", kBits},     {"<<", kShift},
    {">>", kShift},   {"+", kSum},     {"-", kSum},     {"*", kProduct},  {"/", kProduct},
    {"//", kProduct}, {"%", kProduct}, {">", kCompare}, {">=", kCompare},
}};

constexpr std::string_view kWords[] = {"alloc",    "kernel", "if",     "else",   "true",  "false", "inf",
                                       "nan",      "and",    "or",     "assert", "print", "while", "break",
                                       "continue", "return", "switch", "case",   "not"};
constexpr LoopKind kLoopKinds[] = {LoopKind::serial, LoopKind::unroll, LoopKind::vectorized,
                                   LoopKind::parallel, LoopKind::pipelined};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

Level infix_level(ExprOp op) {
  if (expr_arity(op) != 2) return kPrimary;
  for (const InfixRow& row : kInfix)
    if (row.text == expr_text(op)) return row.level;
  return kPrimary;
}

std::optional<Infix> infix_from_text(std::string_view text) {
  if (text == ">") return Infix{ExprOp::lt, true};
  if (text == ">=") return Infix{ExprOp::le, true};
  for (size_t i = 0; i < expr_op_count(); ++i) {
    ExprOp op = static_cast<ExprOp>(i);
    if (text == expr_text(op) && infix_level(op) != kPrimary) return Infix{op, false};
  }
  return std::nullopt;
}

std::optional<ExprOp> function_from_text(std::string_view text) {
  if (text.empty()) return std::nullopt;
  for (size_t i = 0; i < expr_op_count(); ++i) {
    ExprOp op = static_cast<ExprOp>(i);
    if (text == expr_text(op) && expr_class(op) != ExprClass::cast && infix_level(op) == kPrimary) return op;
  }
  return std::nullopt;
}

bool is_builtin_function(std::string_view name) {
  return function_from_text(name) || name == "cast" || name == "bitcast" || name == "ceildiv" ||
         name == "uniform" || name == "present";
}

bool is_plain_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength || !is_letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

bool is_reserved(std::string_view name) {
  if (std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords)) return true;
  for (LoopKind k : kLoopKinds)
    if (name == loop_kind_name(k)) return true;
  return op_from_text(name).has_value() || atomic_from_text(name).has_value();
}

OperandOrder operand_order(const OpRow& row) {
  OperandOrder order;
  bool reads = std::any_of(row.operands.begin(), row.operands.end(),
                           [](const OperandRow& o) { return o.access == Access::read; });
  for (int i = 0; i < static_cast<int>(row.operands.size()); ++i) {
    if (row.operands[i].access == Access::read || !reads) {
      order.front[order.front_count++] = i;
    } else {
      order.back[order.back_count++] = i;
    }
  }
  return order;
}

std::string_view foreign_hint(std::string_view word) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"&", "of conditions write 'and'"},
      {"|", "of conditions write 'or'"},
      {"!", "write 'not x' for the opposite of a condition"},
      {"*", "a power is pow(x, y), a square x * x"},
      {"?", "write select(condition, value, other)"},
      {"//", "a comment begins with ';'"},
      {"#", "a comment begins with ';'"},
      {"for", "write a loop as 'serial i in 0 .. n { }', independent iterations as 'parallel i in 64 { }'"},
      {"range", "write a loop as 'serial i in 0 .. n { }', independent iterations as 'parallel i in 64 { }'"},
      {"elif", "write 'else if'"},
      {"True", "write 'true'"},
      {"False", "write 'false'"},
      {"stages", "stages stand behind the bounds: pipelined i in 0 .. n stages 3 { }"},
      {"threadIdx", "in a block of threads write thread_id()"},
      {"blockIdx", "a block's indices are named in the grid of its kernel: grid(by: m, bx: n)"},
      {"__syncthreads", "operations await each other by themselves; in a block of threads write 'barrier'"},
      {"float", "write cast(f32, x)"},
      {"double", "write cast(f64, x)"},
      {"int", "write cast(i32, x)"},
      {"where", "write select(condition, value, other)"},
      {"matmul", "write gemm a, b -> c"},
      {"dot", "write gemm a, b -> c"},
      {"sum", "write reduce src -> dst {kind = sum, axis = 1}"},
      {"fabs", "write abs(x)"},
      {"clamp", "write min(max(x, lowest), greatest)"},
      {"saturate", "of a cast: cast(u8, x, saturate)"},
      {"isfinite", "write not(isnan(x) or isinf(x))"},
      {"log10", "write log(x) * 0.4342944819"},
      {"rcp", "write 1 / x, or fast_div(1, x)"},
      {"__expf", "write fast_exp(x)"},
      {"__logf", "write fast_log(x)"},
      {"__sinf", "write fast_sin(x)"},
      {"__cosf", "write fast_cos(x)"},
      {"__powf", "write fast_pow(x, y)"},
      {"__fdividef", "write fast_div(x, y)"},
      {"__byte_perm", "write byte_permute(x, y, selector)"},
      {"prmt", "write byte_permute(x, y, selector)"},
      {"__popc", "write popcount(x)"},
      {"__clz", "write clz(x)"},
      {"__ffs", "write ctz(x) + 1"},
      {"__mulhi", "write mulhi(x, y)"},
      {"__shfl_sync", "in a block of threads write shuffle(x, lane)"},
      {"__shfl_xor_sync", "in a block of threads write shuffle_xor(x, mask)"},
      {"__ballot_sync", "in a block of threads write ballot(condition)"},
      {"__match_any_sync", "in a block of threads write match_any(value)"},
      {"atomicAdd", "write atomic_add(A[i], x)"},
      {"atomicCAS", "write let old = atomic_compare_exchange(A[i], expected, x)"},
      {"transpose", "a transposed tile is a view: view t = transpose(x)"},
      {"gather", "move rows by an index in a parallel loop: { y[i, j] = X[cast(i64, at[i]), j] }"},
      {"scatter", "move rows by an index in a parallel loop: { Y[cast(i64, at[i]), j] = x[i, j] }"},
      {"nullptr", "declare the tensor optional and ask present(tensor)"},
      {"NULL", "declare the tensor optional and ask present(tensor)"},
      {"None", "declare the tensor optional and ask present(tensor)"},
  };
  for (const auto& [theirs, hint] : kWords)
    if (word == theirs) return hint;
  return {};
}

}  // namespace tilegen::ir::text
