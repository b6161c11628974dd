// Values that lanes of a group give each other, in a block of threads (ir/draft_threads.h, ir/group_vote.h).
//
//   shuffle_xor(x, 1)      let given = x              any(c)     let given = select(c, 1i32, 0i32)
//                     ->   taken = given at lane ^ 1        ->   taken = what the group says of it
//
// requires: a block inside of a block of threads, room for kMaxLaneStatements statements. ensures:
//   statements of the draft (ir/draft.h) in the block, and an expression of the names that they make.
// refuses: values that no register holds a number of, lanes that are none of the group.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "ir/draft.h"
#include "ir/program.h"

namespace tilegen::ir {

enum class LaneOp : uint8_t {
  shuffle,
  shuffle_xor,
  shuffle_up,
  shuffle_down,
  any,
  all,
  ballot,
  elect,
  match_any
};
constexpr int kLaneOps = 9;
const char* lane_op_text(LaneOp op);
std::optional<LaneOp> lane_op_from_text(std::string_view text);
inline bool is_vote(LaneOp op) { return op >= LaneOp::any; }

constexpr int64_t kMaxLaneStatements = 4;

struct LaneCall {
  LaneOp op{};
  ExprId value;        // what is given; of votes bool, of match_any an integer
  ExprId number = {};  // i64: the lane, or what is combined with the own one; votes have none
};
// `threads`: the block's loop. Gives the expression, or why there is none.
std::variant<ExprId, Diagnostic> add_lane_call(Program& p, Draft& draft, const Loop& threads,
                                               const LaneCall& call, const SourceLocation& location,
                                               Block& block);

}  // namespace tilegen::ir
