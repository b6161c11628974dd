#include <algorithm>
#include <numeric>

#include "random_generator.h"

namespace tilegen::differential {

double tile_cap(DType t) { return ir::dtype_bits(t) == 16 ? 8 : 256; }

double exact_limit(DType t) {
  switch (t) {
    case DType::f16:
      return 2048;
    case DType::bf16:
      return 256;
    case DType::f32:
      return 0x1p24;
    default:
      return 0x1p50;
  }
}

std::string number_text(DType t, int64_t v) {
  if (ir::is_bool(t)) return v ? "true" : "false";
  std::string text = std::to_string(v);
  if (ir::is_float(t)) text += ".0";
  if (t != DType::i64) text += ir::dtype_name(t);
  return v < 0 ? "(" + text + ")" : text;
}

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

bool converts(DType from, DType to) {
  if (!ir::is_float(to)) return true;
  if (ir::is_float(from)) return tile_cap(from) <= tile_cap(to);
  return ir::is_bool(from) || (ir::dtype_bits(from) == 8 && tile_cap(to) >= 255);
}

Expr Generator::bounded(Expr e, DType t, double bound) {
  if (e.bound <= bound) return e;
  const auto limit = static_cast<int64_t>(bound);
  if (r_.chance(2))
    return {"min(max(" + e.text + ", " + number_text(t, -limit) + "), " + number_text(t, limit) + ")", bound};
  return {"max(" + number_text(t, -limit) + ", min(" + number_text(t, limit) + ", " + e.text + "))", bound};
}

// ---- indices ----

std::string Generator::index(int depth) {
  if (depth <= 0 || r_.chance(3)) {
    if (!vars_.empty() && !r_.chance(4)) return r_.pick(std::span<const IndexVar>(vars_)).name;
    if (!dims_.empty() && r_.chance(3)) return r_.pick(std::span<const std::string>(dims_));
    if (!params_.empty() && r_.chance(3)) return r_.pick(std::span(std::as_const(params_))).first;
    return std::to_string(r_.between(0, 9));
  }
  const std::string a = index(depth - 1), b = index(depth - 1);
  switch (r_.below(7)) {
    case 0:
      return "(" + a + " + " + b + ")";
    case 1:
      return "(" + a + " - " + b + ")";
    case 2:
      return "(" + a + " * " + std::to_string(r_.between(1, 5)) + ")";
    case 3:
      return "(" + a + " // " + std::to_string(r_.between(1, 5)) + ")";
    case 4:
      return "(" + a + " % " + std::to_string(r_.between(1, 9)) + ")";
    case 5:
      return "min(" + a + ", " + b + ")";
    default:
      return "max(" + a + ", " + b + ")";
  }
}

std::string Generator::offset(int64_t step) {
  if (vars_.empty() || r_.chance(5))
    return r_.chance(6) ? "-" + std::to_string(r_.between(1, 5)) : std::to_string(r_.between(0, 12));
  if (r_.chance(8)) return index(2);
  std::string text = r_.pick(std::span<const IndexVar>(vars_)).name;
  if (step > 1) text += " * " + std::to_string(step);
  if (r_.chance(5)) text += " + " + std::to_string(r_.between(1, 7));
  return text;
}

std::string Generator::index_within(int64_t extent) {
  std::vector<const IndexVar*> fitting;
  for (const IndexVar& v : vars_)
    if (v.extent > 0 && v.extent <= extent) fitting.push_back(&v);
  if (!fitting.empty() && !r_.chance(6)) {
    const IndexVar& v = *fitting[static_cast<size_t>(r_.below(static_cast<int64_t>(fitting.size())))];
    const std::string n = std::to_string(extent), slack = std::to_string(r_.between(0, extent - v.extent));
    switch (r_.below(8)) {
      case 0:
        return std::to_string(extent - 1) + " - " + v.name;
      case 1:
        return v.name + " // 2";
      case 2:
        return "(" + v.name + " + " + std::to_string(r_.between(1, 5)) + ") % " + n;
      case 3:
        return v.name + " + " + slack;
      default:
        return v.name;
    }
  }
  if (r_.chance(3)) return std::to_string(r_.below(extent));
  return index(1) + " % " + std::to_string(extent);
}

// ---- loads ----

Expr Generator::load_tile(const Tile& t) {
  std::string text = t.name + "[";
  for (size_t d = 0; d < t.shape.size(); ++d) text += (d ? ", " : "") + index_within(t.shape[d]);
  return {text + "]", tile_cap(t.type)};
}

Expr Generator::load_plainly(const Tile& t) {
  std::string text = t.name + "[";
  for (size_t d = 0; d < t.shape.size(); ++d) {
    std::vector<std::string> fitting;
    for (const IndexVar& v : vars_)
      if (v.extent == t.shape[d] && v.name[0] == 'v') fitting.push_back(v.name);
    if (fitting.empty() && t.shape[d] == 1) fitting.push_back("0");
    if (fitting.empty()) return {};
    text += (d ? ", " : "") + r_.pick(std::span<const std::string>(fitting));
  }
  return {text + "]", tile_cap(t.type)};
}

// Anywhere, also outside, where a tensor reads 0.
Expr Generator::load_tensor(const RandomTensor& t) {
  std::string text = t.name + "[";
  for (size_t d = 0; d < t.shape.size(); ++d)
    text += (d ? ", " : "") + (r_.chance(5) ? index(2) : offset(r_.pick<int64_t>({1, 1, 8})));
  return {text + "]", tile_cap(t.type)};
}

// ---- values ----

// Mostly one of which there is something to read.
DType Generator::type_at_hand() {
  if (!tiles_.empty() && !r_.chance(3)) return r_.pick(std::span<const Tile>(tiles_)).type;
  return random_type();
}

Expr Generator::leaf(DType t) {
  const auto hidden = [&](const std::string& name) {
    return std::find(hidden_.begin(), hidden_.end(), name) != hidden_.end();
  };
  std::vector<Expr> options;
  for (const Tile& tile : tiles_)
    if (tile.type == t && tile.written && !hidden(tile.name) &&
        (in_parallel_ || tile.scope != MemScope::fragment))
      options.push_back((options_.for_gpu && tile.scope == MemScope::fragment) ||
                                (chaining_ && in_parallel_ && !r_.chance(6))
                            ? load_plainly(tile)
                            : load_tile(tile));
  std::erase_if(options, [](const Expr& e) { return e.text.empty(); });
  for (size_t i = 0; i < same_element_.size(); ++i)
    if (same_type_[i] == t)
      for (int k = 0; k < 2; ++k) options.push_back(same_element_[i]);
  for (const RandomTensor& tensor : tensors_)
    if (tensor.type == t && tensor.readable && r_.chance(2)) options.push_back(load_tensor(tensor));
  for (const auto& [name, type] : scalars_)
    if (type == t) options.push_back({name, tile_cap(t)});
  // Where nothing of this type can be read, mostly a number made from the indices.
  if (options.empty() && !vars_.empty() && !ir::is_bool(t) && !r_.chance(3))
    return {std::string("cast(") + ir::dtype_name(t) + ", " + index(1) + " % 7)", 7};
  const int64_t constant = ir::is_bool(t)                                     ? r_.below(2)
                           : ir::dtype_kind(t) == ir::DTypeKind::unsigned_int ? r_.between(0, 255)
                                                                              : r_.between(-6, 6);
  options.push_back({number_text(t, constant), 6});
  if (t == DType::i64) options.push_back({index(1), 0});
  return options[static_cast<size_t>(r_.below(static_cast<int64_t>(options.size())))];
}

Expr Generator::expr(DType t, int depth) {
  if (depth <= 0) return leaf(t);
  if (r_.chance(9)) {
    const Expr c = bool_expr(depth - 1), a = expr(t, depth - 1), b = expr(t, depth - 1);
    return {"select(" + c.text + ", " + a.text + ", " + b.text + ")", std::max(a.bound, b.bound)};
  }
  if (r_.chance(5)) return converted(t, depth - 1);
  if (ir::is_bool(t)) return bool_expr(depth);
  return ir::is_float(t) ? float_expr(t, depth) : int_expr(t, depth);
}

namespace {

// As many bits, and a whole number whose last bits are units: 1.5 * 2^mantissa for what is signed.
struct FloatBits {
  const char* type;
  const char* sign;  // all other bits
  const char* units;
  const char* base;
};
FloatBits float_bits(DType t) {
  switch (t) {
    case DType::f16:
      return {"u16", "32767", "25600", "1024"};
    case DType::bf16:
      return {"u16", "32767", "17152", "128"};
    case DType::f32:
      return {"u32", "2147483647", "1258291200", "8388608"};
    default:
      return {"u64", "9223372036854775807", "4841369599423283200", "4503599627370496"};
  }
}

}  // namespace

// Made of a float's bits, or taken apart into them: the absolute value, the small number in its last bits,
// and an integer of the bits of what is no -0.
Expr Generator::by_bits(DType t, int depth) {
  const bool apart = !ir::is_float(t);
  const DType f = !apart                    ? t
                  : ir::dtype_bits(t) == 16 ? r_.pick({DType::f16, DType::bf16})
                  : ir::dtype_bits(t) == 32 ? DType::f32
                                            : DType::f64;
  const FloatBits b = float_bits(f);
  const std::string bits = std::string("bitcast(") + b.type + ", ";
  const std::string as_t = std::string("bitcast(") + ir::dtype_name(t) + ", ";
  if (!apart && r_.chance(2)) {
    const std::string word = std::string("cast(") + b.type + ", " + index(1) + " % 8)";
    return {"(" + as_t + "(" + word + " | " + b.units + ")) - " + b.base + ")", 7};
  }
  const Expr e = expr(f, depth);
  if (apart) return {as_t + "abs(" + e.text + "))"};
  return {as_t + bits + e.text + ") & " + b.sign + ")", e.bound};
}

// A value of another type, cast to t.
Expr Generator::converted(DType t, int depth) {
  const bool has_float =
      ir::is_float(t) ? !ir::is_storage_only(t) : ir::is_integer(t) && ir::dtype_bits(t) > 8;
  if (has_float && r_.chance(6)) return by_bits(t, depth);
  const DType from = type_at_hand();
  Expr e = expr(from, depth);
  const std::string cast = std::string("cast(") + ir::dtype_name(t) + ", ";
  // How it rounds and ends, now and then; a bool has neither.
  std::string mode;
  if (!ir::is_bool(t) && r_.chance(3)) {
    if (r_.chance(2)) mode = r_.pick({", nearest", ", zero", ", down", ", up"});
    if (mode.empty() || r_.chance(2)) mode += ", saturate";
  }
  if (!ir::is_float(t)) return {cast + e.text + mode + ")", 0};
  if (ir::is_float(from)) {
    e = bounded(e, from, exact_limit(t));
    return {cast + e.text + mode + ")", e.bound};
  }
  if (ir::is_bool(from)) return {cast + e.text + ")", 1};
  const int64_t modulus = r_.between(1, 9);
  return {cast + "(" + e.text + ") % " + number_text(from, modulus) + ")", static_cast<double>(modulus)};
}

Expr Generator::float_expr(DType t, int depth) {
  Expr a = expr(t, depth - 1);
  switch (r_.below(9)) {
    case 0:
      return {"abs(" + a.text + ")", a.bound};
    case 1:
      return {"neg(" + a.text + ")", a.bound};
    case 2:
      return {r_.pick({"floor(", "ceil(", "round(", "rint(", "trunc("}) + a.text + ")", a.bound};
    default:
      break;
  }
  Expr b = expr(t, depth - 1);
  const double limit = exact_limit(t);
  // What is exact of whole numbers, of which all values are.
  if (r_.chance(8)) {
    if (r_.chance(2)) return {"copysign(" + a.text + ", " + number_text(t, r_.pick({-1, 1})) + ")", a.bound};
    const std::string divisor = number_text(t, r_.between(1, 9));
    return {"fmod(" + a.text + ", " + divisor + ")", std::min(a.bound, 9.0)};
  }
  if (r_.chance(8) && a.bound * b.bound <= limit / 2) {
    const Expr c = bounded(expr(t, depth - 1), t, limit / 2);
    return {"fma(" + a.text + ", " + b.text + ", " + c.text + ")", a.bound * b.bound + c.bound};
  }
  switch (r_.below(6)) {
    case 0:
      return {"min(" + a.text + ", " + b.text + ")", std::max(a.bound, b.bound)};
    case 1:
      return {"max(" + a.text + ", " + b.text + ")", std::max(a.bound, b.bound)};
    case 2:
      while (a.bound * b.bound > limit) {
        Expr& larger = a.bound > b.bound ? a : b;
        larger = bounded(larger, t, std::max(4.0, larger.bound / 16));
      }
      return {"(" + a.text + " * " + b.text + ")", a.bound * b.bound};
    default:
      if (a.bound + b.bound > limit) {
        a = bounded(a, t, limit / 4);
        b = bounded(b, t, limit / 4);
      }
      return {"(" + a.text + (r_.chance(3) ? " - " : " + ") + b.text + ")", a.bound + b.bound};
  }
}

Expr Generator::int_expr(DType t, int depth) {
  const std::string a = expr(t, depth - 1).text;
  switch (r_.below(12)) {
    case 0:
      return {"abs(" + a + ")"};
    case 1:
      return {"neg(" + a + ")"};
    case 2:
      return {r_.pick({"bit_not(", "bit_not(", "popcount(", "clz(", "ctz("}) + a + ")"};
    default:
      break;
  }
  const std::string b = expr(t, depth - 1).text;
  if (t == DType::u32 && r_.chance(4)) {
    if (r_.chance(2)) return {words_of(a, b)};
    return {"byte_permute(" + a + ", " + b + ", " + expr(t, 0).text + ")"};
  }
  if (t == DType::i64 && !functions_.empty() && r_.chance(4)) return {call(a, b)};
  static const char* const infix[] = {"+", "-", "*", "+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"};
  const int64_t at = r_.below(16);
  if (at == 13) return {"min(" + a + ", " + b + ")"};
  if (at == 14) return {"max(" + a + ", " + b + ")"};
  if (at == 15) return {"mulhi(" + a + ", " + b + ")"};
  return {"(" + a + " " + infix[at] + " " + b + ")"};
}

// Random u32 of a seed and a place, which are any integers.
std::string Generator::words_of(const std::string& seed, const std::string& offset) {
  return "philox(" + seed + ", " + offset + ", " + index(1) + ")";
}

Expr Generator::bool_expr(int depth) {
  if (depth > 0 && r_.chance(12))
    return {"(uniform(" + words_of(index(1), index(1)) + ") < 0." + std::to_string(r_.between(1, 9)) +
            "f32)"};
  if (depth <= 0)
    return r_.chance(2) ? leaf(DType::boolean)
                        : Expr{"(" + index(1) + r_.pick({" < ", " == ", " <= "}) + index(1) + ")"};
  if (r_.chance(3)) {
    const std::string a = bool_expr(depth - 1).text;
    if (r_.chance(3)) return {"not(" + a + ")"};
    return {"(" + a + r_.pick({" and ", " or "}) + bool_expr(depth - 1).text + ")"};
  }
  const DType t = type_at_hand();
  const Expr a = expr(t, depth - 1), b = expr(t, depth - 1);
  if (ir::is_float(t) && !ir::is_storage_only(t) && r_.chance(6))
    return {r_.pick({"isnan(", "isinf("}) + a.text + r_.pick({"", " / 0"}) + ")"};
  return {"(" + a.text + r_.pick({" < ", " <= ", " == ", " != ", " > ", " >= "}) + b.text + ")"};
}

}  // namespace tilegen::differential
