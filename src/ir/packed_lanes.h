// Iterations of a parallel loop that together write bytes.
#pragma once

#include <vector>

#include "ir/packed_codes.h"

namespace tilegen::ir {

// An iteration of a loop of which every `of` are one: var = of * var + lane.
class LaneExprs : private ExprRewriter {
 public:
  LaneExprs(Program& p, VarId var, int64_t of, int64_t lane)
      : ExprRewriter(p.exprs, p.exprs), p_(p), var_(var), of_(of), lane_(lane) {}

  ExprId value(ExprId e);

 protected:
  ExprId rewrite_var(const ExprNode& n) override;

 private:
  Program& p_;
  VarId var_;
  int64_t of_, lane_;
  std::vector<bool> prepared_;
};

// Lanes of an iteration, so many behind each other in any order, write the elements of a byte, or of several,
// of each buffer whose elements share bytes, all under the same ifs.
bool lanes_write_bytes(Program& p, const PackedBuffers& buffers, const Block& body,
                       std::vector<LaneExprs>& lanes);

// An iteration writes all elements of the bytes that it writes of such buffers itself: in order, one store
// behind the other, and those of a byte do not read it. Some are written.
bool writes_own_bytes(Program& p, const PackedBuffers& buffers, const Block& body);

}  // namespace tilegen::ir
