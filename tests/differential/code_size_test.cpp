// The size of the code that programs become on a GPU: ptxas, and the driver, take time in proportion to it,
// and more where many registers are in use at once.
#include <gtest/gtest.h>

#include <algorithm>

#include "driver/fallback_version.h"
#include "ir/text.h"
#include "random_program.h"
#include "support/diag_codes.h"

namespace tilegen::differential {
namespace {

using Compiled = Expected<std::shared_ptr<const driver::Artifact>>;

Compiled compiled(const std::string& text, const std::string& target) {
  auto p = ir::parse_program(text, "size.tl", Limits{});
  if (!p) return p.error();
  return driver::compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target(target),
                         {});
}

int64_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// Of all code, that for arguments which the guards refuse too.
std::vector<int64_t> lines_of_ptx(const Compiled& made) {
  std::vector<int64_t> list;
  std::shared_ptr<const driver::Artifact> a = *made;
  while (a) {
    list.push_back(lines(a->code));
    if (!a->fallback) break;
    auto next = a->fallback->get();
    if (!next) break;
    a = *next;
  }
  return list;
}

std::string notes_of(const Compiled& made) {
  std::string text;
  for (const plan::KernelSchedule& k : (*made)->schedule.kernels)
    for (const plan::Note& n : k.notes) text += n.path + " " + n.text + "\n";
  return text;
}

// How many of these programs compile, each to so many lines.
int bounded(std::initializer_list<uint64_t> seeds, int64_t most) {
  int programs = 0;
  for (const char* target : {"sm_80", "sm_90a"})
    for (uint64_t seed : seeds) {
      const auto made = compiled(random_case(seed).text, target);
      if (!made) continue;
      ++programs;
      for (int64_t count : lines_of_ptx(made)) EXPECT_LE(count, most) << "seed " << seed << " on " << target;
    }
  return programs;
}

// Programs that make the most code, but for products of f32 in registers, which are written out.
TEST(CodeSize, RandomProgramsAreBounded) {
  EXPECT_GE(bounded({673, 729, 726, 748, 620, 664, 640, 577, 654, 692}, 6000), 18);
}

// ... those of up to eight products of 8-bit floats.
TEST(CodeSize, ProductsOf8BitFloatsAreBounded) { EXPECT_GE(bounded({606, 602, 618, 283}, 10000), 8); }

// Types that the target has no matrix form of: a loop, also where the program keeps operands in registers.
TEST(CodeSize, ProductsWithoutAMatrixFormAreLoops) {
  for (const std::string type : {"e4m3", "e5m2", "e4m3fnuz"})
    for (const std::string a : {"shared", "fragment"})
      for (const std::string w : {"shared", "fragment"}) {
        const std::string text =
            "tl 1 program product\ntensor A: " + type + "[64, 64] readonly\ntensor B: " + type +
            "[64, 64] readonly\ntensor C: f32[64, 64]\n" +
            "kernel k grid (b: 1) threads 128 {\n  alloc a: " + a + " " + type + "[64, 64]\n  alloc w: " + w +
            " " + type + "[64, 64]\n" + "  alloc c: fragment f32[64, 64]\n  copy A -> a\n  copy B -> w\n" +
            "  gemm a, w -> c {transpose_b, clear}\n  copy c -> C\n}\n";
        const auto made = compiled(text, "sm_80");
        ASSERT_TRUE(made) << made.error().to_text();
        for (int64_t count : lines_of_ptx(made)) EXPECT_LE(count, 1200) << text;
        EXPECT_EQ(notes_of(made).find("loop over k") != std::string::npos, a == "fragment" || w == "fragment")
            << notes_of(made);
        const Outcome o = compare_executors({text, {}, {"host", "sim:sm_80", "sim:gfx90a"}});
        EXPECT_EQ(o.kind, Outcome::Kind::agree) << o.text;
      }
}

constexpr const char* kLargeLocal = R"(tl 1 program large_local
dim n
tensor X: f32[n, 2688] readonly
tensor Y: f32[n, 2688]

kernel k grid (b: n) threads 128 {
  alloc l: local f32[2688]
  copy X[b :+ 1, 0 :+ 2688] -> l
  copy l -> Y[b :+ 1, 0 :+ 2688]
}
)";

TEST(CodeSize, LocalBuffersOfManyElementsAreInSharedMemory) {
  const auto made = compiled(kLargeLocal, "sm_80");
  ASSERT_TRUE(made) << made.error().to_text();
  EXPECT_TRUE((*made)->schedule.kernels[0].values[0].memory);
  EXPECT_NE(notes_of(made).find(
                "k:l held in shared memory: each thread would have a copy of all of it in 2688 registers"),
            std::string::npos)
      << notes_of(made);
  for (int64_t count : lines_of_ptx(made)) EXPECT_LE(count, 400);
}

std::string large_fragment(int64_t rows, int64_t columns, int64_t threads) {
  const std::string r = std::to_string(rows), c = std::to_string(columns);
  return "tl 1 program large_fragment\ndim n\ntensor X: f32[n, " + c + "] readonly\ntensor Y: f32[n, " + c +
         "]\n\nkernel k grid (b: ceildiv(n, " + r + ")) threads " + std::to_string(threads) +
         " {\n  alloc f: fragment f32[" + r + ", " + c + "]\n  copy X[b * " + r + " :+ " + r + ", 0 :+ " + c +
         "] -> f\n  copy f -> Y[b * " + r + " :+ " + r + ", 0 :+ " + c + "]\n}\n";
}

// Loops over what lies in memory are rolled.
TEST(CodeSize, FragmentsOfManyRegistersAreInSharedMemory) {
  const auto made = compiled(large_fragment(96, 128, 32), "sm_80");
  ASSERT_TRUE(made) << made.error().to_text();
  EXPECT_NE(notes_of(made).find("k:f held in shared memory: each thread would have 384 registers of it"),
            std::string::npos)
      << notes_of(made);
  for (int64_t count : lines_of_ptx(made)) EXPECT_LE(count, 300);
}

TEST(CodeSize, FragmentsThatSharedMemoryDoesNotHoldKeepTheirRegisters) {
  const auto made = compiled(large_fragment(256, 256, 128), "sm_80");
  ASSERT_TRUE(made) << made.error().to_text();
  EXPECT_TRUE((*made)->schedule.kernels[0].values[0].fragment);
  EXPECT_NE(notes_of(made).find("k:f has 512 registers of each thread: shared memory does not hold it"),
            std::string::npos)
      << notes_of(made);
  const Outcome o =
      compare_executors({large_fragment(256, 256, 128), {.dims = {{"n", 300}}}, {"sim:sm_80", "sim:sm_90a"}});
  EXPECT_EQ(o.kind, Outcome::Kind::agree) << o.text;
}

TEST(CodeSize, FragmentsOfMoreRegistersAreRefused) {
  const auto refused = compiled(large_fragment(512, 512, 128), "sm_80");
  ASSERT_FALSE(refused);
  const Diagnostic& d = refused.error().diagnostics[0];
  EXPECT_EQ(d.code, DiagCode::limit_memory);
  EXPECT_EQ(d.op, "k:f");
  EXPECT_NE(d.message.find("2048 registers"), std::string::npos) << d.message;
  EXPECT_EQ(d.location.line, 7);

  std::string gemm = R"(tl 1 program large_gemm
tensor A: f16[512, 64] readonly
tensor B: f16[64, 512] readonly
tensor C: f32[512, 512]

kernel k grid (b: 1) threads 128 {
  alloc a: shared f16[512, 64]
  alloc w: shared f16[64, 512]
  alloc c: fragment f32[512, 512]
  copy A -> a
  copy B -> w
  gemm a, w -> c {clear}
  copy c -> C
}
)";
  const auto accumulator = compiled(gemm, "sm_80");
  ASSERT_FALSE(accumulator);
  EXPECT_EQ(accumulator.error().diagnostics[0].code, DiagCode::limit_memory);
  EXPECT_EQ(accumulator.error().diagnostics[0].op, "k:c");
}

// Work on 256 registers that depends on where an element lies; `bounded`: their stores have a bound of their
// own.
std::string masked(int operations, bool bounded = false) {
  std::string value = "f[i, j]";
  for (int i = 0; i < operations; ++i)
    value = "(" + value + " * " + std::to_string(i + 2) + ".0f32 + f[i, j])";
  const std::string leave =
      bounded
          ? "  parallel i, j in 256, 128 {\n    if x * 128 + j < w {\n      Y[y * 256 + i, x * 128 + j] = " +
                value + "\n    }\n  }\n}\n"
          : "  copy f -> Y[y * 256 :+ 256, x * 128 :+ 128]\n}\n";
  return R"(tl 1 program masked
dim m
dim n
dim w
tensor X: f32[m, n] readonly
tensor Y: f32[m, n]

kernel k grid (y: ceildiv(m, 256), x: ceildiv(n, 128)) threads 128 {
  alloc f: fragment f32[256, 128]
  copy X[y * 256 :+ 256, x * 128 :+ 128] -> f
  parallel i, j in 256, 128 {
    f[i, j] = select(y * 256 + i >= x * 128 + j, )" +
         value + ", 0.0f32)\n  }\n" + leave;
}

int branches(const Compiled& made, const std::string& op) {
  int count = 0;
  for (const thread::Stmt& s : (*made)->kernels[0].stmts)
    count += s.origin == op && std::holds_alternative<thread::Branch>(s.node);
  return count;
}

TEST(CodeSize, MasksAreNotSplitWhereTheFormsAreLarge) {
  const auto small = compiled(masked(1), "sm_80"), large = compiled(masked(20), "sm_80");
  ASSERT_TRUE(small && large);
  EXPECT_EQ(branches(small, "k/i.j"), 1);
  EXPECT_EQ(notes_of(small).find("no form of its own"), std::string::npos) << notes_of(small);
  EXPECT_EQ(branches(large, "k/i.j"), 0);
  EXPECT_NE(notes_of(large).find("k/i.j no form of its own for blocks that the mask leaves alone"),
            std::string::npos)
      << notes_of(large);
}

// ... where vectors have bounds within them: all blocks go element by element then.
TEST(CodeSize, EdgesAreNotSplitWhereTheFormsAreLarge) {
  const auto small = compiled(masked(1, true), "sm_80"), large = compiled(masked(20, true), "sm_80");
  ASSERT_TRUE(small) << small.error().to_text();
  ASSERT_TRUE(large) << large.error().to_text();
  EXPECT_EQ(branches(small, "k/i.j#1"), 1);
  EXPECT_EQ(branches(large, "k/i.j#1"), 0);
  EXPECT_NE(notes_of(large).find("k/i.j#1 no form of its own for blocks inside the tensors"),
            std::string::npos)
      << notes_of(large);
}

}  // namespace
}  // namespace tilegen::differential
