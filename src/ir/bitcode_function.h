// Bodies of functions of LLVM bitcode (ir/bitcode_text.h).
#pragma once

#include <string>
#include <vector>

#include "ir/bitcode_stream.h"
#include "ir/bitcode_values.h"

namespace tilegen::ir {

struct BitcodeFunction {
  std::string name;
  uint32_t type = 0;
  bool defined = false, has_body = false;
  std::string text;  // "declare ...", "define ... { ... }"
};

// "float @f(float %v4, i32 %v5)", the parameters as they are named, if they are.
std::string bitcode_signature(const BitcodeValues& values, const BitcodeFunction& f,
                              const std::vector<std::string>& names);

// The body, of the block that the stream came to, as text of functions[which].
bool read_bitcode_body(BitcodeStream& s, BitcodeValues& values, std::vector<BitcodeFunction>& functions,
                       size_t which);

}  // namespace tilegen::ir
