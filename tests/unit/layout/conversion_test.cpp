// Coverage and conversion of fragments against tables of (thread, register).
#include "fragment_tables.h"

namespace tilegen::layout {
namespace {

using naive::holding;
using naive::Holding;
using naive::mma_accumulator;
using naive::Point;

// The definition of `covers`, point by point.
bool naive_covers(const Fragment& held, const Fragment& asked, const std::vector<int>& index_map) {
  bool covered = true;
  naive::for_each_point(asked.shape(), [&](const Point& i) {
    Point e(held.rank(), 0);
    for (int k = 0; k < held.rank(); ++k)
      if (index_map[k] != kBroadcast) e[k] = i[index_map[k]];
    for (int k = 0; k < held.rank(); ++k)
      if (e[k] >= held.shape()[k]) {
        covered = false;
        return;
      }
    const Holding have = holding(held, e), ask = holding(asked, i);
    covered = covered &&
              std::includes(have.threads.begin(), have.threads.end(), ask.threads.begin(), ask.threads.end());
  });
  return covered;
}

TEST(FragmentRandom, CoversMatchesItsDefinition) {
  naive::Random random(26);
  int yes = 0, no = 0;
  for (int i = 0; i < 4000; ++i) {
    const Fragment iteration = naive::random_fragment(random);
    std::vector<int64_t> shape;
    std::vector<int> index_map;
    Fragment held;
    if (random.chance(50)) {  // close to covered: a reduction, its axis read at 0, sometimes with copies
      const int axis = static_cast<int>(random.range(0, iteration.rank() - 1));
      held = iteration.reduce(axis, true);
      for (int k = 0; k < iteration.rank(); ++k)
        index_map.push_back(random.chance(80) && k != axis ? k : kBroadcast);
    } else {
      const int rank = static_cast<int>(random.range(1, 2));
      for (int k = 0; k < rank; ++k) {
        index_map.push_back(random.chance(25) ? kBroadcast
                                              : static_cast<int>(random.range(0, iteration.rank() - 1)));
        shape.push_back(index_map[k] == kBroadcast
                            ? random.range(1, 4)
                            : std::max<int64_t>(1, iteration.shape()[index_map[k]] + random.range(-1, 1)));
      }
      int64_t elements = 1;
      for (int64_t e : shape) elements *= e;
      if (elements > 24) continue;
      held = random.chance(30) ? Fragment::replicated(shape, random.range(1, 2 * iteration.threads()))
                               : naive::random_fragment(random, shape);
    }
    const bool expected = naive_covers(held, iteration, index_map);
    ASSERT_EQ(held.covers(iteration, index_map), expected) << held.to_text() << "\n" << iteration.to_text();
    ++(expected ? yes : no);
  }
  EXPECT_GT(yes, 500);
  EXPECT_GT(no, 500);
}

ConversionKind naive_conversion(const Fragment& from, const Fragment& to, int64_t warp) {
  bool held = true, same_register = true, more_holders = false, same_warp = true;
  naive::for_each_point(from.shape(), [&](const Point& p) {
    const Holding have = holding(from, p), ask = holding(to, p);
    std::set<int64_t> warps;
    for (int64_t t : have.threads) warps.insert(t / warp);
    for (int64_t t : ask.threads) {
      held = held && have.threads.count(t);
      same_warp = same_warp && warps.count(t / warp);
    }
    same_register = same_register && have.reg == ask.reg;
    more_holders = more_holders || ask.threads.size() > have.threads.size();
  });
  if (held) return same_register ? ConversionKind::none : ConversionKind::register_permute;
  if (more_holders) return ConversionKind::replication;
  return same_warp ? ConversionKind::shuffle : ConversionKind::shared_bounce;
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
  if (random.chance(40)) std::erase_if(digits, [](const Digit& d) { return d.dim == kReplica; });
  auto map = Layout::make(f.shape(), digits, 2);
  auto g = Fragment::make(*map, f.threads());
  return g ? *g : f;
}

TEST(FragmentRandom, ConversionMatchesTables) {
  naive::Random random(27);
  std::map<ConversionKind, int> seen;
  for (int i = 0; i < 8000; ++i) {
    const Fragment from = naive::random_fragment(random, {}, 64);
    Fragment to =
        random.chance(60) ? restrided(random, from) : naive::random_fragment(random, from.shape(), 96);
    for (int64_t warp : {2, 3, 4, 8}) {
      const ConversionKind kind = classify_conversion(from, to, warp);
      ASSERT_EQ(conversion_name(kind), conversion_name(naive_conversion(from, to, warp)))
          << from.to_text() << "\n"
          << to.to_text() << "\nwarp " << warp;
      ++seen[kind];
    }
  }
  for (ConversionKind k : {ConversionKind::none, ConversionKind::register_permute, ConversionKind::shuffle,
                           ConversionKind::shared_bounce, ConversionKind::replication})
    EXPECT_GT(seen[k], 300) << conversion_name(k);
}

TEST(Conversion, OfAnAccumulator) {
  const std::vector<int> order{1, 0};
  const Fragment acc = mma_accumulator()
                           .repeat(std::vector<int64_t>{1, 32}, order)
                           .repeat_on_thread(std::vector<int64_t>{8, 1}, order);
  ASSERT_EQ(acc.shape(), (std::vector<int64_t>{128, 256}));
  const Fragment rows = Fragment::row_major_vectors(acc.shape(), 256, 8);
  EXPECT_EQ(classify_conversion(acc, acc, 32), ConversionKind::none);
  EXPECT_EQ(classify_conversion(acc, rows, 32), ConversionKind::shared_bounce);
  EXPECT_EQ(classify_conversion(acc, Fragment::replicated(acc.shape(), 256), 32),
            ConversionKind::replication);
  EXPECT_EQ(classify_conversion(Fragment::replicated(acc.shape(), 256), rows, 32),
            ConversionKind::register_permute);
  // The same accumulator with its column blocks the slowest registers of all.
  const Fragment by_row =
      mma_accumulator().repeat(std::vector<int64_t>{2, 1}, order).repeat(std::vector<int64_t>{1, 4}, order);
  const Fragment by_column =
      mma_accumulator().repeat(std::vector<int64_t>{1, 4}, order).repeat(std::vector<int64_t>{2, 1}, order);
  EXPECT_EQ(classify_conversion(by_row, by_column, 32), ConversionKind::register_permute);
  EXPECT_EQ(classify_conversion(by_row, Fragment::row_major_vectors(by_row.shape(), 32, 2), 32),
            ConversionKind::shuffle);
}

}  // namespace
}  // namespace tilegen::layout
