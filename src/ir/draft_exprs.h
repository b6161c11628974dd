// What the expressions that names stand for read, and how large they are.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/draft.h"
#include "ir/program.h"

namespace tilegen::ir {

class DraftExprs {
 public:
  using Buffers = std::set<BufferId>;

  explicit DraftExprs(const Program& p) : p_(p) {}

  const Buffers& reads(ExprId e);
  // A write of one of these may change the value. Tensors that the program writes may share memory.
  bool touches(ExprId e, const Buffers& written);
  // Texts and rules of planning take an expression as a tree: a large one is not repeated `uses` times.
  bool is_large(ExprId e, uint64_t uses);

 private:
  const Program& p_;
  std::vector<uint64_t> sizes_;  // as trees
  std::unordered_map<ExprId, Buffers> reads_;
};

// What a tile that the draft makes may be called.
std::string free_tile_name(const Program& p, const Draft& draft, const std::string& wanted);

}  // namespace tilegen::ir
