// Registers that a thread needs, and how many blocks a multiprocessor has at once.
#pragma once

#include "cost/op_work.h"

namespace tilegen::cost {

struct Occupancy {
  int64_t registers = 0;   // of a computing thread, that it needs about
  int64_t may_have = 0;    // that it can have
  int64_t blocks = 1;      // at once on a multiprocessor
  const char* bound = "";  // what allows no more: "shared memory", "registers", "threads"
  bool spills() const { return may_have > 0 && registers > may_have; }
};
Occupancy occupancy(const PlannedKernel& k);

}  // namespace tilegen::cost
