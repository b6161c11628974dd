#include "runtime/kernel_form.h"

#include <gtest/gtest.h>

#include <random>

namespace tilegen::runtime {
namespace {

// A grid over the dims m, n and the scalar c: i8, from `make`.
template <class Make>
thread::ThreadProgram with_grid(Make&& make) {
  thread::ThreadProgram p;
  p.name = "k";
  for (const char* name : {"m", "n", "c"}) {
    thread::Param q;
    q.kind = *name == 'c' ? thread::Param::Kind::scalar : thread::Param::Kind::dim;
    q.type = *name == 'c' ? ir::DType::i8 : ir::DType::i64;
    q.name = name;
    q.var = p.add_var(name, *name == 'c' ? ir::VarKind::scalar : ir::VarKind::dim);
    p.params.push_back(q);
  }
  const ir::ExprId m = p.exprs.var(p.params[0].var), n = p.exprs.var(p.params[1].var),
                   c = p.exprs.cast(ir::DType::i64, p.exprs.var(p.params[2].var, ir::DType::i8));
  p.grid = make(p.exprs, m, n, c);
  return p;
}

// Every operation that a grid may have, compiled and walked.
TEST(KernelForm, CompiledGridsAreTheEvaluatedOnes) {
  using ir::ExprOp;
  std::mt19937_64 random(7);
  const ExprOp kOps[] = {ExprOp::add, ExprOp::sub,     ExprOp::mul,    ExprOp::floordiv, ExprOp::floormod,
                         ExprOp::min, ExprOp::bit_and, ExprOp::bit_or, ExprOp::max,      ExprOp::bit_xor};
  for (int round = 0; round < 500; ++round) {
    const thread::ThreadProgram p = with_grid([&](ir::ExprPool& e, ir::ExprId m, ir::ExprId n, ir::ExprId c) {
      std::vector<ir::ExprId> values = {m, n, c, e.const_int(static_cast<int64_t>(random() % 9) - 2)};
      for (int i = 0; i < 8; ++i) {
        const ir::ExprId a = values[random() % values.size()], b = values[random() % values.size()];
        values.push_back(random() % 6 ? e.binary(kOps[random() % std::size(kOps)], a, b)
                                      : e.select(e.lt(a, b), a, b));
      }
      return std::vector<ir::ExprId>{values.back(), values[values.size() - 2]};
    });
    const KernelForm form(p);
    for (int launch = 0; launch < 8; ++launch) {
      const uint64_t slots[] = {random() % 1000, launch == 7 ? random() : random() % 50, random() % 256};
      const auto expected = evaluate_grid(p, slots), actual = form.grid(slots);
      ASSERT_EQ(static_cast<bool>(expected), static_cast<bool>(actual));
      if (!expected) continue;
      EXPECT_EQ(expected->extents, actual->extents);
      EXPECT_EQ(expected->blocks, actual->blocks);
    }
  }
}

// Floating scalars are left to the walk.
TEST(KernelForm, AGridThatIsNotCompiledIsEvaluated) {
  thread::ThreadProgram p = with_grid([](ir::ExprPool& e, ir::ExprId m, ir::ExprId, ir::ExprId) {
    return std::vector<ir::ExprId>{
        e.cast(ir::DType::i64, e.unary(ir::ExprOp::sqrt, e.cast(ir::DType::f64, m)))};
  });
  const uint64_t slots[] = {49, 0, 0};
  const auto grid = KernelForm(p).grid(slots);
  ASSERT_TRUE(grid);
  EXPECT_EQ(grid->blocks, 7);
}

TEST(KernelForm, TheFirstThatFits) {
  auto one = [](ir::ExprPool& e, ir::ExprId, ir::ExprId, ir::ExprId) { return std::vector<ir::ExprId>{e.const_int(1)}; };
  thread::ThreadProgram strict = with_grid(one), loose = with_grid(one);
  strict.guards = {{0, 16}, {1, 3}};
  const std::vector<KernelForm> forms = {KernelForm(strict), KernelForm(loose)};
  const auto chosen = [&](uint64_t m, uint64_t n) {
    const uint64_t slots[] = {m, n, 0};
    auto form = choose_form(forms, "k", slots);
    return form ? *form - forms.data() : -1;
  };
  EXPECT_EQ(chosen(32, 9), 0);
  EXPECT_EQ(chosen(0, 0), 0);
  EXPECT_EQ(chosen(33, 9), 1);
  EXPECT_EQ(chosen(32, 10), 1);
  EXPECT_EQ(forms[0].guards_text(), "m % 16 == 0, n % 3 == 0");
  EXPECT_EQ(forms[1].guards_text(), "");
}

}  // namespace
}  // namespace tilegen::runtime
