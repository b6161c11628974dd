// Operands of the instructions of a function of LLVM bitcode, and what they give (ir/bitcode_function.h).
#pragma once

#include <span>
#include <string>
#include <utility>

#include "ir/bitcode_function.h"

namespace tilegen::ir {

class BitcodeOperands {
 protected:
  // Numbers of the record behind each other.
  struct Operands {
    std::span<const uint64_t> values;
    size_t at = 0;
    bool more() const { return at < values.size(); }
    size_t left() const { return values.size() - at; }
  };

  BitcodeOperands(BitcodeValues& values, BitcodeFunction& f) : values_(values), f_(f) {}

  bool fail(std::string what) { return values_.fail("@" + f_.name + " has " + std::move(what)); }

  bool number(Operands& o, uint64_t& v) {
    if (!o.more()) return fail("an instruction without its operands");
    v = o.values[o.at++];
    return true;
  }
  // What stands so many numbers back.
  uint64_t back(uint64_t distance) const { return static_cast<uint32_t>(values_.size() - distance); }

  // A value that tells its type, behind it where it is computed later.
  bool value(Operands& o, uint32_t& type, std::string& text) {
    uint64_t distance = 0;
    if (!number(o, distance)) return false;
    const uint64_t id = back(distance);
    if (id >= values_.size()) {
      uint64_t written = 0;
      if (!number(o, written)) return false;
      const auto t = values_.type_of_number(written);
      if (!t) return false;
      type = *t;
      return later(id, type, text);
    }
    type = values_[id].type;
    return known(id, text) && is_value(type);
  }
  bool value_of(Operands& o, uint32_t type, std::string& text) {
    uint64_t distance = 0;
    return number(o, distance) && value_at(back(distance), type, text);
  }
  bool value_at(uint64_t id, uint32_t type, std::string& text) {
    if (id >= values_.size()) return later(id, type, text);
    if (values_[id].type != type) return fail("an operand of another type than its instruction");
    return known(id, text) && is_value(type);
  }
  bool known(uint64_t id, std::string& text) {
    const auto t = values_.text(id);
    if (t) text = *t;
    return t.has_value();
  }
  bool later(uint64_t id, uint32_t type, std::string& text) {
    text = "%v" + std::to_string(id);
    return is_value(type);
  }
  bool is_value(uint32_t type) {
    const BitcodeType& t = values_.type(type);
    if (!t.text.empty() && t.kind != BitcodeType::Kind::nothing && t.kind != BitcodeType::Kind::function)
      return true;
    return fail("values that are none of numbers, as pointers");
  }
  std::string name(uint32_t type) const { return values_.type(type).text + " "; }
  bool label(Operands& o, std::string& text) {
    uint64_t n = 0;
    if (!number(o, n)) return false;
    if (n >= blocks_) return fail("a branch to a block that it does not have");
    text = "%b" + std::to_string(n);
    return true;
  }

  bool computes(uint32_t type) {
    BitcodeValues::Value v;
    v.kind = BitcodeValues::Value::Kind::computed;
    v.type = type;
    return is_value(type) && values_.add(std::move(v));
  }
  bool result(uint32_t type, const std::string& text) {
    f_.text += "  %v" + std::to_string(values_.size()) + " = " + text + "\n";
    return computes(type);
  }

  BitcodeValues& values_;
  BitcodeFunction& f_;
  uint64_t blocks_ = 0;  // that the function has
};

}  // namespace tilegen::ir
