#include "ir/text_print_expr.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "ir/native.h"

namespace tilegen::ir::text {
namespace {

std::string bits_text(DType t, double v) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "0x%0*llx:", dtype_bits(t) / 4,
                static_cast<unsigned long long>(float_to_bits(t, v)));
  return std::string(digits) + dtype_name(t);
}

std::string nan_text(DType t, double v) {
  if (float_to_bits(t, v) == float_to_bits(t, std::numeric_limits<double>::quiet_NaN()))
    return std::string("nan:") + dtype_name(t);
  return bits_text(t, v);
}

std::string float_text(DType t, double v) {
  if (std::isnan(v)) return nan_text(t, v);
  if (std::isinf(v)) return std::string(v < 0 ? "-inf:" : "inf:") + dtype_name(t);
  if (is_storage_only(t)) return bits_text(t, v);  // after decimal digits the name would read as an exponent
  char digits[64];
  // Every value of a type narrower than f64 is a float exactly, whose shortest digits are fewer than the
  // double's.
  std::to_chars_result r = t == DType::f64
                               ? std::to_chars(digits, digits + sizeof digits, v)
                               : std::to_chars(digits, digits + sizeof digits, static_cast<float>(v));
  std::string text(digits, r.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + dtype_name(t);
}

}  // namespace

std::string literal_text(const ExprNode& n) {
  if (n.op == ExprOp::const_float) return float_text(n.type, n.float_value());
  if (is_bool(n.type)) return n.imm != 0 ? "true" : "false";
  const std::string text = integer_text(n.type, n.imm);
  return n.type == DType::i64 ? text : text + dtype_name(n.type);
}

// Either fixed text, or an expression to print at a level.
struct ExprPrinter::Work {
  const char* text = nullptr;
  ExprId id;
  int level = kAny;
};

void ExprPrinter::print(std::string& out, ExprId root, int level) const {
  const size_t start = out.size();
  std::vector<Work> pending{{nullptr, root, level}};
  while (!pending.empty()) {
    Work work = pending.back();
    pending.pop_back();
    if (work.text != nullptr) {
      out += work.text;
    } else if (!work.id.valid()) {
      out += '?';
    } else {
      print_node(out, work, pending);
    }
    if (out.size() - start > max_bytes_) {
      out += "...";
      return;
    }
  }
}

// Prints the head of a node and queues the rest, last piece first.
void ExprPrinter::print_node(std::string& out, const Work& work, std::vector<Work>& pending) const {
  const ExprNode& n = p_.exprs[work.id];
  const int arity = expr_arity(n.op);
  if (n.op == ExprOp::var) {
    out += name(n.var());
  } else if (n.op == ExprOp::load) {
    out += name(n.object);
    out += '[';
    std::span<const ExprId> indices = p_.exprs.indices(work.id);
    pending.push_back({"]"});
    for (size_t i = indices.size(); i-- > 0;) {
      pending.push_back({nullptr, indices[i], kAny});
      if (i > 0) pending.push_back({", "});
    }
  } else if (n.op == ExprOp::native_call) {
    const ExprPool::NativeCall call = p_.exprs.native_parts(work.id);
    const bool known = call.function < p_.natives.size();
    out += known ? p_.natives[call.function]->name : "?";
    if (known && p_.natives[call.function]->results.size() > 1) out += ":" + std::to_string(call.result);
    out += '(';
    pending.push_back({")"});
    for (size_t i = call.args.size(); i-- > 0;) {
      pending.push_back({nullptr, call.args[i], kAny});
      if (i > 0) pending.push_back({", "});
    }
  } else if (arity == 0) {
    out += literal_text(n);
  } else if (int level = infix_level(n.op); level != kPrimary) {
    bool parentheses = level < work.level;
    if (parentheses) {
      out += '(';
      pending.push_back({")"});
    }
    pending.push_back({nullptr, n.b, level + 1});
    pending.push_back({" "});
    pending.push_back({expr_text(n.op)});
    pending.push_back({" "});
    pending.push_back({nullptr, n.a, level == kCompare ? level + 1 : level});
  } else {
    out += expr_text(n.op);
    out += '(';
    pending.push_back({")"});
    const ExprId operands[] = {n.a, n.b, n.c};
    for (int i = arity; i-- > 0;) {
      pending.push_back({nullptr, operands[i], kAny});
      if (i > 0) pending.push_back({", "});
    }
    if (expr_class(n.op) == ExprClass::cast) {
      pending.push_back({", "});
      pending.push_back({dtype_name(n.type)});
    }
  }
}

void ExprPrinter::print_list(std::string& out, const std::vector<ExprId>& list) const {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ", ";
    print(out, list[i]);
  }
}

// Every offset is 0 and every extent that of the buffer.
bool ExprPrinter::is_whole(const Region& r) const {
  const Buffer& b = p_.buffer(r.buffer);
  if (r.offsets.size() != b.shape.size() || r.extents.size() != b.shape.size()) return false;
  for (size_t d = 0; d < b.shape.size(); ++d) {
    int64_t offset = 0, extent = 0;
    if (!r.offsets[d].valid() || !p_.exprs.is_const_int(r.offsets[d], &offset) || offset != 0) return false;
    if (!b.shape[d].valid() || !p_.exprs.is_const_int(b.shape[d], &extent) || extent != r.extents[d])
      return false;
  }
  return true;
}

void ExprPrinter::print_region(std::string& out, const Region& r) const {
  if (!r.buffer.valid()) {
    out += '?';
    return;
  }
  out += name(r.buffer);
  if (is_whole(r)) return;
  out += '[';
  for (size_t d = 0; d < r.offsets.size(); ++d) {
    if (d > 0) out += ", ";
    print(out, r.offsets[d]);
    out += " :+ " + (d < r.extents.size() ? std::to_string(r.extents[d]) : std::string("?"));
  }
  out += ']';
}

}  // namespace tilegen::ir::text
