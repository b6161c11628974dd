// Iterations in blocks: where a loop's vectors run across the rows of a shared tile.
#include <gtest/gtest.h>

#include <set>

#include "check/check_program.h"
#include "infer/access_cost.h"
#include "infer/infer_layouts.h"
#include "ir/text.h"

namespace tilegen::infer {
namespace {

using layout::Fragment;

// T[j, i] = S[i, j] of an n x n tile, or T = S, by 128 threads for sm_80: the layout of T.
Fragment layout_of(int64_t n, const std::string& type, bool across) {
  const std::string e = std::to_string(n), tile = type + "[" + e + ", " + e + "]";
  auto p =
      ir::parse_program("tl 1 program p\ntensor A: " + tile + " readonly\ntensor C: " + tile +
                            "\nkernel k grid (b: 1) threads 128 {\n alloc S: shared " + tile +
                            "\n alloc T: fragment " + tile + "\n copy A -> S\n parallel j, i in " + e + ", " +
                            e + " { T[j, i] = S[" + (across ? "i, j" : "j, i") + "] }\n copy T -> C\n}\n",
                        "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  const auto target = target::find_target("sm_80");
  const auto ops = analysis::collect_kernel_ops(*p, 0);
  const std::map<OpId, plan::GemmPlan> none;
  const auto r = infer_layouts({*p, ops, *target, 128, none});
  EXPECT_TRUE(r) << r.error().to_text();
  for (const plan::ValuePlan& v : r->values)
    if (v.value == "k:T") return *v.fragment;
  return {};
}

// Rows and columns of which the first warp holds elements in its first registers.
std::pair<size_t, size_t> reach(const Fragment& f) {
  std::set<int64_t> rows, columns;
  for (int64_t i = 0; i < f.shape()[0]; ++i)
    for (int64_t j = 0; j < f.shape()[1]; ++j) {
      const std::vector<int64_t> at = {i, j};
      if (f.holders(at).front() >= 32 || f.register_of(at) != 0) continue;
      rows.insert(i);
      columns.insert(j);
    }
  return {rows.size(), columns.size()};
}

TEST(Candidates, LanesInBlocksCrossFewerRowsOfTheTile) {
  using Reach = std::pair<size_t, size_t>;
  EXPECT_EQ(reach(layout_of(64, "f32", true)), Reach(4, 8)) << "128 bytes of four rows";
  EXPECT_EQ(reach(layout_of(64, "f32", false)), Reach(2, 16))
      << "of two rows, all of them: nothing is crossed";
  EXPECT_EQ(reach(layout_of(32, "f32", true)), Reach(4, 8)) << "rows of 128 bytes";
  EXPECT_EQ(reach(layout_of(128, "f16", true)), Reach(4, 8));
}

TEST(Candidates, BlocksHoldEachElementOnce) {
  const Fragment f = layout_of(64, "f32", true);
  EXPECT_EQ(f.replicas(), 1);
  EXPECT_EQ(f.registers() * f.threads(), 64 * 64);
  EXPECT_TRUE(f.map().is_bijective());
}

// Of registers alone nothing is moved in vectors: two elements of a thread take the work of two, and so do
// two threads that have the same.
TEST(Candidates, CopiesOfARegisterTakeTheirTime) {
  auto p = ir::parse_program(
      "tl 1 program p\ntensor C: f32[4, 32]\nkernel k grid (b: 1) threads 128 {\n"
      " alloc x: fragment f32[4, 32]\n alloc y: fragment f32[4, 32]\n"
      " parallel i, j in 4, 32 { y[i, j] = x[i, j] * 2.0 }\n copy y -> C\n}\n",
      "test.tl", Limits{});
  ASSERT_TRUE(p) << p.error().to_text();
  const auto ops = analysis::collect_kernel_ops(*p, 0);
  KnownLayouts known;
  known.fragments.resize(ops.values.size());
  known.memories.resize(ops.values.size());
  for (const char* name : {"sm_80", "gfx942"}) {
    const auto cost = [&](const char* iteration) {
      return access_cost(*p, *ops.ops.begin(), *Fragment::from_text(iteration), known,
                         *target::find_target(name));
    };
    EXPECT_GT(cost("threads 128 : (4,32) -> [0: d0/1%4*16 + d1/2%16*1; 1: d1/1%2*1; r: o0/1%2*64]"),
              1.9 * cost("threads 128 : (4,32) -> [0: d0/1%4*32 + d1/1%32*1; 1: 0]"));
  }
}

}  // namespace
}  // namespace tilegen::infer
