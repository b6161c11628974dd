// Numbers of threads, blocks and clusters as expressions of the variables that a kernel has.
//
//   threads w, l in 8, 16 {        thread_id()   w * 16 + l         lane_id()        w % 2 * 16 + l
//                                  warp_id()     w // 2             warpgroup_id()   w // 8 = 0
//   grid (by: m, bx: n)            block_id()    by * n + bx
//   with {cluster = 2, cluster_along = bx}       cluster_rank()      bx % 2, of cluster_blocks() = 2
//
// They count what the program says, not what a machine has: warps of 32 threads on every target, blocks by
// their place in the grid whatever order they run in, and the cluster that the kernel is annotated with;
// without one a block is alone. requires: a kernel. ensures: i64; what is the same for the lanes of a group
// names no variable of a lane.
// refuses: threads outside of a block of threads; a cluster of which it is not said along what it is.
#pragma once

#include <optional>
#include <string_view>
#include <variant>

#include "ir/program.h"

namespace tilegen::ir {

enum class IdOp : uint8_t { thread, lane, warp, warpgroup, block, cluster_rank, cluster_blocks };
constexpr int kIdOps = 7;
const char* id_op_text(IdOp op);
std::optional<IdOp> id_op_from_text(std::string_view text);
inline bool is_of_thread(IdOp op) { return op <= IdOp::warpgroup; }
inline bool is_of_cluster(IdOp op) { return op >= IdOp::cluster_rank; }

// Operations that an expression of them is deeper than the extents of the grid.
constexpr int kIdDepth = 8;

// In the last kernel of the program, inside `threads`; nullptr: in no block of threads.
std::variant<ExprId, Diagnostic> make_id(Program& p, IdOp op, const Loop* threads);

}  // namespace tilegen::ir
