// Which text of a function becomes code for a target (ir/native.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/native.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilegen::codegen {

using Natives = std::span<const std::shared_ptr<const ir::NativeFunction>>;

// None: code has the function's meaning.
const ir::NativeText* native_text(const ir::NativeFunction& f, target::CodeFormat format);

// A line for each function whose text is in code of the format: "ex2 asm ptx".
std::string native_text_list(Natives natives, target::CodeFormat format);

// What is wrong with LLVM IR of the functions for code of the target, before any is made
// (llvm/native_functions.cpp). Text of instructions was judged when the program was made.
std::optional<Error> check_native_text(Natives natives, const target::Target& target);

}  // namespace tilegen::codegen
