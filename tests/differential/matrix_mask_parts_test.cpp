// Masks over a tile whose warps lie on one side of it, for most of their elements: conditions, their order
// and sense, types, thread numbers, layouts of products and rows, distances from the diagonal.
#include "matrix.h"

namespace tilegen::differential {
namespace {

// Weights of what is seen, multiplied by X: the operand stays in the registers of the product's layout.
constexpr const char* kWeights = R"(tl 1 program p
dim n >= 1
tensor A: f32[n, 64] readonly
tensor W: f16[64, 64] readonly
tensor X: f16[64, 32] readonly
tensor O: f32[n, 64, 32]
kernel k grid (b: n) threads $threads {
  alloc w: fragment f16[64, 64]
  alloc a: shared f32[64]
  alloc x: shared f16[64, 32]
  alloc o: fragment f32[64, 32]
  copy A[b :+ 1, 0 :+ 64] -> a
  copy W -> w
  copy X -> x
  parallel i, j in 64, 64 {
    w[i, j] = $weight
  }
  gemm w, x -> o {clear}
  copy o -> O[b :+ 1, 0 :+ 64, 0 :+ 32]
}
)";

std::string seen(const std::string& condition) {
  return "select(" + condition +
         ", w[i, j] * cast(f16, exp2(min(a[i] - a[j], 4.0f32)) * exp2(min(a[j], 3.0f32)) * "
         "exp2(min(a[j] - a[i], 2.0f32))), 0.0f16)";
}

std::vector<Launch> launches(uint64_t seed) {
  Launch l;
  l.seed = seed;
  l.dims = {{"n", 5}};
  l.magnitude = 2;
  return {l};
}

TEST(MaskParts, Conditions) {
  uint64_t at = 0;
  for (const std::string condition :
       {"j <= i", "j < i", "i >= j", "i > j", "i < j", "j - i <= 7", "i - j < 20 and j <= i", "j == i",
        "j != i", "j <= i or j == i + 9", "not (i < j)", "j + b * 16 <= i", "j <= i + b", "2 * j <= i",
        "j // 8 <= i // 8", "i <= 63", "j > 63", "j <= 40", "i < 17"})
    for (int64_t threads : {128, 256}) {
      ++at;
      if (!long_run() && threads == 256 && at % 3 != 0) continue;
      SCOPED_TRACE(condition);
      expect_agree(replaced(kWeights, {{"threads", std::to_string(threads)}, {"weight", seen(condition)}}),
                   launches(at));
      if (HasFailure()) return;
    }
}

// More than one select, inside each other, beside each other, of two differences; and none that a warp knows.
TEST(MaskParts, SeveralSelects) {
  for (const std::string& weight :
       {seen("j <= i") + " + select(j == i, 2.0f16, 0.0f16)",
        "select(j < i, " + seen("i - j < 33") + ", select(j == i, 1.0f16, 0.5f16))",
        seen("j <= i") + " * select(i + j < 64, 1.0f16, cast(f16, exp2(min(a[j], 3.0f32))))",
        "select(a[i] < a[j], " + seen("j <= i") + ", 1.0f16)",
        // Rows that a warp has, or has none of, beside a part's mask.
        "select(i < 32, " + seen("j <= i") + ", w[i, j] * 2.0f16)",
        "select(i < 37, w[i, j] * cast(f16, a[j]), " + seen("j + 3 <= i") + ")",
        "select(i < 16 or i >= 48, " + seen("j > i") + ", select(i < 32, w[i, j], " + seen("j <= 40") + "))",
        "select(i == 20, 1.0f16, select(32 <= i, " + seen("j < 16") + ", " + seen("i <= j") + "))",
        "select(i + b * 16 < 32, " + seen("j <= i") + ", w[i, j])"})
    expect_agree(replaced(kWeights, {{"threads", "128"}, {"weight", weight}}), launches(3));
}

// Elements of rows that a warp holds whole, a register tile that is read where it is written, and branches.
TEST(MaskParts, RowsAndBranches) {
  for (int64_t threads : {32, 64, 128})
    for (const std::string type : {"f32", "f16", "i32", "f64"})
      expect_agree(replaced(R"(tl 1 program p
dim n >= 1
tensor A: $type[n, 32, 96] readonly
tensor O: $type[n, 32, 96]
kernel k grid (b: n) threads $threads {
  alloc x: fragment $type[32, 96]
  alloc y: fragment $type[32, 96]
  copy A[b :+ 1, 0 :+ 32, 0 :+ 96] -> x
  parallel i, j in 32, 96 {
    y[i, j] = select(j <= i + 32, (((((((x[i, j] * 3$type + 1$type) * x[i, j] - 2$type) * x[i, j] + 1$type) * x[i, j] - 3$type) * x[i, j] + 2$type) * x[i, j] + 5$type) * x[i, j] - 1$type) * x[i, j], 0$type)
  }
  parallel i, j in 32, 96 {
    if j < i * 2 {
      y[i, j] = y[i, j] + max(x[i, j] * x[i, j], y[i, j] * 2$type)
    }
  }
  copy y -> O[b :+ 1, 0 :+ 32, 0 :+ 96]
}
)",
                            {{"type", type}, {"threads", std::to_string(threads)}}),
                   launches(static_cast<uint64_t>(threads)));
}

}  // namespace
}  // namespace tilegen::differential
