// LLVM bitcode as the text of LLVM IR, which functions with native text take (ir/native.h).
//
//   42 43 c0 de ...   ->   define float @f(float %v1) {
//                          b0:
//                            %v3 = fmul fast float %v1, 0x4000000000000000
//                            ret float %v3
//                          }
//
// A program holds the text, so it is printed, hashed and judged as what a user writes; that it fits the
// signature and is well formed is found where the text is read (codegen/llvm/native_functions.h).
//
// requires: nothing: any bytes. ensures: ends, with text of at most kMaxNativeText characters.
// why here: parsing and building have no LLVM, and LLVM's reader is not made for bytes of strangers.
// refuses: what such a text may not hold: globals, memory, inline assembly, exceptions, constant expressions,
//   bundles; bitcode without a table of strings (LLVM before 5). Attributes, metadata, debug information and
//   the order of uses are left out, as are promises that integers do not wrap in ways that LLVM 19 has not.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "support/diagnostic.h"

namespace tilegen::ir {

Expected<std::string> bitcode_text(std::span<const uint8_t> bytes);

}  // namespace tilegen::ir
