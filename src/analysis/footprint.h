// Which elements the ops of a block of statements touch, by the iteration of the loop that the block is the
// body of.
//
// requires: a checked program, collected ops.
// ensures: every element that an op reads or writes in an iteration is in one of its footprints of that
//   iteration. An op reads what decides whether it runs, too: conditions of branches and bounds of loops
//   around it, inside the block.
#pragma once

#include <span>
#include <vector>

#include "analysis/kernel_ops.h"
#include "arith/linear_sum.h"

namespace tilegen::analysis {

// What an access touches: a value, or a tensor. Different tensors share no memory.
struct Place {
  ValueId value;        // on chip
  ir::BufferId tensor;  // else
  auto operator<=>(const Place&) const = default;
};

// Of one dimension: invariant + coefficient * (the loop's variable) + low .. high.
struct IndexRange {
  bool known = false;    // else any element
  bool dense = false;    // every element of the range is touched
  arith::Sum invariant;  // without its constant; the same in all iterations
  int64_t coefficient = 0;
  int64_t low = 0, high = 0;
};

// A branch, with its side, or a loop around a statement.
struct Enclosing {
  ir::StmtId stmt;
  bool loop = false;
  bool otherwise = false;  // the else side
  bool operator==(const Enclosing&) const = default;
};

struct Footprint {
  OpId op;
  Place place;
  bool write = false;
  bool always = false;  // in every iteration, as far as the block decides it
  size_t position = 0;  // of the statement that touches it, in program order
  size_t around = 0;    // index into Footprints::around
  std::vector<IndexRange> dims;
};

struct Footprints {
  std::vector<Footprint> list;                 // in program order of the ops
  std::vector<std::vector<Enclosing>> around;  // outermost first, inside the block
};

// `variable`: of the loop; invalid for a block that runs once.
Footprints collect_footprints(const ir::Program& p, const KernelOps& ops, const ir::Block& block,
                              ir::VarId variable);

}  // namespace tilegen::analysis
