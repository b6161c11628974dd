// When values of a kernel are alive: the statements, numbered in program order, from the first to the last
// that may need them.
//
// requires: collected ops.
// ensures: between two ranges that do not overlap nothing is kept: what has the one may have the other's
//   place. What a loop touches lives as long as the outermost loop: iterations follow each other, and copies
//   may run ahead.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/kernel_ops.h"
#include "ir/statement_paths.h"

namespace tilegen::analysis {

struct LiveRange {
  int64_t first = INT64_MAX, last = -1;  // empty

  bool empty() const { return last < first; }
  void extend(const LiveRange& o) {
    first = std::min(first, o.first);
    last = std::max(last, o.last);
  }
  bool overlaps(const LiveRange& o) const { return first <= o.last && o.first <= last; }
};
constexpr LiveRange kAlwaysLive{0, INT64_MAX};

class Liveness {
 public:
  Liveness(const ir::Program& p, int kernel, const KernelOps& ops);

  const IdVector<ValueId, LiveRange>& values() const { return values_; }
  // What only the statement of this path uses, while it runs; always live where no statement has the path.
  LiveRange of_statement(const std::string& path) const;
  // From behind the loop of this path on; always live where there is none.
  LiveRange behind_loop(const std::string& path) const;

 private:
  void number(const ir::Program& p, const ir::Block& block, LiveRange outer_loop);
  LiveRange around(ir::StmtId s) const;
  LiveRange of_scalars(ir::StmtId s) const;

  std::map<std::string, ir::StmtId> by_path_;
  std::map<ir::StmtId, int64_t> number_;
  std::map<ir::StmtId, LiveRange> outer_, body_;  // outermost loop around a statement; a loop's own body
  int64_t next_ = 0;
  IdVector<ValueId, LiveRange> values_;
};

}  // namespace tilegen::analysis
