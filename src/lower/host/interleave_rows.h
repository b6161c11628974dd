// Turns copies that store elements or words one by one into such that store whole vectors.
//
// The dot products of the micro-kernels take 2 or 4 steps of k side by side (pack), so a row of B that lies
// along n is stored with a distance:
//
//   serial i in 0..k { vectorized v { Bs[.. i // 4 * 256 + v * 4 + i % 4] = B[i, v] } }
//   serial i in 0..k / 4 { unrolled q in 0..4 {
//     vectorized v { Bs[.. i * 256 + v * 4 + q] = B[i * 4 + q, v] } } }
//
// A row that lies along k is stored word by word (pack elements), and the words of 16 rows, or 8 or 4, are
// neighbours:
//
//   serial i in 0..n { vectorized v in 0..32 { Bs[.. v // 2 * 64 + i % 32 * 2 + v % 2] = B[i, v] } }
//   serial i in 0..n / 32 { serial g in 0..2 { unrolled r in 0..16 {
//     vectorized v in 0..32 { Bs[.. v // 2 * 64 + g * 32 + r * 2 + v % 2] = B[i * 32 + g * 16 + r, v] } } } }
//
// In the second forms the rows of one group stand together, and the code generator stores them as one run of
// neighbours, or as one for each word, transposed in registers.
//
// requires: a verified host thread program.
// ensures: the same stores of the same values, those of a nest in another order.
// why here: after the steps that look for nests of equal loops.
// refuses (silently, it is a derived step): nests of several stores, stores to global memory, values that
//   read what is on chip, loops whose extent the group does not divide, elements that are stored twice,
//   elements of more than 32 bits that are transposed.
#pragma once

#include "thread/thread_program.h"

namespace tilegen::lower {

void interleave_rows(thread::ThreadProgram& p);

}  // namespace tilegen::lower
