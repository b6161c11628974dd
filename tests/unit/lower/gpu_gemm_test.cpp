// Matrix products on the simulator, against the interpreter: every type, operand orientation and place,
// ragged sizes, trip counts around the number of stages, tiles that no instruction divides.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "simulated_program.h"

namespace tilegen::lower {
namespace {

struct Types {
  const char *a, *b, *c;
};

struct Case {
  Types types{"f16", "f16", "f32"};
  int64_t m = 64, n = 64, k = 32;  // tile
  int64_t threads = 128, stages = 2;
  bool transpose_a = false, transpose_b = false;
  const char* policy = "square";
  bool clear = false;  // C is dropped: the sum over the last block alone
  bool tf32 = false;
  const char* target = "sm_80";
  const char* atom = "";  // expected
  std::string name() const {
    return std::string(types.a) + "_" + types.b + "_" + types.c + "_" + std::to_string(m) + "x" +
           std::to_string(n) + "x" + std::to_string(k) + "_t" + std::to_string(threads) + "_s" +
           std::to_string(stages) + "_" + (transpose_a ? "t" : "n") + (transpose_b ? "t" : "n") + "_" +
           policy + (clear ? "_clear" : "") + (tf32 ? "_tf32" : "") +
           (std::string(target) == "sm_80" ? "" : std::string("_") + target);
  }
};

std::string number(int64_t v) { return std::to_string(v); }

std::string text_of(const Case& c) {
  const std::string m = number(c.m), n = number(c.n), k = number(c.k);
  const std::string rows = "by * " + m + " :+ " + m, cols = "bx * " + n + " :+ " + n,
                    depth = "ko * " + k + " :+ " + k;
  const std::string zero = std::string(c.types.c) == "i32" ? "0i32" : std::string("0.0") + c.types.c;
  return "tl 1 program p dim m dim n dim k\n"
         "tensor A: " +
         std::string(c.types.a) + (c.transpose_a ? "[k, m]" : "[m, k]") + " readonly\n" +
         "tensor B: " + c.types.b + (c.transpose_b ? "[n, k]" : "[k, n]") + " readonly\n" +
         "tensor D: " + c.types.c + "[m, n]\n" + "kernel gemm grid (by: ceildiv(m, " + m +
         "), bx: ceildiv(n, " + n + ")) threads " + number(c.threads) + " {\n" + "alloc As: shared " +
         c.types.a + (c.transpose_a ? "[" + k + ", " + m + "]" : "[" + m + ", " + k + "]") + "\n" +
         "alloc Bs: shared " + c.types.b +
         (c.transpose_b ? "[" + n + ", " + k + "]" : "[" + k + ", " + n + "]") + "\n" +
         "alloc acc: fragment " + c.types.c + "[" + m + ", " + n + "]\n" + "fill acc, " + zero + "\n" +
         "pipelined ko in 0 .. ceildiv(k, " + k + ") stages " + number(c.stages) + " {\n" + "copy A[" +
         (c.transpose_a ? depth + ", " + rows : rows + ", " + depth) + "] -> As\n" + "copy B[" +
         (c.transpose_b ? cols + ", " + depth : depth + ", " + cols) + "] -> Bs\n" + "gemm As, Bs -> acc {" +
         (c.transpose_a ? "transpose_a, " : "") + (c.transpose_b ? "transpose_b, " : "") +
         "policy=" + c.policy + (c.clear ? ", clear" : "") + (c.tf32 ? ", tf32" : "") + "}\n}\n" +
         "copy acc -> D[" + rows + ", " + cols + "]\n}\n";
}

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name(); }

class GpuGemm : public ::testing::TestWithParam<Case> {};

// Aligned sizes run the form with vectors and async copies, odd ones the other.
TEST_P(GpuGemm, ComputesWhatTheInterpreterDoes) {
  const Case& c = GetParam();
  const ir::Program p = parse(text_of(c));
  ASSERT_FALSE(HasFailure());
  const target::Target target = *target::find_target(c.target);
  const plan::Schedule schedule = plan_for(p, target);
  ASSERT_FALSE(HasFailure());
  for (const plan::OpPlan& op : schedule.kernels[0].ops)
    if (op.engine == plan::Engine::mma) {
      EXPECT_TRUE(op.atom.starts_with(c.atom)) << op.atom;
    }
  bool aligned = false;
  const test::Simulated with_vectors(p, target, schedule, true);
  for (int64_t trips : {0, 1, 2, 3, 5})
    aligned = with_vectors.run(
                  {c.m + 16, c.n + 16, trips * c.k - (trips > 1 ? std::min<int64_t>(16, c.k - 1) : 0)}) ||
              aligned;
  EXPECT_TRUE(aligned) << "no launch took the form with vectors";
  test::run_simulated(p, target, schedule, {c.m - 1, c.n + 3, 2 * c.k - 3}, false);
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const Types types[] = {{"f16", "f16", "f32"}, {"bf16", "bf16", "f32"}, {"f16", "f16", "f16"},
                         {"i8", "i8", "i32"},   {"u8", "i8", "i32"},     {"f64", "f64", "f64"},
                         {"f32", "f32", "f32"}};
  for (const Types& t : types)
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        Case c;
        c.types = t;
        c.transpose_a = ta;
        c.transpose_b = tb;
        list.push_back(c);
      }
  for (int64_t stages : {1, 3, 4}) list.push_back({.stages = stages});
  for (const char* policy : {"full_row", "full_col"}) list.push_back({.policy = policy});
  for (const char* a : {"e4m3", "e5m2"})
    for (const char* b : {"e4m3", "e5m2"}) {
      list.push_back(
          {.types = {a, b, "f32"}, .transpose_b = true, .target = "sm_90", .atom = "mma.m16n8k32.f32.e"});
      list.push_back(
          {.types = {a, b, "f32"}, .transpose_a = true, .target = "sm_89", .atom = "mma.m16n8k32.f32.e"});
      list.push_back({.types = {a, b, "f32"}, .atom = "fma.f32.e"});
    }
  list.push_back({.types = {"e4m3fnuz", "e5m2fnuz", "f32"}, .target = "sm_90", .atom = "fma.f32.e"});
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      list.push_back({.types = {"f32", "f32", "f32"},
                      .transpose_a = ta,
                      .transpose_b = tb,
                      .tf32 = true,
                      .atom = "mma.m16n8k8.f32.tf32"});
      list.push_back({.types = {"i8", "u8", "i32"},
                      .m = 36,
                      .n = 20,
                      .k = 12,
                      .threads = 32,
                      .transpose_a = ta,
                      .transpose_b = tb,
                      .atom = ""});
      list.push_back({.types = {"u8", "i8", "i32"},
                      .m = 32,
                      .n = 48,
                      .k = 20,
                      .threads = 32,
                      .transpose_a = ta,
                      .transpose_b = tb,
                      .atom = "dp4a.s32.u8.s8:4x4"});
    }
  list.push_back(
      {.types = {"f32", "f32", "f32"}, .m = 32, .n = 24, .k = 12, .tf32 = true, .atom = "mma.m16n8k4"});
  list.push_back({.types = {"f32", "f32", "f32"}, .m = 24, .n = 20, .k = 7, .tf32 = true, .atom = "fma.f32"});
  list.push_back(
      {.types = {"i8", "i8", "i32"}, .m = 24, .n = 12, .k = 20, .threads = 32, .atom = "dp4a.s32.s8.s8:1x1"});
  // Rows of 256, 192 and 96 bytes, small tiles, one warp, more warps than the tile has use for.
  list.push_back({.m = 32, .n = 128, .k = 64});
  list.push_back({.m = 96, .n = 96, .k = 16, .transpose_b = true});
  list.push_back({.m = 48, .n = 48, .k = 48, .threads = 32});
  list.push_back({.m = 16, .n = 8, .k = 16});
  list.push_back({.m = 16, .n = 24, .k = 16, .threads = 64});
  list.push_back({.m = 64, .n = 64, .k = 128, .threads = 256});
  list.push_back({.clear = true});
  // No instruction divides these.
  list.push_back({.m = 24, .n = 20, .k = 12});
  list.push_back({.m = 20, .n = 12, .k = 5, .transpose_b = true});
  list.push_back({.types = {"i8", "i8", "i32"}, .m = 24, .n = 12, .k = 20});
  list.push_back({.types = {"f32", "f32", "f32"}, .m = 36, .n = 20, .k = 7, .threads = 64});
  list.push_back({.types = {"f32", "f32", "f32"}, .m = 128, .n = 128, .k = 16, .threads = 256, .stages = 3});
  return list;
}

INSTANTIATE_TEST_SUITE_P(All, GpuGemm, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name(); });

TEST(GpuGemm, TripCountsAroundTheStages) {
  const target::Target target = *target::find_target("sm_80");
  for (int64_t stages : {1, 2, 3, 4}) {
    Case c{.m = 32, .n = 32, .k = 16, .threads = 64, .stages = stages};
    const ir::Program p = parse(text_of(c));
    const plan::Schedule schedule = plan_for(p, target);
    const test::Simulated code(p, target, schedule, true);
    for (int64_t trips = 0; trips <= 7; ++trips)
      EXPECT_TRUE(code.run({32, 32, trips * 16})) << stages << " " << trips;
  }
}

// Shared memory must be read without bank conflicts whatever the orientation and the length of its rows.
TEST(GpuGemm, MatrixLoadsAreFreeOfBankConflicts) {
  const target::Target target = *target::find_target("sm_80");
  for (const char* type : {"f16", "i8"})
    for (bool ta : {false, true})
      for (bool tb : {false, true})
        for (int64_t k : {16, 32, 64, 96, 128}) {
          const bool bytes = std::string(type) == "i8";
          if (bytes && (ta || !tb || k == 16)) continue;  // 8-bit rows along m or n are read by elements
          Case c{.types = {type, type, bytes ? "i32" : "f32"},
                 .m = 64,
                 .n = 96,
                 .k = k,
                 .stages = 1,
                 .transpose_a = ta,
                 .transpose_b = tb};
          const ir::Program p = parse(text_of(c));
          const plan::Schedule schedule = plan_for(p, target);
          ASSERT_FALSE(HasFailure());
          sim::Counters counters;
          ASSERT_TRUE(test::run_simulated(p, target, schedule, {64, 96, k}, true, &counters));
          int64_t loads = 0;
          for (const sim::AccessCount& a : counters.accesses) {
            if (a.action == "matrix load") {
              ++loads;
              EXPECT_EQ(a.transactions, a.least) << c.name() << " " << a.memory;
            }
            if (a.action == "async copy" && a.space == thread::Space::shared) {
              EXPECT_EQ(a.transactions, a.least) << c.name() << " " << a.memory;
            }
          }
          EXPECT_GT(loads, 0) << c.name();
        }
}

// Accumulators on their way to a shared tile are stored as matrices where the target can, whole or rounded,
// in rows that run along either dimension, and in the slots of a pipeline.
TEST(GpuGemm, AccumulatorsAreStoredAsMatrices) {
  for (const char* target_name : {"sm_80", "sm_90"})
    for (const char* sum : {"f32", "f16"})
      for (bool again : {false, true}) {
        SCOPED_TRACE(std::string(target_name) + " " + sum);
        std::string text = R"(
tl 1 program p
tensor A: f16[64, 32] readonly
tensor B: f16[32, 96] readonly
tensor C: f16[96, 64] readonly
tensor D: f16[64, 96]
tensor E: f32[64, 64]
kernel k grid (b: 1) threads 128 {
  alloc As: shared f16[64, 32]
  alloc Bs: shared f16[32, 96]
  alloc Cs: shared f16[96, 64]
  alloc acc: fragment SUM[64, 96]
  alloc out: shared f16[64, 96]
  alloc next: fragment f32[64, 64]
  copy A -> As
  copy B -> Bs
  copy C -> Cs
  gemm As, Bs -> acc {clear}
  copy acc -> out
  NEXT
  copy out -> D
}
)";
        auto put = [&](const std::string& name, const std::string& by) {
          text.replace(text.find(name), name.size(), by);
        };
        put("SUM", sum);
        put("NEXT", again ? "gemm out, Cs -> next {clear}\n  copy next -> E" : "copy E -> next");
        const ir::Program p = parse(text);
        ASSERT_FALSE(HasFailure());
        const target::Target target = *target::find_target(target_name);
        const plan::Schedule schedule = plan_for(p, target);
        sim::Counters counters;
        ASSERT_TRUE(test::run_simulated(p, target, schedule, {}, true, &counters));
        int64_t stores = 0;
        for (const sim::AccessCount& a : counters.accesses) stores += a.action == "matrix store";
        EXPECT_EQ(stores > 0, target.store_matrix);
      }
}

TEST(GpuGemm, PartsOfBuffers) {
  expect_simulated(R"(
tl 1 program p
tensor A: f16[64, 64] readonly
tensor B: f16[64, 64] readonly
tensor D: f32[64, 64]
kernel parts grid (b: 1) threads 64 {
  alloc As: shared f16[64, 64]
  alloc Bs: shared f16[64, 64]
  alloc acc: fragment f32[64, 64]
  copy A -> As
  copy B -> Bs
  fill acc, 0.0f32
  serial q in 0 .. 4 {
    gemm As[0 :+ 32, q * 16 :+ 16], Bs[q * 16 :+ 16, 0 :+ 64] -> acc[0 :+ 32, 0 :+ 64]
  }
  gemm As[32 :+ 32, 0 :+ 64], Bs -> acc[32 :+ 32, 0 :+ 64]
  copy acc -> D
})",
                   {});
}

TEST(GpuGemm, ChainedProducts) {
  expect_simulated(R"(
tl 1 program p
tensor A: f16[64, 32] readonly
tensor B: f16[32, 48] readonly
tensor E: f16[48, 32] readonly
tensor D: f32[64, 32]
kernel chain grid (b: 1) threads 128 {
  alloc As: shared f16[64, 32]
  alloc Bs: shared f16[32, 48]
  alloc Es: shared f16[48, 32]
  alloc s: fragment f32[64, 48]
  alloc h: fragment f16[64, 48]
  alloc acc: fragment f32[64, 32]
  copy A -> As
  copy B -> Bs
  copy E -> Es
  gemm As, Bs -> s { policy = full_row, clear }
  copy s -> h
  gemm h, Es -> acc { policy = full_row, clear }
  copy acc -> D
})",
                   {});
}

// Programs of the plan and language tests with matrix products; sizes ragged where the program allows.
TEST(GpuGemm, ProgramsOfOtherTests) {
  const target::Target target = *target::find_target("sm_80");
  const std::pair<const char*, std::vector<std::vector<int64_t>>> files[] = {
      {"plan/bias_replication.tl", {{}}},
      {"plan/chained_gemm.tl", {{}}},
      {"plan/convert_replication.tl", {{}}},
      {"plan/convert_shared_bounce.tl", {{}}},
      {"plan/convert_doubles.tl", {{}}},
      {"plan/convert_shuffle.tl", {{}}},
      {"plan/flash_attention.tl", {{96, 192, 1}, {33, 64, 1}}},
      {"plan/gemm_bias_relu.tl", {{72, 136, 96}, {65, 67, 35}}},
      {"text/gemm_int8.tl", {{80, 144, 160, 1}}},
      {"text/gemm_split_k.tl", {{64, 72, 256}}},
  };
  for (const auto& [file, launches] : files) {
    SCOPED_TRACE(file);
    std::ifstream in(std::filesystem::path(TILEGEN_SOURCE_DIR) / "tests/files" / file);
    std::stringstream text;
    text << in.rdbuf();
    const ir::Program p = parse(text.str());
    ASSERT_FALSE(HasFailure());
    const plan::Schedule schedule = plan_for(p, target);
    ASSERT_FALSE(HasFailure());
    for (const auto& dims : launches) {
      test::run_simulated(p, target, schedule, dims, true);
      EXPECT_TRUE(test::run_simulated(p, target, schedule, dims, false));
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST(GpuGemm, OneTileTwice) {
  for (const char* type : {"f16", "f32"}) {
    const std::string t = type;
    expect_simulated(("tl 1 program p tensor A: " + t +
                      "[32, 32] readonly tensor D: f32[32, 32]\n"
                      "kernel square grid (b: 1) threads 64 {\n"
                      "alloc x: fragment " +
                      t +
                      "[32, 32]\n"
                      "alloc s: shared " +
                      t +
                      "[32, 32]\n"
                      "alloc acc: fragment f32[32, 32]\n"
                      "copy A -> x\ncopy A -> s\ngemm x, x -> acc {clear}\ngemm s, s -> acc "
                      "{transpose_b}\ncopy acc -> D\n}")
                         .c_str(),
                     {});
  }
}

TEST(GpuGemm, ThreadsAreChosenByRegisters) {
  const target::Target target = *target::find_target("sm_80");
  const std::pair<int64_t, int64_t> sizes[] = {{128, 128}, {128, 256}, {256, 256}};
  const int64_t threads[] = {128, 256, 512};
  for (size_t i = 0; i < 3; ++i) {
    Case c{.m = sizes[i].first, .n = sizes[i].second, .threads = 128};
    std::string text = text_of(c);
    text.erase(text.find("threads 128 "), 12);
    const plan::Schedule schedule = plan_for(parse(text), target);
    ASSERT_FALSE(HasFailure());
    EXPECT_EQ(schedule.kernels[0].threads, threads[i]);
  }
}

}  // namespace
}  // namespace tilegen::lower
