// Names of values and loops inside parallel loops: programs are written with them, and no stage after this
// one sees them.
//
//   parallel i, j in 64, 64 {
//     let x = acc[i, j] * scale             acc[i, j] = max(acc[i, j] * scale, 0.0f32)
//     acc[i, j] = max(x, 0)           ->
//     var s = 0.0f32                        y[i, j] = 0.0f32 + a[i, 0] + a[i, 1]
//     unroll k in 0 .. 2 { s += a[i, k] }
//     y[i, j] = s
//   }
//
// A name means the value that its expression had where it stands. The expression takes the place of the name
// as long as that is its value. Before a statement that writes what it reads, and where the expression is
// large, the value is kept: in a fragment, an element for each point of the parallel loop; outside of these
// in a local tile. An assignment is a new value; after an if it is a select, or what both sides keep. Serial
// and unrolled loops of constant trips inside a parallel loop are written out, others stand around parts of
// it (ir/draft_walks.cpp).
//
// Blocks of threads become parallel loops behind each other (ir/draft_threads.h).
//
// requires: statements of a program being made, well typed; a statement of Draft::assignments is in the
//   program as an empty Branch. ensures: none of these statements, loops and variables is left. A program
//   without them stays as it is, with its ids.
// why here: the last step of the parser and of the builder, so that both make equal programs.
// refuses: trips of unrolled loops that are no constants, and what would pass the limits of a program.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "ir/group_vote.h"
#include "ir/program.h"

namespace tilegen::ir {

// Elements of a tile in another shape (ir/tile_view.h).
struct TileView {
  enum class Form : uint8_t { reshape, transpose, slice, reinterpret };
  BufferId of;  // a tile, or a view made before
  Form form = Form::reshape;
  std::vector<int64_t> order;   // transpose: dimension d of the view is dimension order[d]
  std::vector<ExprId> offsets;  // slice
  DType type = DType::none;     // reinterpret: of its elements
};

struct Draft {
  struct Assignment {
    VarId var;
    ExprId value;
  };
  std::map<StmtId, Assignment> assignments;  // a variable's first one declares it
  std::map<VarId, bool> temporaries;         // whether it may be assigned again
  std::map<StmtId, VarId> old_values;        // of atomic stores; each declares its name
  bool loops_in_parallel = false;
  // break, continue and return: empty Branches, each the last statement of its block (ir/draft_jumps.h)
  enum class Jump : uint8_t { break_loop, next_iteration, leave_kernel };
  std::map<StmtId, Jump> jumps;
  bool conditions = false;  // of loops
  // Loops inside parallel loops that a condition ends: the name that tells for each point whether it goes on
  // (ir/draft_walks.cpp). Made where jumps are resolved.
  std::map<StmtId, VarId> walks;
  bool functions = false;  // or constants: their expressions stand for them by now, and may be repeated

  std::map<BufferId, TileView> views;

  // Parallel loops whose points are the threads of the block; the last variable counts the lanes of a group.
  std::set<StmtId> threads;
  // Assignments of a name to another: they take its value from the lane of this number, or what all lanes of
  // the group say of theirs. `word`: as written.
  struct Exchange {
    ExprId lane;
    std::string_view word;
    std::optional<VoteKind> vote = {};
  };
  std::map<StmtId, Exchange> exchanges;
  std::set<StmtId> barriers;  // empty Branches
  // Parallel loops over the elements that a thread copies, a store in each (ir/copy_groups.h).
  std::set<StmtId> async_copies;
  // The same over the elements of a box that warps copy together (ir/bulk_copy.h).
  std::set<StmtId> bulk_copies;

  bool empty() const {
    return views.empty() && assignments.empty() && old_values.empty() && !loops_in_parallel && !functions &&
           jumps.empty() && !conditions && threads.empty();
  }
  static constexpr int64_t kEndless = INT32_MAX;  // trips of a loop that a condition ends
};

// Errors; the program is then not to be used.
std::vector<Diagnostic> resolve_draft(Program& p, const Draft& draft, const Limits& limits);

}  // namespace tilegen::ir
