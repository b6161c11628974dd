// Turns copies that store every second or fourth element into such that store whole vectors.
//
// The dot products of the micro-kernels take 2 or 4 steps of k side by side (pack), so a row of B that lies
// along n is stored with a distance:
//
//   serial i in 0..k { vectorized v { Bs[.. i // 4 * 256 + v * 4 + i % 4] = B[i, v] } }
//   serial i in 0..k / 4 { unrolled q in 0..4 {
//     vectorized v { Bs[.. i * 256 + v * 4 + q] = B[i * 4 + q, v] } } }
//
// In the second form the rows of one group stand together, and the code generator stores them as one run of
// neighbours.
//
// requires: a verified host thread program.
// ensures: the same stores of the same values, those of a nest in another order.
// why here: after the steps that look for nests of equal loops.
// refuses (silently, it is a derived step): nests of several stores, stores to global memory, values that
//   read what is on chip, loops whose extent the distance does not divide, elements that are stored twice.
#pragma once

#include "thread/thread_program.h"

namespace tilegen::lower {

void interleave_rows(thread::ThreadProgram& p);

}  // namespace tilegen::lower
