// Where prefetches of the next step's tiles are put, and where not.
#include "lower/host/prefetch_tiles.h"

#include "nest_builder.h"

namespace tilegen::lower {
namespace {

using namespace test;

constexpr int64_t kMuch = int64_t{1} << 20;  // of the second cache

struct PrefetchTiles : ::testing::Test, NestBuilder {
  MemoryId X = tensor("X", true), A = tile("A"), B = tile("B"), C = tile("C");
  VarId k = var("k"), i = var("i"), v = var("v"), m = var("m");

  // 4 rows of 8 elements (a line each), `apart` from row to row, from `first` on.
  StmtId copy(ExprId first, int64_t apart = 100, ExprId predicate = {}) {
    const ExprId from = add(add(first, mul(use(i), apart)), use(v));
    return loop(i, c(4), LoopForm::serial,
                {loop(v, c(8), LoopForm::vectorized, {store(A, at(i, v), load(X, from, predicate))})});
  }
  StmtId product(int64_t depth = 64, int64_t tiles = 2) {
    thread::HostMma mma;
    mma.mr = 4, mma.nr = 8, mma.k = depth;
    mma.a = A, mma.b = B, mma.c = C;
    mma.a_index = mma.b_index = c(0);
    mma.c_index = mul(use(m), 32);
    mma.a_row = 8, mma.a_k = 1, mma.b_k = 8, mma.c_row = 8;
    return loop(m, c(tiles), LoopForm::serial, {p.add(mma, "op")});
  }
  StmtId steps(Block body) { return loop(k, c(5), LoopForm::serial, std::move(body)); }
  void run(Block body, int64_t l2_bytes = kMuch) {
    p.body = std::move(body);
    before_ = this->body();
    prefetch_tiles(p, l2_bytes);
  }
  void expect_unchanged(Block body, int64_t l2_bytes = kMuch) {
    run(std::move(body), l2_bytes);
    EXPECT_EQ(this->body(), before_);
  }
  std::string before_;
};

TEST_F(PrefetchTiles, TheLinesOfTheNextStep) {
  run({steps({copy(mul(use(k), 8)), product()})});
  const std::string next = "select(k + 1 < 5, k + 1, 0) * 8";
  EXPECT_NE(body().find("  serial m in 0..2 {\n"
                        "      unrolled line6 in 0..2 {\n"
                        "        prefetch X[" +
                        next + " + (m * 2 + line6) * 100] locality 2\n"),
            std::string::npos)
      << body();
}

TEST_F(PrefetchTiles, OfTheNextBlockInTheLastStep) {
  run({steps({copy(add(mul(use(k), 8), mul(use(bx), 1000))), product()})});
  // bx goes on after the last step, and starts again behind the last block of a row.
  EXPECT_NE(body().find("select(bx + select(k + 1 < 5, 0, 1) < 3, bx + select(k + 1 < 5, 0, 1), 0) * 1000"),
            std::string::npos)
      << body();
}

TEST_F(PrefetchTiles, ALoopThatEndsWhereMemorySays) {
  run({loop(k, load(X, c(0)), LoopForm::serial, {copy(mul(use(k), 8)), product()})});
  EXPECT_NE(body().find("prefetch X[(k + 1) * 8 + "), std::string::npos) << body();
}

TEST_F(PrefetchTiles, InTheVersionOfFullTiles) {
  const ExprId inside = p.exprs.lt(use(k), c(4));
  run({steps({p.add(thread::Branch{inside, {copy(mul(use(k), 8))}, {copy(mul(use(k), 8), 100, inside)}}, ""),
              product()})});
  EXPECT_NE(body().find("prefetch"), std::string::npos) << body();
  EXPECT_EQ(body().find("prefetch"), body().rfind("prefetch")) << body();
}

TEST_F(PrefetchTiles, ManyLinesCutTheProduct) {
  const auto rows = [&](int64_t count) {
    const ExprId from = add(add(mul(use(k), 8), mul(use(i), 100)), use(v));
    return loop(i, c(count), LoopForm::serial,
                {loop(v, c(8), LoopForm::vectorized, {store(A, use(v), load(X, from))})});
  };
  run({steps({rows(40), product(512, 1)})});
  // 40 lines beside one register tile: four pieces of 128 with 10 lines each.
  EXPECT_NE(body().find("serial piece6 in 0..4"), std::string::npos) << body();
  EXPECT_NE(
      body().find("mma 4x8x128 pack 1 C[m * 32] row 8 += A[piece6 * 128] row 8 k 1 * B[piece6 * 1024] k 8"),
      std::string::npos)
      << body();
  EXPECT_NE(body().find("in 0..10"), std::string::npos) << body();
}

TEST_F(PrefetchTiles, WhatTheLoopDoesNotMoveOn) {
  expect_unchanged({steps({copy(c(0)), product()})});
  expect_unchanged({steps({copy(mul(use(by), 8)), product()})});
  expect_unchanged({copy(mul(use(bx), 8)), product()});  // no loop
  expect_unchanged({steps({copy(load(B, use(k))), product()})});
}

TEST_F(PrefetchTiles, LinesThatAreNotReadWholeOrNotSurely) {
  const ExprId apart = add(mul(use(k), 8), add(mul(use(i), 100), mul(use(v), 2)));
  expect_unchanged({steps({loop(i, c(4), LoopForm::serial,
                                {loop(v, c(8), LoopForm::vectorized, {store(A, at(i, v), load(X, apart))})}),
                           product()})});
  expect_unchanged({steps({copy(mul(use(k), 8), 100, p.exprs.lt(use(k), c(4))), product()})});
}

TEST_F(PrefetchTiles, NoRoomOrNothingToHideBehind) {
  expect_unchanged({steps({copy(mul(use(k), 8)), product()})}, 4 * 64);  // more than half of the cache
  expect_unchanged({steps({copy(mul(use(k), 8)), product(1)})});
  expect_unchanged({steps({copy(mul(use(k), 8))})});
  run({steps({copy(mul(use(k), 8)), product()})}, 0);  // a cache that nobody knows is no reason
  EXPECT_NE(body(), before_);
}

TEST_F(PrefetchTiles, BlocksOfSeveralThreads) {
  p.threads = 2;
  p.thread_var = p.add_var("t", ir::VarKind::thread);
  expect_unchanged({steps({copy(mul(use(k), 8)), product()})});
}

}  // namespace
}  // namespace tilegen::lower
