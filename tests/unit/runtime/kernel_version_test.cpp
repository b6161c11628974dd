#include "runtime/kernel_version.h"

#include <gtest/gtest.h>

#include <array>
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
TEST(KernelVersion, CompiledGridsAreTheEvaluatedOnes) {
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
    const KernelVersion version(p);
    for (int launch = 0; launch < 8; ++launch) {
      const uint64_t slots[] = {random() % 1000, launch == 7 ? random() : random() % 50, random() % 256};
      const auto expected = evaluate_grid(p, slots), actual = version.grid(slots);
      ASSERT_EQ(static_cast<bool>(expected), static_cast<bool>(actual));
      if (!expected) continue;
      EXPECT_EQ(expected->extents, actual->extents);
      EXPECT_EQ(expected->blocks, actual->blocks);
    }
  }
}

// What grids usually are, a dim times and plus something divided by a constant, alone and inside of others;
// with values that overflow on their way.
TEST(KernelVersion, RatiosOfADimAreTheEvaluatedOnes) {
  std::mt19937_64 random(11);
  const auto number = [&](bool large) {
    return large ? static_cast<int64_t>(random()) : static_cast<int64_t>(random() % 41) - 20;
  };
  for (int round = 0; round < 500; ++round) {
    const thread::ThreadProgram p = with_grid([&](ir::ExprPool& e, ir::ExprId m, ir::ExprId n, ir::ExprId c) {
      const auto ratio = [&](ir::ExprId x) {
        if (random() % 2) x = e.mul(x, e.const_int(number(random() % 8 == 0)));
        const ir::ExprId offset = e.const_int(number(random() % 8 == 0));
        if (random() % 2) x = random() % 2 ? e.add(x, offset) : e.sub(x, offset);
        return random() % 2 ? e.binary(ir::ExprOp::floordiv, x,
                                       e.const_int(random() % 2 ? number(false) : 1 << random() % 9))
                            : x;
      };
      const ir::ExprId a = ratio(m), b = ratio(n);
      return std::vector<ir::ExprId>{a, random() % 2 ? b : e.mul(e.add(a, b), ratio(c)),
                                     e.const_int(number(false))};
    });
    const KernelVersion version(p);
    for (int launch = 0; launch < 16; ++launch) {
      const bool large = launch >= 12;
      const uint64_t slots[] = {large ? random() : random() % 1000, large ? random() : random() % 50,
                                random() % 256};
      const auto expected = evaluate_grid(p, slots), actual = version.grid(slots);
      ASSERT_EQ(static_cast<bool>(expected), static_cast<bool>(actual));
      if (!expected) continue;
      EXPECT_EQ(expected->extents, actual->extents);
      EXPECT_EQ(expected->blocks, actual->blocks);
    }
  }
}

// Floating scalars are left to the walk.
TEST(KernelVersion, AGridThatIsNotCompiledIsEvaluated) {
  thread::ThreadProgram p = with_grid([](ir::ExprPool& e, ir::ExprId m, ir::ExprId, ir::ExprId) {
    return std::vector<ir::ExprId>{
        e.cast(ir::DType::i64, e.unary(ir::ExprOp::sqrt, e.cast(ir::DType::f64, m)))};
  });
  const uint64_t slots[] = {49, 0, 0};
  const auto grid = KernelVersion(p).grid(slots);
  ASSERT_TRUE(grid);
  EXPECT_EQ(grid->blocks, 7);
}

TEST(KernelVersion, TheFirstThatFits) {
  auto one = [](ir::ExprPool& e, ir::ExprId, ir::ExprId, ir::ExprId) {
    return std::vector<ir::ExprId>{e.const_int(1)};
  };
  thread::ThreadProgram strict = with_grid(one), loose = with_grid(one);
  strict.guards = {{0, 16}, {1, 3}};
  const std::vector<KernelVersion> versions = {KernelVersion(strict), KernelVersion(loose)};
  const auto chosen = [&](uint64_t m, uint64_t n) {
    const uint64_t slots[] = {m, n, 0};
    auto version = choose_version(versions, "k", slots);
    return version ? *version - versions.data() : -1;
  };
  EXPECT_EQ(chosen(32, 9), 0);
  EXPECT_EQ(chosen(0, 0), 0);
  EXPECT_EQ(chosen(33, 9), 1);
  EXPECT_EQ(chosen(32, 10), 1);
  EXPECT_EQ(versions[0].guards_text(), "m % 16 == 0, n % 3 == 0");
  EXPECT_EQ(versions[1].guards_text(), "");
}

// Parameter 3 is the tensor A.
thread::ThreadProgram with_tensor() {
  thread::ThreadProgram p = with_grid([](ir::ExprPool& e, ir::ExprId, ir::ExprId, ir::ExprId) {
    return std::vector<ir::ExprId>{e.const_int(1)};
  });
  thread::Memory tensor;
  tensor.name = "A", tensor.param = 3;
  p.params.push_back({thread::Param::Kind::tensor, "A", ir::DType::f32, {}, p.add_memory(tensor)});
  return p;
}

// Elements of a tensor, none of whose products may wrap.
TEST(KernelVersion, TensorsOfAtMostSoManyBytes) {
  thread::ThreadProgram p = with_tensor();
  const ir::ExprId m = p.exprs.var(p.params[0].var), n = p.exprs.var(p.params[1].var);
  thread::Guard size{3, 16};
  size.elements = p.exprs.mul(m, n), size.most_bytes = 4000;
  p.guards = {size};
  const auto fits = [](const thread::ThreadProgram& of, uint64_t rows, uint64_t columns) {
    return KernelVersion(of).fits(std::array<uint64_t, 4>{rows, columns, 0, 4096});
  };
  EXPECT_TRUE(fits(p, 100, 10));
  EXPECT_FALSE(fits(p, 143, 7));
  EXPECT_FALSE(fits(p, uint64_t{1} << 33, uint64_t{1} << 33));
  EXPECT_FALSE(KernelVersion(p).fits(std::array<uint64_t, 4>{100, 10, 0, 4100}));
  EXPECT_EQ(KernelVersion(p).guards_text(), "A % 16 == 0, A of at most 4000 bytes");
  p.guards[0].reach = p.exprs.mul(p.exprs.add(m, p.exprs.const_int(8)), n);
  EXPECT_TRUE(fits(p, 92, 10));
  EXPECT_FALSE(fits(p, 93, 10));
  EXPECT_EQ(KernelVersion(p).guards_text(), "A % 16 == 0, A of at most 4000 bytes");
}

// A tensor map's numbers, and the tensors that no map describes.
TEST(KernelVersion, ShapesOfTensorMaps) {
  thread::ThreadProgram p = with_tensor();
  const ir::ExprId m = p.exprs.var(p.params[0].var), n = p.exprs.var(p.params[1].var);
  p.tensor_maps.push_back(
      {"A_map", ir::ObjectId(0), {n, m, n}, {p.exprs.mul(n, 4), p.exprs.mul(m, n)}, {8, 8, 1}, 32});
  const KernelVersion version(p);
  TensorShape shape;
  const uint64_t good[] = {64, 12, 0, 4096};
  ASSERT_TRUE(version.shapes(good, {&shape, 1}));
  EXPECT_TRUE(version.fits(good));
  EXPECT_EQ(shape.address, 4096u);
  EXPECT_EQ(shape.rank, 3u);
  EXPECT_EQ(shape.extents[1], 64u);
  EXPECT_EQ(shape.strides[0], 48u);
  EXPECT_EQ(shape.strides[1], 768u);
  const uint64_t most = (uint64_t{1} << 31) - (uint64_t{1} << 21);
  EXPECT_TRUE(version.fits(std::array<uint64_t, 4>{most, 4, 0, 4096}));
  for (const auto& bad : {std::array<uint64_t, 4>{64, 12, 0, 4104},
                          {64, 13, 0, 4096},
                          {64, 0, 0, 4096},
                          {0, 12, 0, 4096},
                          {most + 4, 4, 0, 4096},
                          {most, 1024, 0, 4096},
                          {most << 20, most, 0, 4096}})
    EXPECT_FALSE(version.fits(bad)) << bad[0] << " " << bad[1] << " " << bad[3];
  EXPECT_NE(version.id(), KernelVersion(p).id());
  EXPECT_EQ(version.guards_text(),
            "A with addresses and strides % 16 == 0 and extents from 1 to 2^31 - 2^21, as tensor maps need");
}

}  // namespace
}  // namespace tilegen::runtime
