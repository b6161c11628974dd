// Whether blocks have different amounts of work, and how it grows over the grid.
#pragma once

#include <optional>

#include "ir/program.h"

namespace tilegen::analysis {

// A pipelined loop of the kernel's body with a length that depends on one block index alone: the longer the
// larger the index (increasing), or the smaller; blocks that share its iterations count as one. Nothing that
// the kernel may write decides it: every block divides the same grid.
struct VaryingWork {
  ir::StmtId loop;
  size_t dimension = 0;  // of the grid
  bool increasing = true;
};
// The first such loop; nothing where no loop's length depends on the block, or in another way.
std::optional<VaryingWork> varying_work(const ir::Program& p, const ir::Kernel& kernel);

// The statement stands in a branch.
bool in_branch(const ir::Program& p, const ir::Kernel& kernel, ir::StmtId s);
// A pipelined loop does.
bool pipelines_in_branch(const ir::Program& p, const ir::Kernel& kernel);

// Where the loop begins or how long it is depends on a block index.
bool varies_by_block(const ir::Program& p, const ir::Kernel& kernel, const ir::Loop& loop);

// A pipelined loop of the kernel's body has a length that depends on a block index, or one stands in a
// branch.
bool blocks_differ(const ir::Program& p, const ir::Kernel& kernel);

}  // namespace tilegen::analysis
