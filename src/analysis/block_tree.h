// Where the statements of a kernel stand: the block that holds each, and the loops and branches around it.
#pragma once

#include <map>
#include <vector>

#include "ir/program.h"

namespace tilegen::analysis {

class BlockTree {
 public:
  BlockTree(const ir::Program& p, const ir::Kernel& kernel);

  // The block that the statement stands in directly.
  const ir::Block& block_of(ir::StmtId s) const { return *places_.at(s).block; }
  // The loop or branch whose block that is; invalid: the kernel's.
  ir::StmtId parent(ir::StmtId s) const { return places_.at(s).parent; }
  // Loops and branches around it, outermost first.
  std::vector<ir::StmtId> around(ir::StmtId s) const;
  // The loop whose body holds the statement directly; invalid: it stands in a branch or the kernel's body.
  ir::StmtId loop_of(ir::StmtId s) const;
  // The statement of `block` that is `s` or contains it; invalid: none.
  ir::StmtId member(const ir::Block& block, ir::StmtId s) const;
  // Of two statements of one block.
  bool precedes(ir::StmtId first, ir::StmtId then) const {
    return places_.at(first).number < places_.at(then).number;
  }

 private:
  struct Place {
    const ir::Block* block = nullptr;
    ir::StmtId parent;
    size_t number = 0;  // in program order
  };
  void walk(const ir::Block& block, ir::StmtId parent);

  const ir::Program& p_;
  std::map<ir::StmtId, Place> places_;
};

// The times that the statement has run before a block of threads runs it again are no product of trip counts:
// they depend on the block's index (`persistent`: a block runs for several), on the iteration of a loop
// around, or on a condition. A loop's own bounds count.
bool runs_irregularly(const ir::Program& p, const ir::Kernel& kernel, const BlockTree& tree, ir::StmtId s,
                      bool persistent);

}  // namespace tilegen::analysis
