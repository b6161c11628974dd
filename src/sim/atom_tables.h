// Matrix instructions of a program: which element of a matrix each lane has in each register.
#pragma once

#include <functional>
#include <string>

#include "sim/bytecode.h"
#include "target/target.h"

namespace tilegen::sim {

// What the simulator cannot run, and a way out.
using RefuseAtom = std::function<void(const std::string& what, const std::string& hint)>;

// Index into the bytecode's tables, added where there is none; kNothing, and refused, without an atom of that
// name.
uint32_t find_atom(Bytecode& code, const thread::ThreadProgram& p, const target::Target& target,
                   const thread::WarpMma& m, const RefuseAtom& refuse);
uint32_t find_warpgroup_atom(Bytecode& code, const thread::ThreadProgram& p, const target::Target& target,
                             const thread::WarpgroupMma& m, const RefuseAtom& refuse);

}  // namespace tilegen::sim
