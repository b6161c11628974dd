// How large tensors may be, as far as the facts of the program's dims tell.
#pragma once

#include "arith/context.h"
#include "ir/program.h"

namespace tilegen::analysis {

class TensorBytes {
 public:
  explicit TensorBytes(const ir::Program& p);

  // From the first element to the last one, which lies furthest: where strides may go down INT64_MAX, as
  // where nothing is known.
  int64_t most(ir::BufferId tensor);
  bool goes_up(ir::BufferId tensor);  // no stride goes down

 private:
  const ir::Program& p_;
  ir::ExprPool exprs_;
  arith::Context ctx_;
};

}  // namespace tilegen::analysis
