// What a kernel's blocks read and write of tensors, by the block indices that tell where: whether a launch
// may work in place.
//
//   copy D[by * 64 :+ 64, bx * 32 :+ 32] -> d       a block reads only what it writes itself: D may be C
//   copy A[by * 64 :+ 64, ko * 64 :+ 64] -> a       blocks of a row read the same: A may not be C
//   copy c -> C[by * 64 :+ 64, bx * 32 :+ 32]
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "ir/program.h"

namespace tilegen::analysis {

class TensorUses {
 public:
  TensorUses(const ir::Program& p, const ir::Kernel& kernel) : p_(p), kernel_(kernel) {}

  void read(ir::StmtId s, ir::BufferId tensor, std::span<const ir::ExprId> indices);
  void write(ir::BufferId tensor, std::span<const ir::ExprId> indices);
  bool writes() const { return !written_.empty(); }

  // A statement that reads a tensor which is written, or may be in the same memory as one; and which.
  std::optional<std::pair<ir::StmtId, std::string>> in_place() const;

 private:
  using BlockVars = std::set<ir::VarId>;
  BlockVars block_vars_of(std::span<const ir::ExprId> indices) const;

  const ir::Program& p_;
  const ir::Kernel& kernel_;
  std::map<std::pair<ir::StmtId, ir::BufferId>, BlockVars> read_;
  std::map<ir::BufferId, BlockVars> written_;
};

}  // namespace tilegen::analysis
