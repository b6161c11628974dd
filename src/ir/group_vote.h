// What the lanes of a group say together, as one value of a loop over threads: a bit for each lane.
//
//   ballot(c)      given[w, l] = select(c, 1, 0), then
//                  select(given[w, 0] != 0, 1u32, 0u32) | select(given[w, 1] != 0, 2u32, 0u32) | ...
//   any(c)         the same != 0
//   match_any(x)   given[w, l] = x, then select(given[w, 0] == given[w, l], 1u32, 0u32) | ...
//
// Made of plain loads, so that interpreter, host and checks take it as it is; that a machine has an
// instruction for it is found here, too, whatever the order of the lanes and however the test is written.
// requires: groups of 2, 4, 8, 16 or 32 lanes, counted by a tile's last index.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/expr.h"

namespace tilegen::ir {

// Lanes that exchange values are a power of two, as many as every GPU has in a warp.
constexpr int64_t kMaxLanes = 32;
constexpr bool has_lanes(int64_t n) { return n >= 2 && n <= kMaxLanes && (n & (n - 1)) == 0; }

enum class VoteKind : uint8_t { any, ballot, match };

// `given`: the element of the lane of this number; `own`: that of the lane itself, of match alone.
ExprId make_group_vote(ExprPool& e, VoteKind kind, int64_t lanes, const std::function<ExprId(int64_t)>& given,
                       ExprId own);

struct GroupVote {
  VoteKind kind = VoteKind::ballot;
  int64_t lanes = 0;
  ExprId first;  // the load of lane 0
  ExprId test;   // of lane 0: what is asked of its element
  ExprId own;    // match: the load that all are compared with
};
std::optional<GroupVote> find_group_vote(const ExprPool& e, ExprId value);
// The test of an element of the lane itself; not of match.
ExprId test_of(ExprPool& to, const ExprPool& from, const GroupVote& vote, ExprId element);

}  // namespace tilegen::ir
