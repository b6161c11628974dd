// Instructions that stand in a program as text: a word, and its operands.
//
// Read token by token, so that what is not known is refused: instructions are those that compute in
// registers of their own lane; what they write are results and, in PTX, registers that the text declares
// between braces; what they read are parameters, these registers, results and numbers. No labels, no
// directives but .reg, no names of registers or symbols, no memory, no other lane's values, no special
// registers.
#pragma once

#include <optional>
#include <string>

#include "ir/native.h"

namespace tilegen::ir {

struct NativeAsm {
  std::string text;          // as an assembler takes it, operands as $0, $1, ...
  int64_t instructions = 0;  // several: results are written while parameters are still read
  bool carry = false;        // GCN: vcc is written
};

// "1 result", "2 results"
std::string counted(size_t n, std::string_view what);

// What is wrong with the text, of an instruction of `results` results and `parameters` parameters.
struct NativeAsmError {
  std::string message, hint;
};

// One of them is set.
struct NativeAsmRead {
  NativeAsm code;
  std::optional<NativeAsmError> error;
};
NativeAsmRead read_native_asm(NativeForm form, std::string_view text, size_t results, size_t parameters);

}  // namespace tilegen::ir
