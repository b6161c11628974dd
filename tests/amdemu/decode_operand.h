// Operands and modifiers of an instruction's text.
#pragma once

#include <string>
#include <vector>

#include "machine.h"

namespace tilegen::amdemu {

bool parse_operand(std::string text, Operand& o);
// "offset:16", "sc0", "row_shr:1", "vmcnt(0)"; false: no such modifier.
bool parse_modifier(const std::string& text, Instruction& in);
std::vector<int> numbers_in(const std::string& text);

}  // namespace tilegen::amdemu
