// Products on AMD targets that the feature tables have few of: dot products of the lanes, f32 as xf32,
// operands of every size that are transposed as they are deposited. By machine code and on the simulators,
// against the interpreter; and packed maths of element-wise loops.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "driver/compile.h"
#include "executors.h"
#include "ir/text.h"
#include "launch_memory.h"
#include "runtime/sim/sim_executable.h"

namespace tilegen::differential {
namespace {

std::shared_ptr<const driver::Artifact> compiled(const std::string& text, const char* target) {
  auto program = ir::parse_program(text, "case.tl", Limits());
  EXPECT_TRUE(program);
  if (!program) return nullptr;
  driver::CompileOptions options;
  options.keep_assembly = true;
  const auto artifact = driver::compile(std::make_shared<const ir::Program>(std::move(*program)),
                                        *target::find_target(target), options);
  EXPECT_TRUE(artifact) << artifact.error().to_text() << text;
  return artifact ? *artifact : nullptr;
}

int64_t count(const std::string& text, const std::string& word) {
  int64_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// A product of m x k and k x n tiles in a pipelined loop.
struct Product {
  const char *name, *a, *b, *c;
  int m, n, k;
  const char* flags;         // of the gemm
  const char* instruction;   // on gfx942, and on gfx90a where it begins with "v_dot"
  bool transposing = false;  // B's tile, or moves pieces of rows along k
};
void PrintTo(const Product& p, std::ostream* o) { *o << p.name; }

std::string text_of(const Product& p) {
  const bool rows_along_k = std::string(p.flags).find("transpose_b") != std::string::npos;
  const std::string m = std::to_string(p.m), n = std::to_string(p.n), k = std::to_string(p.k);
  const std::string columns = "bx * " + n + " :+ " + n, steps = "ko * " + k + " :+ " + k;
  std::ostringstream o;
  o << "tl 1 program product\ndim m\ndim n\ndim k divisible " << k << "\n"
    << "tensor A: " << p.a << "[m, k] readonly\n"
    << "tensor B: " << p.b << (rows_along_k ? "[n, k]" : "[k, n]") << " readonly\n"
    << "tensor C: " << p.c << "[m, n]\n"
    << "kernel gemm grid (by: ceildiv(m, " << m << "), bx: ceildiv(n, " << n << ")) threads 64 {\n"
    << "  alloc As: shared " << p.a << "[" << m << ", " << k << "]\n"
    << "  alloc Bs: shared " << p.b << "[" << (rows_along_k ? n + ", " + k : k + ", " + n) << "]\n"
    << "  alloc acc: fragment " << p.c << "[" << m << ", " << n << "]\n"
    << "  fill acc, " << (std::string(p.c) == "i32" ? "0i32" : "0.0f32") << "\n"
    << "  pipelined ko in 0 .. k // " << k << " stages 3 {\n"
    << "    copy A[by * " << m << " :+ " << m << ", " << steps << "] -> As\n"
    << "    copy B[" << (rows_along_k ? columns + ", " + steps : steps + ", " + columns) << "] -> Bs\n"
    << "    gemm As, Bs -> acc" << (*p.flags ? " {" + std::string(p.flags) + "}" : "") << "\n  }\n"
    << "  copy acc -> C[by * " << m << " :+ " << m << ", " << columns << "]\n}\n";
  return o.str();
}

constexpr Product kProducts[] = {
    {"HalvesByDots", "f16", "f16", "f32", 32, 32, 4, "transpose_b", "v_dot2"},
    {"HalvesByFewDots", "f16", "f16", "f32", 8, 24, 6, "", "v_dot2"},
    {"BytesByDots", "i8", "i8", "i32", 32, 32, 12, "transpose_b", "v_dot4"},
    {"BytesByFewDots", "i8", "i8", "i32", 16, 8, 4, "", "v_dot4"},
    {"UnsignedBytes", "u8", "u8", "i32", 64, 32, 32, "", "v_dot4_u32_u8"},
    {"ReducedWords", "f32", "f32", "f32", 64, 64, 16, "transpose_b, tf32", "xf32", true},
    {"ReducedWordsTransposed", "f32", "f32", "f32", 64, 64, 16, "tf32", "xf32", true},
    {"Words", "f32", "f32", "f32", 64, 64, 16, "", "v_mfma_f32"},
    {"Halves", "bf16", "bf16", "f32", 64, 64, 32, "", "v_mfma_f32", true},
    {"Bytes", "i8", "i8", "i32", 64, 64, 64, "", "v_mfma_i32", true},
    {"ByteFloats", "e4m3fnuz", "e5m2fnuz", "f32", 64, 64, 64, "", "v_mfma_f32", true},
};

class AmdProducts : public testing::TestWithParam<Product> {};

TEST_P(AmdProducts, AgreeByTheirInstruction) {
  const Product& p = GetParam();
  const std::string text = text_of(p);
  const auto artifact = compiled(text, "gfx942");
  ASSERT_TRUE(artifact);
  EXPECT_NE(artifact->assembly.find(p.instruction), std::string::npos) << p.instruction << "\n" << text;
  EXPECT_EQ(artifact->assembly.find("scratch_"), std::string::npos);
  const plan::OpPlan* copy = plan::find_op(artifact->schedule.kernels[0], "gemm/ko/copy#1");
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->transposing.value_or(false), p.transposing);
  if (std::string(p.instruction).starts_with("v_dot")) {
    const auto other = compiled(text, "gfx90a");
    ASSERT_TRUE(other);
    EXPECT_NE(other->assembly.find(p.instruction), std::string::npos) << "gfx90a";
  }
  std::vector<std::string> targets = {"gfx942", "sim:gfx942"};
  // Which has no 8-bit floats.
  if (std::string(p.a) != "e4m3fnuz") targets.insert(targets.end(), {"gfx90a", "sim:gfx90a"});
  Subject subject(text, targets);
  ASSERT_EQ(subject.invalid(), "");
  for (int64_t steps : {0, 1, 3}) {
    Launch launch;
    launch.dims = {{"m", p.m + 5}, {"n", p.n + 3}, {"k", p.k * steps}};
    launch.seed = static_cast<uint64_t>(steps) + 1;
    const Outcome o = subject.compare(launch);
    EXPECT_EQ(o.kind, Outcome::Kind::agree) << o.text << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, AmdProducts, testing::ValuesIn(kProducts),
                         [](const auto& info) { return std::string(info.param.name); });

// In a pipelined loop all products of an iteration stand between the loads of a tile and the wait for them;
// most of them of B, whose loads stand behind the last of its deposits and are waited for by the first.
TEST(AmdLoads, AreUnderWayBesideTheProductsOfAnIteration) {
  for (const Product& p : kProducts) {
    if (!p.transposing) continue;
    const std::string text = text_of(p);
    const auto artifact = compiled(text, "sim:gfx942");
    ASSERT_TRUE(artifact);
    Launch launch;
    launch.dims = {{"m", p.m}, {"n", p.n}, {"k", p.k * 5}};
    LaunchMemory memory;
    ASSERT_EQ(memory.bind(*ir::parse_program(text, "case.tl", Limits()), launch), "");
    const std::vector<GuardedMemory> bytes = memory.fresh(false);
    const auto results = runtime::simulate_artifact(*artifact, memory.slots(bytes), {});
    ASSERT_TRUE(results) << results.error().to_text();
    const sim::Counters& counters = (*results)[0].counters;
    std::map<std::string, int64_t> ahead;  // of the loop's loads; those in front of it wait for each other
    for (const sim::AccessCount& a : counters.accesses) ahead[a.memory] = std::max(ahead[a.memory], a.ahead);
    const int64_t of_iteration = counters.matrix_instructions / 5;
    EXPECT_EQ(ahead["A"], of_iteration) << p.name;
    EXPECT_GE(ahead["B"], of_iteration * 3 / 4) << p.name;
    EXPECT_LE(counters.most_loads, 63) << p.name << ": what the counter holds";
  }
}

// Loops of fewer iterations than their tiles run ahead, as many, and more, of known length and of any.
TEST(AmdLoads, BetweenInstructionsOfLoopsOfAnyLength) {
  for (int stages : {3, 4, 6})
    for (int known : {-1, 0, 1, 2, 5}) {
      std::string text = R"(tl 1 program p
dim m <= 80
dim n <= 80
dim k <= 112
tensor A: f16[m, k] readonly
tensor B: f16[k, n] readonly
tensor C: f32[m, n]
kernel gemm grid (by: ceildiv(m, 64), bx: ceildiv(n, 64)) threads 128 {
  alloc As: shared f16[64, 16]
  alloc Bs: shared f16[16, 64]
  alloc acc: fragment f32[64, 64]
  fill acc, 0.0f32
  pipelined ko in 0 .. )";
      text += (known < 0 ? "ceildiv(k, 16)" : std::to_string(known)) + " stages " + std::to_string(stages) +
              R"( {
    copy A[by * 64 :+ 64, ko * 16 :+ 16] -> As
    copy B[ko * 16 :+ 16, bx * 64 :+ 64] -> Bs
    gemm As, Bs -> acc
  }
  copy acc -> C[by * 64 :+ 64, bx * 64 :+ 64]
}
)";
      const auto artifact = compiled(text, "gfx942");
      ASSERT_TRUE(artifact);
      ASSERT_TRUE(artifact->schedule.kernels[0].loops[0].register_prefetch.value_or(false)) << text;
      Subject subject(text, {"gfx942", "gfx90a", "sim:gfx942", "sim:gfx90a"});
      ASSERT_EQ(subject.invalid(), "");
      for (int64_t k : {0, 7, 24, 48, 80, 112}) {
        if (known >= 0 && k != 80) continue;
        Launch launch;
        launch.dims = {{"m", 70}, {"n", 75}, {"k", k}};
        launch.seed = static_cast<uint64_t>(k) + 1;
        const Outcome o = subject.compare(launch);
        EXPECT_EQ(o.kind, Outcome::Kind::agree) << o.text << "k " << k << "\n" << text;
      }
    }
}

// Two elements of a lane at once.
constexpr const char* kPairs = R"(tl 1 program pairs
dim n divisible 1024
tensor X: f32[n] readonly
tensor Y: f32[n]
tensor H: f16[n]
kernel single grid (b: n // 1024) threads 128 {
  alloc x: fragment f32[1024]
  alloc y: fragment f32[1024]
  copy X[b * 1024 :+ 1024] -> x
  copy Y[b * 1024 :+ 1024] -> y
  parallel i in 1024 {
    y[i] = (x[i] + 3.0f32) * y[i]
  }
  copy y -> Y[b * 1024 :+ 1024]
}
kernel half grid (b: n // 1024) threads 128 {
  alloc h: fragment f16[1024]
  copy H[b * 1024 :+ 1024] -> h
  parallel i in 1024 {
    h[i] = (h[i] + 3.0f16) * h[i]
  }
  copy h -> H[b * 1024 :+ 1024]
}
)";

TEST(AmdPairs, AreDoneAtOnce) {
  for (const char* target : {"gfx942", "gfx90a"}) {
    const auto artifact = compiled(kPairs, target);
    ASSERT_TRUE(artifact);
    for (const char* what : {"add", "mul"})
      for (const char* type : {"f32", "f16"}) {
        const std::string operation = std::string(what) + "_" + type;
        EXPECT_EQ(count(artifact->assembly, "v_pk_" + operation), 4) << target << " " << operation;
        EXPECT_EQ(count(artifact->assembly, "v_" + operation), 0) << target << " " << operation;
      }
  }
  Subject subject(kPairs, {"gfx942", "gfx90a"});
  for (uint64_t seed : {1, 2}) {
    Launch launch;
    launch.dims = {{"n", 2048}};
    launch.seed = seed;
    launch.data = seed == 1 ? Data::reals : Data::bit_patterns;
    const Outcome o = subject.compare(launch);
    EXPECT_EQ(o.kind, Outcome::Kind::agree) << o.text;
  }
}

}  // namespace
}  // namespace tilegen::differential
