// Fragments: primitives of the paper, vectors over threads and reductions against tables.
#include "layout/fragment.h"

#include <gtest/gtest.h>

#include "fragment_tables.h"

namespace tilegen::layout {
namespace {

using naive::holding;
using naive::Holding;
using naive::mma_accumulator;
using naive::Point;

TEST(Fragment, MmaAccumulator) {
  const Fragment f = mma_accumulator();
  EXPECT_EQ(f.registers(), 4);
  EXPECT_EQ(f.replicas(), 1);
  EXPECT_TRUE(f.map().is_bijective());
  naive::for_each_point({16, 8}, [&](const Point& p) {
    EXPECT_EQ(f.holders(p), std::vector<int64_t>{4 * (p[0] % 8) + p[1] % 8 / 2});
    EXPECT_EQ(f.register_of(p), 2 * (p[0] / 8) + p[1] % 2);
  });
}

// Figure 6: a 16 x 16 base of one warp, repeated to 32 rows, four warps along rows, two copies of the block.
TEST(Fragment, BlockLayoutOfFigure6) {
  const Fragment base = mma_accumulator().repeat(std::vector<int64_t>{1, 2}, std::vector<int>{0, 1});
  const Fragment warp = base.repeat(std::vector<int64_t>{2, 1}, std::vector<int>{0, 1});
  const Fragment block =
      warp.repeat_on_thread(std::vector<int64_t>{4, 1}, std::vector<int>{0, 1}).replicate(2);
  EXPECT_EQ(block.shape(), (std::vector<int64_t>{128, 16}));
  EXPECT_EQ(block.threads(), 256);
  EXPECT_EQ(block.registers(), 16);
  EXPECT_EQ(block.replicas(), 2);
  naive::for_each_point({128, 16}, [&](const Point& p) {
    const int64_t lane = 4 * (p[0] % 8) + p[1] % 8 / 2, thread = p[0] / 32 * 32 + lane;
    EXPECT_EQ(block.holders(p), (std::vector<int64_t>{thread, thread + 128}));
    EXPECT_EQ(block.register_of(p), 8 * (p[0] / 16 % 2) + 4 * (p[1] / 8) + 2 * (p[0] / 8 % 2) + p[1] % 2);
  });
}

TEST(Fragment, RepeatOrderDecidesWhichDimensionGrowsFirst) {
  const Fragment base = mma_accumulator();
  const std::vector<int64_t> twice{2, 3};
  const Fragment rows_first = base.repeat(twice, std::vector<int>{0, 1}),
                 columns_first = base.repeat(twice, std::vector<int>{1, 0});
  EXPECT_EQ(rows_first.register_of(Point{16, 0}), 4);
  EXPECT_EQ(rows_first.register_of(Point{0, 8}), 8);
  EXPECT_EQ(columns_first.register_of(Point{0, 8}), 4);
  EXPECT_EQ(columns_first.register_of(Point{16, 0}), 12);
  EXPECT_EQ(base.repeat_on_thread(twice, std::vector<int>{1, 0}).holders(Point{16, 8}),
            std::vector<int64_t>{32 * (1 + 3)});
}

// Figure 7: a 4 x 4 tile over 8 threads with two elements each; its row bias is held twice.
TEST(Fragment, BiasOfFigure7) {
  const Fragment c = Fragment::row_major_vectors(std::vector<int64_t>{4, 4}, 8, 2);
  EXPECT_EQ(c.registers(), 2);
  const Fragment d = c.reduce(1, false);
  EXPECT_EQ(d.shape(), std::vector<int64_t>{4});
  EXPECT_EQ(d.registers(), 1);
  EXPECT_EQ(d.replicas(), 2);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(d.holders(Point{i}), (std::vector<int64_t>{2 * i, 2 * i + 1}));
  EXPECT_TRUE(d.covers(c, std::vector<int>{0}));
  EXPECT_FALSE(d.covers(c, std::vector<int>{1}));
  EXPECT_TRUE(c.reduce(1, true).covers(c, std::vector<int>{0, kBroadcast}));
}

TEST(Fragment, RowStatisticOfAnAccumulator) {
  const Fragment accumulator = mma_accumulator()
                                   .repeat(std::vector<int64_t>{1, 16}, std::vector<int>{1, 0})
                                   .repeat_on_thread(std::vector<int64_t>{8, 1}, std::vector<int>{0, 1});
  const Fragment statistic = accumulator.reduce(1, false);
  EXPECT_EQ(statistic.registers(), 2);
  EXPECT_EQ(statistic.replicas(), 4);
  EXPECT_TRUE(statistic.covers(accumulator, std::vector<int>{0}));
  EXPECT_EQ(statistic.register_of(Point{8}), 1);
  const Fragment column = accumulator.reduce(0, false);
  EXPECT_EQ(column.replicas(), 64);
  EXPECT_EQ(column.registers(), 32);
  EXPECT_TRUE(column.covers(accumulator, std::vector<int>{1}));
}

TEST(FragmentMake, RefusesSharedRegistersUnlessBroadcastSaysSo) {
  auto make = [](const char* text) { return Fragment::from_text(text); };
  EXPECT_FALSE(make("threads 4 : (8) -> [0: d0/1%4*1 + d0/4%2*0; 1: d0/1%4*0 ]"));  // same weight twice
  EXPECT_TRUE(make("threads 4 : (8) -> [0: d0/1%4*1 + d0/4%2*0; 1: 0]"));
  auto shared = make("threads 8 : (4,4) -> [0: d0/1%4*1 + d1/1%4*1; 1: 0]");
  ASSERT_FALSE(shared);
  EXPECT_EQ(shared.error().diagnostics[0].message,
            "two elements of one thread share a register in (4,4) -> [0: d0/1%4*1 + d1/1%4*1; 1: 0]");
  EXPECT_FALSE(make("threads 3 : (4) -> [0: d0/1%4*1; 1: 0]"));
  EXPECT_FALSE(make("threads 4 : (4) -> [0: 0; 1: d0/1%4*1; r: o1/1%4*4]"));
  EXPECT_FALSE(make("threads 4 : (4) -> [0: d0/1%4*1]"));
  auto idle = make("threads 4 : (2) -> [0: 0; 1: d0/1%2*1; r: o0/1%3*0 + o0/3%4*1]");
  ASSERT_TRUE(idle);
  EXPECT_EQ(idle->to_text(), "threads 4 : (2) -> [0: 0; 1: d0/1%2*1; r: o0/1%4*1]");
}

TEST(FragmentMake, AgreesWithEnumerationOfThePaddedBox) {
  naive::Random random(21);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::vector<int64_t> shape;
    auto digits =
        naive::random_radices(random, static_cast<int>(random.range(1, 3)), 96, random.chance(40), shape);
    naive::random_strides(random, 2, true, digits);
    auto map = Layout::make(shape, digits, 2);
    ASSERT_TRUE(map);
    // What tells elements apart: the digits that are no broadcasts.
    std::map<Point, Point> held;
    bool clash = false;
    naive::for_each_point(naive::padded_box(*map), [&](const Point& p) {
      for (int64_t r = 0; r < map->replicas(); ++r) {
        Point key;
        for (const Digit& d : map->digits())
          if (d.stride != 0) key.push_back((d.dim == kReplica ? r : p[d.dim]) / d.weight % d.extent);
        auto [at, fresh] = held.emplace(naive::eval(*map, p, r), key);
        clash = clash || (!fresh && at->second != key);
      }
    });
    const auto f = Fragment::make(*map, map->output_extent(kThread));
    ASSERT_EQ(static_cast<bool>(f), !clash) << map->to_text();
    ++(f ? accepted : refused);
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 250);
}

TEST(Fragment, ReplicatedAndSingleThread) {
  const std::vector<int64_t> shape{3, 5};
  const Fragment all = Fragment::replicated(shape, 6),
                 one = Fragment::single_thread(Layout::padded_row_major(shape, 3));
  naive::for_each_point(shape, [&](const Point& p) {
    EXPECT_EQ(all.holders(p), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(all.register_of(p), 5 * p[0] + p[1]);
    EXPECT_EQ(one.holders(p), std::vector<int64_t>{0});
    EXPECT_EQ(one.register_of(p), 8 * p[0] + p[1]);
  });
  EXPECT_EQ(one.threads(), 1);
  EXPECT_EQ(one.registers(), 21);
}

TEST(RowMajorVectors, PowersOfTwo) {
  const Fragment f = Fragment::row_major_vectors(std::vector<int64_t>{64, 128}, 128, 8);
  EXPECT_EQ(f.to_text(), "threads 128 : (64,128) -> [0: d0/1%8*16 + d1/8%16*1; 1: d0/8%8*8 + d1/1%8*1]");
  EXPECT_EQ(Fragment::row_major_vectors(std::vector<int64_t>{4096}, 128, 4).to_text(),
            "threads 128 : (4096) -> [0: d0/4%128*1; 1: d0/1%4*1 + d0/512%8*4]");
  EXPECT_EQ(Fragment::row_major_vectors(std::vector<int64_t>{8}, 128, 4).to_text(),
            "threads 128 : (8) -> [0: d0/4%2*1; 1: d0/1%4*1; r: o0/1%64*2]");
}

TEST(RowMajorVectors, OddShapes) {
  EXPECT_EQ(Fragment::row_major_vectors(std::vector<int64_t>{100}, 128, 1).to_text(),
            "threads 128 : (100) -> [0: d0/1%128*1; 1: 0]");
  EXPECT_EQ(Fragment::row_major_vectors(std::vector<int64_t>{64, 48}, 128, 1).registers(), 24);
  EXPECT_EQ(Fragment::row_major_vectors(std::vector<int64_t>{128, 50}, 128, 8).to_text(),
            "threads 128 : (128,50) -> [0: d0/1%16*8 + d1/8%8*1; 1: d0/16%8*8 + d1/1%8*1]");
  EXPECT_EQ(Fragment::row_major_vectors(std::vector<int64_t>{96, 40}, 96, 1).to_text(),
            "threads 96 : (96,40) -> [0: d0/1%2*48 + d1/1%48*1; 1: d0/2%48*1]");
}

TEST(RowMajorVectors, EveryElementOnceInVectorsForAnyShape) {
  naive::Random random(22);
  for (int i = 0; i < 1500; ++i) {
    std::vector<int64_t> shape;
    int64_t elements = 1;
    for (int64_t k = random.range(0, 4); k > 0 && elements < 300; --k) {
      shape.push_back(random.chance(50) ? int64_t{1} << random.range(0, 4) : random.range(1, 20));
      elements *= shape.back();
    }
    const int64_t threads = random.chance(60) ? int64_t{1} << random.range(0, 7) : random.range(1, 130);
    const int64_t vector = random.chance(80) ? int64_t{1} << random.range(0, 3) : random.range(1, 9);
    const Fragment f = Fragment::row_major_vectors(shape, threads, vector);
    SCOPED_TRACE(f.to_text());
    ASSERT_EQ(f.threads(), threads);
    ASSERT_EQ(f.shape(), shape);
    if (!shape.empty()) {
      ASSERT_EQ(f.map().contiguous_run(f.rank() - 1, kRegister) % vector, 0);
    }
    // Distinct elements of a thread sit in distinct registers, and all threads are used or hold padding.
    std::map<std::pair<int64_t, int64_t>, Point> held;
    naive::for_each_point(shape, [&](const Point& p) {
      const Holding h = holding(f, p);
      EXPECT_EQ(static_cast<int64_t>(h.threads.size()), f.replicas());
      for (int64_t t : h.threads) EXPECT_TRUE(held.emplace(std::pair(t, h.reg), p).second);
    });
    ASSERT_EQ(f.map().output_extent(kThread), threads);
    // Within a quarter (and a partial round) of the registers an even spread would need, when threads can be
    // factored.
    if ((threads & (threads - 1)) == 0) {
      int64_t vectors = 1;
      for (size_t k = 0; k < shape.size(); ++k)
        vectors *= k + 1 == shape.size() ? (shape[k] + vector - 1) / vector : shape[k];
      int64_t rounded = 1;
      for (size_t k = 0; k < shape.size(); ++k) {
        int64_t extent = k + 1 == shape.size() ? (shape[k] + vector - 1) / vector : shape[k], power = 1;
        while (power < extent) power *= 2;
        rounded *= power;
      }
      ASSERT_GE(f.registers() * threads, vectors);
      ASSERT_LE(f.registers(),
                std::max<int64_t>(rounded / threads, 1) * (shape.empty() ? 1 : vector) * 5 / 4 + vector);
    }
    if (HasFailure()) return;
  }
}

TEST(FragmentRandom, TextAndCanonical) {
  naive::Random random(23);
  for (int i = 0; i < 1500; ++i) {
    const Fragment f = naive::random_fragment(random);
    SCOPED_TRACE(f.to_text());
    auto back = Fragment::from_text(f.to_text());
    ASSERT_TRUE(back) << back.error().to_text();
    ASSERT_EQ(*back, f);
    const Fragment c = f.canonical();
    ASSERT_EQ(c.canonical(), c);
    ASSERT_TRUE(c.equivalent(f));
    naive::for_each_point(naive::padded_box(f.map()), [&](const Point& p) {
      EXPECT_EQ(c.holders(p), f.holders(p));
      EXPECT_EQ(c.register_of(p), f.register_of(p));
      const Holding h = holding(f, p);
      EXPECT_EQ(f.holders(p), std::vector<int64_t>(h.threads.begin(), h.threads.end()));
      EXPECT_EQ(f.register_of(p), h.reg);
    });
  }
}

TEST(FragmentRandom, ReplicaOrderDoesNotMatter) {
  auto a = Fragment::from_text("threads 8 : (2) -> [0: 0; 1: d0/1%2*1; r: o0/1%2*1 + o0/2%4*2]");
  auto b = Fragment::from_text("threads 8 : (2) -> [0: 0; 1: d0/1%2*1; r: o0/1%4*2 + o0/4%2*1]");
  ASSERT_TRUE(a && b);
  EXPECT_NE(*a, *b);
  EXPECT_TRUE(a->equivalent(*b));
}

TEST(FragmentRandom, RepeatPrimitives) {
  naive::Random random(24);
  int tried = 0;
  while (tried < 600) {
    const Fragment f = naive::random_fragment(random, {}, 32);
    if (naive::padded_box(f.map()) != f.shape()) continue;
    ++tried;
    SCOPED_TRACE(f.to_text());
    std::vector<int64_t> times;
    std::vector<int> order;
    for (int k = 0; k < f.rank(); ++k) {
      times.push_back(random.range(1, 3));
      order.push_back(k);
    }
    random.shuffle(order);
    const Fragment more = f.repeat(times, order), wide = f.repeat_on_thread(times, order),
                   copied = f.replicate(3);
    const int64_t repeats = more.map().elements() / f.map().elements();
    ASSERT_EQ(more.threads(), f.threads());
    ASSERT_EQ(more.registers(), f.registers() * repeats);
    ASSERT_EQ(wide.threads(), f.threads() * repeats);
    ASSERT_EQ(wide.registers(), f.registers());
    naive::for_each_point(more.shape(), [&](const Point& p) {
      Point base = p;
      int64_t copy = 0, scale = 1;  // which repeat, in dim_order
      for (int k : order) {
        base[k] = p[k] % f.shape()[k];
        copy += p[k] / f.shape()[k] * scale;
        scale *= times[k];
      }
      EXPECT_EQ(more.holders(p), f.holders(base));
      EXPECT_EQ(more.register_of(p), f.register_of(base) + copy * f.registers());
      std::vector<int64_t> shifted = f.holders(base);
      for (int64_t& t : shifted) t += copy * f.threads();
      EXPECT_EQ(wide.holders(p), shifted);
      EXPECT_EQ(wide.register_of(p), f.register_of(base));
    });
    naive::for_each_point(f.shape(), [&](const Point& p) {
      std::vector<int64_t> copies;
      for (int64_t c = 0; c < 3; ++c)
        for (int64_t t : f.holders(p)) copies.push_back(t + c * f.threads());
      EXPECT_EQ(copied.holders(p), copies);
    });
    if (HasFailure()) return;
  }
}

TEST(FragmentRandom, ReduceHoldsTheStatisticWhereTheElementsAre) {
  naive::Random random(25);
  int padded = 0, in_order = 0;
  for (int i = 0; i < 3000; ++i) {
    const Fragment f = naive::random_fragment(random);
    const int axis = static_cast<int>(random.range(0, f.rank() - 1));
    SCOPED_TRACE(f.to_text() + " axis " + std::to_string(axis));
    const Fragment kept = f.reduce(axis, true), removed = f.reduce(axis, false);
    ASSERT_EQ(kept.threads(), f.threads());
    ASSERT_EQ(kept.shape()[axis], 1);
    ASSERT_EQ(removed.rank(), f.rank() - 1);
    std::vector<int> index_map, removed_map;
    for (int k = 0; k < f.rank(); ++k) {
      index_map.push_back(k == axis ? kBroadcast : k);
      if (k != axis) removed_map.push_back(k);
    }
    ASSERT_TRUE(kept.covers(f, index_map));
    ASSERT_TRUE(removed.covers(f, removed_map));
    padded += f.map().padded_extent(axis) != f.shape()[axis];
    // Exactly the threads of the padded slice hold the statistic; registers are dense over what is left.
    std::vector<int64_t> box = naive::padded_box(f.map());
    std::map<Point, std::set<int64_t>> threads;
    naive::for_each_point(box, [&](const Point& p) {
      Point at = p;
      at[axis] = 0;
      for (int64_t t : f.holders(p)) threads[at].insert(t);
    });
    std::set<std::pair<int64_t, int64_t>> before, after;
    for (const auto& [at, held] : threads) {
      ASSERT_EQ(kept.holders(at), std::vector<int64_t>(held.begin(), held.end()));
      Point short_at = at;
      short_at.erase(short_at.begin() + axis);
      ASSERT_EQ(removed.holders(short_at), kept.holders(at));
      ASSERT_EQ(removed.register_of(short_at), kept.register_of(at));
      before.emplace(f.register_of(at), kept.register_of(at));
      after.insert({kept.register_of(at), 0});
    }
    // One new register per old one of the slice at 0, without gaps, in the same order where strides nest.
    ASSERT_EQ(before.size(), after.size());
    ASSERT_EQ(static_cast<int64_t>(after.size()), kept.registers());
    std::vector<std::pair<int64_t, int64_t>> strides;
    for (const Digit& d : f.map().digits())
      if (d.dim != axis && d.output == kRegister && d.stride != 0) strides.emplace_back(d.stride, d.extent);
    std::sort(strides.begin(), strides.end());
    int64_t reach = 0, expected = 0;
    bool nested = true;
    for (auto [stride, extent] : strides) {
      nested = nested && stride > reach;
      reach += stride * (extent - 1);
    }
    in_order += nested;
    for (auto [old_register, new_register] : before) {
      ASSERT_TRUE(!nested || new_register == expected);
      ++expected;
    }
  }
  EXPECT_GT(padded, 300);
  EXPECT_GT(in_order, 2000);
}

}  // namespace
}  // namespace tilegen::layout
