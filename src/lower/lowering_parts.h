// What the files of this folder hand each other: nests of loops, fragments in registers, operands, pipelines.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "analysis/warpgroup_operand.h"
#include "expand/scheduled_kernel.h"
#include "layout/fragment.h"
#include "plan/schedule.h"
#include "thread/thread_program.h"

namespace tilegen::lower {

using ir::ExprId;
using ir::VarId;
using thread::MemoryId;

struct LoweringContext;  // lowering_context.h

struct LoopBounds {
  ExprId begin, extent;
};

// One dimension of an iteration nest: a loop variable standing for a digit of the iteration layout.
struct NestLoop {
  VarId var;
  int64_t extent = 1;
  thread::LoopForm form = thread::LoopForm::serial;
};

// Loops that walk an iteration layout, outermost first, and the logical point they stand for.
struct Nest {
  std::vector<NestLoop> loops;
  std::vector<ExprId> point;     // per iteration dimension
  std::vector<int64_t> extents;  // GPU: of those that have padding after them; 0: none
  ExprId inside;                 // bool: the point is no padding; a true literal when it never is

  // GPU: digit variable -> expression of the thread variable. Threads that no digit reaches walk the points
  //   of another.
  std::map<VarId, ExprId> thread_digits;
  std::map<VarId, layout::Digit> warp_digits;  // GPU: of these, what is the same for the lanes of a warp
  // GPU: of the threads that walk this point, the one that writes to memory; invalid when there is only one.
  ExprId writer;
};

// Puts what is done at a point of the nest into the body of its innermost loop.
using EmitPoint = std::function<void(const Nest&, thread::Block&)>;

// GPU: 0 <= index, or index < extent where there is one; a dimension of a tensor.
struct Bound {
  ExprId index, extent;
};

// GPU: where the registers of a fragment are and how its elements are spread over threads and registers.
struct FragmentView {
  MemoryId memory;
  const layout::Fragment* fragment = nullptr;
};

// GPU: a copy of a product's operand with k as its fast dimension, of which the statements being lowered use
//   one at `begin`.
struct TransposedOperand {
  std::optional<analysis::KMajorCopy> copy;
  MemoryId memory;
  ExprId begin;
};

// GPU: a pipeline of the scheduled program and the barriers that hand its slots over, where it has some.
struct PipelineBarriers {
  const expand::Pipeline* pipeline = nullptr;
  int full = -1, empty = -1;  // index into ThreadProgram::barriers
  bool shared = false;        // blocks of the cluster fill tiles of each other
};

}  // namespace tilegen::lower
