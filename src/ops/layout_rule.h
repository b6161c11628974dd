// How an operation's iterations touch its operands: what the layouts of the operands have to do with each
// other, and what its results are made of. Inference, planning and lowering ask this and not which operation
// it is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/tile_op.h"

namespace tilegen::ops {

enum class OpForm : uint8_t {
  element,      // a point is one element of each operand: the threads that run it hold them
  contraction,  // a matrix product: the chosen instruction says which thread holds what
  reduction,    // a point is an element of src; dst is src without an axis
};

// dst = kind over `axis` of src; with `accumulate` the old dst is a further term.
struct Reduction {
  ir::ReduceKind kind = ir::ReduceKind::sum;
  int axis = 0;
  bool accumulate = false;
  // For every dimension of src: dst's dimension, or -1 (the axis; dimensions of extent 1 that dst left out).
  // Empty where the shapes do not fit.
  std::vector<int> dst_dims;
};

// dst[x] = kind over the elements of src up to x along an axis; `reverse`: from x to the axis's end;
// `exclusive`: without that at x.
struct Scan {
  ir::ReduceKind kind = ir::ReduceKind::sum;
  int axis = 0;  // of the iterations (match_regions); -1: of one point
  bool reverse = false;
  bool exclusive = false;
};

struct LayoutRule {
  OpForm form = OpForm::element;
  // Element form: what a point of dst gets. source: src's element, cast; scalar: the op's value.
  enum class Result : uint8_t { computed, source, scalar } result = Result::computed;
  std::optional<Reduction> reduction = std::nullopt;  // reduction form
  // Element form: dst, a tensor, becomes this of its old value and of src's element, which are of one type.
  std::optional<ir::AtomicKind> atomic = std::nullopt;
  // Element form: points are no longer independent, those along the axis follow each other.
  std::optional<Scan> scan = std::nullopt;
};

}  // namespace tilegen::ops
