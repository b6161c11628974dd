// Where shared tiles of threads lie.
#include "schedule/memory/tile_layouts.h"

#include "plan_support.h"
#include "schedule/memory/tile_accesses.h"

namespace tilegen::schedule {
namespace {

using analysis::ValueId;
using layout::Layout;
using plan::Origin;

const ValueId kTile(0);  // of `transpose`

// A tile that is copied along its rows and read along its columns.
std::string transpose(int64_t rows, int64_t columns, const std::string& type = "f32") {
  const std::string r = std::to_string(rows), c = std::to_string(columns);
  return "tl 1 program p\ntensor A: " + type + "[" + r + ", " + c + "] readonly\ntensor C: " + type + "[" +
         c + ", " + r + "]\nkernel k grid (b: 1) threads 128 {\n alloc S: shared " + type + "[" + r + ", " +
         c + "]\n alloc T: fragment " + type + "[" + c + ", " + r + "]\n copy A -> S\n parallel j, i in " +
         c + ", " + r + " { T[j, i] = S[i, j] }\n copy T -> C\n}\n";
}

plan::ValuePlan value_of(const std::string& text, const std::string& name, const char* target,
                         const plan::Schedule* given = nullptr) {
  auto p = program_from(text);
  auto s = plan_for(*p, target, given);
  EXPECT_TRUE(s) << s.error().to_text();
  for (const plan::ValuePlan& v : s->kernels[0].values)
    if (v.value == name) return v;
  ADD_FAILURE() << name;
  return {};
}

Layout swizzled(std::vector<int64_t> shape, layout::Swizzle s, int bytes) {
  return *Layout::row_major(shape).with_swizzle(s, bytes);
}

TEST(TileLayouts, ATileThatIsReadAcrossItsRowsIsSwizzled) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    const plan::ValuePlan tile = value_of(transpose(64, 64), "k:S", target);
    EXPECT_EQ(*tile.memory, swizzled({64, 64}, {3, 4, 6}, 4)) << tile.memory->to_text();
    EXPECT_EQ(tile.origin, Origin::free);
    EXPECT_EQ(tile.reason,
              "no bank conflicts of its threads' accesses; row-major takes 4.5 times the transactions");
    EXPECT_NE(*value_of(transpose(64, 64, "f16"), "k:S", target).memory,
              Layout::row_major(std::vector<int64_t>{64, 64}));
  }
}

TEST(TileLayouts, OneThatIsNotStaysRowMajor) {
  const plan::ValuePlan tile = value_of(
      "tl 1 program p\ntensor A: f32[64, 64] readonly\ntensor C: f32[64, 64]\nkernel k grid (b: 1) threads "
      "128 {\n"
      " alloc S: shared f32[64, 64]\n copy A -> S\n copy S -> C\n}\n",
      "k:S", "sm_80");
  EXPECT_EQ(*tile.memory, Layout::row_major(std::vector<int64_t>{64, 64}));
  EXPECT_EQ(tile.reason, "row-major: no instruction asks for another form");
}

TEST(TileLayouts, HostsHaveNoBanks) {
  EXPECT_EQ(*value_of(transpose(64, 64), "k:S", "host").memory,
            Layout::row_major(std::vector<int64_t>{64, 64}));
}

TEST(TileLayouts, TheGivenIsTaken) {
  const Layout plain = Layout::row_major(std::vector<int64_t>{64, 64});
  plan::Schedule given;
  given.kernels = {{.kernel = "k", .values = {{.value = "k:S", .memory = plain}}}};
  const plan::ValuePlan tile = value_of(transpose(64, 64), "k:S", "sm_80", &given);
  EXPECT_EQ(*tile.memory, plain);
}

// Accumulators staged by threads: eight rows of 16 bytes at a time, or pairs, and rows to the tensor.
TEST(TileLayouts, MatricesAreStoredInUnits) {
  const std::string text =
      "tl 1 program p\ndim n divisible 64\ntensor A: f16[n, 32] readonly\ntensor B: f16[32, n] readonly\n"
      "tensor C: f16[n, n]\nkernel g grid (by: ceildiv(n, 64), bx: ceildiv(n, 64)) threads 128 {\n"
      " alloc As: shared f16[64, 32]\n alloc Bs: shared f16[32, 64]\n alloc Cs: shared f16[64, 64]\n"
      " alloc acc: fragment f32[64, 64]\n copy A[by * 64 :+ 64, 0 :+ 32] -> As\n"
      " copy B[0 :+ 32, bx * 64 :+ 64] -> Bs\n gemm As, Bs -> acc {clear}\n copy acc -> Cs\n"
      " copy Cs -> C[by * 64 :+ 64, bx * 64 :+ 64]\n}\n";
  for (const char* target : {"sm_80", "sm_90"})
    EXPECT_EQ(*value_of(text, "g:Cs", target).memory, swizzled({64, 64}, {3, 4, 3}, 2)) << target;
  auto p = program_from(text);
  const auto s = plan_for(*p, "sm_90");
  ASSERT_TRUE(s);
  EXPECT_TRUE(plan::find_op(s->kernels[0], "g/copy#2")->matrix_stores.value_or(false));
}

TEST(TileLayouts, CandidatesKeepUnits) {
  for (int bytes : {1, 2, 4, 8})
    for (int64_t widest = 1; widest * bytes <= 16; widest *= 2)
      for (const std::vector<int64_t>& shape :
           {std::vector<int64_t>{64, 64}, {20, 24}, {33, 7}, {128}, {4, 8, 32}, {1, 1}, {}}) {
        const auto list = tile_layout_candidates(shape, bytes, widest);
        ASSERT_EQ(list.front(), Layout::row_major(shape));
        const int64_t dense = shape.empty() ? 1 : shape.back();
        const int64_t run = dense % widest == 0 ? widest : 1;
        for (const Layout& l : list) {
          EXPECT_TRUE(l.is_injective()) << l.to_text();
          if (!shape.empty()) {
            EXPECT_EQ(l.contiguous_run(static_cast<int>(shape.size()) - 1) % run, 0) << l.to_text();
          }
          if (!l.swizzle().none()) {
            EXPECT_EQ(l.elements() * bytes % (int64_t{1} << (l.swizzle().base + l.swizzle().bits)), 0);
          }
        }
      }
}

// What else there is to decide is the caller's: a layout that does not fit is passed over.
TEST(TileLayouts, ThoseThatDoNotFitArePassedOver) {
  auto p = program_from(transpose(64, 64));
  const target::Target t = target_named("sm_80");
  const auto ops = analysis::collect_kernel_ops(*p, 0);
  const std::map<analysis::OpId, plan::GemmPlan> none;
  const auto inferred = infer::infer_layouts({*p, ops, t, 128, none});
  ASSERT_TRUE(inferred);
  const auto planned = [&](const TileFits& fits) {
    infer::InferResult r = *inferred;
    plan_tile_layouts(*p, ops, t, {}, fits, r);
    return *r.values[kTile].memory;
  };
  EXPECT_EQ(planned([](ValueId, const Layout&) { return true; }), swizzled({64, 64}, {3, 4, 6}, 4));
  EXPECT_EQ(planned([](ValueId, const Layout&) { return false; }),
            Layout::row_major(std::vector<int64_t>{64, 64}));
  const Layout padded = planned([](ValueId, const Layout& l) { return l.swizzle().none(); });
  EXPECT_GT(padded.output_extent(0), 64 * 64) << padded.to_text();
  infer::InferResult r = *inferred;
  plan_tile_layouts(
      *p, ops, t, {kTile}, [](ValueId, const Layout&) { return true; }, r);
  EXPECT_EQ(*r.values[kTile].memory, Layout::row_major(std::vector<int64_t>{64, 64})) << "an engine's";
}

// Two loops' tiles leave no room for padding where it would take a stage.
TEST(TileLayouts, PaddingTakesNoStage) {
  const std::string text =
      "tl 1 program p\ndim n\ntensor A: f32[n, 104, 104] readonly\ntensor C: f32[n, 104, 104]\n"
      "kernel k grid (b: 1) threads 128 {\n alloc S: shared f32[104, 104]\n alloc T: fragment f32[104, 104]\n"
      " pipelined v in 0 .. n stages 3 {\n  copy A[v :+ 1, 0 :+ 104, 0 :+ 104] -> S\n"
      "  parallel j, i in 104, 104 { T[j, i] = S[i, j] }\n  copy T -> C[v :+ 1, 0 :+ 104, 0 :+ 104]\n }\n}\n";
  auto p = program_from(text);
  const auto s = plan_for(*p, "sm_80");
  ASSERT_TRUE(s) << s.error().to_text();
  EXPECT_EQ(s->kernels[0].loops[0].num_stages, 3);
  for (const plan::MemoryPlan& m : s->kernels[0].memory)
    EXPECT_LE(m.offset + m.bytes, target_named("sm_80").shared_bytes);
}

// What the walk of an iteration layout comes to.
TEST(TileAccesses, OfACopyAndOfALoop) {
  auto p = program_from(transpose(64, 64));
  const target::Target t = target_named("sm_80");
  const auto ops = analysis::collect_kernel_ops(*p, 0);
  const std::map<analysis::OpId, plan::GemmPlan> none;
  const auto r = infer::infer_layouts({*p, ops, t, 128, none});
  ASSERT_TRUE(r);
  const TileAccesses a = accesses_of_tile(*p, ops, kTile, r->values, r->ops, t);
  EXPECT_EQ(a.widest, 4);
  double elements = 0;
  for (const TileRequest& q : a.requests) {
    EXPECT_EQ(q.indices.size(), 64u) << "32 lanes, two dimensions";
    elements += q.weight * 32 * static_cast<double>(q.elements);
  }
  EXPECT_DOUBLE_EQ(elements, 2 * 64 * 64) << "written once, read once";
}

}  // namespace
}  // namespace tilegen::schedule
