// Which neighbouring nests become one, and which must not.
#include "lower/host/fuse_loops.h"

#include "nest_builder.h"

namespace tilegen::lower {
namespace {

using namespace test;

// Two nests over i in 0..4, lane in 0..8 with variables of their own; `X`, `Y` global, `T`, `U` tiles.
struct FuseLoops : ::testing::Test, NestBuilder {
  MemoryId X = tensor("X", true), Y = tensor("Y"), T = tile("T"), U = tile("U"), n = tile("n", 8);
  VarId i = var("i"), v = var("v"), j = var("j"), w = var("w");
  ExprId a = at(i, v), b = at(j, w);

  void fuse(Block body) {
    p.body = std::move(body);
    expect_legal();
    before_ = this->body();
    fuse_loops(p);
    expect_legal();
  }
  void expect_unchanged() { EXPECT_EQ(body(), before_); }
  // T = X; and what `second` makes of it
  void expect_refused(Block second) {
    fuse({nest(i, v, {store(T, a, load(X, a))}), nest(j, w, std::move(second))});
    expect_unchanged();
  }

  std::string before_;
};

TEST_F(FuseLoops, PointByPointDependence) {
  fuse({nest(i, v, {store(T, a, load(X, a))}),
        nest(j, w, {store(U, b, mul(load(T, b), 3), p.exprs.lt(b, c(30)))})});
  EXPECT_EQ(body(), R"(  serial i in 0..4 {
    vectorized v in 0..8 {
      T[i * 8 + v] = X[i * 8 + v]
      U[i * 8 + v] = T[i * 8 + v] * 3 if i * 8 + v < 30
    }
  }
)");
}

TEST_F(FuseLoops, WhatOnlyReadsTheSameMayStandElsewhere) {
  fuse({nest(i, v, {store(T, a, load(X, a))}), nest(j, w, {store(U, b, load(X, add(b, 1)))})});
  EXPECT_EQ(p.body.size(), 1u);
}

TEST_F(FuseLoops, WriteBehindReadAndWriteBehindWrite) {
  fuse({nest(i, v, {store(U, a, load(T, a))}), nest(j, w, {store(T, b, c(1))})});
  EXPECT_EQ(p.body.size(), 1u);
  fuse({nest(i, v, {store(T, a, load(X, a))}), nest(j, w, {store(T, b, c(1), p.exprs.lt(b, c(5)))})});
  EXPECT_EQ(p.body.size(), 1u);
}

TEST_F(FuseLoops, ThreeInARowAndInsideLoopsAndBranches) {
  VarId k = var("k"), l = var("l"), x = var("x");
  ExprId d = at(l, x);
  StmtId outer = loop(k, c(5), LoopForm::serial,
                      {nest(i, v, {store(T, a, load(X, a))}), nest(j, w, {store(U, b, load(T, b))}),
                       nest(l, x, {store(Y, d, load(U, d))})});
  fuse({p.add(thread::Branch{p.exprs.lt(use(bx), c(1)), {outer}, {}}, "")});
  // Y may be X.
  EXPECT_EQ(body(), R"(  if bx < 1 {
    serial k in 0..5 {
      serial i in 0..4 {
        vectorized v in 0..8 {
          T[i * 8 + v] = X[i * 8 + v]
          U[i * 8 + v] = T[i * 8 + v]
        }
      }
      serial l in 0..4 {
        vectorized x in 0..8 {
          Y[l * 8 + x] = U[l * 8 + x]
        }
      }
    }
  }
)");
}

TEST_F(FuseLoops, SharedLoopVariables) {
  fuse({nest(i, v, {store(T, a, load(X, a))}), nest(i, v, {store(U, a, load(T, a))})});
  EXPECT_EQ(p.body.size(), 1u);
}

TEST_F(FuseLoops, WhatStandsBetweenMovesInFront) {
  fuse({nest(i, v, {store(T, a, load(X, a))}), store(n, c(0), load(n, c(1))),
        nest(j, w, {store(U, b, add(load(T, b), load(n, c(0))))})});
  EXPECT_EQ(body(), R"(  n[0] = n[1]
  serial i in 0..4 {
    vectorized v in 0..8 {
      T[i * 8 + v] = X[i * 8 + v]
      U[i * 8 + v] = T[i * 8 + v] + n[0]
    }
  }
)");
}

// ---- what must stay apart

TEST_F(FuseLoops, OtherLoops) {
  fuse({nest(i, v, {store(T, a, load(X, a))}),
        loop(j, c(5), LoopForm::serial, {loop(w, c(8), LoopForm::vectorized, {store(U, b, c(1))})})});
  expect_unchanged();
  fuse({nest(i, v, {store(T, a, load(X, a))}),
        loop(j, c(4), LoopForm::unrolled, {loop(w, c(8), LoopForm::vectorized, {store(U, b, c(1))})})});
  expect_unchanged();
  fuse(
      {nest(i, v, {store(T, a, load(X, a))}), loop(w, c(8), LoopForm::vectorized, {store(U, use(w), c(1))})});
  expect_unchanged();
}

TEST_F(FuseLoops, AnotherElement) {
  expect_refused({store(U, b, load(T, add(b, 1)))});                    // a later iteration's
  expect_refused({store(U, b, load(T, p.exprs.sub(c(31), b)))});        // backwards
  expect_refused({store(U, b, load(T, add(mul(use(w), 4), use(j))))});  // transposed
  expect_refused({store(U, b, load(T, c(0)))});
  expect_refused({store(T, add(b, 1), c(7))});
  expect_refused({store(U, b, add(load(T, b), load(T, add(b, 1))))});               // one of two
  expect_refused({store(U, b, c(1), p.exprs.lt(load(T, add(b, 1)), c(3)))});        // in a predicate
  expect_refused({store(U, b, load(X, load(T, add(b, 1))))});                       // in an index of a load
  expect_refused({store(U, load(T, add(b, 1)), c(1))});                             // in an index of a store
  expect_refused({store(U, b, load(X, b, p.exprs.lt(load(T, add(b, 1)), c(3))))});  // in a load's predicate
}

TEST_F(FuseLoops, OneElementOfSeveralIterations) {
  // prefix: each iteration sees what the ones before left
  auto refuse = [&](ExprId first, ExprId second) {
    fuse({nest(i, v, {store(T, first, add(load(T, first), 1))}), nest(j, w, {store(U, b, load(T, second))})});
    expect_unchanged();
  };
  refuse(c(0), c(0));
  refuse(use(i), use(j));
  refuse(use(v), use(w));
  refuse(add(use(i), use(v)), add(use(j), use(w)));                  // 1 + 0 = 0 + 1
  refuse(add(mul(use(i), 7), use(v)), add(mul(use(j), 7), use(w)));  // rows overlap by one
  refuse(p.exprs.floordiv(a, c(2)), p.exprs.floordiv(b, c(2)));
  refuse(p.exprs.floormod(a, c(16)), p.exprs.floormod(b, c(16)));
  refuse(p.exprs.mul(use(i), use(v)), p.exprs.mul(use(j), use(w)));
  refuse(load(n, use(v)), load(n, use(w)));
}

TEST_F(FuseLoops, RowsOfAnyPitchThatHoldsThem) {
  auto fused = [&](ExprId first, ExprId second) {
    fuse({nest(i, v, {store(T, first, load(X, a))}), nest(j, w, {store(U, b, load(T, second))})});
    return p.body.size() == 1;
  };
  EXPECT_TRUE(fused(add(mul(use(v), 4), use(i)), add(mul(use(w), 4), use(j))));
  EXPECT_TRUE(fused(add(mul(use(i), 11), use(v)), add(mul(use(j), 11), use(w))));
  EXPECT_TRUE(fused(p.exprs.sub(c(40), a), p.exprs.sub(c(40), b)));
  EXPECT_TRUE(fused(add(mul(use(bx), 32), a), add(mul(use(bx), 32), b)));
}

TEST_F(FuseLoops, StridesThatOverflow) {
  // 4 * 2^62 = 0: what looks like a row pitch is none.
  const int64_t huge = int64_t{1} << 62;
  MemoryId Z = tensor("Z");
  auto refuse = [&](int64_t pitch, int64_t lanes) {
    fuse({nest(i, v, {store(Z, add(mul(use(i), pitch), mul(use(v), lanes)), c(1))}),
          nest(j, w, {store(U, b, load(Z, add(mul(use(j), pitch), mul(use(w), lanes))))})});
    expect_unchanged();
  };
  refuse(huge, 1);
  refuse(INT64_MIN, 1);
  refuse(huge, huge / 4);
}

TEST_F(FuseLoops, TensorsMayAlias) {
  // Y = T beside T = X: Y may be X, one row on.
  fuse({nest(i, v, {store(T, a, load(X, a))}), nest(j, w, {store(Y, b, load(U, b))})});
  expect_unchanged();
  fuse({nest(i, v, {store(Y, a, load(U, a))}), nest(j, w, {store(T, b, load(X, b))})});
  expect_unchanged();
  MemoryId Z = tensor("Z");
  fuse({nest(i, v, {store(Y, a, load(U, a))}), nest(j, w, {store(Z, b, load(T, b))})});
  expect_unchanged();
}

TEST_F(FuseLoops, SlicesOfTheArenaThatOverlap) {
  thread::Memory m = p.memory(T);
  m.name = "T2";
  m.arena_offset += 64;
  MemoryId T2 = p.add_memory(m);
  expect_refused({store(U, b, load(T2, b))});
  expect_refused({store(T2, b, load(U, b))});
}

TEST_F(FuseLoops, AStatementBetween) {
  auto between = [&](StmtId s) {
    fuse({nest(i, v, {store(T, a, load(X, a))}), s, nest(j, w, {store(U, b, load(T, b))})});
    expect_unchanged();
  };
  VarId k = var("k"), l = var("l");
  between(store(T, c(3), c(1)));           // writes what the nest writes
  between(store(n, c(0), load(T, c(3))));  // reads what the nest writes
  between(store(Y, c(0), c(1)));           // may write what the nest reads
  between(p.add(thread::Barrier{}, ""));
  between(loop(k, c(2), LoopForm::serial, {p.add(thread::Barrier{}, "")}));
  between(p.add(thread::Branch{p.exprs.lt(load(T, c(3)), c(1)), {store(n, c(0), c(1))}, {}}, ""));
  between(p.add(thread::Branch{p.exprs.lt(use(bx), c(1)), {}, {store(T, c(0), c(1))}}, ""));
  between(loop(l, load(T, c(0)), LoopForm::serial, {store(n, use(l), c(1))}));
  between(p.add(thread::LaneReduce{thread::Combine::sum, n, c(0), T, c(0), 8, false}, ""));
  between(p.add(thread::LaneReduce{thread::Combine::sum, T, c(0), n, c(0), 8, false}, ""));
  between(p.add(thread::Prefetch{X, load(T, c(0)), 2}, ""));
}

TEST_F(FuseLoops, AnMmaBetween) {
  MemoryId A = tile("A"), B = tile("B"), C = tile("C");
  auto mma = [&](MemoryId left, MemoryId right, MemoryId out) {
    thread::HostMma m;
    m.mr = 2, m.nr = 2, m.k = 2, m.a_row = 2, m.b_k = 2, m.c_row = 2;
    m.a = left, m.b = right, m.c = out;
    m.a_index = m.b_index = m.c_index = c(0);
    return p.add(m, "");
  };
  for (auto [left, right, out, moves] :
       {std::tuple{A, B, C, true}, {T, B, C, false}, {A, T, C, false}, {A, B, T, false}}) {
    fuse({nest(i, v, {store(T, a, load(X, a))}), mma(left, right, out),
          nest(j, w, {store(U, b, load(T, b))})});
    EXPECT_EQ(p.body.size(), moves ? 2u : 3u);
  }
}

TEST_F(FuseLoops, ExtentsThatTheFirstNestChanges) {
  // Both loops run up to n[0]; the first sets it.
  ExprId extent = load(n, c(0));
  fuse({loop(i, extent, LoopForm::serial, {store(n, c(0), c(2))}),
        loop(j, extent, LoopForm::serial, {store(U, use(j), c(1))})});
  expect_unchanged();
  fuse({loop(i, extent, LoopForm::serial, {store(U, use(i), c(1))}),
        loop(j, extent, LoopForm::serial, {store(n, c(0), c(2))})});
  expect_unchanged();
  fuse({loop(i, c(2), LoopForm::serial, {loop(v, extent, LoopForm::serial, {store(U, use(v), c(1))})}),
        loop(j, c(2), LoopForm::serial, {loop(w, extent, LoopForm::serial, {store(n, c(0), c(2))})})});
  expect_unchanged();
}

TEST_F(FuseLoops, ALoopThatStandsForSeveralPasses) {
  // for pass { T += 1 }; for pass { U += T }: a whole pass of the first is needed before the second begins.
  VarId pass = var("pass"), again = var("again");
  fuse({loop(pass, c(3), LoopForm::serial, {nest(i, v, {store(T, a, add(load(T, a), 1))})}),
        loop(again, c(3), LoopForm::serial, {nest(j, w, {store(U, b, add(load(U, b), load(T, b)))})})});
  expect_unchanged();
}

TEST_F(FuseLoops, AnIndexReadFromWhatTheNestWrites) {
  // n[0] + i: the first nest moves n[0] along.
  ExprId first = add(load(n, c(0)), a), second = add(load(n, c(0)), b);
  fuse({nest(i, v, {store(T, first, c(1)), store(n, c(0), c(3))}),
        nest(j, w, {store(U, b, load(T, second))})});
  expect_unchanged();
}

TEST_F(FuseLoops, NestsThatHoldMoreThanStores) {
  VarId k = var("k");
  StmtId reduce = p.add(thread::LaneReduce{thread::Combine::sum, n, c(0), T, c(0), 8, false}, "");
  fuse({loop(i, c(4), LoopForm::serial, {store(T, use(i), c(1)), reduce}),
        loop(j, c(4), LoopForm::serial, {store(U, use(j), load(T, use(j)))})});
  expect_unchanged();
  fuse({loop(i, c(4), LoopForm::serial,
             {store(T, use(i), c(1)), loop(k, c(2), LoopForm::serial, {store(n, use(k), c(1))})}),
        loop(j, c(4), LoopForm::serial, {store(U, use(j), load(T, use(j)))})});
  expect_unchanged();
}

}  // namespace
}  // namespace tilegen::lower
