// What the statements of a thread program read and write, collected.
#pragma once

#include <set>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::lower {

struct Access {
  thread::MemoryId memory;
  ir::ExprId index;  // invalid: anywhere
  bool write = false;
};

// Loads below an expression; `seen` skips what was visited before.
void collect_loads(const ir::ExprPool& e, ir::ExprId id, std::set<ir::ExprId>& seen,
                   std::vector<Access>& out);

struct StatementAccesses {
  std::vector<Access> list;
  bool barrier = false;
};
StatementAccesses accesses_of(const thread::ThreadProgram& p, thread::StmtId id);

// Whether elements of the two may share bytes: tensors of the caller, overlapping slices of the arena.
bool may_alias(const thread::ThreadProgram& p, thread::MemoryId a, thread::MemoryId b);

}  // namespace tilegen::lower
