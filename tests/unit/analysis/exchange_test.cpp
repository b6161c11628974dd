// How threads exchange elements: what is found is enough, checked thread by thread.
#include "analysis/exchange.h"

#include <gtest/gtest.h>

#include "../layout/fragment_tables.h"
#include "layout/bank_model.h"

namespace tilegen::analysis {
namespace {

namespace naive = layout::naive;
using layout::ConversionKind;
using layout::Digit;
using layout::Fragment;
using layout::Layout;

target::Target with_warps_of(int lanes) {
  target::Target t = *target::find_target("sm_80");
  t.warp = lanes;
  return t;
}

struct Facts {
  bool held = true, same_register = true, same_warp = true;
};
Facts facts_of(const Fragment& from, const Fragment& to, int64_t warp) {
  Facts f;
  naive::for_each_point(from.shape(), [&](const naive::Point& p) {
    const naive::Holding have = naive::holding(from, p), ask = naive::holding(to, p);
    std::set<int64_t> warps;
    for (int64_t t : have.threads) warps.insert(t / warp);
    for (int64_t t : ask.threads) {
      f.held = f.held && have.threads.count(t);
      f.same_warp = f.same_warp && warps.count(t / warp);
    }
    f.same_register = f.same_register && have.reg == ask.reg;
  });
  return f;
}

// A fragment of the same shape whose strides within each output were dealt out anew: often a neighbour of
// `f`.
Fragment restrided(naive::Random& random, const Fragment& f) {
  std::vector<Digit> digits = f.map().digits();
  const int which = static_cast<int>(random.range(0, 1));
  for (size_t i = 0; i + 1 < digits.size(); ++i)
    for (size_t j = i + 1; j < digits.size(); ++j) {
      Digit &a = digits[i], &b = digits[j];
      if (a.output == which && b.output == which && a.extent == b.extent && random.chance(40))
        std::swap(a.stride, b.stride);
    }
  if (random.chance(40)) std::erase_if(digits, [](const Digit& d) { return d.dim == layout::kReplica; });
  auto map = Layout::make(f.shape(), digits, 2);
  auto g = Fragment::make(*map, f.threads());
  return g ? *g : f;
}

// What threads pass through memory: eight neighbouring rows, a vector of each, in one pass over the banks,
// and a matrix instruction's accumulators, a word of four lanes for each of eight rows, without a conflict.
TEST(Exchange, RowsInMemoryHaveBanksOfTheirOwn) {
  const target::Target t = *target::find_target("sm_90a");
  for (const ir::DType type : {ir::DType::f16, ir::DType::f32})
    for (int64_t columns = 8; columns <= 512; columns += 8) {
      const int64_t bytes = ir::dtype_bytes(type);
      const Layout l = exchange_layout(std::vector<int64_t>{64, columns}, type, t);
      std::vector<int64_t> vectors, words;
      for (int64_t row = 0; row < 8; ++row) {
        const int64_t at = l.offset(std::vector<int64_t>{row, 0}) * bytes;
        EXPECT_EQ(at % t.vector_bytes, 0) << columns;
        vectors.push_back(at);
        for (int64_t lane = 0; lane < 4; ++lane) words.push_back(at + 4 * lane);
      }
      EXPECT_EQ(layout::bank_conflicts(vectors, static_cast<int>(t.vector_bytes), t.banks), 0) << columns;
      EXPECT_EQ(layout::bank_conflicts(words, 4, t.banks), 0) << columns;
    }
}

TEST(Exchange, WhatIsFoundIsEnough) {
  naive::Random random(27);
  std::map<ConversionKind, int> seen;
  for (int i = 0; i < 8000; ++i) {
    const Fragment from = naive::random_fragment(random, {}, 64);
    const Fragment to =
        random.chance(60) ? restrided(random, from) : naive::random_fragment(random, from.shape(), 96);
    for (int warp : {2, 4, 8}) {
      const target::Target t = with_warps_of(warp);
      const ConversionKind kind = conversion_kind(from, to, t, ir::DType::f32);
      const Facts f = facts_of(from, to, warp);
      SCOPED_TRACE(from.to_text() + "\n" + to.to_text() + "\nwarp " + std::to_string(warp));
      ASSERT_EQ(kind == ConversionKind::none || kind == ConversionKind::register_permute, f.held);
      if (f.held) {
        ASSERT_EQ(kind == ConversionKind::none, f.same_register);
      }
      if (kind == ConversionKind::shuffle) {
        ASSERT_TRUE(f.same_warp);
      }
      ASSERT_TRUE(may_convert(ConversionKind::shared_bounce, from, to, t, ir::DType::f32));
      ASSERT_EQ(may_convert(ConversionKind::register_permute, from, to, t, ir::DType::f32), f.held);
      ++seen[kind];
    }
  }
  for (ConversionKind k : {ConversionKind::none, ConversionKind::register_permute, ConversionKind::shuffle,
                           ConversionKind::shared_bounce})
    EXPECT_GT(seen[k], 200) << layout::conversion_name(k);
}

// Shuffles move 4 bytes.
TEST(Exchange, WideElementsGoThroughMemory) {
  const target::Target t = with_warps_of(32);
  const std::vector<int64_t> shape = {8, 32};
  const Fragment a = Fragment::row_major_vectors(shape, 32, 1), b = Fragment::row_major_vectors(shape, 32, 4);
  EXPECT_EQ(conversion_kind(a, b, t, ir::DType::f32), ConversionKind::shuffle);
  EXPECT_EQ(conversion_kind(a, b, t, ir::DType::f64), ConversionKind::shared_bounce);
  EXPECT_FALSE(may_convert(ConversionKind::shuffle, a, b, t, ir::DType::f64));
}

}  // namespace
}  // namespace tilegen::analysis
