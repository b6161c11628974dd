// Coverage of fragments against tables of (thread, register).
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

}  // namespace
}  // namespace tilegen::layout
