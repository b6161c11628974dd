// Products of few blocks and long loops, which blocks of a cluster share: as planned, on every executor.
#include "gemm_program.h"
#include "hopper_plan.h"
#include "matrix.h"

namespace tilegen::differential {
namespace {

// Tiles of 64 x 64 x 64, and sizes that planning knows.
struct FewBlocks : GemmProgram {
  int64_t rows, columns, depth;
  FewBlocks(int64_t rows, int64_t columns, int64_t depth) : rows(rows), columns(columns), depth(depth) {
    tb = true;
    k = 64;
    threads = 128, stages = 4;
  }
  FewBlocks& of(const char* in, const char* of_sum, const char* result) {
    a = b = in, sum = of_sum, out = result;
    return *this;
  }
};

std::string text_of(const FewBlocks& p) {
  const auto known = [](const char* name, int64_t size) {
    return std::pair(std::string("dim ") + name,
                     std::string("param ") + name + " in {" + std::to_string(size) + "}");
  };
  std::string text = gemm_text(p);
  for (const auto& [open, closed] : {known("m", p.rows), known("n", p.columns), known("k", p.depth)})
    text.replace(text.find(open), open.size(), closed);
  return text;
}

void run(const FewBlocks& p) {
  const std::string text = text_of(p);
  plan::KernelSchedule planned;
  ASSERT_EQ(plan_on_hopper(text, planned), "");
  ASSERT_TRUE(planned.split && planned.split->parts > 1) << text;
  std::vector<std::string> targets = executable_targets();
  targets.push_back("sim:sm_90a");
  Subject subject(text, covering(std::move(targets), text));
  ASSERT_EQ(subject.invalid(), "") << text;
  Launch l;
  l.magnitude = 2;
  l.bound = Bound::of_sum(*ir::dtype_from_name(p.out), 4, 1);
  expect_agree(subject, text, l);
}

TEST(SharedLoops, OfOneTileAndMore) {
  run({64, 64, 4096});
  run(FewBlocks(128, 192, 8192).of("bf16", "f32", "bf16"));
}

// Parts of other lengths, and tiles that hang over.
TEST(SharedLoops, OfRaggedShapes) { run({100, 72, 3000}); }

TEST(SharedLoops, OfTwoWarpgroups) {
  FewBlocks p(128, 64, 4096);
  p.m = 128, p.threads = 256;
  run(p.of("f16", "f32", "f32"));
}

TEST(SharedLoops, OfWholeNumbers) { run(FewBlocks(64, 64, 8192).of("i8", "i32", "i32")); }

// What follows the loop is the first block's alone.
TEST(SharedLoops, WithWorkOnTheSums) {
  FewBlocks p = FewBlocks(64, 64, 4096).of("f16", "f32", "f32");
  p.epilogue = "  parallel i, j in 64, 64 {\n    c[i, j] = max(c[i, j] * 0.5f32 + 1.0f32, 0.0f32)\n  }\n";
  run(p);
}

}  // namespace
}  // namespace tilegen::differential
