#include "interp/evaluator.h"

#include <array>

#include "support/diag_codes.h"

namespace tilegen::interp {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::ScalarValue;

namespace {

// Buffers of more dimensions than this need a heap-allocated index; the language allows no more than
// Limits::rank.
constexpr size_t kInlineRank = 8;

// Some ten thousandths of a second: a step takes tens of nanoseconds.
constexpr uint32_t kStepsBetweenLooks = 4096;

// What ir::eval_binary makes of i64 operands, for the operations that indices are mostly made of.
bool of_indices(ExprOp op, int64_t a, int64_t b, int64_t* value) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case ExprOp::add:
      return *value = static_cast<int64_t>(x + y), true;
    case ExprOp::sub:
      return *value = static_cast<int64_t>(x - y), true;
    case ExprOp::mul:
      return *value = static_cast<int64_t>(x * y), true;
    case ExprOp::lt:
      return *value = a < b, true;
    case ExprOp::le:
      return *value = a <= b, true;
    default:
      return false;
  }
}

// And of f32 operands: rounding to f32 is the hardware's. A NaN has many forms and is left to it.
bool of_singles(ExprOp op, double a, double b, double* value) {
  float result = 0;
  switch (op) {
    case ExprOp::add:
      result = static_cast<float>(a + b);
      break;
    case ExprOp::sub:
      result = static_cast<float>(a - b);
      break;
    case ExprOp::mul:
      result = static_cast<float>(a * b);
      break;
    default:
      return false;
  }
  *value = static_cast<double>(result);
  return result == result;
}

std::string element_text(const ir::Program& p, ir::BufferId buffer, std::span<const int64_t> index) {
  std::string text = p.buffer(buffer).name + "[";
  for (size_t d = 0; d < index.size(); ++d) text += (d ? ", " : "") + std::to_string(index[d]);
  return text + "]";
}

}  // namespace

Evaluator::Evaluator(const ir::Program& program, std::vector<Storage>& buffers,
                     const Cancellation* cancellation)
    : program_(program),
      buffers_(buffers),
      vars_(program.vars.size()),
      values_(program.exprs.size()),
      stamps_(program.exprs.size(), 0),
      stop_(cancellation, kStepsBetweenLooks) {}

ScalarValue Evaluator::eval(ExprId id) {
  const ExprNode& n = program_.exprs[id];
  switch (n.op) {
    case ExprOp::const_int:
      return {n.type, n.imm, 0};
    case ExprOp::const_float:
      return {n.type, 0, n.float_value()};
    case ExprOp::var:
      return vars_[n.var().value];
    default:
      break;
  }
  if (stamps_[id.value] == step_) return values_[id.value];
  const ScalarValue value = eval_node(n, id);
  stamps_[id.value] = step_;
  values_[id.value] = value;
  return value;
}

ScalarValue Evaluator::eval_node(const ExprNode& n, ExprId id) {
  switch (n.op) {
    case ExprOp::load:
      return eval_load(n, id);
    case ExprOp::select:
      return eval(eval(n.a).i != 0 ? n.b : n.c);
    case ExprOp::logical_and: {
      const ScalarValue a = eval(n.a);
      return a.i == 0 ? a : eval(n.b);
    }
    case ExprOp::logical_or: {
      const ScalarValue a = eval(n.a);
      return a.i != 0 ? a : eval(n.b);
    }
    default:
      break;
  }
  const ScalarValue a = eval(n.a);
  if (!n.b.valid()) return ir::eval_unary(n.op, n.type, a);
  const ScalarValue b = eval(n.b);
  if (n.c.valid()) return ir::eval_ternary(n.op, n.type, a, b, eval(n.c));
  ScalarValue value{n.type, 0, 0};
  return (a.type == ir::DType::i64 && of_indices(n.op, a.i, b.i, &value.i)) ||
                 (n.type == ir::DType::f32 && of_singles(n.op, a.f, b.f, &value.f))
             ? value
             : ir::eval_binary(n.op, n.type, a, b);
}

ScalarValue Evaluator::eval_load(const ExprNode& n, ExprId id) {
  const std::span<const ExprId> indices = program_.exprs.indices(id);
  std::array<int64_t, kInlineRank> fixed;
  std::vector<int64_t> grown(indices.size() > kInlineRank ? indices.size() : 0);
  int64_t* index = grown.empty() ? fixed.data() : grown.data();
  for (size_t d = 0; d < indices.size(); ++d) index[d] = eval(indices[d]).i;
  if (failed()) return {n.type, 0, 0};
  return load(n.object, std::span<const int64_t>(index, indices.size()));
}

void Evaluator::record(AccessResult result, ir::BufferId buffer, std::span<const int64_t> index) {
  if (failed_) return;
  failed_ = true;
  const std::string element = element_text(program_, buffer, index);
  if (result == AccessResult::unwritten) {
    fault_ = Fault{DiagCode::uninitialised_read, element + " is read before anything wrote it",
                   "fill or copy into " + program_.buffer(buffer).name + " first"};
    return;
  }
  std::string extents;
  for (int64_t e : buffers_[buffer.value].shape())
    extents += (extents.empty() ? "" : ", ") + std::to_string(e);
  fault_ =
      Fault{DiagCode::index_out_of_bounds, element + " is outside the buffer's extents [" + extents + "]",
            "guard the access with an if, or make the buffer larger"};
}

}  // namespace tilegen::interp
