// Products of few blocks and long loops, which blocks of a cluster share: as planned, on every executor.
#include "gemm_program.h"
#include "hopper_plan.h"
#include "launch_memory.h"
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

using Bytes = std::vector<std::vector<std::byte>>;

// What the simulator leaves in memory, which is near what the interpreter does.
Bytes met(const std::string& text, const std::string& through, int64_t parts, const Launch& l) {
  plan::Schedule given;
  given.kernels.push_back({.kernel = "gemm"});
  given.kernels[0].split = plan::SplitPlan{"gemm/ko", parts, "", through};
  Subject subject(text, {"sim:sm_90a"});
  subject.give(given);
  Bytes left;
  const Outcome o =
      subject.compare(l, [&](const LaunchMemory& memory, const std::vector<GuardedMemory>& expected,
                             const std::vector<GuardedMemory>& got) {
        for (const GuardedMemory& m : got) left.emplace_back(m.bytes().begin(), m.bytes().end());
        return memory.compare(expected, got, l.bound);
      });
  EXPECT_TRUE(o.is_fine()) << through << ", " << parts << " parts: " << o.text << "\n" << text;
  return left;
}

// Whoever sums: the first block for all, or each its share, the sums are the same in every bit.
void expect_same_bits(const FewBlocks& p, std::vector<int64_t> parts = {2, 4, 8}) {
  const std::string text = text_of(p);
  Launch l;
  if (take_case) return take_case(text, l);
  l.data = Data::reals;
  l.magnitude = 1;
  l.bound = Bound::of_sum(*ir::dtype_from_name(p.out), p.depth, 1);
  for (int64_t n : parts) {
    const Bytes shares = met(text, "cluster_shares", n, l);
    EXPECT_FALSE(shares.empty());
    EXPECT_TRUE(shares == met(text, "cluster", n, l)) << n << " parts of\n" << text;
  }
}

TEST(SharedLoops, SharesAreTheSameSums) {
  expect_same_bits(FewBlocks(64, 64, 1024).of("f16", "f32", "f32"));
  expect_same_bits(FewBlocks(100, 72, 1000).of("f16", "f32", "f16"));
  FewBlocks wide(128, 256, 512);
  wide.m = 128, wide.n = 128, wide.threads = 256;
  expect_same_bits(wide.of("bf16", "f32", "bf16"), {2, 4, 8});
  FewBlocks tall(256, 64, 512);
  tall.m = 256, tall.threads = 128;  // two rows of instructions a warpgroup: columns lie below rows
  expect_same_bits(tall.of("f16", "f32", "f16"), {2, 4});
  expect_same_bits(FewBlocks(64, 64, 1024).of("i8", "i32", "i32"), {2, 4});
}

// Columns of factors are cut, rows of them are not, and what is computed goes by the columns of the tensor.
TEST(SharedLoops, SharesOfWorkOnTheSums) {
  FewBlocks p = FewBlocks(64, 128, 512).of("f16", "f32", "f32");
  p.tensors = "tensor V: f32[n] readonly\ntensor R: f32[m] readonly\n";
  p.allocs = "  alloc v: fragment f32[$N]\n  alloc r: fragment f32[$M]\n";
  p.epilogue =
      "  copy V[bx * $N :+ $N] -> v\n  copy R[by * $M :+ $M] -> r\n"
      "  parallel i, j in $M, $N {\n    c[i, j] = select(bx * $N + j < by * $M + i + 70, max(c[i, j] * r[i] "
      "+ "
      "v[j], 0.0f32), 1.0f32)\n  }\n";
  expect_same_bits(p);
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
