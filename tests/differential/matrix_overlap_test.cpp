// Products whose last tiles overlap the ones before: of every number of rows, on every executor.
#include "gemm_program.h"
#include "hopper_plan.h"
#include "matrix.h"

namespace tilegen::differential {
namespace {

GemmProgram product(int64_t m, int64_t n, int64_t k) {
  GemmProgram p;
  p.tb = true;
  p.m = m, p.n = n, p.k = k;
  p.threads = m == 128 ? 256 : 128, p.stages = 3;
  return p;
}

// `fact`: of the columns; `along`: as planned.
void run(const GemmProgram& p, const std::string& fact, const std::vector<std::string>& along,
         const std::vector<std::array<int64_t, 3>>& sizes) {
  std::string text = gemm_text(p);
  text.replace(text.find("dim n\n"), 6, "dim n" + fact + "\n");
  plan::KernelSchedule planned;
  ASSERT_EQ(plan_on_hopper(text, planned), "");
  ASSERT_TRUE(planned.overlap) << text;
  EXPECT_EQ(planned.overlap->along, along) << text;
  std::vector<std::string> targets = executable_targets();
  targets.push_back("sim:sm_90a");
  Subject subject(text, covering(std::move(targets), text));
  ASSERT_EQ(subject.invalid(), "") << text;
  for (const auto& [m, n, k] : sizes) {
    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
    Launch l;
    l.dims = {{"m", m}, {"n", n}, {"k", k}};
    l.magnitude = 2;
    l.bound = Bound::of_sum(*ir::dtype_from_name(p.out), 4, 1);
    expect_agree(subject, text, l);
  }
}

TEST(OverlappingTiles, OfRows) {
  run(product(64, 64, 64), "", {"by"},
      {{1, 64, 64},
       {63, 72, 64},
       {64, 64, 128},
       {65, 8, 128},
       {100, 136, 64},
       {129, 64, 72},
       {200, 80, 200}});
}

TEST(OverlappingTiles, OfRowsAndColumns) {
  run(product(128, 96, 64), " divisible 8", {"by", "bx"},
      {{40, 40, 64}, {128, 96, 64}, {136, 104, 64}, {300, 200, 128}});
}

// A tile narrower than a matrix instruction's rows is multiplied with exchanged operands.
TEST(OverlappingTiles, OfFewRows) {
  run(product(16, 64, 64), "", {"by"}, {{15, 64, 64}, {16, 64, 64}, {17, 64, 64}, {40, 128, 64}});
}

TEST(OverlappingTiles, WithWorkOnTheSums) {
  GemmProgram p = product(64, 64, 64);
  p.sum = p.out = "f32";
  p.allocs = "alloc top: fragment f32[64]";
  p.epilogue =
      "reduce c -> top {kind = max, axis = 1}\n"
      "  parallel i, j in 64, 64 {\n    c[i, j] = c[i, j] - top[i] + cast(f32, by * 64 + i)\n  }\n";
  run(p, "", {"by"}, {{30, 64, 64}, {100, 64, 64}, {130, 200, 64}});
}

}  // namespace
}  // namespace tilegen::differential
