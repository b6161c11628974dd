// Walks over the points of an iteration layout by a block of many threads.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

struct Walk {
  layout::Fragment iteration;
  int64_t vector = 1;
  std::string origin;
  const plan::OpPlan* plan = nullptr;  // of the op whose points are walked; null: `vector` is the most
  bool in_memory = false;              // no access is to a register
  bool may_mask = true;                // its stores may depend on conditions
};
// The loops over the points that one thread walks, around what `emit` puts into their body. While facts are
// looked for, those of the walk, and no loops.
void emit_walk(LoweringContext& k, const Walk& walk, const EmitPoint& emit, thread::Block& out);

// The walk with vectors of one width.
struct Attempt {
  thread::Block block;
  bool legal = true;         // every wide access is aligned
  bool wide = false;         // there is one
  bool registers = false;    // all accesses are to registers; told of vectors
  bool scattered = false;    // no access to memory lies along the vectors
  bool lane_bounds = false;  // predicates differ between the lanes of a vector
  ExprId interior;           // the block's accesses to tensors are all in bounds; invalid: not told
};
// `code`: the block is wanted, not only facts of its accesses.
Attempt try_walk(LoweringContext& k, const Walk& walk, int64_t width, const EmitPoint& emit,
                 bool code = true);
void inspect_vector(LoweringContext& k, const Nest& nest, const thread::Block& body, Attempt& result);
// Vectors that were looked at are a fact, or as planned, or an error.
void judge_vector(LoweringContext& k, const Attempt& a, int64_t width, const std::string& op);

// What a form that is given up has added to the program goes.
struct Sizes {
  size_t stmts, vars, memories;
};
Sizes sizes(const LoweringContext& k);
void drop_since(LoweringContext& k, const Sizes& before);

}  // namespace tilegen::lower
