#include "ir/bitcode_values.h"

#include <array>
#include <bit>
#include <cstdio>
#include <utility>

namespace tilegen::ir {
namespace {

constexpr size_t kMaxTypes = 4096, kMaxBitcodeValues = size_t{1} << 16, kMaxTypeText = 512;
constexpr size_t kMaxConstantText = 4096;
constexpr int kMaxConstantDepth = 8;

using Kind = BitcodeType::Kind;

namespace type_code {
enum : uint64_t {
  count = 1,
  void_type = 2,
  f32 = 3,
  f64 = 4,
  integer = 7,
  f16 = 10,
  array = 11,
  vector = 12,
  structure = 18,
  name = 19,
  named_structure = 20,
  function = 21,
  bf16 = 23,
};
}
namespace constant_code {
enum : uint64_t {
  set_type = 1,
  null = 2,
  undef = 3,
  integer = 4,
  wide = 5,
  real = 6,
  aggregate = 7,
  data = 22,
  poison = 26
};
}

// The sign is the lowest bit; a lone sign is the least number.
uint64_t signed_value(uint64_t v) {
  if ((v & 1) == 0) return v >> 1;
  return v == 1 ? uint64_t{1} << 63 : 0 - (v >> 1);
}

std::string hex(const char* prefix, uint64_t v, int digits) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%s%0*llX", prefix, digits, static_cast<unsigned long long>(v));
  return text.data();
}

// LLVM IR writes an f32 as the f64 of the same value; NaN keeps its bits.
std::string f32_text(uint32_t bits) {
  if ((bits & 0x7f800000u) == 0x7f800000u) {
    const uint64_t sign = uint64_t{bits >> 31} << 63, fraction = uint64_t{bits & 0x7fffffu} << 29;
    return hex("0x", sign | uint64_t{0x7ff} << 52 | fraction, 16);
  }
  return hex("0x", std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(bits))), 16);
}

}  // namespace

bool BitcodeValues::fail(std::string what) {
  if (mistake_.empty()) mistake_ = std::move(what);
  return false;
}

bool BitcodeValues::read_types(BitcodeStream& s) {
  return s.each_record([&](const BitcodeRecord& r) { return type_record(r); });
}

bool BitcodeValues::add_type(BitcodeType t) {
  if (types_.size() >= kMaxTypes) return fail("it has too many types");
  numbered_.push_back(static_cast<uint32_t>(types_.size()));
  types_.push_back(std::move(t));
  return true;
}

// Types of no values here, as pointers, are kept as such: what uses them is refused.
bool BitcodeValues::type_record(const BitcodeRecord& r) {
  BitcodeType t;
  const auto number = [&](size_t i) { return i < r.values.size() ? r.values[i] : ~uint64_t{0}; };
  switch (r.code) {
    case type_code::count:
    case type_code::name:
      return true;
    case type_code::void_type:
      t.kind = Kind::nothing, t.text = "void";
      break;
    case type_code::f16:
      t.kind = Kind::real, t.bits = 16, t.text = "half";
      break;
    case type_code::bf16:
      t.kind = Kind::real, t.bits = 16, t.text = "bfloat";
      break;
    case type_code::f32:
      t.kind = Kind::real, t.bits = 32, t.text = "float";
      break;
    case type_code::f64:
      t.kind = Kind::real, t.bits = 64, t.text = "double";
      break;
    case type_code::integer:
      if (number(0) < 1 || number(0) > 128) break;
      t.kind = Kind::integer, t.bits = static_cast<unsigned>(number(0));
      t.text = "i" + std::to_string(t.bits);
      break;
    case type_code::vector:
    case type_code::array: {
      const bool vector = r.code == type_code::vector;
      const auto element = type_of_number(number(1));
      if (!element) return false;
      const Kind of = types_[*element].kind;
      const bool fits = number(0) <= 1024 && !types_[*element].text.empty() && of != Kind::nothing &&
                        of != Kind::function && (!vector || (number(0) > 0 && r.values.size() == 2));
      if (!fits || (vector && of != Kind::integer && of != Kind::real)) break;
      t.kind = vector ? Kind::vector : Kind::array;
      t.count = number(0), t.parts = {*element};
      t.text = (vector ? "<" : "[") + std::to_string(t.count) + " x " + types_[*element].text +
               (vector ? ">" : "]");
      break;
    }
    case type_code::structure:
    case type_code::named_structure:
      if (r.values.empty() || r.values.size() > 65) break;
      t.kind = Kind::structure;
      if (!parts_text(t, r.values, 1)) break;
      t.text = (r.values[0] != 0 ? "<{ " : "{ ") + t.text + (r.values[0] != 0 ? " }>" : " }");
      break;
    case type_code::function:
      if (r.values.size() < 2 || r.values.size() > 66 || r.values[0] != 0) break;
      t.kind = Kind::function;
      if (!parts_text(t, r.values, 1)) t.text.clear();
      break;
    default:
      break;
  }
  if (!mistake_.empty()) return false;
  if (t.text.empty() || t.text.size() > kMaxTypeText) t = BitcodeType();
  return add_type(std::move(t));
}

bool BitcodeValues::parts_text(BitcodeType& t, const std::vector<uint64_t>& numbers, size_t first) {
  for (size_t i = first; i < numbers.size(); ++i) {
    const auto part = type_of_number(numbers[i]);
    if (!part) return false;
    const BitcodeType& p = types_[*part];
    const bool result = t.kind == Kind::function && i == first;
    if (p.text.empty() || p.kind == Kind::function || (p.kind == Kind::nothing && !result)) {
      t = BitcodeType();
      return false;
    }
    t.parts.push_back(*part);
    t.text += (i > first ? ", " : "") + p.text;
    if (t.text.size() > kMaxTypeText) return false;
  }
  return !t.text.empty();
}

std::optional<uint32_t> BitcodeValues::type_of_number(uint64_t number) {
  if (number < numbered_.size()) return numbered_[number];
  fail("it names a type that it does not have");
  return std::nullopt;
}

bool BitcodeValues::is_real(uint32_t t) const {
  const BitcodeType& of = types_[t];
  return of.kind == Kind::real || (of.kind == Kind::vector && types_[of.parts[0]].kind == Kind::real);
}

std::optional<uint32_t> BitcodeValues::vector_of(uint32_t element, uint64_t count) {
  BitcodeType t;
  if (count == 0 || count > 1024 || types_.size() >= 2 * kMaxTypes) {
    fail("it has a vector of no or too many elements");
    return std::nullopt;
  }
  t.kind = Kind::vector, t.count = count, t.parts = {element};
  t.text = "<" + std::to_string(count) + " x " + types_[element].text + ">";
  for (size_t i = 0; i < types_.size(); ++i)
    if (types_[i].text == t.text) return static_cast<uint32_t>(i);
  types_.push_back(std::move(t));
  return static_cast<uint32_t>(types_.size() - 1);
}

uint32_t BitcodeValues::of_bools(uint32_t like) {
  size_t one = 0;
  while (one < types_.size() && types_[one].text != "i1") ++one;
  if (one == types_.size()) {
    BitcodeType t;
    t.kind = Kind::integer, t.bits = 1, t.text = "i1";
    types_.push_back(std::move(t));
  }
  const bool vector = types_[like].kind == Kind::vector;
  const auto many = vector ? vector_of(static_cast<uint32_t>(one), types_[like].count) : std::nullopt;
  return many.value_or(static_cast<uint32_t>(one));
}

bool BitcodeValues::add(Value v) {
  if (values_.size() >= kMaxBitcodeValues) return fail("it has too many values");
  values_.push_back(std::move(v));
  return true;
}

bool BitcodeValues::read_constants(BitcodeStream& s) {
  std::optional<uint32_t> type;
  return s.each_record([&](BitcodeRecord& r) {
    if (r.code == constant_code::set_type) {
      type = type_of_number(r.values.empty() ? ~uint64_t{0} : r.values[0]);
      return type.has_value();
    }
    if (!type) return fail("it has a constant of no type");
    Value v;
    v.type = *type;
    v.constant = std::move(r);
    v.constant.blob = {};
    return add(std::move(v));
  });
}

std::optional<std::string> BitcodeValues::text(uint64_t value) {
  if (value >= values_.size()) return fail("it names a value that it does not have"), std::nullopt;
  const Value& v = values_[value];
  if (v.kind == Value::Kind::computed) return "%v" + std::to_string(value);
  if (v.kind == Value::Kind::function) return fail("the address of a function is used"), std::nullopt;
  return constant_text(v, 0);
}

std::string BitcodeValues::scalar_text(const BitcodeType& t, uint64_t bits) const {
  if (t.kind == Kind::integer)
    return t.bits == 1 ? (bits & 1 ? "true" : "false") : std::to_string(static_cast<int64_t>(bits));
  if (t.bits == 64) return hex("0x", bits, 16);
  if (t.bits == 32) return f32_text(static_cast<uint32_t>(bits));
  return hex(t.text == "half" ? "0xH" : "0xR", bits & 0xffff, 4);
}

std::optional<std::string> BitcodeValues::listed(const BitcodeType& t,
                                                 const std::vector<std::string>& elements) {
  if (elements.size() != (t.kind == Kind::structure ? t.parts.size() : t.count) || elements.empty())
    return fail("a constant has more or fewer elements than its type"), std::nullopt;
  const bool packed = t.text.starts_with("<{"), vector = t.kind == Kind::vector;
  std::string all = packed ? "<{ " : vector ? "<" : t.kind == Kind::array ? "[" : "{ ";
  for (size_t i = 0; i < elements.size(); ++i) {
    const uint32_t part = t.kind == Kind::structure ? t.parts[i] : t.parts[0];
    all += (i > 0 ? ", " : "") + types_[part].text + " " + elements[i];
  }
  all += packed ? " }>" : vector ? ">" : t.kind == Kind::array ? "]" : " }";
  if (all.size() > kMaxConstantText) return fail("a constant is too large"), std::nullopt;
  return all;
}

// Numbers beside each other, each as its bits.
std::optional<std::string> BitcodeValues::numbers_text(const Value& v) {
  const BitcodeType& t = types_[v.type];
  const bool list = t.kind == Kind::vector || t.kind == Kind::array;
  if (!list || (types_[t.parts[0]].kind != Kind::integer && types_[t.parts[0]].kind != Kind::real))
    return fail("a constant is of another type than its value"), std::nullopt;
  std::vector<std::string> elements;
  for (const uint64_t bits : v.constant.values) elements.push_back(scalar_text(types_[t.parts[0]], bits));
  return listed(t, elements);
}

std::optional<std::string> BitcodeValues::constant_text(const Value& v, int depth) {
  const BitcodeType& t = types_[v.type];
  const auto refused = [&](const char* what) {
    fail(what);
    return std::nullopt;
  };
  if (t.text.empty() || t.kind == Kind::nothing || t.kind == Kind::function)
    return refused("it uses a constant that is none of numbers, as a pointer");
  const std::vector<uint64_t>& values = v.constant.values;
  switch (v.constant.code) {
    case constant_code::null:
      return "zeroinitializer";
    case constant_code::undef:
      return "undef";
    case constant_code::poison:
      return "poison";
    case constant_code::integer:
      if (t.kind != Kind::integer || t.bits > 64 || values.empty())
        return refused("a constant is of another type than its value");
      return scalar_text(t, signed_value(values[0]));
    case constant_code::wide:
      if (t.kind != Kind::integer || t.bits <= 64 || values.empty() || values.size() > 2)
        return refused("a constant is of another type than its value");
      return hex("u0x", values.size() == 2 ? signed_value(values[1]) : 0, 16) +
             hex("", signed_value(values[0]), 16);
    case constant_code::real:
      if (t.kind != Kind::real || values.empty())
        return refused("a constant is of another type than its value");
      return scalar_text(t, values[0]);
    case constant_code::data:
      return numbers_text(v);
    case constant_code::aggregate: {
      if (t.kind != Kind::structure && t.kind != Kind::vector && t.kind != Kind::array)
        return refused("a constant is of another type than its value");
      if (depth >= kMaxConstantDepth || values.size() > 1024) return refused("a constant is too large");
      std::vector<std::string> elements;
      size_t length = 0;
      for (const uint64_t id : values) {
        if (id >= values_.size() || values_[id].kind != Value::Kind::constant)
          return refused("a constant is made of what is none");
        const auto element = constant_text(values_[id], depth + 1);
        if (!element) return std::nullopt;
        if ((length += element->size()) > kMaxConstantText) return refused("a constant is too large");
        elements.push_back(*element);
      }
      return listed(t, elements);
    }
    default:
      return refused("it has constant expressions");
  }
}

}  // namespace tilegen::ir
