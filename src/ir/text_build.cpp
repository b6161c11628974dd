// Literals, and the checks that stand between the text and the ExprPool, which takes well-typed operands
// only.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "ir/reinterpret.h"
#include "ir/text_parser.h"
#include "support/diag_codes.h"
#include "support/spelling.h"

namespace tilegen::ir::text {
namespace {

std::string type_name(DType t) { return dtype_name(t); }

std::string range_text(DType t) {
  int bits = dtype_bits(t);
  if (dtype_kind(t) == DTypeKind::unsigned_int) return "0 to " + integer_text(t, wrap_to(t, -1));
  int64_t lowest = std::numeric_limits<int64_t>::min() >> (64 - bits);
  return std::to_string(lowest) + " to " + std::to_string(-(lowest + 1));
}

// What an operator of this class asks of its operands, or empty when `t` will do.
std::string_view refusal(ExprClass cls, DType t) {
  const bool computes = cls == ExprClass::arith || cls == ExprClass::math || cls == ExprClass::test ||
                        cls == ExprClass::compare;
  const bool of_integers = cls == ExprClass::integer || cls == ExprClass::random;
  if ((computes && is_storage_only(t)) || (of_integers && is_packed(t)))
    return "types that values are computed in";
  switch (cls) {
    case ExprClass::arith:
      return is_float(t) || is_integer(t) ? "" : "numbers";
    case ExprClass::integer:
      return is_integer(t) ? "" : "integers";
    case ExprClass::math:
    case ExprClass::test:
      return is_float(t) ? "" : "floating-point numbers";
    case ExprClass::logic:
      return is_bool(t) ? "" : "bool";
    case ExprClass::random:
      return is_integer(t) ? "" : "integers";
    default:
      return "";
  }
}

std::string refusal_hint(ExprOp op, DType t) {
  if (op == ExprOp::div && is_integer(t))
    return "divide integers with //, or cast(f32, ...) the operands first";
  if (is_storage_only(t))
    return is_float(t) ? "cast(f32, ...) the operands first" : "cast(i32, ...) the operands first";
  if (op == ExprOp::floormod) return "the remainder of floats is fmod(x, y)";
  if (op == ExprOp::floordiv) return "of floats write floor(x / y)";
  if (op == ExprOp::bit_xor) return "a power is pow(x, y), a square x * x; bits are those of bitcast(u32, x)";
  switch (expr_class(op)) {
    case ExprClass::math:
    case ExprClass::test:
      return "cast(f32, ...) the operand first";
    case ExprClass::logic:
      return is_integer(t) ? "compare with 0 first, or use & | ^ for bits" : "compare first";
    default:
      return is_float(t) ? "cast(i64, ...) the operand first" : "use and, or, not and select for bool";
  }
}

// The decimal digits are those of the number.
bool is_whole(std::string_view digits, double v) {
  while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
  char text[512];
  const int length = std::snprintf(text, sizeof text, "%.0f", v);
  return digits == std::string_view(text, static_cast<size_t>(length));
}

double special_float(const Token& word, bool negative) {
  const double v =
      word.text == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return negative ? -v : v;
}

}  // namespace

ExprId Parser::constant(int64_t v, const Token& at) {
  return room_for_node(1, at) ? program_.exprs.const_int(v) : ExprId();
}

bool Parser::room_for_node(int depth, const Token& at) {
  if (depth > limits_.expr_depth)
    return limit(DiagCode::limit_nesting, at,
                 "an expression nests deeper than " + std::to_string(limits_.expr_depth) + " levels",
                 "store a part of it in a local buffer first");
  if (static_cast<int64_t>(program_.exprs.size()) >= limits_.expr_nodes)
    return limit(DiagCode::limit_nodes, at,
                 "a program has at most " + std::to_string(limits_.expr_nodes) + " expression nodes",
                 "use loops, or split the program");
  return !stopped_;
}

// What the lexer leaves of e4m3 and the like, as "e4" is an exponent.
constexpr std::string_view kMantissas[] = {"m0", "m1", "m2", "m3"};

// Without a type of its own it has that of its context, where that is a number that has decimal literals.
ExprId Parser::make_literal(const Token& t, bool negative, DType context) {
  const bool adapts = is_integer(context) || (is_float(context) && !is_storage_only(context));
  if (t.kind == TokenKind::name) {  // inf, nan
    if (adapts && is_float(context))
      return room_for_node(1, t) ? program_.exprs.const_float(special_float(t, negative), context) : ExprId();
    error(DiagCode::syntax_error, t, "expected ':' and the type of " + describe(t),
          "write " + std::string(t.text) + ":f32; the type can be left out beside a float");
    return {};
  }
  DType type = t.suffix.empty() && adapts ? context : DType::i64;
  if (!t.suffix.empty()) {
    std::optional<DType> named = dtype_from_name(t.suffix);
    if (!named || is_bool(*named)) {
      const bool narrow = std::ranges::any_of(kMantissas, [&](auto m) { return t.suffix.starts_with(m); });
      if (narrow) {
        error(DiagCode::syntax_error, t, "8-bit floats have no decimal literals, found " + describe(t),
              "write cast(e4m3, 1.5f32), or the bits: 0x3c:e4m3");
        return {};
      }
      NearestName nearest(t.suffix);
      for (uint32_t d = 1; dtype_valid(d); ++d)
        if (const auto type = static_cast<DType>(d); !is_bool(type) && !is_storage_only(type))
          nearest.offer(dtype_name(type));
      error(DiagCode::syntax_error, t, "expected a numeric type after the digits, found " + describe(t),
            nearest.hint("write the type right after the digits, for example 1.5f32 or 7i32"));
      return {};
    }
    type = *named;
  }
  if (is_float(type) && t.base != 10) {
    error(DiagCode::syntax_error, t,
          describe(t) + " is an integer, expected a value of type " + type_name(type),
          t.base == 2 ? "write its decimal digits"
                      : "the bits of a " + type_name(type) + " are " + std::string(t.text.substr(0, 20)) +
                            ":" + type_name(type) + ", its value has decimal digits");
    return {};
  }
  if (is_float(type)) {
    const ExprId value = make_float(t, negative, type);
    // An integer that takes the type of its context stays what it is.
    const bool adapted = t.suffix.empty() && !t.fractional && value.valid();
    if (adapted && !is_whole(t.digits(), std::abs(program_.exprs[value].float_value()))) {
      error(DiagCode::syntax_error, t, describe(t) + " is no value of " + type_name(type),
            "write " + t.digits().substr(0, 20) + ".0" + type_name(type) + " for the nearest one");
      return {};
    }
    return value;
  }
  if (t.fractional) {
    const std::string digits = t.digits().substr(0, 20);
    error(DiagCode::syntax_error, t,
          "expected an integer of type " + type_name(type) + ", found " + describe(t),
          "write its type, for example " + digits + "f32; it can be left out beside a value of that type");
    return {};
  }
  return make_integer(t, negative, type);
}

ExprId Parser::make_integer(const Token& t, bool negative, DType type) {
  const std::string digits = (negative ? "-" : "") + t.digits();
  const char *first = digits.data(), *last = first + digits.size();
  const int base = t.base;
  int64_t v = 0;
  uint64_t u = 0;
  const bool read = is_u64(type) && !negative ? std::from_chars(first, last, u, base).ec == std::errc()
                                              : std::from_chars(first, last, v, base).ec == std::errc();
  if (is_u64(type) && !negative) v = static_cast<int64_t>(u);
  if (!read || wrap_to(type, v) != v || (is_u64(type) && negative && v != 0)) {
    error(DiagCode::syntax_error, t,
          std::string(negative ? "negative " : "") + describe(t) + " does not fit " + type_name(type),
          "the range of " + type_name(type) + " is " + range_text(type));
    return {};
  }
  return room_for_node(1, t) ? program_.exprs.const_int(v, type) : ExprId();
}

ExprId Parser::make_float(const Token& t, bool negative, DType type) {
  const std::string digits = t.digits();
  const char *first = digits.data(), *last = first + digits.size();
  double v = 0;
  bool fits;
  if (type == DType::f32) {  // through float: rounding twice could miss the nearest one
    float f = 0;
    fits = std::from_chars(first, last, f).ec == std::errc();
    v = f;
  } else {
    fits = std::from_chars(first, last, v).ec == std::errc();
  }
  v = round_to(type, v);
  if (!fits || std::isinf(v)) {
    error(DiagCode::syntax_error, t, describe(t) + " does not fit " + type_name(type),
          "write inf:" + type_name(type) + " for infinity and 0.0" + type_name(type) +
              " for a vanishing value");
    return {};
  }
  return room_for_node(1, t) ? program_.exprs.const_float(negative ? -v : v, type) : ExprId();
}

bool Parser::parse_special_float(ExprId& out, const Token& word, bool negative) {
  if (!expect(":", "and the type of " + describe(word))) return false;
  Token at = token_;
  DType type = DType::f32;
  if (!parse_dtype(type)) return false;
  if (!is_float(type)) {
    error(DiagCode::dtype_mismatch, at, describe(word) + " has no value of type " + type_name(type),
          "use a floating type, for example " + std::string(word.text) + ":f32");
    return true;
  }
  if (room_for_node(1, word)) out = program_.exprs.const_float(special_float(word, negative), type);
  return true;
}

// 0x....:f16
bool Parser::parse_bits(ExprId& out, const Token& number) {
  if (!expect(":", "and the type of the bits")) return false;
  Token at = token_;
  DType type = DType::f32;
  if (!parse_dtype(type)) return false;
  if (!is_float(type)) {
    error(DiagCode::dtype_mismatch, at, "exact bits have a floating type, not " + type_name(type),
          "an integer has its type right behind its digits: " + std::string(number.text.substr(0, 20)) +
              type_name(type));
    return true;
  }
  uint64_t bits = 0;
  const std::string digits = number.digits();
  auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  bool too_wide = dtype_bits(type) < 64 && bits >> dtype_bits(type) != 0;
  if (failed != std::errc() || !number.suffix.empty() || too_wide) {
    error(DiagCode::syntax_error, number, describe(number) + " is not a bit pattern of " + type_name(type),
          "give " + std::to_string(dtype_bits(type) / 4) + " hexadecimal digits");
    return true;
  }
  if (room_for_node(1, number)) out = program_.exprs.const_float(float_from_bits(type, bits), type);
  return true;
}

ExprId Parser::make_variable(const Token& name) {
  const Symbol* symbol = find(name.text);
  if (symbol == nullptr) {
    unknown_name(name, "a variable", false, true);
    return {};
  }
  if (symbol->kind == SymbolKind::compile_param) return use_param(symbol->id, name);
  if (symbol->kind == SymbolKind::constant) return use_constant(symbol->id, name);
  if (symbol->kind != SymbolKind::variable) {
    error(DiagCode::syntax_error, name, "expected a value, found the whole buffer " + describe(name),
          "read one element of it: " + std::string(name.text) + "[...]");
    return {};
  }
  VarId id(symbol->id);
  return room_for_node(1, name) ? program_.exprs.var(id, program_.var(id).type) : ExprId();
}

bool Parser::require_index(ExprId& id, std::string_view what, const Token& at) {
  if (!id.valid()) return false;
  DType t = program_.exprs.type(id);
  if (t == DType::i64) return true;
  error(DiagCode::dtype_mismatch, at, std::string(what) + " has type " + type_name(t) + ", not i64",
        "write cast(i64, ...) around it");
  id = ExprId();
  return false;
}

ExprId Parser::make_load(BufferId buffer, std::span<const ExprId> indices, const Token& at) {
  check_rank(buffer, indices.size(), at);
  bool ok = program_.buffer(buffer).shape.size() == indices.size();
  int depth = 0;
  for (ExprId id : indices) {
    ok &= require_index(id, "an index of " + describe(at), at);
    if (id.valid()) depth = std::max<int>(depth, program_.exprs[id].depth);
  }
  if (!ok || !room_for_node(depth + 1, at)) return {};
  return program_.exprs.load(buffer, program_.buffer(buffer).type, indices);
}

bool Parser::operand_fits(ExprOp op, DType t, const Token& at) {
  std::string_view wanted = refusal(expr_class(op), t);
  if (wanted.empty()) return true;
  error(DiagCode::dtype_mismatch, at,
        describe(at) + " takes " + std::string(wanted) + ", found " + type_name(t), refusal_hint(op, t));
  return false;
}

bool Parser::types_agree(DType a, DType b, const Token& at) {
  if (a == b) return true;
  DType wider = is_float(b) && !is_float(a) ? b : a;
  error(DiagCode::dtype_mismatch, at,
        "the operands of " + describe(at) + " have types " + type_name(a) + " and " + type_name(b) +
            "; both must have the same",
        "write cast(" + type_name(wider) + ", ...) around the " + type_name(wider == a ? b : a) + " operand");
  return false;
}

ExprId Parser::make_unary(ExprOp op, ExprId a, const Token& at) {
  if (!a.valid()) return {};
  const ExprPool& pool = program_.exprs;
  if (!operand_fits(op, pool.type(a), at) || !room_for_node(pool[a].depth + 1, at)) return {};
  return program_.exprs.unary(op, a);
}

ExprId Parser::make_binary(ExprOp op, ExprId a, ExprId b, const Token& at) {
  if (!a.valid() || !b.valid()) return {};
  const ExprPool& pool = program_.exprs;
  if (!types_agree(pool.type(a), pool.type(b), at) || !operand_fits(op, pool.type(a), at)) return {};
  if (!room_for_node(std::max(pool[a].depth, pool[b].depth) + 1, at)) return {};
  return program_.exprs.binary(op, a, b);
}

ExprId Parser::make_ternary(ExprOp op, ExprId a, ExprId b, ExprId c, const Token& at) {
  if (op == ExprOp::select) return make_select(a, b, c, at);
  if (expr_class(op) == ExprClass::random) return make_random(op, {a, b, c}, at);
  if (!a.valid() || !b.valid() || !c.valid()) return {};
  const ExprPool& pool = program_.exprs;
  const DType t = pool.type(a);
  if (!types_agree(t, pool.type(b), at) || !types_agree(t, pool.type(c), at) || !operand_fits(op, t, at))
    return {};
  if (!room_for_node(std::max({pool[a].depth, pool[b].depth, pool[c].depth}) + 1, at)) return {};
  return program_.exprs.ternary(op, a, b, c);
}

// Of integers of any types, each taken as cast(u64, ...).
ExprId Parser::make_random(ExprOp op, std::array<ExprId, 3> operands, const Token& at) {
  for (ExprId& id : operands) {
    if (!id.valid() || !operand_fits(op, program_.exprs.type(id), at)) return {};
    if (program_.exprs.type(id) != DType::u64) id = make_cast(DType::u64, id, {}, at);
    if (!id.valid() || !room_for_node(program_.exprs[id].depth + 1, at)) return {};
  }
  return program_.exprs.ternary(op, operands[0], operands[1], operands[2]);
}

// cast(f32, x >> 8) * 2^-24: the upper bits, all of which an f32 has.
ExprId Parser::make_uniform(ExprId word, const Token& at) {
  if (!word.valid()) return {};
  ExprPool& pool = program_.exprs;
  if (pool.type(word) != DType::u32) {
    error(DiagCode::dtype_mismatch, at, "uniform takes u32, found " + type_name(pool.type(word)),
          "give it a word of philox, or cast(u32, ...) the operand");
    return {};
  }
  if (!room_for_node(pool[word].depth + 3, at)) return {};
  return pool.uniform(word);
}

ExprId Parser::make_select(ExprId c, ExprId a, ExprId b, const Token& at) {
  if (!c.valid() || !a.valid() || !b.valid()) return {};
  const ExprPool& pool = program_.exprs;
  if (!is_bool(pool.type(c))) {
    error(DiagCode::dtype_mismatch, at,
          "the condition of select has type " + type_name(pool.type(c)) + ", not bool",
          "compare it with something, for example select(x != 0, a, b)");
    return {};
  }
  int depth = std::max({pool[c].depth, pool[a].depth, pool[b].depth}) + 1;
  if (!types_agree(pool.type(a), pool.type(b), at) || !room_for_node(depth, at)) return {};
  return program_.exprs.select(c, a, b);
}

ExprId Parser::make_cast(DType type, ExprId a, CastMode mode, const Token& at) {
  if (!a.valid() || !room_for_node(program_.exprs[a].depth + (mode.plain() ? 1 : kCastLevels), at)) return {};
  if (const auto wrong = cast_refusal(mode, program_.exprs.type(a), type)) {
    error(DiagCode::dtype_mismatch, at, wrong->message, wrong->hint);
    return {};
  }
  return cast_by(program_.exprs, mode, type, a);
}

ExprId Parser::make_bitcast(DType type, ExprId a, const Token& at) {
  if (!a.valid() || !room_for_node(program_.exprs[a].depth + 1, at)) return {};
  const DType from = program_.exprs.type(a);
  if (const auto wrong = bits_refusal("bitcast", from, type)) {
    error(DiagCode::dtype_mismatch, at, wrong->message, wrong->hint);
    return {};
  }
  return program_.exprs.bitcast(type, a);
}

ExprId Parser::make_ceildiv(ExprId a, ExprId b, const Token& at) {
  if (!a.valid() || !b.valid()) return {};
  const ExprPool& pool = program_.exprs;
  if (!types_agree(pool.type(a), pool.type(b), at) || !operand_fits(ExprOp::floordiv, pool.type(a), at))
    return {};
  if (pool.type(a) != DType::i64) {
    error(DiagCode::dtype_mismatch, at, "ceildiv takes i64, found " + type_name(pool.type(a)),
          "write cast(i64, ...) around the operands");
    return {};
  }
  constexpr int kLevels = 3;  // it is made of up to three operations
  if (!room_for_node(std::max(pool[a].depth, pool[b].depth) + kLevels, at)) return {};
  return program_.exprs.ceildiv(a, b);
}

}  // namespace tilegen::ir::text
