// The table of ops, accesses, and the matching of shapes.
#include <gtest/gtest.h>

#include "ir/op_kinds.h"
#include "ir/transaction_barriers.h"
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
    // Operands that only say which barrier is meant.
    if (ir::is_barrier_op(row.kind)) continue;
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

// "0|0 1|1": dimensions of one region, and those of the other.
std::string groups(std::vector<int64_t> a, std::vector<int64_t> b) {
  const auto list = matched_groups(region(std::move(a)), region(std::move(b)));
  if (!list) return "none";
  std::string text;
  for (const DimGroup& g : *list) {
    text += text.empty() ? "" : " ";
    for (int d : g.a) text += std::to_string(d);
    text += "|";
    for (int d : g.b) text += std::to_string(d);
  }
  return text;
}

TEST(MatchedGroups, KeepsAllOfEqualExtents) {
  EXPECT_EQ(groups({1, 5}, {1, 5}), "0|0 1|1");
  EXPECT_EQ(groups({1, 3, 1, 5}, {3, 5, 1}), "1|0 3|1");
  EXPECT_EQ(groups({1, 5}, {5, 1}), "none");
  EXPECT_EQ(groups({3, 5}, {5, 3}), "none");
  EXPECT_EQ(groups({1, 1}, {1}), "");
}

TEST(MatchedGroups, OneDimensionIsNeighbouringOnesOfTheOther) {
  EXPECT_EQ(groups({1, 4, 16, 64}, {64, 64}), "12|0 3|1");
  EXPECT_EQ(groups({64, 64}, {2, 2, 1, 16, 64}), "0|013 1|4");
  EXPECT_EQ(groups({4, 6, 10}, {24, 5, 2, 1}), "none");  // as many on both sides
  EXPECT_EQ(groups({4, 6, 10}, {24, 2, 5, 1}), "none");
  EXPECT_EQ(groups({4, 6, 10}, {24, 10}), "01|0 2|1");
  EXPECT_EQ(groups({1, 4, 16}, {1, 1, 64}), "12|2");
  EXPECT_EQ(groups({4, 6}, {24}), "01|0");
  EXPECT_EQ(groups({4, 6, 5}, {6, 4, 5, 1}), "none");  // neither is a product
  EXPECT_EQ(groups({4, 6}, {25}), "none");
  EXPECT_EQ(groups({4, 6}, {4, 6, 2}), "none");
  EXPECT_EQ(groups({int64_t{1} << 40, int64_t{1} << 40}, {int64_t{1} << 62}), "none");
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
