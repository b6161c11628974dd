// Who holds what a loop reads of a fragment at a computed index: the thread itself, a lane of its warp, or
// shared memory.
#include "analysis/lane_reads.h"
#include "analysis/projection.h"
#include "inferred.h"

namespace tilegen::infer {
namespace {

struct Row {
  const char* index;
  int64_t rows = 64, width = 64;  // of x; the loop has 64 rows
  int64_t columns = 64;           // of the loop
};

std::string loop_over(const Row& r) {
  const std::string x = "f32[" + std::to_string(r.rows) + ", " + std::to_string(r.width) + "]",
                    y = "f32[64, " + std::to_string(r.columns) + "]";
  return "tl 1 program p\ntensor X: " + x + " readonly\ntensor Y: " + y +
         "\nkernel k grid (g: 1) threads 128 {\n alloc x: fragment " + x + "\n alloc y: fragment " + y +
         "\n copy X -> x\n parallel i, j in 64, " + std::to_string(r.columns) + " { y[i, j] = x[" + r.index +
         "] }\n copy y -> Y\n}\n";
}

// "thread", "lane" with the shuffles, or "memory".
std::string holder_of(const Row& row, const char* target) {
  const Inferred k(loop_over(row), nullptr, true, target);
  const plan::ValuePlan& x = k.value("x");
  if (!x.fragment) return "memory";
  EXPECT_TRUE(k.result().conversions.empty()) << row.index;
  const analysis::KernelOp& loop = k.ops().ops[analysis::OpId(1)];
  const layout::Fragment& iteration = *k.op(loop.path.substr(2)).iteration;
  for (const ops::ElementAccess& a : loop.view.accesses) {
    if (a.write) continue;
    if (analysis::covers(*x.fragment, iteration, a)) return "thread";
    const auto shuffles =
        analysis::lane_shuffles(*x.fragment, iteration, a, ir::DType::f32, *target::find_target(target));
    return shuffles ? "lane " + std::to_string(*shuffles) : "nobody";
  }
  return "";
}

TEST(ComputedIndices, AreFollowedToWhoHoldsTheElement) {
  const std::pair<Row, const char*> table[] = {
      {{"i, j // 2", 64, 32}, "thread"},
      {{"i, (j - j % 2) // 2", 64, 32}, "thread"},
      {{"i, j >> 1", 64, 32}, "thread"},
      {{"i, (j // 2) % 16", 64, 16}, "thread"},
      {{"i, j // 8 * 4 + j % 4", 64, 32}, "thread"},
      {{"i, j // 16", 64, 4}, "thread"},
      {{"i, j % 64", 64, 64, 128}, "thread"},
      {{"i, j & 31", 64, 32}, "thread"},
      {{"i // 2, j", 32, 64}, "thread"},
      {{"i % 16, j", 16, 64}, "thread"},
      {{"i // 4 % 4, j // 2", 4, 32}, "thread"},
      {{"i, 2 * j", 64, 128}, "thread"},
      {{"i, 2 * j + 1", 64, 128}, "thread"},
      {{"i, j + 64", 64, 128}, "thread"},
      {{"2 * i + 1, j", 128, 64}, "thread"},
      {{"i, 1", 64, 2}, "thread"},
      {{"i, j ^ 1"}, "thread"},
      {{"i, j ^ 3"}, "thread"},
      {{"i, j ^ 32"}, "thread"},
      {{"i, (j + 32) % 64"}, "thread"},
      {{"i, (j + 16) % 64"}, "thread"},
      {{"i, j // 4 * 4 + 3 - j % 4"}, "thread"},
      {{"i, j // 4 * 4 + (j + 1) % 4"}, "thread"},
      {{"i ^ 32, j"}, "thread"},
      {{"i, (j ^ 32) // 2", 64, 32}, "thread"},
      {{"i, 63 - j"}, "lane 1"},
      {{"i, (j + 1) % 64"}, "lane 1"},
      {{"i, (j + 63) % 64"}, "lane 1"},
      {{"i, (j + 62) & 63"}, "lane 1"},
      {{"i, j * j % 64"}, "memory"},
      {{"i, min(j + 1, 63)"}, "memory"},
      {{"i, (i + j) % 64"}, "memory"},
      {{"i, j ^ (j >> 1)"}, "memory"},
      {{"j, i"}, "thread"},
  };
  for (const auto& [row, holder] : table) EXPECT_EQ(holder_of(row, "sm_80"), holder) << row.index;
}

// Layouts follow what an index is, not how it is written.
TEST(ComputedIndices, EqualOnesHaveOneLayout) {
  const std::vector<Row> groups[] = {
      {{"i, j // 2", 64, 32}, {"i, (j - j % 2) // 2", 64, 32}, {"i, j >> 1", 64, 32}},
      {{"i, j ^ 32"}, {"i, (j + 32) % 64"}, {"i, (j - 32) & 63"}},
      {{"i, 63 - j"}, {"i, j ^ 63"}},
  };
  for (const auto& group : groups) {
    const Inferred first(loop_over(group[0]));
    for (const Row& row : group) {
      const Inferred k(loop_over(row));
      EXPECT_TRUE(k.fragment("x").equivalent(first.fragment("x"))) << row.index;
      EXPECT_TRUE(k.fragment("y").equivalent(first.fragment("y"))) << row.index;
    }
  }
}

// What a product's instructions have laid out: neighbours and halves of a row in one thread.
TEST(ComputedIndices, OfAccumulators) {
  const auto product = [](const std::string& index, const std::string& columns) {
    return "tl 1 program p\ntensor A: f16[64, 64] readonly\ntensor B: f16[64, 64] readonly\ntensor C: "
           "f32[64, " +
           columns +
           "]\nkernel k grid (g: 1) threads 128 {\n alloc a: shared f16[64, 64]\n alloc b: shared " +
           "f16[64, 64]\n alloc acc: fragment f32[64, 64]\n copy A -> a\n copy B -> b\n gemm a, b -> acc " +
           "{clear}\n parallel i, j in 64, " + columns + " { C[i, j] = acc[" + index + "] }\n}\n";
  };
  for (const auto& [index, columns] :
       {std::pair("i, j ^ 1", "64"), std::pair("i, j // 2", "128"), std::pair("i, j % 64", "128")}) {
    const Inferred k(product(index, columns));
    EXPECT_TRUE(k.result().conversions.empty()) << index;
    EXPECT_TRUE(k.result().notes.empty()) << index << ": " << k.result().notes.front().text;
    EXPECT_TRUE(k.value("acc").fragment.has_value()) << index;
  }
  // Elsewhere the loop works on a copy, and its price is told.
  const Inferred k(product("i, (i + j) % 64", "64"));
  ASSERT_EQ(k.result().notes.size(), 1u);
  EXPECT_NE(k.result().notes[0].text.find("cycles"), std::string::npos) << k.result().notes[0].text;
}

// What lanes hand over is said in the plan.
TEST(ComputedIndices, ShufflesAreNamed) {
  const Inferred k(loop_over({"i, (j + 1) % 64"}));
  EXPECT_NE(k.op("i.j").reason.find("1 shuffle each"), std::string::npos) << k.op("i.j").reason;
}

// A root may leave what its threads read at computed indices to others: it is no cheaper for what is not
// counted yet. Rows of 256 elements by 32 of 64 lanes; by 16 each wave would do the work of all.
TEST(ComputedIndices, RootsAreJudgedWithWhatTheyLeaveOpen) {
  const Inferred in(R"(tl 1 program p
tensor X: f16[8, 256] readonly
tensor Y: f32[8]
fn welford(mean: f32, squares: f32, count: f32, mean_2: f32, squares_2: f32, count_2: f32) -> (f32, f32, f32) {
  let total = count + count_2
  let share = count_2 / max(total, 1)
  let apart = mean_2 - mean
  return mean + apart * share, squares + squares_2 + apart * apart * count * share, total
}
kernel k grid (b: 1) threads 256 {
  alloc x: fragment f32[8, 256]
  alloc zero: fragment f32[8, 256]
  alloc one: fragment f32[8, 256]
  alloc mean: fragment f32[8]
  alloc squares: fragment f32[8]
  alloc count: fragment f32[8]
  fill zero, 0
  copy X -> x
  parallel i, j in 8, 256 { one[i, j] = select(j < 200, 1.0f32, 0) }
  reduce x, zero, one -> mean, squares, count by welford {axis=1}
  copy squares -> Y
}
)",
                    nullptr, true, "gfx942");
  for (const char* name : {"x", "zero", "one"}) EXPECT_EQ(in.fragment(name).replicas(), 1) << name;
}

}  // namespace
}  // namespace tilegen::infer
