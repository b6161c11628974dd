// Machine code of gfx942 and gfx90a as text, by LLVM's own disassembler.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilegen::amdemu {

struct ListedInstruction {
  uint64_t address = 0;
  uint32_t size = 4;       // bytes
  uint32_t words[2] = {};  // the first of its encoding
  std::string text;        // "v_add_u32_e32 v1, v0, v2"; "" where it is none
};

std::vector<ListedInstruction> disassemble(std::string_view code, uint64_t address, const std::string& cpu);

}  // namespace tilegen::amdemu
