#include "emit/c_expressions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "ir/place_extents.h"
#include "ir/unsigned_types.h"

namespace tilegen::emit {
namespace {

using ir::DType;
using ir::ExprId;
using ir::ExprOp;
using ir::unsigned_of;

constexpr size_t kLongest = 88;  // characters of one expression

std::string op_name(ExprOp op) {
  static constexpr const char* kNames[] = {
#define TILEGEN_EXPR_OP(name, arity, cls, text) #name,
#include "ir/expr_ops.def"
#undef TILEGEN_EXPR_OP
  };
  std::string_view name = kNames[static_cast<size_t>(op)];
  constexpr std::string_view kLogical = "logical_";
  if (name.substr(0, kLogical.size()) == kLogical) name.remove_prefix(kLogical.size());
  return upper(name);
}

// The fewest digits that the type's value is read from.
std::string digits_of(DType t, double v) {
  char text[64];
  const auto written = [&](std::to_chars_result r) {
    std::string digits(text, r.ptr);
    return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
  };
  const std::string narrow = written(std::to_chars(text, text + sizeof text, static_cast<float>(v)));
  double read = 0;
  std::from_chars(narrow.data(), narrow.data() + narrow.size(), read);
  if (t != DType::f64 && ir::float_to_bits(t, read) == ir::float_to_bits(t, v)) return narrow;
  return written(std::to_chars(text, text + sizeof text, v));
}

}  // namespace

std::string dtype_constant(DType t) { return "TL_" + upper(ir::dtype_name(t)); }

const std::string* CExpressions::part(ExprId id) const {
  for (const auto& scope : parts_)
    if (const auto it = scope.find(id); it != scope.end()) return &it->second;
  return nullptr;
}

std::string CExpressions::name_part(ExprId id, const std::string& text) {
  const std::string name = names_.part();
  source_.line("const tl_expr " + name + " = " + text + ";");
  parts_.back()[id] = name;
  return name;
}

std::string CExpressions::real(const ir::ExprNode& n) {
  const double v = n.float_value();
  const uint64_t bits = ir::float_to_bits(n.type, v);
  const bool usual =
      !std::isnan(v) || bits == ir::float_to_bits(n.type, std::numeric_limits<double>::quiet_NaN());
  if (!usual) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "0x%llx", static_cast<unsigned long long>(bits));
    const DType of = unsigned_of(ir::dtype_bits(n.type));
    const std::string code = of == DType::u64
                                 ? source_.macro("CAST", "(dtype, a)", "tl_cast(t, dtype, a)") + "(TL_U64, " +
                                       source_.macro("INDEX", "(value)", "tl_index(t, value)") + "(" +
                                       number(static_cast<int64_t>(bits)) + "))"
                                 : source_.macro("INT", "(dtype, value)", "tl_const_i64(t, dtype, value)") +
                                       "(" + dtype_constant(of) + ", " + digits + ")";
    return source_.macro("BITCAST", "(dtype, a)", "tl_bitcast(t, dtype, a)") + "(" + dtype_constant(n.type) +
           ", " + code + ")";
  }
  std::string text;
  if (std::isfinite(v)) {
    text = digits_of(n.type, v);
  } else {
    source_.include_math();
    text = std::isnan(v) ? "NAN" : v < 0 ? "-INFINITY" : "INFINITY";
  }
  return source_.macro("REAL", "(dtype, value)", "tl_const_f64(t, dtype, value)") + "(" +
         dtype_constant(n.type) + ", " + text + ")";
}

std::string CExpressions::literal(const ir::ExprNode& n) {
  if (n.op == ExprOp::const_float) return real(n);
  const auto index = [&] {
    return source_.macro("INDEX", "(value)", "tl_index(t, value)") + "(" + number(n.imm) + ")";
  };
  if (n.type == DType::i64) return index();
  if (n.type == DType::u64 && n.imm < 0)  // beyond what the call takes
    return source_.macro("CAST", "(dtype, a)", "tl_cast(t, dtype, a)") + "(TL_U64, " + index() + ")";
  return source_.macro("INT", "(dtype, value)", "tl_const_i64(t, dtype, value)") + "(" +
         dtype_constant(n.type) + ", " + number(n.imm) + ")";
}

CExpressions::Call CExpressions::call_of(ExprId id) {
  const ir::ExprNode& n = pool_[id];
  if (n.op == ExprOp::load) {
    const auto indices = pool_.indices(id);
    return {source_.macro("LOAD", "(buffer, rank, ...)",
                          "tl_load(t, buffer, rank, (const tl_expr[]){__VA_ARGS__})"),
            {names_.use(n.object), std::to_string(indices.size())},
            {indices.begin(), indices.end()}};
  }
  if (n.op == ExprOp::native_call) {
    const ir::ExprPool::NativeCall call = pool_.native_parts(id);
    return {source_.macro("CALL", "(function, result, count, ...)",
                          "tl_call(t, function, count, (const tl_expr[]){__VA_ARGS__}, result)"),
            {quoted(p_.natives[call.function]->name), std::to_string(call.result),
             std::to_string(call.args.size())},
            call.args};
  }
  const std::string name = op_name(n.op);
  if (n.op == ExprOp::cast)
    return {source_.macro(name, "(dtype, a)", "tl_cast(t, dtype, a)"), {dtype_constant(n.type)}, {n.a}};
  if (n.op == ExprOp::bitcast)
    return {source_.macro(name, "(dtype, a)", "tl_bitcast(t, dtype, a)"), {dtype_constant(n.type)}, {n.a}};
  if (n.op == ExprOp::select)
    return {source_.macro(name, "(condition, a, b)", "tl_select(t, condition, a, b)"), {}, {n.a, n.b, n.c}};
  switch (ir::expr_arity(n.op)) {
    case 1:
      return {source_.macro(name, "(a)", "tl_unary(t, TL_" + name + ", a)"), {}, {n.a}};
    case 2:
      return {source_.macro(name, "(a, b)", "tl_binary(t, TL_" + name + ", a, b)"), {}, {n.a, n.b}};
    default:
      return {
          source_.macro(name, "(a, b, c)", "tl_ternary(t, TL_" + name + ", a, b, c)"), {}, {n.a, n.b, n.c}};
  }
}

std::string CExpressions::value(ExprId id) {
  if (const std::string* named = part(id)) return *named;
  const ir::ExprNode& n = pool_[id];
  if (n.op == ExprOp::var && operands_.empty())
    for (const ir::Param& param : p_.params)
      if (p_.is_presence(param) && param.var == n.var())
        return source_.macro("PRESENT", "(tensor)", "tl_present(t, tensor)") + "(" +
               names_.use(param.buffer) + ")";
  if (n.op == ExprOp::var) return operands_.empty() ? names_.use(n.var()) : operands_[n.var().value];
  if (n.op == ExprOp::const_int || n.op == ExprOp::const_float) return literal(n);
  const Call call = call_of(id);
  std::vector<std::string> arguments = call.front;
  for (ExprId operand : call.operands) arguments.push_back(value(operand));
  const auto text = [&] { return call.name + "(" + joined(arguments) + ")"; };
  // The longest operand first, until the rest fits.
  while (text().size() > kLongest) {
    size_t longest = arguments.size();
    for (size_t i = call.front.size(); i < arguments.size(); ++i) {
      const bool divisible = ir::expr_arity(pool_[call.operands[i - call.front.size()]].op) > 0 ||
                             pool_[call.operands[i - call.front.size()]].op == ExprOp::load;
      if (!divisible || part(call.operands[i - call.front.size()])) continue;
      if (longest == arguments.size() || arguments[i].size() > arguments[longest].size()) longest = i;
    }
    if (longest == arguments.size()) break;
    const ExprId operand = call.operands[longest - call.front.size()];
    const std::string name = name_part(operand, arguments[longest]);
    for (size_t i = 0; i < call.operands.size(); ++i)
      if (call.operands[i] == operand) arguments[call.front.size() + i] = name;
  }
  return text();
}

std::string CExpressions::list(const std::vector<ExprId>& ids) {
  std::vector<std::string> texts;
  for (ExprId id : ids) texts.push_back(value(id));
  return source_.macro("EXPRS", "(...)", "(const tl_expr[]){__VA_ARGS__}") + "(" + joined(texts) + ")";
}

std::string CExpressions::numbers(const std::vector<int64_t>& values) {
  std::vector<std::string> texts;
  for (int64_t v : values) texts.push_back(number(v));
  return source_.macro("NUMBERS", "(...)", "(const int64_t[]){__VA_ARGS__}") + "(" + joined(texts) + ")";
}

std::string CExpressions::strings(const std::vector<std::string>& texts) {
  std::vector<std::string> literals;
  for (const std::string& text : texts) literals.push_back(quoted(text));
  return source_.macro("NAMES", "(...)", "(const char *const[]){__VA_ARGS__}") + "(" + joined(literals) + ")";
}

// Every offset is 0 and every extent that of the buffer.
bool CExpressions::is_whole(const ir::Region& r) const {
  const ir::Buffer& b = p_.buffer(r.buffer);
  for (size_t d = 0; d < b.shape.size(); ++d) {
    int64_t offset = 0, extent = 0;
    if (!pool_.is_const_int(r.offsets[d], &offset) || offset != 0) return false;
    if (!pool_.is_const_int(b.shape[d], &extent) || extent != r.extents[d]) return false;
  }
  return true;
}

std::string CExpressions::region(const ir::Region& r) {
  const std::string& buffer = names_.use(r.buffer);
  if (is_whole(r)) return source_.macro("WHOLE", "(buffer)", "tl_whole(t, buffer)") + "(" + buffer + ")";
  const std::string offsets = list(r.offsets);
  return source_.macro("BOX", "(buffer, rank, offsets, extents)",
                       "tl_region_of(t, buffer, rank, offsets, extents)") +
         "(" + joined({buffer, std::to_string(r.extents.size()), offsets, numbers(r.extents)}) + ")";
}

std::string CExpressions::region_beside(const ir::Region& r, const ir::Region& other) {
  ir::Region place = r;
  std::fill(place.extents.begin(), place.extents.end(), 1);
  if (is_whole(r) || !is_whole(other) || ir::take_extents(p_, place, other.extents) ||
      place.extents != r.extents)
    return region(r);
  const std::string& buffer = names_.use(r.buffer);
  const std::string offsets = list(r.offsets);
  return source_.macro("AT", "(buffer, rank, offsets)", "tl_region_at(t, buffer, rank, offsets)") + "(" +
         joined({buffer, std::to_string(r.extents.size()), offsets}) + ")";
}

}  // namespace tilegen::emit
