// What is done to a kernel's thread program for the host between lowering and code generation, in order.
//
// requires: a verified host thread program.
// ensures: the same results.
// why here: after lowering, which writes one nest per operation.
// refuses: nothing; each step says what it leaves as it is.
#pragma once

#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::lower {

void host_steps(thread::ThreadProgram& p, const target::Target& target);

}  // namespace tilegen::lower
