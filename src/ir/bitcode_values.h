// Types and values of LLVM bitcode, and how LLVM IR writes them (ir/bitcode_text.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/bitcode_stream.h"

namespace tilegen::ir {

struct BitcodeType {
  enum class Kind : uint8_t { none, nothing, integer, real, vector, array, structure, function } kind{};
  unsigned bits = 0;            // of a number
  uint64_t count = 0;           // of elements
  std::vector<uint32_t> parts;  // an element's; those of a structure; a function's result and parameters
  std::string text;             // empty: no value has it
};

class BitcodeValues {
 public:
  struct Value {
    enum class Kind : uint8_t { constant, computed, function } kind{};
    uint32_t type = 0;
    BitcodeRecord constant;
    size_t function = 0;
  };

  // Each reads the block that the stream came to; false: `mistake` or the stream says why.
  bool read_types(BitcodeStream& s);
  bool read_constants(BitcodeStream& s);

  // None: the module has no such type, which `mistake` then says.
  std::optional<uint32_t> type_of_number(uint64_t number);
  const BitcodeType& type(uint32_t t) const { return types_[t]; }
  bool is_real(uint32_t t) const;  // or a vector of such
  uint32_t of_bools(uint32_t like);
  std::optional<uint32_t> vector_of(uint32_t element, uint64_t count);

  bool add(Value v);
  size_t size() const { return values_.size(); }
  void forget_since(size_t mark) { values_.resize(mark); }
  const Value& operator[](size_t i) const { return values_[i]; }
  // "%v7", "0x3FF0000000000000", "{ i64 1, float undef }"; of constants and of what instructions compute.
  std::optional<std::string> text(uint64_t value);

  bool fail(std::string what);
  const std::string& mistake() const { return mistake_; }

 private:
  bool type_record(const BitcodeRecord& r);
  bool add_type(BitcodeType t);
  bool parts_text(BitcodeType& t, const std::vector<uint64_t>& numbers, size_t first);
  std::optional<std::string> constant_text(const Value& v, int depth);
  std::optional<std::string> listed(const BitcodeType& t, const std::vector<std::string>& elements);
  std::string scalar_text(const BitcodeType& t, uint64_t bits) const;
  std::optional<std::string> numbers_text(const Value& v);

  std::vector<BitcodeType> types_;
  std::vector<uint32_t> numbered_;  // types by their number in the bitcode
  std::vector<Value> values_;
  std::string mistake_;
};

}  // namespace tilegen::ir
