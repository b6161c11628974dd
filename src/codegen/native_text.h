// Which text of a function becomes code for a target (ir/native.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// The function whose text made line `line` of a PTX text, counting from 1; empty: the library did.
std::string native_function_at(std::string_view ptx, size_t line);

// What is wrong with the functions' texts for code of the target, before any is made
// (llvm/native_functions.cpp): LLVM IR, and instructions that AMD targets lack. What instructions may do was
// judged when the program was made.
std::optional<Error> check_native_text(Natives natives, const target::Target& target);

}  // namespace tilegen::codegen
