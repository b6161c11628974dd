// The table of ops, accesses, and the matching of shapes.
#include <gtest/gtest.h>

#include "ir/op_kinds.h"
#include "ops/op.h"

namespace tilegen::ops {
namespace {

ir::Region region(std::vector<int64_t> extents) {
  ir::Region r;
  r.offsets.resize(extents.size());
  r.extents = std::move(extents);
  return r;
}

using Dims = std::vector<int>;

TEST(Registry, EveryRowIsItsOwn) {
  for (const ir::OpRow& row : ir::op_rows()) {
    const TileOpDef& def = op_def(row.kind);
    EXPECT_EQ(def.kind, row.kind) << row.text;
    EXPECT_NE(def.check, nullptr);
    EXPECT_NE(def.accesses, nullptr);
    EXPECT_NE(def.layout_rule, nullptr);
    EXPECT_NE(def.lower, nullptr);
    EXPECT_NE(def.reference, nullptr);
  }
}

// What accesses() says may differ from the row only where an update drops the old value.
TEST(Accesses, FollowTheRowAndItsAttributes) {
  for (const ir::OpRow& row : ir::op_rows()) {
    ir::TileOp op;
    op.kind = row.kind;
    for (const int64_t on : {0, 1}) {
      op.attrs.fill(0);
      if (row.kind == ir::OpKind::gemm) op.attrs[ir::gemm_attr::clear] = on;
      if (row.kind == ir::OpKind::reduce) op.attrs[ir::reduce_attr::accumulate] = on;
      const std::vector<OperandAccess> accesses = op_def(row.kind).accesses(op);
      ASSERT_EQ(accesses.size(), row.operands.size());
      for (size_t i = 0; i < accesses.size(); ++i) {
        EXPECT_EQ(accesses[i].operand, static_cast<int>(i));
        ir::Access expected = row.operands[i].access;
        const bool drops = row.kind == ir::OpKind::gemm     ? on == 1
                           : row.kind == ir::OpKind::reduce ? on == 0
                                                            : false;
        if (expected == ir::Access::update && drops) expected = ir::Access::write;
        EXPECT_EQ(accesses[i].access, expected) << row.text << " operand " << i;
      }
    }
  }
}

// Analyses take the accesses of an element operation for those of its view, one by one.
TEST(LayoutRule, SaysWhatPointsAre) {
  ir::TileOp op;
  const auto rule = [&](ir::OpKind kind) {
    op.kind = kind;
    op.operands.assign(ir::op_row(kind).operands.size(), region({4, 5}));
    op.attrs.fill(0);
    return layout_rule(op);
  };
  EXPECT_EQ(rule(ir::OpKind::copy).form, OpForm::element);
  EXPECT_TRUE(is_copy(op));
  EXPECT_FALSE(is_fill(op));
  EXPECT_EQ(rule(ir::OpKind::fill).form, OpForm::element);
  EXPECT_TRUE(is_fill(op));
  EXPECT_FALSE(is_copy(op));
  EXPECT_EQ(rule(ir::OpKind::gemm).form, OpForm::contraction);
  EXPECT_FALSE(is_copy(op) || is_fill(op));
  EXPECT_EQ(rule(ir::OpKind::reduce).form, OpForm::reduction);
  op.operands = {region({4, 5}), region({5})};
  op.attrs[ir::reduce_attr::kind] = static_cast<int64_t>(ir::ReduceKind::max);
  const auto reduction = layout_rule(op).reduction;
  ASSERT_TRUE(reduction);
  EXPECT_EQ(reduction->kind, ir::ReduceKind::max);
  EXPECT_EQ(reduction->axis, 0);
  EXPECT_FALSE(reduction->accumulate);
  EXPECT_EQ(reduction->dst_dims, (Dims{-1, 0}));
}

TEST(MatchedDims, LeavesOutExtentsOfOneFirstOnesFirst) {
  EXPECT_EQ(matched_dims(region({4, 5}), 2), (Dims{0, 1}));
  EXPECT_EQ(matched_dims(region({1, 5}), 2), (Dims{0, 1}));
  EXPECT_EQ(matched_dims(region({1, 1, 5}), 2), (Dims{1, 2}));
  EXPECT_EQ(matched_dims(region({4, 1, 5}), 2), (Dims{0, 2}));
  EXPECT_EQ(matched_dims(region({1, 4, 1}), 2), (Dims{1, 2}));
  EXPECT_EQ(matched_dims(region({2, 4, 5}), 2), (Dims{0, 1, 2}));
  EXPECT_EQ(matched_dims(region({5}), 2), (Dims{0}));
}

TEST(MatchedPair, KeepsAllWhenRanksAgree) {
  MatchedPair p = matched_pair(region({1, 5}), region({1, 5}));
  EXPECT_EQ(p.a, (Dims{0, 1}));
  EXPECT_EQ(p.b, (Dims{0, 1}));
  p = matched_pair(region({1, 3, 1, 5}), region({3, 5, 1}));
  EXPECT_EQ(p.a, (Dims{1, 3}));
  EXPECT_EQ(p.b, (Dims{0, 1}));
}

TEST(ReduceDstDims, MapsSourceDimensions) {
  const auto map = [](std::vector<int64_t> src, std::vector<int64_t> dst, int64_t axis) {
    ir::TileOp op;
    op.kind = ir::OpKind::reduce;
    op.operands = {region(std::move(src)), region(std::move(dst))};
    op.attrs[ir::reduce_attr::axis] = axis;
    return layout_rule(op).reduction->dst_dims;
  };
  EXPECT_EQ(map({4, 5}, {4}, 1), (Dims{0, -1}));
  EXPECT_EQ(map({4, 5}, {5}, 0), (Dims{-1, 0}));
  EXPECT_EQ(map({4, 5}, {4, 1}, 1), (Dims{0, -1}));
  EXPECT_EQ(map({4, 5}, {1, 5}, 0), (Dims{-1, 1}));
  EXPECT_EQ(map({7}, {1}, 0), (Dims{-1}));
  EXPECT_EQ(map({1, 4, 5}, {4}, 2), (Dims{-1, 0, -1}));
  EXPECT_EQ(map({4, 5}, {4, 5}, 1), Dims{});
  EXPECT_EQ(map({4, 5}, {5}, 1), Dims{});
  EXPECT_EQ(map({4, 5, 6}, {4}, 1), Dims{});
  EXPECT_EQ(map({4, 5}, {1, 1, 4, 2}, 1), Dims{});
}

}  // namespace
}  // namespace tilegen::ops
