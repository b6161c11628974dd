// Loops whose product has its first operands in registers when an iteration begins.
#include "schedule/products/register_prefetch.h"

#include "plan_support.h"

namespace tilegen::schedule {
namespace {

struct Parts {
  int k = 32;
  std::string more;  // in the loop, after the product
  std::string stages = " stages 3";
};

Expected<plan::Schedule> plan_of(const Parts& t, const char* target, const plan::Schedule* given = nullptr) {
  const std::string k = std::to_string(t.k);
  auto p = program_from(
      "tl 1 program p\ndim m divisible 8\ndim n divisible 8\ndim k divisible 8\n"
      "tensor A: f16[m, k] readonly\ntensor B: f16[k, n] readonly\ntensor C: f32[m, n]\n"
      "kernel g grid (by: ceildiv(m, 64), bx: ceildiv(n, 64)) threads 128 {\n alloc As: shared f16[64, " +
      k + "]\n alloc Bs: shared f16[" + k +
      ", 64]\n alloc acc: fragment f32[64, 64]\n fill acc, 0.0f32\n pipelined ko in 0 .. ceildiv(k, " + k +
      ")" + t.stages + " {\n copy A[by * 64 :+ 64, ko * " + k + " :+ " + k + "] -> As\n copy B[ko * " + k +
      " :+ " + k + ", bx * 64 :+ 64] -> Bs\n gemm As, Bs -> acc\n" + t.more +
      " }\n copy acc -> C[by * 64 :+ 64, bx * 64 :+ 64]\n}\n");
  EXPECT_TRUE(p);
  return plan_for(*p, target, given);
}

bool prefetches(const Parts& t, const char* target = "sm_80", const plan::Schedule* given = nullptr) {
  auto s = plan_of(t, target, given);
  EXPECT_TRUE(s) << s.error().to_text();
  return s && s->kernels[0].loops[0].register_prefetch.value_or(false);
}

TEST(RegisterPrefetch, OfALoopThatOnlyMultiplies) {
  EXPECT_TRUE(prefetches({}));
  EXPECT_TRUE(prefetches({.k = 64}));
  EXPECT_FALSE(prefetches({.k = 16})) << "one step";
  EXPECT_FALSE(prefetches({.k = 48})) << "an odd number of steps";
  EXPECT_FALSE(prefetches({.stages = " stages 1"})) << "nothing runs ahead";
  EXPECT_FALSE(prefetches({}, "sm_90a")) << "products of warpgroups read shared memory";
  EXPECT_FALSE(prefetches({.more = " parallel i, j in 64, 64 { acc[i, j] = acc[i, j] * 2.0f32 }\n"}))
      << "more in the loop";
}

// Of AMD's targets, whose tiles have one slot less than the loop has stages.
TEST(RegisterPrefetch, OfTilesThatComeThroughRegisters) {
  for (const char* target : {"gfx942", "gfx90a"}) {
    EXPECT_TRUE(prefetches({}, target));
    EXPECT_TRUE(prefetches({.stages = " stages 4"}, target));
    EXPECT_FALSE(prefetches({.stages = " stages 2"}, target)) << "one slot";
    EXPECT_FALSE(prefetches({.k = 8}, target)) << "one step";
    EXPECT_FALSE(
        prefetches({.more = " parallel i, j in 64, 64 { acc[i, j] = acc[i, j] * 2.0f32 }\n"}, target))
        << "more in the loop";
  }
}

std::string note_of(const Expected<plan::Schedule>& s) {
  for (const plan::Note& n : s->kernels[0].notes)
    if (n.text.starts_with("no register prefetch: ")) return n.path + ": " + n.text;
  return "";
}

TEST(RegisterPrefetch, ANoteSaysWhatIsInTheWay) {
  EXPECT_EQ(note_of(plan_of({.k = 48}, "sm_80")),
            "g/ko/gemm#0: no register prefetch: an odd number of steps along k (3)");
  EXPECT_EQ(note_of(plan_of({}, "sm_80")), "");
  EXPECT_EQ(note_of(plan_of({.k = 48, .stages = " stages 1"}, "sm_80")), "") << "nothing runs ahead";
}

// A warp with one sum of doubles begins an iteration on what the one before ends with: ptxas leaves out the
// wait on sm_90.
TEST(RegisterPrefetch, NotOfALoneSumThatIsNotWaitedFor) {
  const auto of_doubles = [](int rows, const char* target) {
    const std::string n = std::to_string(rows);
    auto p = program_from(
        "tl 1 program p\ntensor A: f64[64, 64] readonly\ntensor C: f64[64, 64]\n"
        "kernel g grid (b: 1) threads 32 {\n alloc As: shared f64[" +
        n + ", 8]\n alloc Bs: shared f64[8, 8]\n alloc acc: fragment f64[" + n +
        ", 8]\n fill acc, 0.0f64\n pipelined ko in 0 .. 8 stages 3 {\n copy A[0 :+ " + n +
        ", ko * 8 :+ 8] -> As\n copy A[ko * 8 :+ 8, 0 :+ 8] -> Bs\n gemm As, Bs -> acc\n }\n"
        " copy acc -> C[0 :+ " +
        n + ", 0 :+ 8]\n}\n");
    EXPECT_TRUE(p);
    auto s = plan_for(*p, target, nullptr);
    EXPECT_TRUE(s) << s.error().to_text();
    const bool prefetched = s && s->kernels[0].loops[0].register_prefetch.value_or(false);
    EXPECT_NE(prefetched, note_of(s).starts_with("g/ko/gemm#0: no register prefetch: a warp has one sum"));
    return prefetched;
  };
  EXPECT_TRUE(of_doubles(8, "sm_80"));
  EXPECT_FALSE(of_doubles(8, "sm_90"));
  EXPECT_FALSE(of_doubles(8, "sm_90a"));
  EXPECT_TRUE(of_doubles(16, "sm_90a"));
}

TEST(RegisterPrefetch, TheGivenIsTaken) {
  plan::Schedule given;
  given.kernels = {{.kernel = "g", .loops = {{.loop = "g/ko", .register_prefetch = false}}}};
  EXPECT_FALSE(prefetches({}, "sm_80", &given));
  given.kernels[0].loops[0].register_prefetch = true;
  EXPECT_TRUE(prefetches({}, "sm_80", &given));
  auto refused = plan_of({.k = 16}, "sm_80", &given);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_text().find("gives `register_prefetch` true"), std::string::npos);
}

}  // namespace
}  // namespace tilegen::schedule
