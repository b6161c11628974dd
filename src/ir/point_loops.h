// Parallel loops, tiles and stores for statements that are made of others (ir/arg_reduction.h,
// ir/atomic_fetch.h, ir/carried_scan.h, ir/combination.h, ir/compress.h, ir/sort.h,
// schedule/form/decode_sparse.h).
//
// requires: a program being made, with a kernel; a block outside of parallel loops. ensures: statements and
//   names are in the order in which the text has them, so that a printed program is read as the same; names
//   are no others of the program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "support/limits.h"

namespace tilegen::ir {

using Exprs = std::vector<ExprId>;
using Extents = std::vector<int64_t>;
using Tiles = std::vector<BufferId>;  // one for each value of a group

class PointLoops {
 public:
  // Tiles are of kernel number `kernel`; -1: of the current one.
  PointLoops(Program& p, const SourceLocation& location, Block& block, int kernel = -1)
      : p_(p), location_(location), block_(block), kernel_(kernel) {}

  // Called `name` or like it.
  BufferId tile(std::string_view name, MemScope scope, DType type, const Extents& shape);
  // A parallel loop, to which store() adds until the next one begins; its variables. All loops of one object
  // name theirs alike.
  Exprs begin(const Extents& extents);
  void store(BufferId to, const Exprs& indices, ExprId value);
  void store(Store what);
  ExprId load(BufferId from, const Exprs& indices);
  void store(const Tiles& to, const Exprs& indices, const Exprs& values);
  Exprs load(const Tiles& from, const Exprs& indices);
  void append(TileOp op);

 private:
  StmtId add(std::variant<Loop, Branch, Store, TileOp> node);
  std::string free_name(std::string_view wanted) const;

  Program& p_;
  const SourceLocation& location_;
  Block& block_;
  const int kernel_;
  StmtId loop_;
  std::vector<std::string> names_;  // of loop variables
};

// Indices of a region's element in its buffer.
Exprs element_of(ExprPool& e, const Region& r, const Exprs& point);
// `dst` has the extents of `src` without the axis, or with extent 1 there.
bool fits_without_axis(const Extents& src, const Extents& dst, int64_t axis);
// A point of `src`'s dimensions without the axis, or with 0 there, as such a dst has it.
Exprs without_axis(ExprPool& e, Exprs point, size_t axis, size_t rank);

// "[32, 64]"
std::string extents_text(const Extents& extents);
std::string region_text(const Program& p, const Region& r);
Diagnostic diagnostic(DiagCode code, std::string message, std::string hint);

// What is made for one statement, at most.
struct MadeSize {
  int64_t statements = 0, buffers = 0, nodes = 0;
};
// limit_nodes where the program has no room for it; `from` names the statement.
std::optional<Diagnostic> refuse_beyond_limits(const Program& p, const MadeSize& made, const Limits& limits,
                                               const std::string& from);

}  // namespace tilegen::ir
