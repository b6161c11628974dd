// Nests that only keep what is there run where some element may change, and all others as before.
#include "lower/host/skip_selects.h"

#include "nest_builder.h"

namespace tilegen::lower {
namespace {

using namespace test;

struct SkipSelects : ::testing::Test, NestBuilder {
  MemoryId X = tensor("X"), T = tile("T", 512), U = tile("U", 512);
  VarId i = var("i"), v = var("v");

  StmtId masked(ExprId condition, MemoryId memory) {
    const ExprId index = at(i, v);
    return nest(i, v, {store(memory, index, p.exprs.select(condition, load(memory, index), c(-1)))});
  }
  std::string skipped(Block body) {
    p.body = std::move(body);
    expect_legal();
    skip_selects(p);
    expect_legal();
    return this->body();
  }
  std::string unchanged(Block body) {
    p.body = std::move(body);
    return this->body();
  }
};

TEST_F(SkipSelects, ConditionAtItsWorst) {
  const ExprId key = add(mul(use(bx), 8), use(v));
  EXPECT_EQ(skipped({masked(p.exprs.lt(key, use(by)), T)}), R"(  if not(bx * 8 + 7 < by) {
    serial i in 0..4 {
      vectorized v in 0..8 {
        T[i * 8 + v] = select(bx * 8 + v < by, T[i * 8 + v], -1)
      }
    }
  }
)");
}

// A causal mask: keys beyond the query, and behind the end.
TEST_F(SkipSelects, EachVariableWhereItHidesMost) {
  const ExprId key = add(mul(use(bx), 8), use(v)), query = add(mul(use(by), 4), use(i));
  const ExprId both = p.exprs.logical_and(p.exprs.le(key, query), p.exprs.lt(key, c(20)));
  const std::string text = skipped({masked(both, T)});
  EXPECT_NE(text.find("if not(bx * 8 + 7 <= by * 4 and bx * 8 + 7 < 20) {"), std::string::npos) << text;
}

TEST_F(SkipSelects, InsideOfLoopsAndBranches) {
  const StmtId inner =
      p.add(thread::Branch{p.exprs.lt(use(bx), c(1)), {masked(p.exprs.lt(use(v), use(by)), T)}, {}}, "");
  const std::string text = skipped({loop(var("k"), c(2), LoopForm::serial, {inner, store(U, c(0), c(1))})});
  EXPECT_NE(text.find("if not(7 < by)"), std::string::npos) << text;
}

TEST_F(SkipSelects, NestsThatDoMore) {
  const ExprId index = at(i, v), hides = p.exprs.lt(use(v), use(by));
  const ExprId other = add(index, 1);
  const Block cases[] = {
      {masked(hides, X)},                                                             // others may read it
      {masked(p.exprs.lt(load(U, use(v)), use(by)), T)},                              // depends on memory
      {masked(p.exprs.lt(p.exprs.floormod(use(v), c(3)), use(by)), T)},               // not linear
      {masked(p.exprs.binary(ExprOp::eq, use(v), use(by)), T)},                       // no order
      {nest(i, v, {store(T, index, p.exprs.select(hides, load(U, index), c(-1)))})},  // another tile
      {nest(i, v, {store(T, index, p.exprs.select(hides, load(T, other), c(-1)))})},  // another element
      {nest(i, v, {store(T, index, p.exprs.select(hides, c(-1), load(T, index)))})},  // keeps where not
      {nest(i, v, {store(T, index, p.exprs.select(hides, load(T, index), c(-1))), store(U, index, c(2))})}};
  for (const Block& body : cases) {
    const std::string before = unchanged(body);
    EXPECT_EQ(skipped(body), before);
  }
}

}  // namespace
}  // namespace tilegen::lower
