// Where prefetches of the next block's tile are put, and where not.
#include "lower/host/prefetch_blocks.h"

#include "nest_builder.h"

namespace tilegen::lower {
namespace {

using namespace test;

struct PrefetchBlocks : ::testing::Test, NestBuilder {
  MemoryId X = tensor("X", true), Y = tensor("Y"), T = tile("T"), U = tile("U"), n = tile("n", 8);
  VarId i = var("i"), v = var("v"), j = var("j"), w = var("w"), k = var("k"), x = var("x");
  ExprId a = at(i, v), b = at(j, w), d = at(k, x);

  // Work of float class: integers count for nothing.
  ExprId heavy(ExprId value) {
    return p.exprs.cast(DType::i64, p.exprs.unary(ExprOp::exp, p.exprs.cast(DType::f32, value)));
  }
  ExprId light(ExprId value) {
    ExprId g = p.exprs.cast(DType::f32, value);
    return p.exprs.cast(DType::i64, p.exprs.binary(ExprOp::mul, g, g));
  }
  ExprId tile_of(ExprId block, ExprId point) { return add(mul(block, 32), point); }
  StmtId reader(ExprId index) { return nest(i, v, {store(T, a, load(X, index))}); }
  StmtId worker(VarId outer, VarId lane) {
    ExprId point = at(outer, lane);
    return nest(outer, lane, {store(U, point, heavy(load(T, point)))});
  }
  void run(Block body) {
    p.body = std::move(body);
    expect_legal();
    before_ = this->body();
    prefetch_blocks(p);
    expect_legal();
  }
  void expect_unchanged(Block body) {
    run(std::move(body));
    EXPECT_EQ(this->body(), before_);
  }
  std::string before_;
};

TEST_F(PrefetchBlocks, TheNextTileWhileThisOneIsWorkedOn) {
  run({reader(tile_of(use(bx), a)), worker(j, w)});
  EXPECT_EQ(body(), R"(  serial i in 0..4 {
    vectorized v in 0..8 {
      T[i * 8 + v] = X[bx * 32 + (i * 8 + v)]
    }
  }
  serial j in 0..4 {
    prefetch X[(bx + 1) * 32 + j * 8] locality 2
    vectorized w in 0..8 {
      U[j * 8 + w] = cast(i64, exp(cast(f32, T[j * 8 + w])))
    }
  }
)");
}

TEST_F(PrefetchBlocks, TheCostliestNestCarries) {
  run({reader(tile_of(use(bx), a)), nest(j, w, {store(U, b, light(load(T, b)))}), worker(k, x)});
  const std::string text = body();
  EXPECT_GT(text.find("prefetch"), text.find("serial k")) << text;
  EXPECT_EQ(text.find("prefetch"), text.rfind("prefetch")) << text;
}

TEST_F(PrefetchBlocks, ATileThatIsTheSameForTheNextBlock) {
  expect_unchanged({reader(a), worker(j, w)});
  expect_unchanged({reader(tile_of(use(by), a)), worker(j, w)});
}

TEST_F(PrefetchBlocks, OnlyWhatTheNextBlockSurelyReads) {
  expect_unchanged(
      {nest(i, v, {store(T, a, load(X, tile_of(use(bx), a), p.exprs.lt(a, c(9))))}), worker(j, w)});
  expect_unchanged({reader(add(load(n, c(0)), tile_of(use(bx), a))), worker(j, w)});
}

TEST_F(PrefetchBlocks, NoNestToCarry) {
  ExprId tile = tile_of(use(bx), a);
  expect_unchanged({reader(tile)});
  expect_unchanged({worker(j, w), reader(tile)});                           // in front
  expect_unchanged({reader(tile), nest(j, w, {store(U, b, load(T, b))})});  // no work
  // bound by memory itself
  expect_unchanged({reader(tile), nest(j, w, {store(Y, b, light(load(T, b)))})});
  expect_unchanged(
      {reader(tile), loop(j, c(5), LoopForm::serial,
                          {loop(w, c(8), LoopForm::vectorized, {store(U, b, heavy(load(T, b)))})})});
  expect_unchanged({p.add(thread::Branch{p.exprs.lt(use(bx), c(1)), {reader(tile)}, {}}, ""), worker(j, w)});
  expect_unchanged({reader(tile), loop(k, c(2), LoopForm::serial, {worker(j, w), store(n, c(0), c(1))})});
}

TEST_F(PrefetchBlocks, LoopsThatEndInNoVector) {
  expect_unchanged(
      {loop(i, c(4), LoopForm::serial,
            {loop(v, c(8), LoopForm::serial, {store(T, a, load(X, tile_of(use(bx), a)))})}),
       loop(j, c(4), LoopForm::serial, {loop(w, c(8), LoopForm::serial, {store(U, b, heavy(load(T, b)))})})});
}

TEST_F(PrefetchBlocks, BlocksOfSeveralThreads) {
  p.threads = 2;
  p.thread_var = p.add_var("t", ir::VarKind::thread);
  expect_unchanged({reader(tile_of(use(bx), a)), worker(j, w)});
}

}  // namespace
}  // namespace tilegen::lower
