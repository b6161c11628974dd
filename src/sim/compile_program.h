// Thread program to the simulator's bytecode: once per launch, before any block runs.
#pragma once

#include "sim/bytecode.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilegen::sim {

// requires: a verified program, which must outlive the result, as must the target.
// refuses: host statements (a micro-kernel), atoms the target lacks.
Expected<Bytecode> compile_program(const thread::ThreadProgram& program, const target::Target& target);

}  // namespace tilegen::sim
