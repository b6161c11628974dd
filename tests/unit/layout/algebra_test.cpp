// Compose, invert, divide, refine, permute, canonical: the map is kept point by point, or refused with a
// reason.
#include <gtest/gtest.h>

#include "naive.h"
#include "support/diag_codes.h"

namespace tilegen::layout {
namespace {

using naive::Point;

void expect_reason(const Error& e) {
  EXPECT_EQ(e.diagnostics[0].code, DiagCode::bad_shape);
  EXPECT_GT(e.diagnostics[0].message.size(), 20u);
  EXPECT_FALSE(e.diagnostics[0].hint.empty());
}

// One digit written as two.
Layout split(naive::Random& random, const Layout& l) {
  std::vector<Digit> digits;
  for (const Digit& d : l.digits()) {
    int64_t low = random.range(1, d.extent);
    while (d.extent % low != 0) --low;
    if (low == 1 || low == d.extent) {
      digits.push_back(d);
      continue;
    }
    digits.push_back({d.dim, low, d.weight, d.output, d.stride});
    digits.push_back({d.dim, d.extent / low, d.weight * low, d.output, d.stride * low});
  }
  return *Layout::make(l.shape(), digits, l.outputs(), l.swizzle(), l.element_bytes());
}

TEST(AlgebraRandom, CanonicalKeepsTheMap) {
  naive::Random random(11);
  int merged = 0, split_count = 0;
  for (int i = 0; i < 3000; ++i) {
    const Layout l = naive::random_layout(random, 128);
    SCOPED_TRACE(l.to_text());
    const Layout c = l.canonical();
    ASSERT_EQ(naive::padded_box(c), naive::padded_box(l));
    ASSERT_TRUE(naive::same_map(l, c, naive::padded_box(l)));
    ASSERT_EQ(c.canonical(), c);
    merged += c.digits().size() < l.digits().size();
    const Layout finer = split(random, l);
    ASSERT_TRUE(naive::same_map(l, finer, naive::padded_box(l)));
    ASSERT_EQ(finer.canonical(), c);
    ASSERT_TRUE(finer.equivalent(l));
    split_count += finer != l;
  }
  EXPECT_GT(merged, 500);
  EXPECT_GT(split_count, 200);
}

// Equal maps have equal canonical forms, also when nothing relates how they were written.
TEST(AlgebraRandom, EqualMapsAreEquivalentAndOthersAreNot) {
  naive::Random random(12);
  int equal = 0;
  for (int i = 0; i < 60000; ++i) {
    std::vector<int64_t> shape;
    auto radices = naive::random_radices(random, 1, 12, false, shape), others = radices;
    if (random.chance(70)) {
      std::vector<int64_t> other_shape;
      others = naive::random_radices(random, 1, 12, false, other_shape);
    }
    naive::random_strides(random, 2, false, radices);
    naive::random_strides(random, 2, false, others);
    auto a = Layout::make(shape, radices, 2), b = Layout::make(shape, others, 2);
    if (!a || !b || a->padded_extent(0) != b->padded_extent(0)) continue;
    const bool same = naive::same_map(*a, *b, naive::padded_box(*a));
    ASSERT_EQ(a->equivalent(*b), same) << a->to_text() << "\n" << b->to_text();
    equal += same && *a != *b;
  }
  EXPECT_GT(equal, 50);
}

TEST(AlgebraRandom, PermuteKeepsTheMap) {
  naive::Random random(13);
  for (int i = 0; i < 1000; ++i) {
    const Layout l = naive::random_layout(random, 96);
    std::vector<int> order(l.rank());
    for (int k = 0; k < l.rank(); ++k) order[k] = k;
    random.shuffle(order);
    const Layout p = l.permute(order);
    naive::for_each_point(naive::padded_box(l), [&](const Point& x) {
      Point y(x.size());
      for (size_t k = 0; k < x.size(); ++k) y[k] = x[order[k]];
      for (int64_t r = 0; r < l.replicas(); ++r) EXPECT_EQ(p.eval(y, r), l.eval(x, r)) << l.to_text();
    });
    for (int k = 0; k < l.rank(); ++k) ASSERT_EQ(p.shape()[k], l.shape()[order[k]]);
  }
}

// Splits every digit of `outer` at random and hands the pieces to random dimensions of a new layout: always
// composable.
Layout fitting_inner(naive::Random& random, const Layout& outer) {
  std::vector<int64_t> shape(random.range(1, 3), 1);
  std::vector<Digit> digits;
  auto give = [&](int64_t extent, int output, int64_t stride) {
    const int dim = static_cast<int>(random.range(0, static_cast<int64_t>(shape.size()) - 1));
    digits.push_back(
        {.dim = dim, .extent = extent, .weight = shape[dim], .output = output, .stride = stride});
    shape[dim] *= extent;
  };
  std::vector<Digit> pieces = outer.digits();
  random.shuffle(pieces);
  for (const Digit& d : pieces) {
    if (d.dim == kReplica || random.chance(15)) continue;
    int64_t low = random.range(1, d.extent);
    while (d.extent % low != 0) --low;
    give(low, d.dim, d.weight);
    give(d.extent / low, d.dim, d.weight * low);
  }
  if (random.chance(30)) give(2, 0, 0);
  auto inner = Layout::make(shape, digits, outer.rank());
  EXPECT_TRUE(inner);
  return *inner;
}

TEST(AlgebraRandom, ComposeEvaluatesOneAfterTheOther) {
  naive::Random random(15);
  int fitting = 0, other = 0, refused = 0;
  for (int i = 0; i < 6000; ++i) {
    const Layout outer = naive::random_layout(random, 128);
    if (outer.rank() == 0) continue;
    const bool fits = random.chance(50);
    Layout inner = fits ? fitting_inner(random, outer) : naive::random_layout(random, 64);
    if (!fits) {
      std::vector<Digit> digits = inner.digits();
      for (Digit& d : digits) d.output = static_cast<int>(random.range(0, outer.rank() - 1));
      inner = *Layout::make(inner.shape(), digits, outer.rank());
    }
    SCOPED_TRACE(outer.to_text() + "  after  " + inner.to_text());
    auto composed = outer.compose(inner);
    if (!composed) {
      ASSERT_FALSE(fits) << composed.error().to_text();
      expect_reason(composed.error());
      ++refused;
      continue;
    }
    ASSERT_EQ(composed->shape(), inner.shape());
    ASSERT_EQ(naive::padded_box(*composed), naive::padded_box(inner));
    ASSERT_EQ(composed->replicas(), outer.replicas());
    naive::for_each_point(naive::padded_box(inner), [&](const Point& x) {
      const Point middle = inner.eval(x);
      for (int k = 0; k < outer.rank(); ++k) EXPECT_LT(middle[k], outer.padded_extent(k));
      for (int64_t r = 0; r < outer.replicas(); ++r) EXPECT_EQ(composed->eval(x, r), outer.eval(middle, r));
    });
    if (HasFailure()) return;
    ++(fits ? fitting : other);
  }
  EXPECT_GT(fitting, 1000);
  EXPECT_GT(other, 100);
  EXPECT_GT(refused, 500);
}

TEST(Algebra, ComposeRefusesByName) {
  const Layout outer = *Layout::from_text("(12) -> [0: d0/1%4*100 + d0/4%3*1]");
  auto message = [&](const char* inner) {
    auto c = outer.compose(*Layout::from_text(inner));
    return c ? std::string("accepted ") + c->to_text() : c.error().diagnostics[0].message;
  };
  EXPECT_EQ(message("(12) -> [0: d0/1%12*1]"), "accepted (12) -> [0: d0/1%4*100 + d0/4%3*1]");
  EXPECT_EQ(message("(2) -> [0: d0/1%2*5]"), "accepted (2) -> [0: d0/1%2*101]");
  EXPECT_EQ(message("(6) -> [0: d0/1%6*1]"),
            "cannot compose dimension 0 (extent 12, digits 4x3) after dimension 0 (extent 6, digits 6): the "
            "digit of "
            "extent 6 at weight 1 does not fit, the radices do not refine");
  EXPECT_EQ(message("(3,3) -> [0: d0/1%3*1 + d1/1%3*1]"),
            "cannot compose dimension 0 (extent 12, digits 4x3) after dimension 1 (extent 3, digits 3): the "
            "digit of "
            "extent 3 at weight 1 does not fit, sums of digits carry across a radix");
  EXPECT_EQ(message("(2) -> [0: d0/1%2*12]"),
            "cannot compose dimension 0 (extent 12, digits 4x3) after dimension 0 (extent 2, digits 2): the "
            "digit of "
            "extent 2 at weight 1 does not fit, its stride 12 lies beyond the dimension");
}

}  // namespace
}  // namespace tilegen::layout
