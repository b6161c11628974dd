// Values that a group of lanes makes together: found in whatever order and form they are written, and no
// others.
#include "ir/group_vote.h"

#include <gtest/gtest.h>

namespace tilegen::ir {
namespace {

class GroupVotes : public ::testing::Test {
 protected:
  ExprPool e;
  const ObjectId tile{3}, other{4};
  const ExprId w = e.var(VarId(0)), l = e.var(VarId(1));

  ExprId word(int64_t v) { return e.const_int(v, DType::u32); }
  ExprId of(ObjectId memory, ExprId group, ExprId lane, DType type = DType::i32) {
    return e.load(memory, type, std::vector<ExprId>{group, lane});
  }
  ExprId of(int64_t lane) { return of(tile, w, e.const_int(lane)); }
  ExprId number(int64_t v) { return e.const_int(v, DType::i32); }
  ExprId part(ExprId test, int64_t lane) { return e.select(test, word(int64_t{1} << lane), word(0)); }
  ExprId either(ExprId a, ExprId b) { return e.binary(ExprOp::bit_or, a, b); }
  ExprId made(VoteKind kind, int64_t lanes) {
    return make_group_vote(
        e, kind, lanes, [&](int64_t lane) { return of(lane); }, of(tile, w, l));
  }
};

TEST_F(GroupVotes, WhatIsMadeIsFound) {
  for (const VoteKind kind : {VoteKind::any, VoteKind::ballot, VoteKind::match})
    for (const int64_t lanes : {2, 8, 32}) {
      const auto vote = find_group_vote(e, made(kind, lanes));
      ASSERT_TRUE(vote) << lanes;
      EXPECT_EQ(vote->kind, kind);
      EXPECT_EQ(vote->lanes, lanes);
      EXPECT_EQ(vote->first, of(0));
      EXPECT_EQ(vote->own, kind == VoteKind::match ? of(tile, w, l) : ExprId());
    }
}

TEST_F(GroupVotes, AnyOrderAndTest) {
  const auto low = [&](int64_t lane) { return part(e.binary(ExprOp::lt, number(7), of(lane)), lane); };
  const ExprId word = either(either(low(2), either(low(0), low(3))), low(1));
  const auto vote = find_group_vote(e, word);
  ASSERT_TRUE(vote);
  EXPECT_EQ(vote->kind, VoteKind::ballot);
  EXPECT_EQ(vote->lanes, 4);
  const ExprId own = of(other, w, l);
  EXPECT_EQ(test_of(e, e, *vote, own), e.binary(ExprOp::lt, number(7), own));
}

TEST_F(GroupVotes, OthersAreNone) {
  const auto large = [&](int64_t lane, int64_t bit, int64_t bound) {
    return part(e.binary(ExprOp::lt, number(bound), of(lane)), bit);
  };
  EXPECT_TRUE(find_group_vote(e, either(large(0, 0, 7), large(1, 1, 7))));
  EXPECT_FALSE(find_group_vote(e, large(0, 0, 7)));
  // a lane twice, another's bit, another bound, three lanes, lanes that do not begin at 0
  EXPECT_FALSE(find_group_vote(e, either(large(0, 0, 7), large(0, 1, 7))));
  EXPECT_FALSE(find_group_vote(e, either(large(0, 1, 7), large(1, 0, 7))));
  EXPECT_FALSE(find_group_vote(e, either(large(0, 0, 7), large(1, 1, 8))));
  EXPECT_FALSE(find_group_vote(e, either(either(large(0, 0, 7), large(1, 1, 7)), large(2, 2, 7))));
  EXPECT_FALSE(find_group_vote(e, either(large(1, 1, 7), large(2, 2, 7))));
  // what lanes see differently
  const ExprId bound = e.cast(DType::i32, l);
  const auto own = [&](int64_t lane) { return part(e.binary(ExprOp::lt, bound, of(lane)), lane); };
  EXPECT_FALSE(find_group_vote(e, either(own(0), own(1))));
  // elements of two tiles, and of another group
  const auto of_tile = [&](ObjectId memory, ExprId group, int64_t lane) {
    return part(e.binary(ExprOp::ne, of(memory, group, e.const_int(lane)), number(0)), lane);
  };
  EXPECT_FALSE(find_group_vote(e, either(of_tile(tile, w, 0), of_tile(other, w, 1))));
  EXPECT_FALSE(find_group_vote(e, either(of_tile(tile, w, 0), of_tile(tile, e.const_int(1), 1))));
  // floats are compared as numbers, not as bits
  const auto floats = [&](int64_t lane) {
    const ExprId at = e.const_int(lane);
    return part(e.binary(ExprOp::eq, of(tile, w, at, DType::f32), of(tile, w, l, DType::f32)), lane);
  };
  EXPECT_FALSE(find_group_vote(e, either(floats(0), floats(1))));
}

}  // namespace
}  // namespace tilegen::ir
