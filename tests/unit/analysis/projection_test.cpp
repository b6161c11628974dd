// project and pull_back against their definitions, point by point and thread by thread.
#include "analysis/projection.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "target/target.h"

namespace tilegen::analysis {
namespace {

using layout::Fragment;
using Point = std::vector<int64_t>;

void for_each_point(const std::vector<int64_t>& box, const std::function<void(const Point&)>& visit) {
  Point p(box.size(), 0);
  for (;;) {
    visit(p);
    size_t k = box.size();
    while (k > 0 && ++p[k - 1] == box[k - 1]) p[--k] = 0;
    if (k == 0) return;
  }
}

ops::ElementAccess access(std::vector<int> dim_of, std::vector<int64_t> offset = {}) {
  ops::ElementAccess a;
  a.offset = offset.empty() ? std::vector<int64_t>(dim_of.size(), 0) : std::move(offset);
  a.dim_of = std::move(dim_of);
  return a;
}

Point element_of(const ops::ElementAccess& a, const Point& iteration) {
  Point e;
  for (size_t d = 0; d < a.dim_of.size(); ++d) e.push_back(a.offset[d] + a.index_at(d, iteration));
  return e;
}

// Of dimensions that are several of the other side's.
ops::ElementAccess by_terms(std::vector<std::vector<ops::IndexTerm>> terms, std::vector<int> dim_of = {}) {
  ops::ElementAccess a =
      access(dim_of.empty() ? std::vector<int>(terms.size(), ops::kIrregularIndex) : dim_of);
  a.terms = std::move(terms);
  return a;
}

const target::MmaAtom& atom(const target::Target& t, const std::string& name) {
  for (const target::MmaAtom& a : t.mma)
    if (a.name == name) return a;
  ADD_FAILURE() << name;
  return t.mma.front();
}

// Iteration layouts of 16 x 8 points: mma accumulators, rows over threads, one thread, copies.
std::vector<Fragment> iterations() {
  const target::Target sm80 = *target::find_target("sm_80");
  const std::vector<int64_t> shape = {16, 8}, two = {2, 1};
  const std::vector<int> order = {1, 0};
  std::vector<Fragment> list = {atom(sm80, "mma.m16n8k16.f32.f16").c_layout};
  for (int64_t threads : {1, 4, 32, 64})
    for (int64_t vector : {1, 2, 4}) list.push_back(Fragment::row_major_vectors(shape, threads, vector));
  list.push_back(Fragment::replicated(shape, 8));
  const Fragment f64 = atom(sm80, "mma.m8n8k4.f64").c_layout;
  list.push_back(f64.repeat(two, order));
  list.push_back(f64.repeat_on_thread(two, order));
  list.push_back(f64.repeat(two, order).replicate(2));
  return list;
}

// A projected fragment must let every thread find each element it needs, and be held by no other thread;
// registers dense: `beside` elements for each that is named.
void expect_projection(const Fragment& iteration, const ops::ElementAccess& a,
                       const std::vector<int64_t>& shape, int64_t beside = 1) {
  auto f = project(iteration, a, shape);
  ASSERT_TRUE(f) << iteration.to_text();
  ASSERT_EQ(f->shape(), shape);
  ASSERT_EQ(f->threads(), iteration.threads());
  std::map<Point, std::set<int64_t>> needed;
  for_each_point(iteration.shape(), [&](const Point& i) {
    for (int64_t t : iteration.holders(i)) needed[element_of(a, i)].insert(t);
  });
  std::map<int64_t, std::set<int64_t>> registers;
  for_each_point(shape, [&](const Point& e) {
    const std::vector<int64_t> holders = f->holders(e);
    if (beside == 1 || needed.count(e)) {
      EXPECT_EQ(std::set<int64_t>(holders.begin(), holders.end()), needed[e]) << iteration.to_text() << "\n"
                                                                              << f->to_text();
    }
    for (int64_t t : holders)
      EXPECT_TRUE(registers[t].insert(f->register_of(e)).second) << "two elements in one register";
  });
  for (const auto& [t, used] : registers) EXPECT_LE(static_cast<int64_t>(used.size()), f->registers());
  EXPECT_LE(f->registers(), iteration.registers() * beside);
  EXPECT_TRUE(covers(*f, iteration, a));
}

TEST(Project, WholeTransposedAndReduced) {
  for (const Fragment& it : iterations()) {
    expect_projection(it, access({0, 1}), {16, 8});
    expect_projection(it, access({1, 0}), {8, 16});
    expect_projection(it, access({0}), {16});
    expect_projection(it, access({1}), {8});
    expect_projection(it, access({ops::kUniformIndex, 1}), {1, 8});
    expect_projection(it, access({1, ops::kUniformIndex, 0}), {8, 1, 16});
  }
}

TEST(Project, RefusesWhatItCannotFollow) {
  const Fragment it = Fragment::row_major_vectors(std::vector<int64_t>{16, 8}, 32, 2);
  auto refused = [&](ops::ElementAccess a, std::vector<int64_t> shape) { return !project(it, a, shape); };
  EXPECT_TRUE(refused(access({0, ops::kIrregularIndex}), {16, 8}));
  EXPECT_TRUE(refused(access({0, ops::kUniformIndex}), {16, 32}));  // one column of more than are followed
  EXPECT_TRUE(refused(access({0, 1}), {16, 12}));                   // a part that is no digit
  EXPECT_TRUE(refused(access({0, 1}, {0, 4}), {16, 16}));           // one that carries
  EXPECT_TRUE(refused(access({0, 1}, {0, 1}), {16, 8}));            // shifted
  EXPECT_TRUE(refused(access({0, 1}, {0, ops::ElementAccess::kUnknownOffset}), {16, 8}));
  EXPECT_TRUE(refused(access({1, 1}), {8, 8}));  // a diagonal
}

// pull_back: every thread runs exactly the points whose element it holds.
void expect_pull_back(const Fragment& held, const ops::ElementAccess& a,
                      const std::vector<int64_t>& extents) {
  auto it = pull_back(held, a, extents);
  ASSERT_TRUE(it) << held.to_text();
  ASSERT_EQ(it->shape(), extents);
  ASSERT_EQ(it->threads(), held.threads());
  std::map<int64_t, std::set<int64_t>> registers;
  for_each_point(extents, [&](const Point& i) {
    EXPECT_EQ(it->holders(i), held.holders(element_of(a, i))) << held.to_text() << "\n" << it->to_text();
    for (int64_t t : it->holders(i)) EXPECT_TRUE(registers[t].insert(it->register_of(i)).second);
  });
  EXPECT_TRUE(covers(held, *it, a));
  // Each dimension that the buffer has not is walked by every thread in full.
  int64_t extra = 1;
  for (size_t k = 0; k < extents.size(); ++k)
    if (!a.depends_on(static_cast<int>(k))) extra *= extents[k];
  EXPECT_EQ(it->registers(), held.registers() * extra);
}

TEST(PullBack, WholeTransposedAndBroadcast) {
  for (const Fragment& held : iterations()) {
    expect_pull_back(held, access({0, 1}), {16, 8});
    expect_pull_back(held, access({1, 0}), {8, 16});
    expect_pull_back(held, access({0, 2}), {16, 3, 8});
    expect_pull_back(held, access({2, 1}), {5, 8, 16});
    expect_pull_back(held, access({1, 2}), {1, 16, 8});
  }
  const Fragment row = Fragment::row_major_vectors(std::vector<int64_t>{1, 8}, 4, 1);
  expect_pull_back(row, access({ops::kUniformIndex, 0}), {8});
}

TEST(PullBack, RefusesWhatItCannotFollow) {
  const Fragment held = Fragment::row_major_vectors(std::vector<int64_t>{16, 8}, 32, 2);
  auto refused = [&](ops::ElementAccess a, std::vector<int64_t> extents) {
    return !pull_back(held, a, extents);
  };
  EXPECT_TRUE(refused(access({0, ops::kIrregularIndex}), {16, 8}));
  EXPECT_TRUE(refused(access({0, ops::kUniformIndex}), {16, 8}));  // others hold the columns
  EXPECT_TRUE(refused(access({0, 1}), {16, 4}));
  EXPECT_TRUE(refused(access({0, 1}, {1, 0}), {16, 8}));
  const Fragment square = Fragment::row_major_vectors(std::vector<int64_t>{8, 8}, 32, 2);
  EXPECT_FALSE(pull_back(square, access({0, 0}), std::vector<int64_t>{8}));
}

TEST(PullBack, UndoesAProjectionOfTheWhole) {
  for (const Fragment& it : iterations())
    for (const ops::ElementAccess& a : {access({0, 1}), access({1, 0})}) {
      const std::vector<int64_t> shape =
          a.dim_of[0] == 0 ? std::vector<int64_t>{16, 8} : std::vector<int64_t>{8, 16};
      auto there = project(it, a, shape);
      ASSERT_TRUE(there);
      auto back = pull_back(*there, a, it.shape());
      ASSERT_TRUE(back);
      for_each_point(it.shape(), [&](const Point& i) { EXPECT_EQ(back->holders(i), it.holders(i)); });
    }
}

// [i * 4 + j, q] of iterations (i, j, q), and [i // 4, i % 4, q] of (i, q).
TEST(Project, DimensionsTogetherAndApart) {
  const ops::ElementAccess apart =
      by_terms({{{0, 4, 0, 1}}, {{0, 1, 4, 1}}, {}}, {ops::kIrregularIndex, ops::kIrregularIndex, 1});
  const ops::ElementAccess together = by_terms({{{0, 1, 0, 4}, {1, 1, 0, 1}}, {}}, {ops::kIrregularIndex, 2});
  for (const Fragment& it : iterations()) {
    expect_projection(it, apart, {4, 4, 8});
    auto there = project(it, apart, std::vector<int64_t>{4, 4, 8});
    ASSERT_TRUE(there);
    expect_projection(*there, together, {16, 8});
    const auto back = project(*there, together, std::vector<int64_t>{16, 8});
    ASSERT_TRUE(back);
    for_each_point(it.shape(), [&](const Point& i) { EXPECT_EQ(back->holders(i), it.holders(i)); });
  }
}

TEST(PullBack, DimensionsTogetherAndApart) {
  const ops::ElementAccess together = by_terms({{{0, 1, 0, 4}, {1, 1, 0, 1}}, {}}, {ops::kIrregularIndex, 2});
  const ops::ElementAccess halves = by_terms({{}, {{2, 1, 0, 1}, {1, 1, 0, 4}}}, {0, ops::kIrregularIndex});
  const ops::ElementAccess all = by_terms({{{0, 8, 0, 1}}, {{0, 1, 8, 1}}});
  for (const Fragment& held : iterations()) {
    expect_pull_back(held, together, {4, 4, 8});
    expect_pull_back(held, halves, {16, 2, 4});
    expect_pull_back(held, all, {128});
  }
}

TEST(PullBack, RefusesIndicesThatDoNotNameEachElementOnce) {
  const Fragment held = Fragment::row_major_vectors(std::vector<int64_t>{16, 8}, 32, 2);
  const auto refused = [&](std::vector<ops::IndexTerm> rows, std::vector<int64_t> extents) {
    return !pull_back(held, by_terms({std::move(rows), {}}, {ops::kIrregularIndex, 2}), extents);
  };
  EXPECT_FALSE(refused({{0, 1, 0, 4}, {1, 1, 0, 1}}, {4, 4, 8}));
  EXPECT_TRUE(refused({{0, 1, 0, 4}, {1, 1, 0, 1}}, {4, 5, 8}));   // rows overlap
  EXPECT_TRUE(refused({{0, 1, 0, 5}, {1, 1, 0, 1}}, {3, 4, 8}));   // gaps
  EXPECT_FALSE(refused({{0, 1, 0, 4}, {1, 1, 0, 1}}, {2, 4, 8}));  // a part, beside it in the registers
  EXPECT_TRUE(refused({{0, 1, 0, 4}, {1, 1, 0, 1}}, {1, 4, 8}));   // a part that others hold
}

ops::IndexTerm mirrored(int dim, int64_t divisor, int64_t modulus, int64_t weight) {
  return {dim, divisor, modulus, weight, true, 0};
}

// Elements that several points name, that lie beside others, and in another order.
TEST(Project, DigitsOfPackedElements) {
  const ops::ElementAccess half = by_terms({{}, {{1, 2, 0, 1}}}, {0, ops::kIrregularIndex});
  const ops::ElementAccess low = by_terms({{}, {{1, 1, 4, 1}}}, {0, ops::kIrregularIndex});
  const ops::ElementAccess rows = by_terms({{{0, 4, 2, 2}, {0, 1, 2, 1}}, {}}, {ops::kIrregularIndex, 1});
  const ops::ElementAccess even = by_terms({{}, {{1, 1, 0, 2}}}, {0, ops::kIrregularIndex});
  ops::ElementAccess odd = even;
  odd.offset[1] = 1;
  for (const Fragment& it : iterations()) {
    expect_projection(it, half, {16, 4});
    expect_projection(it, low, {16, 4});
    expect_projection(it, rows, {4, 8});
    expect_projection(it, even, {16, 16}, 2);
    expect_projection(it, odd, {16, 16}, 2);
    expect_projection(it, access({0, 1}, {0, 8}), {16, 16}, 2);
    expect_projection(it, access({0, ops::kUniformIndex, 1}, {0, 3, 0}), {16, 4, 8}, 4);
    EXPECT_TRUE(project(it, even, std::vector<int64_t>{16, 16})
                    ->equivalent(*project(it, odd, std::vector<int64_t>{16, 16})));
  }
}

TEST(PullBack, DigitsOfPackedElements) {
  const ops::ElementAccess half = by_terms({{}, {{1, 2, 0, 1}}}, {0, ops::kIrregularIndex});
  const ops::ElementAccess low = by_terms({{}, {{1, 1, 8, 1}}}, {0, ops::kIrregularIndex});
  for (const Fragment& held : iterations())
    for (const ops::ElementAccess& a : {half, low}) {
      const auto it = pull_back(held, a, std::vector<int64_t>{16, 16});
      ASSERT_TRUE(it);
      EXPECT_EQ(it->registers(), held.registers() * 2);
      for_each_point(it->shape(),
                     [&](const Point& i) { EXPECT_EQ(it->holders(i), held.holders(element_of(a, i))); });
      EXPECT_TRUE(covers(held, *it, a));
    }
  // Neighbours of one element are neighbours in the thread that holds it.
  const Fragment held = Fragment::row_major_vectors(std::vector<int64_t>{16, 8}, 32, 2);
  const auto it = pull_back(held, half, std::vector<int64_t>{16, 16});
  EXPECT_EQ(vector_digit(*it)->extent, 4);
}

// In registers they are followed; elsewhere another thread holds the element.
TEST(Project, PermutedDigits) {
  const std::vector<ops::ElementAccess> all = {
      by_terms({{}, {mirrored(1, 1, 2, 1), {1, 2, 0, 2}}}, {0, ops::kIrregularIndex}),
      by_terms({{}, {{1, 1, 4, 1}, mirrored(1, 4, 2, 4)}}, {0, ops::kIrregularIndex}),
      by_terms({{}, {mirrored(1, 1, 8, 1)}}, {0, ops::kIrregularIndex}),
      by_terms({{}, {{1, 1, 8, 1, false, 3}}}, {0, ops::kIrregularIndex}),
      by_terms({{mirrored(0, 1, 16, 1)}, {}}, {ops::kIrregularIndex, 1})};
  int followed = 0, beside = 0;
  for (const Fragment& f : iterations())
    for (const ops::ElementAccess& a : all) {
      const std::vector<int64_t> shape = {16, 8};
      if (project(f, a, shape)) expect_projection(f, a, shape), ++followed;
      if (pull_back(f, a, shape)) expect_pull_back(f, a, shape), ++followed;
      const auto other = pull_back(f, a, shape, Reach{64});
      ASSERT_TRUE(other);
      bool held = true;
      for_each_point(shape, [&](const Point& i) {
        const auto have = f.holders(element_of(a, i)), need = other->holders(i);
        held = held && std::includes(have.begin(), have.end(), need.begin(), need.end());
      });
      EXPECT_EQ(covers(f, *other, a), held) << f.to_text();
      beside += held ? 0 : 1;
    }
  EXPECT_GT(followed, 20);
  EXPECT_GT(beside, 20);
}

// One of eight neighbours, which lanes hold: as many copies of the point, each of whom may ask for it.
TEST(PullBack, CopiesOfAPointWhereLanesHoldWhatLiesBeside) {
  const Fragment held = Fragment::row_major_vectors(std::vector<int64_t>{4, 32}, 128, 1);
  const ops::ElementAccess eighth = by_terms({{}, {{1, 1, 0, 8}}}, {0, ops::kIrregularIndex});
  EXPECT_FALSE(pull_back(held, eighth, std::vector<int64_t>{4, 4}));
  const auto it = pull_back(held, eighth, std::vector<int64_t>{4, 4}, Reach{32});
  ASSERT_TRUE(it);
  EXPECT_EQ(it->replicas(), 8);
  for_each_point(it->shape(), [&](const Point& i) {
    const int64_t holder = held.holders(element_of(eighth, i))[0];
    for (int64_t t : it->holders(i)) EXPECT_EQ(t / 32, holder / 32);
  });
}

}  // namespace
}  // namespace tilegen::analysis
