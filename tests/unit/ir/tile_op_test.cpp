#include "ir/tile_op.h"
#include "ir/op_kinds.h"
#include "ir/transaction_barriers.h"

#include <gtest/gtest.h>

namespace tilegen::ir {
namespace {

TEST(TileOp, NamesComeBack) {
  for (const OpRow& row : op_rows()) {
    EXPECT_EQ(op_from_text(row.text), row.kind);
    EXPECT_EQ(&op_row(row.kind), &row);
    const bool of_groups = row.kind == OpKind::commit_group || row.kind == OpKind::wait_group;
    EXPECT_EQ(row.operands.empty(), of_groups) << row.text;
    EXPECT_EQ(orders_threads(row.kind), of_groups || is_barrier_op(row.kind)) << row.text;
    for (const AttrRow& attr : row.attrs) EXPECT_FALSE(attr.name.empty()) << row.text;
    for (const OperandRow& operand : row.operands) EXPECT_FALSE(operand.name.empty()) << row.text;
  }
  EXPECT_EQ(op_from_text("scatter"), std::nullopt);
  EXPECT_EQ(op_from_text(""), std::nullopt);
}

TEST(TileOp, Rows) {
  const OpRow& gemm = op_row(OpKind::gemm);
  ASSERT_EQ(gemm.operands.size(), 3u);
  EXPECT_EQ(gemm.operands[2].name, "c");
  EXPECT_EQ(gemm.operands[2].access, Access::update);
  ASSERT_EQ(gemm.attrs.size(), 6u);
  EXPECT_EQ(gemm.attrs[gemm_attr::policy].type, AttrType::enumeration);
  EXPECT_FALSE(gemm.has_value);
  EXPECT_TRUE(op_row(OpKind::fill).has_value);
  EXPECT_TRUE(op_row(OpKind::copy).attrs.empty());
  EXPECT_EQ(op_row(OpKind::reduce).attrs[reduce_attr::axis].type, AttrType::integer);
}

TEST(TileOp, EnumerationValues) {
  const AttrRow& policy = op_row(OpKind::gemm).attrs[gemm_attr::policy];
  EXPECT_EQ(attr_value_name(policy, static_cast<int64_t>(WarpPolicy::square)), "square");
  EXPECT_EQ(attr_value_name(policy, static_cast<int64_t>(WarpPolicy::full_col)), "full_col");
  EXPECT_EQ(attr_value_name(policy, 3), "");
  EXPECT_EQ(attr_value_name(policy, -1), "");
  EXPECT_EQ(attr_value_name(policy, INT64_MAX), "");
  const AttrRow& kind = op_row(OpKind::reduce).attrs[reduce_attr::kind];
  EXPECT_EQ(attr_value_from_name(kind, "absmax"), static_cast<int64_t>(ReduceKind::absmax));
  EXPECT_EQ(attr_value_from_name(kind, "max"), static_cast<int64_t>(ReduceKind::max));
  EXPECT_EQ(attr_value_from_name(kind, "ma"), -1);
  EXPECT_EQ(attr_value_from_name(kind, ""), -1);
  EXPECT_EQ(attr_value_from_name(op_row(OpKind::reduce).attrs[reduce_attr::axis], "0"), -1);
}

}  // namespace
}  // namespace tilegen::ir
