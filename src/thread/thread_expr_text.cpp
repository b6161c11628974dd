#include "thread/thread_expr_text.h"

#include <charconv>
#include <cmath>

#include "ir/native.h"

namespace tilegen::thread {
namespace {

using ir::DType;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

constexpr size_t kMaxText = 1 << 14;
constexpr int kMaxNesting = 512;
constexpr int kPrimary = 8;  // binds tighter than any operator

int precedence(ExprOp op) {
  switch (op) {
    case ExprOp::logical_or:
      return 1;
    case ExprOp::logical_and:
      return 2;
    case ExprOp::lt:
    case ExprOp::le:
    case ExprOp::eq:
    case ExprOp::ne:
      return 3;
    case ExprOp::bit_or:
    case ExprOp::bit_xor:
    case ExprOp::bit_and:
      return 4;
    case ExprOp::shl:
    case ExprOp::shr:
      return 5;
    case ExprOp::add:
    case ExprOp::sub:
      return 6;
    case ExprOp::mul:
    case ExprOp::div:
    case ExprOp::floordiv:
    case ExprOp::floormod:
      return 7;
    default:
      return kPrimary;
  }
}

std::string float_text(double v, DType t) {
  if (std::isnan(v)) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, ir::float_to_bits(t, v), 16).ptr;
    return "0x" + std::string(digits, end) + ":" + ir::dtype_name(t);
  }
  if (std::isinf(v)) return (v < 0 ? "-inf:" : "inf:") + std::string(ir::dtype_name(t));
  char digits[40];
  const auto end = t == DType::f64 ? std::to_chars(digits, digits + sizeof digits, v).ptr
                                   : std::to_chars(digits, digits + sizeof digits, static_cast<float>(v)).ptr;
  std::string text(digits, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + ir::dtype_name(t);
}

std::string int_text(int64_t v, DType t) {
  if (ir::is_bool(t)) return v != 0 ? "true" : "false";
  return ir::integer_text(t, v) + (t == DType::i64 ? "" : ir::dtype_name(t));
}

class ExprWriter {
 public:
  explicit ExprWriter(const ThreadProgram& p) : p_(p) {}

  // `binding`: parentheses are put around an operator that binds less than this.
  void write(ExprId id, int binding, int nesting) {
    if (!id.valid() || id.value >= p_.exprs.size()) {
      out_ += "?";
      return;
    }
    if (out_.size() > kMaxText || nesting > kMaxNesting) {
      out_ += "...";
      return;
    }
    const ExprNode& n = p_.exprs[id];
    switch (n.op) {
      case ExprOp::const_int:
        out_ += int_text(n.imm, n.type);
        return;
      case ExprOp::const_float:
        out_ += float_text(n.float_value(), n.type);
        return;
      case ExprOp::var:
        out_ += var_text(p_, n.var());
        return;
      case ExprOp::load:
        write_load(id, nesting);
        return;
      case ExprOp::native_call:
        write_native(id, nesting);
        return;
      case ExprOp::cast:
      case ExprOp::bitcast:
        out_ += std::string(ir::expr_text(n.op)) + "(" + ir::dtype_name(n.type) + ", ";
        write(n.a, 0, nesting + 1);
        out_ += ")";
        return;
      default:
        break;
    }
    const int own = precedence(n.op);
    if (own == kPrimary) return write_call(n, nesting);
    if (own < binding) out_ += "(";
    // All infix operators associate to the left; a comparison of comparisons is bracketed on both sides.
    write(n.a, ir::expr_class(n.op) == ir::ExprClass::compare ? own + 1 : own, nesting + 1);
    out_ += std::string(" ") + ir::expr_text(n.op) + " ";
    write(n.b, own + 1, nesting + 1);
    if (own < binding) out_ += ")";
  }

  std::string take() { return std::move(out_); }

 private:
  void write_call(const ExprNode& n, int nesting) {
    out_ += std::string(ir::expr_text(n.op)) + "(";
    bool first = true;
    for (ExprId operand : {n.a, n.b, n.c}) {
      if (!operand.valid()) break;
      if (!first) out_ += ", ";
      first = false;
      write(operand, 0, nesting + 1);
    }
    out_ += ")";
  }

  void write_native(ExprId id, int nesting) {
    const ir::ExprPool::NativeCall call = p_.exprs.native_parts(id);
    out_ += call.function < p_.natives.size() ? p_.natives[call.function]->name : "?";
    if (call.result > 0) out_ += "#" + std::to_string(call.result);
    for (size_t i = 0; i < call.args.size(); ++i) {
      out_ += i == 0 ? "(" : ", ";
      write(call.args[i], 0, nesting + 1);
    }
    out_ += ")";
  }

  void write_load(ExprId id, int nesting) {
    const auto indices = p_.exprs.indices(id);
    out_ += memory_text(p_, p_.exprs[id].object) + "[";
    for (size_t i = 0; i < indices.size(); ++i) {
      if (i > 0) out_ += " if ";
      write(indices[i], 0, nesting + 1);
    }
    out_ += "]";
  }

  const ThreadProgram& p_;
  std::string out_;
};

}  // namespace

std::string var_text(const ThreadProgram& p, ir::VarId id) {
  if (!id.valid() || id.value >= p.vars.size()) return "?";
  const std::string& name = p.vars[id.value].name;
  for (size_t i = 0; i < p.vars.size(); ++i)
    if (i != id.value && p.vars[i].name == name) return name + "#" + std::to_string(id.value);
  return name;
}

std::string memory_text(const ThreadProgram& p, MemoryId id) {
  return id.valid() && id.value < p.memories.size() ? p.memories[id.value].name : "?";
}

std::string expr_text(const ThreadProgram& p, ExprId id) {
  ExprWriter writer(p);
  writer.write(id, 0, 0);
  return writer.take();
}

}  // namespace tilegen::thread
