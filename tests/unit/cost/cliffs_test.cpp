// Each fault that costs a kernel much is one warning with a factor; the program without it has none.
#include "planned.h"

#include "support/diag_codes.h"

namespace tilegen::cost {
namespace {

const Cliff* find(const std::vector<Cliff>& cliffs, DiagCode code) {
  for (const Cliff& c : cliffs)
    if (c.diagnostic.code == code) return &c;
  return nullptr;
}

void expect_cliff(const Planned& p, DiagCode code, const std::string& op, const Sizes& sizes = {}) {
  const std::vector<Cliff> cliffs = p.cliffs(sizes);
  const Cliff* c = find(cliffs, code);
  ASSERT_TRUE(c) << diag_name(code);
  EXPECT_EQ(c->diagnostic.op, op);
  EXPECT_GE(c->factor, kCliff);
  EXPECT_EQ(c->diagnostic.severity, Severity::warning);
  EXPECT_FALSE(c->diagnostic.hint.empty());
  EXPECT_NE(c->diagnostic.message.find("times as long"), std::string::npos);
  for (size_t i = 1; i < cliffs.size(); ++i) EXPECT_GE(cliffs[i - 1].factor, cliffs[i].factor);
}

TEST(Cliffs, AGoodPlanHasNone) {
  for (const Gemm& g : {Gemm{}, Gemm{128, 256, 64, 256, 4}, Gemm{64, 64, 64, 128, 6}})
    for (const Cliff& c : planned(g.text()).cliffs()) ADD_FAILURE() << c.diagnostic.to_text();
}

TEST(Cliffs, SlowProduct) {
  expect_cliff(planned(Gemm{128, 128, 64, 384, 3}.text()), DiagCode::slow_product, "gemm/ko/gemm#0");
  expect_cliff(planned(Gemm{128, 128, 64, 256, 1}.text()), DiagCode::slow_product, "gemm/ko/gemm#0");
  // f32 without tf32 has no faster instructions than multiply-adds.
  EXPECT_FALSE(find(planned(Gemm{64, 64, 32, 256, 2, "f32"}.text()).cliffs(), DiagCode::slow_product));
}

TEST(Cliffs, NoOverlap) {
  // On a generation without warpgroups the loop's one stage costs its overlap alone.
  expect_cliff(planned(Gemm{256, 128, 32, 256, 1}.text(), "sm_80"), DiagCode::no_overlap, "gemm/ko");
  EXPECT_FALSE(find(planned(Gemm{256, 128, 32, 256, 3}.text(), "sm_80").cliffs(), DiagCode::no_overlap));
}

TEST(Cliffs, StagesLost) {
  expect_cliff(planned(Gemm{64, 256, 128, 128, 4}.text()), DiagCode::stages_lost, "gemm/ko");
  EXPECT_FALSE(find(planned(Gemm{128, 256, 64, 256, 6}.text()).cliffs(), DiagCode::stages_lost))
      << "four are enough";
}

std::string rows(int64_t columns, int64_t threads) {
  const std::string c = std::to_string(columns);
  return "tl 1 program p\ndim m\ntensor X: f16[m, " + c + "] readonly\ntensor Y: f16[m, " + c +
         "]\nkernel k grid (b: m) threads " + std::to_string(threads) + " {\n  alloc x: fragment f32[1, " +
         c + "]\n  alloc s: fragment f32[1]\n  copy X[b :+ 1, 0 :+ " + c +
         "] -> x\n  reduce x -> s {kind=sum, axis=1}\n  parallel i, j in 1, " + c +
         " { x[i, j] = x[i, j] * s[i] }\n  copy x -> Y[b :+ 1, 0 :+ " + c + "]\n}\n";
}

TEST(Cliffs, WideReduction) {
  expect_cliff(planned(rows(2048, 768)), DiagCode::wide_reduction, "k/reduce#0");
  EXPECT_FALSE(find(planned(rows(2048, 256)).cliffs(), DiagCode::wide_reduction));
}

TEST(Cliffs, RegisterSpills) {
  // 32 K sums of 256 threads, and as many more beside them.
  const auto text = [](int64_t columns) {
    const std::string c = std::to_string(columns);
    return "tl 1 program p\ndim m\ntensor X: f32[m, " + c + "] readonly\ntensor Y: f32[m, " + c +
           "]\nkernel k grid (b: m) threads 128 {\n  alloc x: fragment f32[1, " + c +
           "]\n  alloc y: fragment f32[1, " + c + "]\n  alloc s: fragment f32[1]\n  copy X[b :+ 1, 0 :+ " +
           c + "] -> x\n  reduce x -> s {kind=sum, axis=1}\n  parallel i, j in 1, " + c +
           " { y[i, j] = x[i, j] * s[i] }\n  reduce y -> s {kind=max, axis=1}\n  parallel i, j in 1, " + c +
           " { y[i, j] = y[i, j] * s[i] + x[i, j] }\n  copy y -> Y[b :+ 1, 0 :+ " + c + "]\n}\n";
  };
  expect_cliff(planned(text(24576)), DiagCode::register_spills, "k");
  EXPECT_FALSE(find(planned(text(2048)).cliffs(), DiagCode::register_spills));
}

// A tile that is read along its columns, in the planned layout and with rows that lie in the same banks.
TEST(Cliffs, BankConflicts) {
  Planned p = planned(
      "tl 1 program p\ndim m\ntensor X: f32[m, 64, 64] readonly\ntensor Y: f32[m, 64, 64]\n"
      "kernel k grid (b: m) threads 256 {\n  alloc s: shared f32[64, 64]\n  alloc x: fragment f32[64, 64]\n"
      "  copy X[b :+ 1, 0 :+ 64, 0 :+ 64] -> s\n  serial t in 0 .. 16 {\n"
      "    parallel i, j in 64, 64 { x[i, j] = s[j, i] }\n  }\n"
      "  copy x -> Y[b :+ 1, 0 :+ 64, 0 :+ 64]\n}\n");
  EXPECT_FALSE(find(p.cliffs(), DiagCode::bank_conflicts));
  for (plan::ValuePlan& v : p.schedule.kernels[0].values)
    if (v.memory) v.memory = layout::Layout::row_major(v.memory->shape());
  expect_cliff(p, DiagCode::bank_conflicts, "k/t/i.j");
}

// Lanes that walk down a tensor's columns.
TEST(Cliffs, ScatteredAccess) {
  const auto text = [](const char* index) {
    return std::string(
               "tl 1 program p\ndim m\ndim n\ntensor X: f32[m, n] readonly\ntensor Y: f32[m, n]\n"
               "kernel k grid (y: ceildiv(m, 64), x: ceildiv(n, 64)) threads 256 {\n"
               "  parallel i, j in 64, 64 { Y[y * 64 + i, x * 64 + j] = X[") +
           index + "] * 2.0f32 }\n}\n";
  };
  expect_cliff(planned(text("y * 64 + j, x * 64 + i")), DiagCode::scattered_access, "k/i.j");
  EXPECT_FALSE(find(planned(text("y * 64 + i, x * 64 + j")).cliffs(), DiagCode::scattered_access));
}

// More threads than points: all hold copies of the row's values.
TEST(Cliffs, RepeatedWork) {
  const auto text = [](int64_t threads) {
    return "tl 1 program p\ndim m\ntensor X: f32[m, 128] readonly\ntensor Y: f32[m, 128]\nkernel k grid (b: "
           "m) threads " +
           std::to_string(threads) +
           " {\n  alloc x: fragment f32[128]\n  copy X[b :+ 1, 0 :+ 128] -> x\n  serial t in 0 .. 64 {\n"
           "    parallel i in 128 { x[i] = exp(x[i]) / (x[i] + 1.0f32) }\n  }\n  copy x -> Y[b :+ 1, 0 :+ "
           "128]\n}\n";
  };
  expect_cliff(planned(text(512)), DiagCode::repeated_work, "k/t/i");
  EXPECT_FALSE(find(planned(text(32)).cliffs(), DiagCode::repeated_work));
}

}  // namespace
}  // namespace tilegen::cost
