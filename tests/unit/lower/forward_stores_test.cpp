// Which stores to on-chip memory are handed to their readers and dropped, and which must stay.
#include "lower/host/forward_stores.h"

#include "nest_builder.h"

namespace tilegen::lower {
namespace {

using namespace test;

struct ForwardStores : ::testing::Test, NestBuilder {
  MemoryId X = tensor("X"), Y = tensor("Y"), T = tile("T"), U = tile("U"), n = tile("n", 8);
  VarId i = var("i"), v = var("v");
  ExprId a = at(i, v);

  void forward(Block body) {
    p.body = std::move(body);
    expect_legal();
    before_ = this->body();
    forward_stores(p);
    expect_legal();
  }
  void expect_unchanged(Block body) {
    forward(std::move(body));
    EXPECT_EQ(this->body(), before_);
  }
  void expect_kept(Block stores) { expect_unchanged({nest(i, v, std::move(stores))}); }

  std::string before_;
};

TEST_F(ForwardStores, AChainEndsInOneStore) {
  forward({nest(
      i, v,
      {store(T, a, load(X, a)), store(U, a, mul(load(T, a), 2)), store(Y, a, add(load(U, a), load(T, a)))})});
  EXPECT_EQ(body(), R"(  serial i in 0..4 {
    vectorized v in 0..8 {
      Y[i * 8 + v] = X[i * 8 + v] * 2 + X[i * 8 + v]
    }
  }
)");
}

TEST_F(ForwardStores, ReadersInIndicesAndPredicates) {
  forward({nest(i, v, {store(T, a, load(X, a)), store(Y, load(T, a), c(1), p.exprs.lt(load(T, a), c(9)))})});
  EXPECT_EQ(body(), R"(  serial i in 0..4 {
    vectorized v in 0..8 {
      Y[X[i * 8 + v]] = 1 if X[i * 8 + v] < 9
    }
  }
)");
}

TEST_F(ForwardStores, AReaderUnderAPredicateReadsZeroWhereItDoesNotHold) {
  forward({nest(i, v, {store(T, a, load(X, a)), store(Y, a, load(T, a, p.exprs.lt(a, c(9))))})});
  EXPECT_EQ(body(), R"(  serial i in 0..4 {
    vectorized v in 0..8 {
      Y[i * 8 + v] = select(i * 8 + v < 9, X[i * 8 + v], 0)
    }
  }
)");
}

TEST_F(ForwardStores, AReaderInFrontSeesTheOldValue) {
  // U takes the value that T is about to lose, so U stays; T goes.
  forward({nest(
      i, v, {store(U, a, load(T, a)), store(T, a, load(X, a)), store(Y, a, add(load(T, a), load(U, a)))})});
  EXPECT_EQ(body(), R"(  serial i in 0..4 {
    vectorized v in 0..8 {
      U[i * 8 + v] = T[i * 8 + v]
      Y[i * 8 + v] = X[i * 8 + v] + U[i * 8 + v]
    }
  }
)");
}

TEST_F(ForwardStores, AnUpdateOfWhatItReads) {
  forward({nest(i, v, {store(T, a, load(X, a)), store(T, a, mul(load(T, a), 2)), store(Y, a, load(T, a))})});
  EXPECT_EQ(body(), R"(  serial i in 0..4 {
    vectorized v in 0..8 {
      T[i * 8 + v] = X[i * 8 + v]
      Y[i * 8 + v] = T[i * 8 + v] * 2
    }
  }
)");
}

TEST_F(ForwardStores, ALongChainIsCutHereAndThere) {
  constexpr int kSteps = 60, kDepth = 200;
  Block stores;
  MemoryId last = X;
  for (int s = 0; s < kSteps; ++s) {
    ExprId value = load(last, a);
    for (int d = 0; d < kDepth; ++d) value = p.exprs.binary(d % 2 ? ExprOp::max : ExprOp::min, value, c(d));
    last = tile("step" + std::to_string(s));
    stores.push_back(store(last, a, value));
  }
  stores.push_back(store(Y, a, load(last, a)));
  forward({nest(i, v, std::move(stores))});
  const auto& outer = std::get<thread::Loop>(p.stmts[p.body[0].value].node);
  const auto& inner = std::get<thread::Loop>(p.stmts[outer.body[0].value].node);
  EXPECT_LT(inner.body.size(), 15u);
  EXPECT_GT(inner.body.size(), 5u);
  for (StmtId id : inner.body)
    EXPECT_LT(p.exprs[std::get<thread::Store>(p.stmts[id.value].node).value].depth, 1500);
}

// ---- what must stay

TEST_F(ForwardStores, GlobalMemoryAndRegistersAndPredicates) {
  MemoryId r = registers("r", 8);
  expect_kept({store(Y, a, load(X, a)), store(X, add(a, 1), load(Y, a))});
  expect_kept({store(r, use(v), load(X, a)), store(Y, a, load(r, use(v)))});
  expect_kept({store(T, a, load(X, a), p.exprs.lt(a, c(9))), store(Y, a, load(T, a))});
}

TEST_F(ForwardStores, ReadBehindTheNest) {
  VarId j = var("j"), w = var("w"), k = var("k");
  ExprId b = at(j, w);
  auto block = [&](StmtId behind) {
    expect_unchanged({nest(i, v, {store(T, a, load(X, a)), store(Y, a, load(T, a))}), behind});
  };
  block(nest(j, w, {store(Y, b, load(T, b))}));
  block(nest(j, w, {store(Y, b, c(1), p.exprs.lt(load(T, b), c(1)))}));
  block(p.add(thread::Branch{p.exprs.lt(use(bx), c(1)), {}, {store(Y, c(0), load(T, c(0)))}}, ""));
  block(p.add(thread::Branch{p.exprs.lt(load(T, c(0)), c(1)), {store(Y, c(0), c(1))}, {}}, ""));
  block(loop(k, load(T, c(1)), LoopForm::serial, {store(Y, use(k), c(1))}));
  block(p.add(thread::LaneReduce{thread::Combine::sum, n, c(0), T, c(0), 8, false}, ""));
  block(p.add(thread::LaneReduce{thread::Combine::sum, T, c(0), U, c(0), 8, true}, ""));
  block(p.add(thread::Prefetch{X, load(T, c(0)), 2}, ""));
}

TEST_F(ForwardStores, AnMmaBehindTheNest) {
  MemoryId A = tile("A"), B = tile("B"), C = tile("C");
  for (auto [left, right, out] : {std::tuple{T, B, C}, {A, T, C}, {A, B, T}}) {
    thread::HostMma m;
    m.mr = 2, m.nr = 2, m.k = 2, m.a_row = 2, m.b_k = 2, m.c_row = 2;
    m.a = left, m.b = right, m.c = out;
    m.a_index = m.b_index = m.c_index = c(0);
    expect_unchanged({nest(i, v, {store(T, a, load(X, a)), store(Y, a, load(T, a))}), p.add(m, "")});
  }
}

TEST_F(ForwardStores, NestsInsideLoopsAndBranches) {
  // The next iteration reads T before writing it.
  VarId k = var("k"), j = var("j"), w = var("w");
  ExprId b = at(j, w);
  auto writer = [&] { return nest(i, v, {store(T, a, load(X, a)), store(U, a, load(T, a))}); };
  expect_unchanged({loop(k, c(3), LoopForm::serial, {nest(j, w, {store(Y, b, load(T, b))}), writer()})});
  expect_unchanged({p.add(thread::Branch{p.exprs.lt(use(bx), c(1)), {writer()}, {}}, ""),
                    nest(j, w, {store(Y, b, load(T, b))})});
}

TEST_F(ForwardStores, ALoopOfSeveralPassesIsNoNestOfPoints) {
  // pass 1 reads in front what pass 0 stored
  VarId pass = var("pass");
  expect_unchanged(
      {loop(pass, c(2), LoopForm::serial,
            {nest(i, v, {store(U, a, load(T, a)), store(T, a, load(X, a)), store(Y, a, load(T, a))})})});
}

TEST_F(ForwardStores, AnotherElement) {
  expect_kept({store(T, a, load(X, a)), store(Y, a, load(T, add(a, 1)))});
  expect_kept({store(T, a, load(X, a)), store(Y, a, add(load(T, a), load(T, add(a, 1))))});
  expect_kept({store(T, a, load(X, a)), store(Y, load(T, c(0)), load(T, a))});
  expect_kept({store(U, a, load(T, add(a, -1))), store(T, a, load(X, a)),
               store(Y, a, add(load(U, add(a, 1)), load(T, a)))});
  expect_kept({store(T, a, load(T, add(a, 8))), store(Y, a, load(T, a))});
}

TEST_F(ForwardStores, OneElementOfSeveralIterations) {
  for (ExprId index :
       {c(0), use(i), use(v), add(use(i), use(v)), p.exprs.floordiv(a, c(2)), p.exprs.floormod(a, c(16))})
    expect_kept(
        {store(Y, a, load(T, index)), store(T, index, load(X, a)), store(Y, add(a, 64), load(T, index))});
}

TEST_F(ForwardStores, TheValueChangesOnTheWay) {
  // X, or what may be X, is written between the store and a reader.
  expect_kept({store(T, a, load(X, a)), store(X, a, c(0)), store(Y, a, load(T, a))});
  expect_kept({store(T, a, load(X, a)), store(Y, add(a, 1), c(0)), store(Y, add(a, 64), load(T, a))});
  expect_kept({store(T, a, load(U, a)), store(U, a, c(0), p.exprs.lt(a, c(3))),
               store(Y, a, add(load(T, a), load(U, add(a, 1))))});
  // In the store that uses it the value is taken first.
  forward({nest(i, v, {store(T, a, load(X, add(a, 1))), store(X, a, load(T, a))})});
  EXPECT_EQ(body().find("T["), std::string::npos);
}

TEST_F(ForwardStores, TheIndexChangesOnTheWay) {
  // T[n[0] + i] is another element after n[0] = n[1].
  ExprId moving = add(load(n, c(0)), a);
  expect_kept({store(T, moving, load(X, a)), store(n, c(0), load(n, c(1))), store(Y, a, load(T, moving))});
  expect_kept({store(Y, a, load(T, moving)), store(T, moving, load(X, a)),
               store(Y, add(a, 64), load(T, moving)), store(n, c(0), load(n, c(1)))});
}

TEST_F(ForwardStores, ASecondStoreToTheSameMemory) {
  expect_kept({store(T, a, load(X, a)), store(T, a, c(1), p.exprs.lt(a, c(3))), store(Y, a, load(T, a))});
  expect_kept({store(T, a, load(X, a)), store(T, add(a, 1), c(1)), store(Y, a, load(T, a))});
}

TEST_F(ForwardStores, SlicesOfTheArenaThatOverlap) {
  thread::Memory m = p.memory(T);
  m.name = "T2";
  m.arena_offset += 64;
  MemoryId T2 = p.add_memory(m);
  VarId j = var("j"), w = var("w");
  ExprId b = at(j, w);
  expect_kept({store(T, a, load(X, a)), store(T2, a, c(1)), store(Y, a, add(load(T, a), load(T2, a)))});
  expect_unchanged({nest(i, v, {store(T, a, load(X, a)), store(Y, a, load(T, a))}),
                    nest(j, w, {store(Y, b, load(T2, b))})});
}

}  // namespace
}  // namespace tilegen::lower
