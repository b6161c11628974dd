// Code objects of kernels that a test writes in LLVM IR.
#pragma once

#include <string>

namespace tilegen::amdemu {

// Of a module in text, for "gfx942" or "gfx90a". Throws std::runtime_error with what is wrong with it.
std::string code_object_of(const std::string& module, const std::string& cpu);

}  // namespace tilegen::amdemu
