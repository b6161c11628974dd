#include "ir/bitcode_function.h"

#include <optional>
#include <span>
#include <utility>

#include "ir/bitcode_operands.h"
#include "ir/bitcode_words.h"
#include "ir/native.h"

namespace tilegen::ir {
namespace {

using Kind = BitcodeType::Kind;

namespace code {
enum : uint64_t {
  blocks = 1,
  binary = 2,
  cast = 3,
  extract_element = 6,
  insert_element = 7,
  shuffle = 8,
  compare_old = 9,
  ret = 10,
  branch = 11,
  switch_block = 12,
  unreachable = 15,
  phi = 16,
  extract_value = 26,
  insert_value = 27,
  compare = 28,
  select = 29,
  location_again = 33,
  call = 34,
  location = 35,
  unary = 56,
  freeze = 58,
  first_debug = 61,
  last_debug = 65
};
}

constexpr uint64_t kConstantsBlock = 11;
class Body : private BitcodeOperands {
 public:
  Body(BitcodeStream& s, BitcodeValues& values, std::vector<BitcodeFunction>& functions, size_t which)
      : BitcodeOperands(values, functions[which]), s_(s), functions_(functions) {}

  bool read() {
    const BitcodeType& type = values_.type(f_.type);
    std::vector<std::string> names;
    for (size_t i = 1; i < type.parts.size(); ++i) {
      names.push_back(" %v" + std::to_string(values_.size()));
      if (!computes(type.parts[i])) return false;
    }
    f_.text = "define " + bitcode_signature(values_, f_, names) + " {\nb0:\n";
    return s_.enter() && block();
  }

 private:
  bool block() {
    BitcodeRecord r;
    uint64_t number = 0;
    for (;;) switch (s_.next(r, number)) {
        case BitcodeStream::Entry::end:
          if (closed_ != blocks_ || blocks_ == 0) return fail("fewer blocks than it tells");
          f_.text += "}\n";
          f_.has_body = true;
          return true;
        case BitcodeStream::Entry::wrong:
          return false;
        case BitcodeStream::Entry::block:
          if (number == kConstantsBlock ? !values_.read_constants(s_) : !s_.skip()) return false;
          break;
        case BitcodeStream::Entry::record:
          if (!statement(r)) return false;
          if (f_.text.size() > 2 * kMaxNativeText) return fail("too much code");
      }
  }

  bool statement(const BitcodeRecord& r) {
    if (r.code == code::blocks) {
      if (blocks_ != 0 || r.values.empty() || r.values[0] == 0 || r.values[0] > 4096)
        return fail("no number of blocks");
      blocks_ = r.values[0];
      return true;
    }
    if (r.code == code::location || r.code == code::location_again ||
        (r.code >= code::first_debug && r.code <= code::last_debug))
      return true;
    if (closed_ >= blocks_) return fail("instructions behind its last block");
    Operands o{r.values};
    switch (r.code) {
      case code::binary:
        return binary(o);
      case code::unary:
        return unary(o);
      case code::cast:
        return cast(o);
      case code::compare:
      case code::compare_old:
        return compare(o);
      case code::select:
        return select(o);
      case code::freeze:
        return freeze(o);
      case code::extract_element:
      case code::insert_element:
      case code::shuffle:
        return elements(r.code, o);
      case code::extract_value:
      case code::insert_value:
        return parts(r.code, o);
      case code::phi:
        return phi(o);
      case code::call:
        return call(o);
      case code::ret:
      case code::branch:
      case code::switch_block:
      case code::unreachable:
        return ends_block(r.code, o);
      default:
        break;
    }
    if (const char* what = memory_instruction(r.code)) return fail(std::string("memory: ") + what);
    return fail("an instruction that is not taken (record " + std::to_string(r.code) + ")");
  }

  bool binary(Operands& o) {
    uint32_t type = 0;
    std::string a, b;
    uint64_t op = 0, flags = 0;
    if (!value(o, type, a) || !value_of(o, type, b) || !number(o, op)) return false;
    if (o.more() && !number(o, flags)) return false;
    const bool real = values_.is_real(type);
    const char* word = bitcode_operator(op, real);
    if (!word) return fail("an operator that is not known");
    return result(type, std::string(word) + " " + (real ? fast_flags(flags) : integer_flags(op, flags)) +
                            name(type) + a + ", " + b);
  }
  bool unary(Operands& o) {
    uint32_t type = 0;
    std::string a;
    uint64_t op = 0, flags = 0;
    if (!value(o, type, a) || !number(o, op) || (o.more() && !number(o, flags))) return false;
    if (op != 0 || !values_.is_real(type)) return fail("an operator that is not known");
    return result(type, "fneg " + fast_flags(flags) + name(type) + a);
  }
  bool cast(Operands& o) {
    uint32_t type = 0;
    std::string a;
    uint64_t to = 0, op = 0;
    if (!value(o, type, a) || !number(o, to) || !number(o, op)) return false;
    const auto t = values_.type_of_number(to);
    if (!t) return false;
    const char* word = bitcode_conversion(op);
    if (!word) return fail("a conversion that is not taken, as of pointers");
    if (!is_value(*t)) return false;
    return result(*t, std::string(word) + " " + name(type) + a + " to " + values_.type(*t).text);
  }
  bool compare(Operands& o) {
    uint32_t type = 0;
    std::string a, b;
    uint64_t how = 0, flags = 0;
    if (!value(o, type, a) || !value_of(o, type, b) || !number(o, how)) return false;
    if (o.more() && !number(o, flags)) return false;
    const bool real = values_.is_real(type);
    const char* word = bitcode_comparison(how, real);
    if (!word) return fail("a comparison that is not known");
    const std::string words = real ? "fcmp " + fast_flags(flags) + word : std::string("icmp ") + word;
    return result(values_.of_bools(type), words + " " + name(type) + a + ", " + b);
  }
  bool select(Operands& o) {
    uint32_t type = 0, of_choice = 0;
    std::string a, b, choice;
    uint64_t flags = 0;
    if (!value(o, type, a) || !value_of(o, type, b) || !value(o, of_choice, choice)) return false;
    if (o.more() && !number(o, flags)) return false;
    return result(type, "select " + (values_.is_real(type) ? fast_flags(flags) : std::string()) +
                            name(of_choice) + choice + ", " + name(type) + a + ", " + name(type) + b);
  }
  bool freeze(Operands& o) {
    uint32_t type = 0;
    std::string a;
    return value(o, type, a) && result(type, "freeze " + name(type) + a);
  }

  // Of vectors.
  bool elements(uint64_t which, Operands& o) {
    uint32_t type = 0, other = 0;
    std::string a, b, c;
    if (!value(o, type, a)) return false;
    const BitcodeType vector = values_.type(type);
    if (vector.kind != Kind::vector) return fail("elements of what is no vector");
    if (which == code::extract_element)
      return value(o, other, b) &&
             result(vector.parts[0], "extractelement " + name(type) + a + ", " + name(other) + b);
    if (!value_of(o, which == code::shuffle ? type : vector.parts[0], b) || !value(o, other, c)) return false;
    if (which == code::insert_element)
      return result(type, "insertelement " + name(type) + a + ", " + name(vector.parts[0]) + b + ", " +
                              name(other) + c);
    if (values_.type(other).kind != Kind::vector) return fail("elements of what is no vector");
    const auto made = values_.vector_of(vector.parts[0], values_.type(other).count);
    return made &&
           result(*made, "shufflevector " + name(type) + a + ", " + name(type) + b + ", " + name(other) + c);
  }
  // Of structures and arrays.
  bool parts(uint64_t which, Operands& o) {
    uint32_t type = 0, part = 0;
    std::string a, b, at;
    if (!value(o, type, a) || (which == code::insert_value && !value(o, part, b))) return false;
    uint32_t reached = type;
    if (!o.more() || o.left() > 8) return fail("no place in a structure");
    while (o.more()) {
      const uint64_t i = o.values[o.at++];
      const BitcodeType& t = values_.type(reached);
      const bool structure = t.kind == Kind::structure;
      if ((!structure && t.kind != Kind::array) || i >= (structure ? t.parts.size() : t.count))
        return fail("a place that a structure does not have");
      reached = t.parts[structure ? i : 0];
      at += ", " + std::to_string(i);
    }
    if (which == code::extract_value) return result(reached, "extractvalue " + name(type) + a + at);
    if (part != reached) return fail("an operand of another type than its instruction");
    return result(type, "insertvalue " + name(type) + a + ", " + name(part) + b + at);
  }

  // [type, (distance, its sign the lowest bit; block)..., flags of floats where they are]
  bool phi(Operands& o) {
    uint64_t written = 0;
    if (!number(o, written)) return false;
    const auto type = values_.type_of_number(written);
    if (!type) return false;
    const uint64_t flags = o.left() % 2 != 0 ? o.values.back() : 0;
    std::string all;
    while (o.left() >= 2) {
      const uint64_t distance = o.values[o.at++];
      const uint64_t id = back(distance & 1 ? 0 - (distance >> 1) : distance >> 1);
      std::string v, from;
      if (!value_at(id, *type, v) || !label(o, from)) return false;
      all += (all.empty() ? "[" : ", [") + v + ", " + from + "]";
    }
    if (all.empty()) return fail("a choice of nothing");
    return is_value(*type) &&
           result(*type,
                  "phi " + (values_.is_real(*type) ? fast_flags(flags) : std::string()) + name(*type) + all);
  }

  // [attributes, convention, flags of floats if bit 17 is set, type if bit 15 is, function, arguments...]
  bool call(Operands& o) {
    uint64_t skipped = 0, convention = 0, flags = 0, distance = 0;
    if (!number(o, skipped) || !number(o, convention)) return false;
    if (convention >> 17 & 1 && !number(o, flags)) return false;
    if (convention >> 15 & 1 && !number(o, skipped)) return false;
    if (!number(o, distance)) return false;
    const uint64_t id = back(distance);
    if (id >= values_.size() || values_[id].kind != BitcodeValues::Value::Kind::function)
      return fail("a call of what is no function of the bitcode");
    const BitcodeFunction& callee = functions_[values_[id].function];
    const std::vector<uint32_t> signature = values_.type(callee.type).parts;
    std::string args;
    for (size_t i = 1; i < signature.size(); ++i) {
      std::string a;
      if (!value_of(o, signature[i], a)) return false;
      args += (i > 1 ? ", " : "") + name(signature[i]) + a;
    }
    if (o.more()) return fail("a call with more arguments than parameters");
    const bool nothing = values_.type(signature[0]).kind == Kind::nothing;
    const bool real = !nothing && values_.is_real(signature[0]);
    const std::string text = "call " + (real ? fast_flags(flags) : std::string()) + name(signature[0]) + "@" +
                             callee.name + "(" + args + ")";
    if (!nothing) return result(signature[0], text);
    f_.text += "  " + text + "\n";
    return true;
  }

  bool ends_block(uint64_t which, Operands& o) {
    std::string text = "unreachable", a, b;
    uint32_t type = 0;
    if (which == code::ret) {
      text = "ret void";
      if (o.more()) {
        if (!value(o, type, a)) return false;
        text = "ret " + name(type) + a;
      }
    } else if (which == code::branch) {
      if (!label(o, a)) return false;
      text = "br label " + a;
      if (o.more()) {
        std::string choice;
        if (!label(o, b) || !condition(o, choice)) return false;
        text = "br i1 " + choice + ", label " + a + ", label " + b;
      }
    } else if (which == code::switch_block && !switch_text(o, text)) {
      return false;
    }
    f_.text += "  " + text + "\n";
    if (++closed_ < blocks_) f_.text += "b" + std::to_string(closed_) + ":\n";
    return true;
  }
  bool condition(Operands& o, std::string& text) {
    uint64_t distance = 0;
    if (!number(o, distance)) return false;
    const uint64_t id = back(distance);
    if (id < values_.size()) {
      if (values_.type(values_[id].type).text != "i1") return fail("a condition that is no bool");
      return known(id, text);
    }
    text = "%v" + std::to_string(id);
    return true;
  }
  // [type, value, block else, (constant's number, block)...]
  bool switch_text(Operands& o, std::string& text) {
    uint64_t written = 0;
    std::string v, otherwise;
    if (!number(o, written)) return false;
    const auto type = values_.type_of_number(written);
    if (!type || !value_of(o, *type, v) || !label(o, otherwise)) return false;
    text = "switch " + name(*type) + v + ", label " + otherwise + " [";
    while (o.more()) {
      uint64_t id = 0;
      std::string at, to;
      if (!number(o, id) || !value_at(id, *type, at) || !label(o, to)) return false;
      text += " " + name(*type) + at + ", label " + to;
    }
    text += " ]";
    return true;
  }

  BitcodeStream& s_;
  std::vector<BitcodeFunction>& functions_;
  uint64_t closed_ = 0;  // blocks that have ended
};

}  // namespace

std::string bitcode_signature(const BitcodeValues& values, const BitcodeFunction& f,
                              const std::vector<std::string>& names) {
  const BitcodeType& type = values.type(f.type);
  std::string text = values.type(type.parts[0]).text + " @" + f.name + "(";
  for (size_t i = 1; i < type.parts.size(); ++i)
    text += (i > 1 ? ", " : "") + values.type(type.parts[i]).text + (names.empty() ? "" : names[i - 1]);
  return text + ")";
}

bool read_bitcode_body(BitcodeStream& s, BitcodeValues& values, std::vector<BitcodeFunction>& functions,
                       size_t which) {
  const size_t mark = values.size();
  const bool read = Body(s, values, functions, which).read();
  values.forget_since(mark);
  return read;
}

}  // namespace tilegen::ir
