// Words of LLVM IR for the numbers of bitcode. Null: none that is taken here.
#pragma once

#include <cstdint>
#include <string>

namespace tilegen::ir {

const char* bitcode_operator(uint64_t op, bool real);
const char* bitcode_conversion(uint64_t op);
const char* bitcode_comparison(uint64_t how, bool real);
const char* memory_instruction(uint64_t code);  // by its record

std::string fast_flags(uint64_t flags);
std::string integer_flags(uint64_t op, uint64_t flags);

}  // namespace tilegen::ir
