// How many blocks of a multiprocessor a kernel's registers should allow for.
//
// requires: a lowered GPU kernel, complete, without matrix products, whose accumulators decide for
//   themselves.
// ensures: ThreadProgram::min_blocks.
// why here: it needs the registers that lowering declared; the driver's compiler would otherwise spend
// registers on instructions in flight that more warps hide as well.
// refuses: nothing; kernels whose threads hold many values keep one block, as they have enough to do at once.
//
// Rule: such a kernel waits for memory, which warps hide; it should hold its values and a fixed number of
// registers besides, and as many blocks as that leaves room for.
#pragma once

#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::lower {

void choose_min_blocks(thread::ThreadProgram& p, const target::Target& target);

}  // namespace tilegen::lower
