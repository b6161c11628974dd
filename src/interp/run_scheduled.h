// The reference interpreter of the scheduled program: roles, loops in parts and hand-overs, with the
// interpreter's meaning of every operation. It tells a fault of expansion from one of lowering, by values.
//
// requires: a checked program; its kernels as src/expand made them, of this program or of the same one with
// tiles of other extents.
// ensures: every tile of the grid is done by a block, whose roles go on side by side and wait for each other
// as their statements say. Pipelines have a tile for each slot of each of their values, chosen by the
// iteration as lowering does. What is issued takes effect between its issue and the wait that has it
// finished, when `order` says. Persistent blocks are two, which share the grid.
// why here: after expansion, whose statements it runs; its values are those of the interpreter.
// refuses (internal_error, naming op, pipeline and use): a use that is read and not there; one that is filled
// while its slot is read, copied or not acquired; a release or commit without its counterpart; what is left
// at the end, unreleased or never awaited; roles that wait for ever.
//
// An operation on a tile is done by all threads at once, and when it runs is known. So these have no effect
// on values: barriers, fences, turns of warpgroups and sums in parts, which order threads of one role or what
// is inside an operation; meetings of a cluster, as each block brings all of its tiles itself; waits for
// stores, which are done when they are issued; a Peek, which only asks.
#pragma once

#include "expand/scheduled_kernel.h"
#include "interp/interpreter.h"

namespace tilegen::interp {

// When what is issued takes effect, and which role goes on.
struct Order {
  // early: at its issue, and a role goes on as long as it can. late: at the wait that has it finished, and
  // producers are as far ahead as they can. random: in between, roles taking turns at any statement.
  enum class Kind : uint8_t { early, late, random };
  Kind kind = Kind::early;
  uint64_t seed = 0;
};

// As interpret(). `kernels`: one for each of the program's, in their order.
Checked interpret_scheduled(const ir::Program& program,
                            std::span<const expand::ScheduledKernel* const> kernels,
                            std::span<const uint64_t> params, Order order,
                            const Cancellation* cancellation = nullptr);

}  // namespace tilegen::interp
