// Seeded random tile programs, well typed and free of undefined reads, each with the dims to launch it.
//
// Every floating value is a whole number small enough that no operation rounds (inputs may also hold
// infinities and NaNs): a buffer of a floating type never keeps more than tile_cap(type), and an expression's
// magnitude is followed while it is made. So all executors must agree exactly, whatever order they sum in and
// whatever they contract. Functions that round have tensors of their own, which the launch bounds.
#pragma once

#include "executors.h"

namespace tilegen::differential {

struct RandomProgramOptions {
  int64_t budget = 150000;  // elements touched by one launch, roughly: bounds the interpreter's time
  int max_statements = 14;  // of one kernel
  bool for_gpu =
      false;  // mostly what a GPU plan serves: products of whole instructions, fragments indexed plainly
  bool for_amd = false;  // annotations that NVIDIA's GPUs alone can have are left out: the rest is the same
};

Case random_case(uint64_t seed, const RandomProgramOptions& options = {});

// A program of i64 expressions over numbers at the edges of the types, each of which is a value, an index, a
// divisor, a bound of a loop, a condition or where a copy begins. Everything outside a tensor is read and
// written on purpose.
Case random_integers(uint64_t seed);
constexpr int kIntegersOfAProgram = 6;

// All kinds by turns: half are made for GPUs, of every eight one is of products in a pipelined loop
// (random_pipeline.h) and one of integers at the edges.
Case random_mix(uint64_t seed);

}  // namespace tilegen::differential
