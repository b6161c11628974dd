#include "runtime/host/kernel_launch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "runtime/host/arena_cache.h"
#include "runtime/host/grid.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {
namespace {

// grid = (ceildiv(m, 4), n) over dims m, n and a scalar.
thread::ThreadProgram two_dims() {
  thread::ThreadProgram p;
  p.name = "k";
  for (const char* name : {"m", "n"}) {
    thread::Param q;
    q.kind = thread::Param::Kind::dim;
    q.name = name;
    q.var = p.add_var(name, ir::VarKind::dim);
    p.params.push_back(q);
  }
  thread::Param s;
  s.kind = thread::Param::Kind::scalar;
  s.type = ir::DType::f32;
  s.var = p.add_var("s", ir::VarKind::scalar);
  p.params.push_back(s);
  p.grid = {p.exprs.ceildiv(p.exprs.var(p.params[0].var), p.exprs.const_int(4)),
            p.exprs.var(p.params[1].var)};
  return p;
}

TEST(Grid, EvaluatedFromParameters) {
  auto p = two_dims();
  auto g = evaluate_grid(p, std::vector<uint64_t>{9, 5, 0});
  ASSERT_TRUE(g);
  EXPECT_EQ(g->extents[0], 3);
  EXPECT_EQ(g->extents[1], 5);
  EXPECT_EQ(g->blocks, 15);
}

TEST(Grid, AnExtentOfZeroLaunchesNothing) {
  auto p = two_dims();
  auto g = evaluate_grid(p, std::vector<uint64_t>{0, uint64_t{1} << 62, 0});
  ASSERT_TRUE(g);
  EXPECT_EQ(g->blocks, 0);
  static std::atomic<int> calls{0};
  auto entry = [](const uint64_t*, const int64_t*, int64_t, int64_t, void*, const int32_t*) {
    calls.fetch_add(1);
  };
  EXPECT_TRUE(launch_kernel(p, entry, std::vector<uint64_t>{0, 4, 0}, 2));
  EXPECT_EQ(calls.load(), 0);
}

TEST(Grid, OverflowIsRefused) {
  auto p = two_dims();
  auto g = evaluate_grid(p, std::vector<uint64_t>{uint64_t{1} << 40, uint64_t{1} << 40, 0});
  ASSERT_FALSE(g);
  EXPECT_EQ(g.error().diagnostics[0].code, DiagCode::overflow);
}

TEST(KernelLaunch, EveryBlockOnceWithAnArena) {
  auto p = two_dims();
  p.arena_bytes = 1000;
  static std::atomic<int> seen[600];
  static std::atomic<int> misaligned{0};
  for (auto& s : seen) s = 0;
  auto entry = [](const uint64_t* params, const int64_t* grid, int64_t first, int64_t last, void* arena,
                  const int32_t*) {
    if (reinterpret_cast<uintptr_t>(arena) % 64 || params[1] != 200 || grid[0] != 3 || grid[1] != 200)
      misaligned.fetch_add(1);
    std::memset(arena, 1, 1000);
    for (int64_t i = first; i < last; ++i) seen[i].fetch_add(1);
  };
  ASSERT_TRUE(launch_kernel(p, entry, std::vector<uint64_t>{12, 200, 0}, 4));
  for (auto& s : seen) EXPECT_EQ(s.load(), 1);
  EXPECT_EQ(misaligned.load(), 0);
}

TEST(KernelLaunch, ImpossibleArenaIsAnError) {
  auto p = two_dims();
  p.arena_bytes = int64_t{1} << 60;
  auto entry = [](const uint64_t*, const int64_t*, int64_t, int64_t, void*, const int32_t*) { FAIL(); };
  Checked r = launch_kernel(p, entry, std::vector<uint64_t>{4, 4, 0}, 2);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().diagnostics[0].code, DiagCode::limit_memory);
}

TEST(KernelLaunch, WrongSlotCountIsAnError) {
  auto p = two_dims();
  auto entry = [](const uint64_t*, const int64_t*, int64_t, int64_t, void*, const int32_t*) { FAIL(); };
  EXPECT_FALSE(launch_kernel(p, entry, std::vector<uint64_t>{4}, 2));
}

TEST(Arena, GrowsAndStaysAligned) {
  void* small = thread_arena(100);
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(thread_arena(50), small);
  void* large = thread_arena(5 << 20);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % 64, 0u);
  std::memset(large, 0, 5 << 20);
  EXPECT_EQ(thread_arena(1), large);
}

}  // namespace
}  // namespace tilegen::runtime
