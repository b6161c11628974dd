// Fuses neighbouring loop nests of a thread program, so that element-wise steps over one tile pass over
// memory once.
//
// requires: a verified thread program.
// ensures: the same results; statements keep their origin; nests of one shape that depend on each other only
// point by point
//   become one nest.
// why here: after lowering, which writes one nest per operation; before code generation, which keeps
// values of one
//   iteration in registers.
// refuses (silently, it is a derived step): nests of different loops, accesses to one memory at different
// points, writes to
//   global memory beside other global accesses (tensors may alias).
#pragma once

#include "thread/thread_program.h"

namespace tilegen::lower {

void fuse_loops(thread::ThreadProgram& p);

}  // namespace tilegen::lower
