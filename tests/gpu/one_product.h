// One product of a warpgroup in a program of its own, and the sum of products that it has to be.
//
// Products of integers, and of whole numbers that are small enough, are exact. Others are within a bound: the
// order and the rounding of the sum within one instruction are the hardware's. On compute capability 9.0 the
// addends of an instruction (its products and the accumulator) are aligned to the largest and truncated: of
// 16-bit floats bits below 2^-23 of the largest are lost at most, of 8-bit floats those below 2^-13, and so
// are those of the result (DeepSeek-V3 technical report, 3.5.2: 14 bits are kept).
#pragma once

#include "warpgroup_operands.h"

namespace tilegen::gpu {

constexpr int64_t kRows = 64, kThreads = 128;

enum class Start { accumulate, overwrite, loop };  // loop: of two rounds the first overwrites

struct Product {
  const target::WarpgroupAtom* atom = nullptr;
  int n = 64;
  int64_t steps = 1;
  OperandForm a, b;
  Start start = Start::accumulate;

  int64_t k() const { return steps * atom->k; }
  int64_t a_k() const { return steps * atom->a_k(); }
  int rounds() const { return start == Start::loop ? 2 : 1; }
  std::string name() const {
    return target::warpgroup_instruction_name(*atom, n) + ", " + std::to_string(steps) + " steps, A " +
           a.name() + ", B " + b.name() +
           (start == Start::accumulate  ? ", accumulates"
            : start == Start::overwrite ? ", overwrites"
                                        : ", in a loop");
  }
};

struct Operands {
  std::string name;
  bool exact = true;
  Matrix a, b, c;
  // Of a sparse A: a word of each step, thread after thread, of any places, no two of a group equal.
  std::vector<uint32_t> places;

  Operands(const Product& x, std::string what)
      : name(std::move(what)),
        a(x.atom->a, kRows, x.a_k()),
        b(x.atom->b, x.n, x.k()),
        c(x.atom->c, kRows, x.n),
        places(any_places(x)) {}
  // k of value `k` of a row of A.
  int64_t k_of(const Product& x, int64_t row, int64_t k) const;

 private:
  static std::vector<uint32_t> any_places(const Product& x);
};

// True for results that are the sum of products, or within the bound of it, on every executor; else the test
// fails.
bool expect_product(const Product& x, const std::vector<Operands>& all);

// How much of the bound the device has used at most since it was set.
extern double used_share;

}  // namespace tilegen::gpu
