// What estimates are made of, and how they follow the program, the plan and the sizes.
#include "planned.h"

#include <filesystem>

#include "cost/report.h"

namespace tilegen::cost {
namespace {

const OpEstimate& op_of(const KernelEstimate& k, const std::string& path) {
  for (const OpEstimate& op : k.ops)
    if (op.op == path) return op;
  ADD_FAILURE() << path;
  return k.ops.front();
}

// 128 x 128 x 64 by wgmma m64n128k16 of two warpgroups: 128 cycles each, 4 k steps.
TEST(Estimate, CountsTheCyclesOfProducts) {
  const KernelEstimate k = planned(Gemm{}.text()).estimate({{"m", 1024}, {"n", 1024}, {"k", 640}}).kernels[0];
  const OpEstimate& product = op_of(k, "gemm/ko/gemm#0");
  EXPECT_EQ(product.times, 10);
  EXPECT_EQ(product.work[Pipe::tensor], 10 * 128 * 128 * 64 / 1024 / 2);
  EXPECT_EQ(product.place, OpPlace::units);
  EXPECT_EQ(op_of(k, "gemm/ko/copy#0").work.read_bytes, 10 * 128 * 64 * 2);
  EXPECT_EQ(k.blocks, 64);
  EXPECT_EQ(k.memory_bytes, (1024 * 640 * 2 * 2) + 1024 * 1024 * 4);
  EXPECT_TRUE(k.known);
}

TEST(Estimate, LargeProductsAreBoundByTensorUnits) {
  const Planned p = planned(Gemm{128, 256, 64, 256, 4}.text());
  const KernelEstimate k = p.estimate({{"m", 8192}, {"n", 8192}, {"k", 8192}}).kernels[0];
  EXPECT_EQ(k.bound, Bound::pipe);
  EXPECT_EQ(k.pipe, Pipe::tensor);
  const double peak = 2.0 * 8192 * 8192 * 8192 / (4096.0 * p.target.multiprocessors) / p.target.clock_mhz;
  EXPECT_GT(k.microseconds, peak);
  EXPECT_LT(k.microseconds, 1.4 * peak);
}

// What the copy engine fills with zeros is not read, and takes longer than reading.
TEST(Estimate, RowsOutsideOfTensorsAreFilled) {
  const Planned p = planned(Gemm{}.text());
  const auto of_rows = [&](int64_t m) {
    return p.estimate({{"m", m}, {"n", 16384}, {"k", 4096}}).kernels[0];
  };
  const auto filled = [&](int64_t m) { return op_of(of_rows(m), "gemm/ko/copy#0").work.filled_bytes; };
  const double tile = 64 * 128 * 64 * 2;  // of all iterations
  EXPECT_EQ(filled(128), 0);
  EXPECT_EQ(filled(32), 0.75 * tile);
  EXPECT_EQ(op_of(of_rows(32), "gemm/ko/copy#0").work.read_bytes, 0.25 * tile);
  EXPECT_EQ(op_of(of_rows(32), "gemm/ko/copy#1").work.filled_bytes, 0);
  EXPECT_EQ(filled(128 + 64), 0.25 * tile);  // in the mean of two rows of tiles
  EXPECT_NEAR(filled(99 * 128 + 32), 0.0075 * tile, 1e-6);
  EXPECT_GT(of_rows(32).cycles, 1.2 * of_rows(128).cycles);
  EXPECT_GT(of_rows(64).cycles, 1.05 * of_rows(128).cycles);
  EXPECT_GT(of_rows(129).cycles, of_rows(256).cycles);
  // Threads that copy ask for what is there only.
  const Planned threads = planned(Gemm{}.text(), "sm_80");
  EXPECT_LE(threads.us({{"m", 32}, {"n", 16384}, {"k", 4096}}),
            threads.us({{"m", 128}, {"n", 16384}, {"k", 4096}}));
}

// A dim without a size has a nominal one, which its facts allow.
TEST(Estimate, TakesNominalSizesNextToWhatFactsAllow) {
  const auto p = schedule::program_from(
      "tl 1 program p\ndim a\ndim b <= 100\ndim c >= 5000 divisible 512\ntensor X: f32[a, b, c]\n"
      "kernel k grid (x: a) threads 32 {\n  alloc t: fragment f32[1, 1, 32]\n  fill t, 0.0f32\n"
      "  copy t -> X[x :+ 1, 0 :+ 1, 0 :+ 32]\n}\n");
  ASSERT_TRUE(p);
  const SizedProgram sized(*p, {{"a", 7}});
  EXPECT_EQ(sized.of(ir::VarId(0)), 7);
  EXPECT_EQ(sized.of(ir::VarId(1)), 100);
  EXPECT_EQ(sized.of(ir::VarId(2)), 5120);
}

TEST(Estimate, GrowsWithEverySize) {
  const Planned p = planned(Gemm{}.text());
  const double least = p.us({{"m", 2048}, {"n", 2048}, {"k", 2048}});
  for (const char* name : {"m", "n", "k"}) {
    Sizes more = {{"m", 2048}, {"n", 2048}, {"k", 2048}};
    more[name] = 8192;
    EXPECT_GT(p.us(more), 2 * least) << name;
  }
}

// Nothing, and more than any memory: a number all the same.
TEST(Estimate, OfAnySizesIsANumber) {
  const Planned p = planned(Gemm{}.text());
  for (int64_t size : {int64_t{0}, int64_t{1}, int64_t{1} << 40, INT64_MAX}) {
    const double us = p.us({{"m", size}, {"n", size}, {"k", size}});
    EXPECT_TRUE(us >= 0 && us == us) << size << " " << us;
    for (const Cliff& c : p.cliffs({{"m", size}, {"n", size}, {"k", size}})) EXPECT_GE(c.factor, kCliff);
  }
}

// A wave with one block more takes another wave.
TEST(Estimate, SeesTheLastWave) {
  const Planned p = planned(Gemm{128, 256, 64, 256, 4}.text());
  const Sizes full = {{"m", 12 * 128}, {"n", 11 * 256}, {"k", 4096}},
              more = {{"m", 12 * 128 + 1}, {"n", 11 * 256}, {"k", 4096}};
  EXPECT_GT(p.us(more), 1.7 * p.us(full));
}

// However little a block does, the machine takes its time to launch it.
TEST(Estimate, BlocksAreLaunchedOneAfterAnother) {
  const auto of_rows = [](int rows) {
    const std::string r = std::to_string(rows);
    const Planned p = planned(
        "tl 1 program p\ndim m\ntensor X: f16[m, 128] readonly\ntensor Y: f16[m, 128]\nkernel k grid (b: "
        "ceildiv(m, " +
        r + ")) threads 32 {\n  alloc x: fragment f16[" + r + ", 128]\n  copy X[b * " + r + " :+ " + r +
        ", 0 :+ 128] -> x\n  copy x -> Y[b * " + r + " :+ " + r + ", 0 :+ 128]\n}\n");
    return p.estimate({{"m", 1 << 17}}).kernels[0].cycles - p.target.launch_cycles;
  };
  EXPECT_GT(of_rows(1), 2 * (1 << 17));
  EXPECT_NEAR(of_rows(1) / of_rows(2), 2, 0.2);
}

// Warps that have some of the columns each need all of them for the next product: they come through shared
// memory.
TEST(Estimate, CountsWhatThreadsExchange) {
  const auto shared_of_copy = [](int threads) {
    const Planned p = planned(
        "tl 1 program p\ndim n divisible 64\ntensor Q: f16[n, 64] readonly\ntensor O: f16[n, 64]\n"
        "kernel k grid (b: n // 64) threads " +
        std::to_string(threads) +
        " {\n  alloc Qs: shared f16[64, 64]\n  alloc s: fragment f32[64, 64]\n  alloc w: fragment f16[64, "
        "64]\n"
        "  alloc o: fragment f32[64, 64]\n  copy Q[b * 64 :+ 64, 0 :+ 64] -> Qs\n"
        "  gemm Qs, Qs -> s {transpose_b, clear}\n  copy s -> w\n  gemm w, Qs -> o {clear}\n"
        "  copy o -> O[b * 64 :+ 64, 0 :+ 64]\n}\n");
    return op_of(p.estimate({{"n", 4096}}).kernels[0], "k/copy#1").work[Pipe::shared];
  };
  EXPECT_EQ(shared_of_copy(128), 0);
  // 64 words of each thread of 8 warps, written and read.
  EXPECT_EQ(shared_of_copy(256), 2 * 64 * 8);
}

TEST(Estimate, KnowsWhatTheScheduleSays) {
  const Planned p = planned(Gemm{}.text());
  const KernelEstimate k = p.estimate().kernels[0];
  EXPECT_EQ(k.kernel, "gemm");
  EXPECT_EQ(k.ops.size(), p.schedule.kernels[0].ops.size());
  EXPECT_GE(k.occupancy.blocks, 1);
  EXPECT_GE(k.occupancy.registers, 64) << "the sums alone";
}

// Some devices keep no shared memory of a block for themselves: a kernel that has none is not bound by it.
TEST(Estimate, KernelsWithoutSharedMemory) {
  const std::string text =
      "tl 1 program p\ndim n\ntensor X: f32[n] readonly\ntensor Y: f32[n]\n"
      "kernel k grid (b: ceildiv(n, 256)) threads 64 {\n  alloc x: fragment f32[256]\n"
      "  copy X[b * 256 :+ 256] -> x\n  copy x -> Y[b * 256 :+ 256]\n}\n";
  for (const char* target : {"gfx942", "sm_80"}) {
    const KernelEstimate k = planned(text, target).estimate({{"n", 1 << 20}}).kernels[0];
    EXPECT_GE(k.occupancy.blocks, 1) << target;
    EXPECT_STRNE(k.occupancy.bound, "shared memory") << target;
  }
}

// Blocks of a causal loop differ: the estimate is of their mean.
TEST(Estimate, TakesTheMeanOfBlocks) {
  const auto text = [](const char* end) {
    return std::string(
               "tl 1 program p\ndim n\ntensor X: f32[n] readonly\ntensor Y: f32[n]\n"
               "kernel k grid (b: ceildiv(n, 128)) threads 128 {\n  alloc x: fragment f32[128]\n"
               "  alloc y: fragment f32[128]\n  fill y, 0.0f32\n  serial i in 0 .. ") +
           end +
           " {\n    copy X[i * 128 :+ 128] -> x\n    parallel j in 128 { y[j] = y[j] + x[j] }\n  }\n"
           "  copy y -> Y[b * 128 :+ 128]\n}\n";
  };
  const Sizes sizes = {{"n", 128 * 1024}};
  const double causal = planned(text("b + 1")).estimate(sizes).kernels[0].block.work[Pipe::issue],
               all = planned(text("1024")).estimate(sizes).kernels[0].block.work[Pipe::issue];
  EXPECT_NEAR(causal / all, 0.5, 0.02);
}

TEST(Estimate, OfASimulatedTargetIsThatOfTheOneItSimulates) {
  EXPECT_EQ(planned(Gemm{}.text(), "sim:sm_90a").us(), planned(Gemm{}.text(), "sm_90a").us());
}

// Every program of the tests has a finite time and factors, and the same when asked again. At nominal sizes
// the grids of chunk_scan and chunk_state have 4096^3 blocks, which take hours; a regression has a loop of
// 2^63 steps.
TEST(Estimate, OfEveryProgram) {
  size_t estimated = 0;
  for (const char* folder : {"tests/files/plan", "tests/differential/regressions"})
    for (const auto& file : std::filesystem::recursive_directory_iterator(schedule::source_path(folder))) {
      if (file.path().extension() != ".tl") continue;
      const auto text = ir::parse_program(schedule::read_file(file.path().string()), "", Limits{});
      if (!text) continue;
      const std::string stem = file.path().stem().string();
      const double most = stem == "loop_longer_than_can_be_walked" ? 1e30
                          : stem.rfind("chunk_", 0) == 0           ? 1e11
                                                                   : 1e9;
      for (const char* name : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"}) {
        Planned p;
        p.target = schedule::target_named(name);
        p.program = schedule::planned_form(*text, name);
        auto plan = schedule::plan_for(*text, name);
        if (!plan) continue;  // refused on this generation
        p.schedule = std::move(*plan);
        const double us = p.us();
        EXPECT_TRUE(us > 0 && us < most) << file.path() << " " << name << " " << us;
        EXPECT_EQ(us, p.us());
        for (const Cliff& c : p.cliffs()) EXPECT_TRUE(c.factor >= kCliff && c.factor < 1e6) << file.path();
        ++estimated;
      }
    }
  EXPECT_GT(estimated, 700u);
}

TEST(Report, NamesKernelsOpsPipesAndSizes) {
  const Planned p = planned(Gemm{}.text());
  const Sizes sizes = {{"m", 512}};
  const std::string text = estimate_to_text(p.estimate(sizes), p.program, p.target, sizes),
                    json = estimate_to_json(p.estimate(sizes), p.program, p.target, sizes);
  for (const char* word : {"gemm/ko/gemm#0", "m 512", "n 4096", "bound by", "shared memory", "waves"})
    EXPECT_NE(text.find(word), text.npos) << word << "\n" << text;
  EXPECT_EQ(estimate_summary(p.estimate(sizes), p.program, p.target, sizes).find("cost on sm_90a: "), 0u);
  for (const char* word : {"\"gemm/ko/gemm#0\"", "\"m\": 512", "\"busy\"", "\"tensor\"", "\"us\""})
    EXPECT_NE(json.find(word), json.npos) << word << "\n" << json;
}

// Four elements that a thread names one by one are one access of a quarter of the transactions.
TEST(Estimate, JoinedAccesses) {
  const auto estimate = [](const std::string& index) {
    return planned(
               "tl 1 program p\ndim m\ntensor X: f32[m, 512] readonly\ntensor Y: f32[m, 512]\n"
               "kernel k grid (b: m) threads 128 {\n  threads t in 128 {\n    unroll i in 0 .. 4 { Y[b, " +
                   index + "] = X[b, " + index + "] * 2.0 }\n  }\n}\n",
               "sm_80")
        .estimate({{"m", 1024}})
        .kernels[0];
  };
  const KernelEstimate joined = estimate("4 * t + i"), coalesced = estimate("128 * i + t");
  // as many lines, by a quarter of the instructions
  EXPECT_EQ(joined.ops[0].work[Pipe::global], coalesced.ops[0].work[Pipe::global]);
  EXPECT_EQ(joined.ops[0].work.read_bytes, coalesced.ops[0].work.read_bytes);
  EXPECT_LT(joined.ops[0].work[Pipe::issue], coalesced.ops[0].work[Pipe::issue]);
  EXPECT_LE(joined.microseconds, coalesced.microseconds);
}

}  // namespace
}  // namespace tilegen::cost
