// Rows of a group stand together where a copy stores every second or fourth element, and nowhere else.
#include "lower/host/interleave_rows.h"

#include "nest_builder.h"

namespace tilegen::lower {
namespace {

using namespace test;

struct InterleaveRows : ::testing::Test, NestBuilder {
  MemoryId X = tensor("X", true), Y = tensor("Y"), T = tile("T", 512), U = tile("U", 512);
  VarId i = var("i"), v = var("v");

  ExprId row_in(int64_t group) {  // i // group * 8 * group + v * group + i % group
    const ExprId at = use(i);
    return add(add(mul(p.exprs.floordiv(at, c(group)), 8 * group), mul(use(v), group)),
               p.exprs.floormod(at, c(group)));
  }
  StmtId copy(ExprId to, ExprId value, int64_t rows = 8, ExprId predicate = {}) {
    return loop(i, c(rows), LoopForm::serial,
                {loop(v, c(8), LoopForm::vectorized, {store(T, to, value, predicate)})});
  }
  void run(Block body) {
    p.body = std::move(body);
    expect_legal();
    before_ = this->body();
    interleave_rows(p);
    expect_legal();
  }
  void expect_unchanged(Block body) {
    run(std::move(body));
    EXPECT_EQ(this->body(), before_);
  }
  std::string before_;
};

TEST_F(InterleaveRows, GroupsOfTheDistance) {
  run({copy(row_in(4), load(X, at(i, v)))});
  EXPECT_EQ(body(), R"(  serial i in 0..2 {
    unrolled row4 in 0..4 {
      vectorized v in 0..8 {
        T[i * 32 + v * 4 + row4] = X[i * 32 + row4 * 8 + v]
      }
    }
  }
)");
}

TEST_F(InterleaveRows, OfTwoAndWherePredicated) {
  const ExprId inside = p.exprs.lt(use(i), c(5));
  run({copy(row_in(2), load(X, at(i, v), inside), 6)});
  EXPECT_EQ(body(), R"(  serial i in 0..3 {
    unrolled row4 in 0..2 {
      vectorized v in 0..8 {
        T[i * 16 + v * 2 + row4] = X[i * 16 + row4 * 8 + v if i * 2 + row4 < 5]
      }
    }
  }
)");
}

// Words of two elements: v // 2 * 64 + i % 32 * 2 + v % 2, panels of 32 rows.
struct TransposeRows : InterleaveRows {
  MemoryId from = typed("F", true), to = typed("P", false);

  MemoryId typed(const char* name, bool outside) {
    const MemoryId m = outside ? tensor(name, true) : tile(name, 4096);
    p.memories[m.value].type = DType::bf16;
    if (outside) p.params.back().type = DType::bf16;
    return m;
  }
  ExprId place(int64_t panel, int64_t words_apart) {
    const ExprId row = use(i), lane = use(v);
    const ExprId word = add(mul(p.exprs.floordiv(lane, c(2)), words_apart), p.exprs.floormod(lane, c(2)));
    return add(add(mul(p.exprs.floordiv(row, c(panel)), 16 * words_apart), word),
               mul(p.exprs.floormod(row, c(panel)), 2));
  }
  Block rows(int64_t count, ExprId index) {
    const ExprId value = p.exprs.load(from, DType::bf16, std::vector<ExprId>{add(mul(use(i), 32), use(v))});
    return {loop(i, c(count), LoopForm::serial,
                 {loop(v, c(32), LoopForm::vectorized, {store(to, index, value)})})};
  }
};

TEST_F(TransposeRows, PanelsOfSeveralGroups) {
  run(rows(64, place(32, 64)));
  EXPECT_EQ(body(), R"(  serial i in 0..2 {
    serial group5 in 0..2 {
      unrolled row4 in 0..16 {
        vectorized v in 0..32 {
          P[i * 1024 + v // 2 * 64 + group5 * 32 + row4 * 2 + v % 2] = F[i * 1024 + group5 * 512 + row4 * 32 + v]
        }
      }
    }
  }
)");
}

TEST_F(TransposeRows, GroupsAsLargeAsDivide) {
  run(rows(24, place(24, 48)));
  EXPECT_NE(body().find("serial i in 0..3"), std::string::npos) << body();
  EXPECT_NE(body().find("unrolled row4 in 0..8"), std::string::npos) << body();
}

TEST_F(TransposeRows, WordsThatRowsDoNotJoin) {
  expect_unchanged(rows(6, place(6, 12)));                           // six rows
  expect_unchanged(rows(64, place(64, 64)));                         // stores twice
  expect_unchanged(rows(32, add(mul(use(v), 2), mul(use(i), 64))));  // words in parts
}

TEST_F(InterleaveRows, InsideOfLoopsAndBranches) {
  const ExprId first = p.exprs.lt(use(bx), c(1));
  run({loop(
      var("k"), c(2), LoopForm::serial,
      {p.add(thread::Branch{first, {copy(row_in(4), load(X, at(i, v)))}, {}}, ""), store(U, c(0), c(1))})});
  EXPECT_NE(body().find("unrolled"), std::string::npos) << body();
}

TEST_F(InterleaveRows, OtherDistancesAndExtents) {
  expect_unchanged({copy(at(i, v), load(X, at(i, v)))});
  expect_unchanged({copy(row_in(8), load(X, at(i, v)))});
  expect_unchanged({copy(row_in(4), load(X, at(i, v)), 6)});
}

TEST_F(InterleaveRows, WhatMayDependOnTheOrder) {
  expect_unchanged({copy(row_in(4), load(T, at(i, v)))});           // reads what it writes
  expect_unchanged({copy(row_in(4), load(X, load(U, at(i, v))))});  // and by way of an index
  expect_unchanged({copy(row_in(4), load(X, at(i, v)), 8, p.exprs.lt(use(i), c(5)))});  // stores not all
  expect_unchanged(
      {copy(add(mul(use(v), 4), p.exprs.floormod(use(i), c(4))), load(X, at(i, v)))});  // stores twice
  expect_unchanged({loop(i, c(8), LoopForm::serial,
                         {loop(v, c(8), LoopForm::vectorized, {store(Y, row_in(4), load(X, at(i, v)))})})});
}

TEST_F(InterleaveRows, BlocksOfSeveralThreads) {
  p.threads = 2;
  p.thread_var = p.add_var("t", ir::VarKind::thread);
  expect_unchanged({copy(row_in(4), load(X, at(i, v)))});
}

}  // namespace
}  // namespace tilegen::lower
