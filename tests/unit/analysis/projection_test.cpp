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
  for (int k : a.dim_of) e.push_back(k < 0 ? 0 : iteration[static_cast<size_t>(k)]);
  return e;
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
// registers dense.
void expect_projection(const Fragment& iteration, const ops::ElementAccess& a,
                       const std::vector<int64_t>& shape) {
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
    EXPECT_EQ(std::set<int64_t>(holders.begin(), holders.end()), needed[e]) << iteration.to_text() << "\n"
                                                                            << f->to_text();
    for (int64_t t : holders)
      EXPECT_TRUE(registers[t].insert(f->register_of(e)).second) << "two elements in one register";
  });
  for (const auto& [t, used] : registers) EXPECT_LE(static_cast<int64_t>(used.size()), f->registers());
  EXPECT_LE(f->registers(), iteration.registers());
  EXPECT_TRUE(f->covers(iteration, index_map(a)));
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
  EXPECT_TRUE(refused(access({0, ops::kUniformIndex}), {16, 8}));  // one column of eight
  EXPECT_TRUE(refused(access({0, 1}), {16, 16}));                  // a part
  EXPECT_TRUE(refused(access({0, 1}, {0, 1}), {16, 8}));           // shifted
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
  EXPECT_TRUE(held.covers(*it, index_map(a)));
  // Each dimension that the buffer has not is walked by every thread in full.
  int64_t extra = 1;
  for (size_t k = 0; k < extents.size(); ++k)
    if (std::find(a.dim_of.begin(), a.dim_of.end(), static_cast<int>(k)) == a.dim_of.end())
      extra *= extents[k];
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
  EXPECT_TRUE(refused(access({0, ops::kUniformIndex}), {16, 8}));
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

}  // namespace
}  // namespace tilegen::analysis
