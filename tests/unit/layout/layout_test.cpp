// Layout: construction, evaluation, and the symbolic answers against enumeration.
#include "layout/layout.h"

#include <gtest/gtest.h>

#include "naive.h"
#include "support/diag_codes.h"

namespace tilegen::layout {
namespace {

using naive::Point;

TEST(LayoutMake, RefusesWhatIsNoMixedRadixSystem) {
  auto refused = [](std::vector<int64_t> shape, std::vector<Digit> digits, int outputs = 1) {
    auto l = Layout::make(std::move(shape), std::move(digits), outputs);
    if (l) return std::string("accepted");
    EXPECT_EQ(l.error().diagnostics[0].code, DiagCode::bad_shape);
    EXPECT_FALSE(l.error().diagnostics[0].hint.empty());
    return l.error().diagnostics[0].message;
  };
  EXPECT_EQ(refused({8}, {{0, 4, 1, 0, 1}, {0, 2, 2, 0, 4}}),
            "digits of dimension 0 are no mixed radix system: a digit of extent 2 has weight 2, expected 4");
  EXPECT_EQ(refused({8}, {{0, 4, 1, 0, 1}}), "digits of dimension 0 reach 4 of its extent 8");
  EXPECT_EQ(refused({8}, {{0, 8, 1, 0, -1}}), "a digit of dimension 0 has stride -1");
  EXPECT_EQ(refused({0}, {}), "dimension 0 has extent 0");
  EXPECT_EQ(refused({8}, {{1, 8, 1, 0, 1}}), "a digit names dimension 1 of a layout of rank 1");
  EXPECT_EQ(refused({8}, {{0, 8, 1, 1, 1}}), "a digit of dimension 0 adds to output 1 of 1");
  EXPECT_EQ(refused({8}, {{0, 8, 1, 0, INT64_MAX / 4}}), "coordinates of output 0 overflow");
  EXPECT_EQ(refused({INT64_MAX}, {{0, INT64_MAX, 1, 0, 0}, {kReplica, 4, 1, 0, 0}}),
            "the padded box overflows");
  EXPECT_EQ(refused({8}, {{0, INT64_MAX / 2, 1, 0, 0}, {0, 4, INT64_MAX / 2, 0, 0}}),
            "digit extents of dimension 0 overflow");
  EXPECT_EQ(refused({8}, {{0, 8, 1, 0, 1}}, 0), "a layout of 0 outputs");
}

TEST(LayoutMake, DropsExtentOneAndSorts) {
  auto l = Layout::make(
      {4, 1, 6},
      {{2, 3, 2, 0, 4}, {kReplica, 2, 1, 0, 100}, {1, 1, 1, 0, 9}, {0, 4, 1, 0, 12}, {2, 2, 1, 0, 1}}, 1);
  ASSERT_TRUE(l);
  ASSERT_EQ(l->digits().size(), 4u);
  EXPECT_EQ(l->digits()[0].dim, 0);
  EXPECT_EQ(l->digits()[1], (Digit{2, 2, 1, 0, 1}));
  EXPECT_EQ(l->digits()[2], (Digit{2, 3, 2, 0, 4}));
  EXPECT_EQ(l->digits()[3].dim, kReplica);
  EXPECT_EQ(l->replicas(), 2);
}

TEST(LayoutMake, Factories) {
  const std::vector<int64_t> shape{3, 4, 5};
  const Layout rows = Layout::row_major(shape), columns = Layout::column_major(shape),
               padded = Layout::padded_row_major(shape, 3);
  naive::for_each_point(shape, [&](const Point& p) {
    EXPECT_EQ(rows.offset(p), (p[0] * 4 + p[1]) * 5 + p[2]);
    EXPECT_EQ(columns.offset(p), p[0] + 3 * (p[1] + 4 * p[2]));
    EXPECT_EQ(padded.offset(p), (p[0] * 4 + p[1]) * 8 + p[2]);
  });
  EXPECT_EQ(padded.output_extent(0), 8 * 11 + 5);
  EXPECT_EQ(Layout::row_major({}).elements(), 1);
}

TEST(Swizzle, IsTheHardwarePattern) {
  const Swizzle s{3, 4, 3};
  for (int64_t row = 0; row < 16; ++row)
    for (int64_t chunk = 0; chunk < 8; ++chunk)
      EXPECT_EQ(s.apply(row * 128 + chunk * 16), row * 128 + (chunk ^ (row % 8)) * 16);
  for (int64_t a = 0; a < 4096; ++a) EXPECT_EQ(s.apply(s.apply(a)), a);
}

TEST(Swizzle, RefusesWhatTearsElementsOrIsNoInvolution) {
  const std::vector<int64_t> shape{16, 64};
  const Layout rows = Layout::row_major(shape);
  EXPECT_TRUE(rows.with_swizzle({3, 4, 3}, 2));
  EXPECT_TRUE(rows.with_swizzle({3, 4, 3}, 16));
  EXPECT_FALSE(rows.with_swizzle({3, 4, 3}, 32));
  EXPECT_FALSE(rows.with_swizzle({3, 4, 3}, 3));
  EXPECT_FALSE(rows.with_swizzle({3, 4, 2}, 2));
  EXPECT_FALSE(rows.with_swizzle({3, 60, 3}, 2));
  EXPECT_FALSE(rows.with_swizzle({-1, 4, 3}, 2));
  EXPECT_FALSE(Fragment::replicated(shape, 2).map().with_swizzle({3, 4, 3}, 2));
  auto swizzled = rows.with_swizzle({3, 4, 3}, 2);
  ASSERT_TRUE(swizzled);
  EXPECT_TRUE(swizzled->is_bijective());
  EXPECT_EQ(swizzled->contiguous_run(1), 8);
  EXPECT_EQ(swizzled->with_swizzle({}, 2)->contiguous_run(1), 64);
}

TEST(LayoutRandom, SymbolicAnswersMatchEnumeration) {
  naive::Random random(20240607);
  int injective = 0, bijective = 0, padded = 0, swizzled = 0, replicated = 0, runs = 0;
  for (int i = 0; i < 10000; ++i) {
    const Layout l = naive::random_layout(random);
    SCOPED_TRACE(l.to_text());
    naive::for_each_point(naive::padded_box(l), [&](const Point& p) {
      for (int64_t r = 0; r < l.replicas(); ++r)
        if (l.eval(p, r) != naive::eval(l, p, r)) ADD_FAILURE() << "eval";
    });
    ASSERT_EQ(l.is_injective(), naive::is_injective(l));
    ASSERT_EQ(l.is_bijective(), naive::is_bijective(l));
    if (l.rank() > 0) {
      const int dim = static_cast<int>(random.range(0, l.rank() - 1));
      const int output = static_cast<int>(random.range(0, l.outputs() - 1));
      ASSERT_EQ(l.contiguous_run(dim, output), naive::contiguous_run(l, dim, output)) << "dim " << dim;
      runs += l.contiguous_run(dim, output) > 1;
    }
    injective += l.is_injective();
    bijective += l.is_bijective();
    padded += naive::padded_box(l) != l.shape();
    swizzled += !l.swizzle().none();
    replicated += l.replicas() > 1;
    if (HasFailure()) return;
  }
  // The sample means something only when every kind is in it.
  EXPECT_GT(injective, 2000);
  EXPECT_LT(injective, 9000);
  EXPECT_GT(bijective, 1000);
  EXPECT_GT(padded, 1000);
  EXPECT_GT(swizzled, 1000);
  EXPECT_GT(replicated, 1000);
  EXPECT_GT(runs, 1000);
}

TEST(LayoutRandom, TextReadsBackExactly) {
  naive::Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const Layout l = naive::random_layout(random);
    auto back = Layout::from_text(l.to_text());
    ASSERT_TRUE(back) << l.to_text() << "\n" << back.error().to_text();
    ASSERT_EQ(*back, l) << l.to_text();
    ASSERT_EQ(back->to_text(), l.to_text());
  }
}

TEST(LayoutText, Form) {
  const std::vector<int64_t> shape{128, 32};
  EXPECT_EQ(Layout::row_major(shape).with_swizzle({3, 4, 3}, 2)->to_text(),
            "(128,32) -> [0: d0/1%128*32 + d1/1%32*1] swizzle(3,4,3)@2");
  EXPECT_EQ(Layout::row_major({}).to_text(), "() -> [0: 0]");
  EXPECT_EQ(Fragment::replicated(std::vector<int64_t>{2}, 4).to_text(),
            "threads 4 : (2) -> [0: 0; 1: d0/1%2*1; r: o0/1%4*1]");
}

TEST(LayoutText, RefusesOtherText) {
  for (const char* text :
       {"", "(", "()", "(4)", "(4) -> ", "(4) -> []", "(4) -> [0: d0/1%4]", "(4) -> [1: d0/1%4*1]",
        "(4) -> [0: d0/1%4*1] x", "(99999999999999999999) -> [0: 0]", "(4) -> [0: d0/1%4*1] swizzle(1,2)",
        "(4) -> [0: d0/1%4*1; r: ]", "(4) -> [0: d9999999999/1%4*1]", "(4,) -> [0: d0/1%4*1]"}) {
    auto l = Layout::from_text(text);
    ASSERT_FALSE(l) << text;
    EXPECT_EQ(l.error().diagnostics[0].code, DiagCode::syntax_error) << text;
  }
  EXPECT_EQ(Layout::from_text("(4) -> [0: d0/1%2*1]").error().diagnostics[0].code, DiagCode::bad_shape);
  EXPECT_EQ(Fragment::from_text("thread 4 : (4) -> [0: 0; 1: d0/1%4*1]").error().diagnostics[0].code,
            DiagCode::syntax_error);
  auto spaced = Layout::from_text(" ( 4 )->[0:d0/1%4*1] ");
  ASSERT_TRUE(spaced);
  EXPECT_EQ(*spaced, Layout::row_major(std::vector<int64_t>{4}));
}

TEST(LayoutInjective, ShapesThatCutTheTopDigit) {
  // Index 5 would meet index 2, but the shape ends at 4.
  EXPECT_TRUE(Layout::from_text("(5) -> [0: d0/1%2*1 + d0/2%2*3 + d0/4%2*2]")->is_injective());
  EXPECT_FALSE(Layout::from_text("(6) -> [0: d0/1%2*1 + d0/2%2*3 + d0/4%2*2]")->is_injective());
  naive::Random random(5);
  int injective = 0, cut = 0;
  for (int i = 0; i < 6000; ++i) {
    std::vector<int64_t> shape;
    auto digits =
        naive::random_radices(random, static_cast<int>(random.range(1, 2)), 48, random.chance(20), shape);
    for (Digit& d : digits) d.stride = random.range(1, 24);
    int64_t reach = 1;
    for (const Digit& d : digits)
      if (d.dim == 0) reach *= d.extent;
    shape[0] = random.range(1, reach);
    auto l = Layout::make(shape, digits, 1);
    ASSERT_TRUE(l);
    ASSERT_EQ(l->is_injective(), naive::is_injective(*l)) << l->to_text();
    injective += l->is_injective();
    cut += shape[0] < reach;
  }
  EXPECT_GT(injective, 1500);
  EXPECT_GT(cut, 3000);
}

TEST(LayoutInjective, AnswersForHostileStridesInBoundedTime) {
  std::vector<Digit> digits;
  std::vector<int64_t> shape;
  naive::Random random(3);
  for (int k = 0; k < 24; ++k) {
    digits.push_back({.dim = k,
                      .extent = 4,
                      .weight = 1,
                      .output = 0,
                      .stride = random.range(int64_t{1} << 45, int64_t{1} << 46)});
    shape.push_back(4);
  }
  auto l = Layout::make(shape, digits, 1);
  ASSERT_TRUE(l);
  EXPECT_FALSE(l->is_injective());  // not proven counts as no
}

}  // namespace
}  // namespace tilegen::layout
