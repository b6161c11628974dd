// What may follow a loop whose blocks each take a share of the sums, what is cut there, and why others may
// not.
#include "analysis/epilogue_cut.h"

#include <gtest/gtest.h>

#include "check/check_program.h"
#include "ir/text.h"

namespace tilegen::analysis {
namespace {

// Tiles that are cut and their dimensions, or the refusal.
std::string cut(const std::string& after, int64_t parts = 2) {
  auto p = ir::parse_program(R"(tl 1 program p
dim n <= 4096
tensor A: f16[64, n] readonly
tensor B: f16[n, 128] readonly
tensor C: f32[64, 128]
tensor D: f32[64, 128]
tensor T: f32[128, 64]
tensor V: f32[128]
tensor R: f32[64]
kernel k grid (b: 1) threads 128 {
  alloc a: shared f16[64, 64]
  alloc s: shared f16[64, 128]
  alloc c: fragment f32[64, 128]
  alloc d: fragment f32[64, 128]
  alloc h: fragment f16[64, 128]
  alloc v: fragment f32[128]
  alloc r: fragment f32[64]
  fill c, 0.0f32
  pipelined ko in 0 .. ceildiv(n, 64) {
    copy A[0 :+ 64, ko * 64 :+ 64] -> a
    copy B[ko * 64 :+ 64, 0 :+ 128] -> s
    gemm a, s -> c
  }
)" + after + "}\n",
                             "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  if (!p) return "";
  for (const Diagnostic& d : check::check_program(*p, Limits{})) ADD_FAILURE() << d.to_text();
  for (ir::StmtId id : p->kernels[0].body) {
    const auto* loop = p->as<ir::Loop>(id);
    if (!loop || loop->kind == ir::LoopKind::parallel) continue;
    const EpilogueCut found = epilogue_cut(*p, 0, id, parts);
    std::string text = found.refusal;
    for (const auto& [tile, dim] : found.tiles)
      text += (text.empty() ? "" : ", ") + p->buffer(tile).name + " " + std::to_string(dim);
    return text;
  }
  return "no loop";
}

TEST(EpilogueCut, CopiesAndLoopsOverElements) {
  EXPECT_EQ(cut("  copy c -> C\n"), "c 1");
  EXPECT_EQ(cut("  parallel i, j in 64, 128 {\n    c[i, j] = max(c[i, j], 0.0f32)\n  }\n  copy c -> h\n"
                "  parallel i, j in 64, 128 {\n    C[i, j] = cast(f32, h[i, j])\n  }\n"),
            "c 1, h 1");
  EXPECT_EQ(cut("  parallel i, j in 64, 128 {\n    T[j, i] = c[i, j]\n  }\n"), "c 1");
}

// A row of factors goes with the columns; what is one for each row is whole in every block.
TEST(EpilogueCut, OfWhatIsLoadedBeside) {
  EXPECT_EQ(cut("  copy V -> v\n  copy R -> r\n"
                "  parallel i, j in 64, 128 {\n    C[i, j] = c[i, j] * r[i] + v[j]\n  }\n"),
            "c 1, v 0");
  EXPECT_EQ(cut("  copy C -> d\n  parallel i, j in 64, 128 {\n    c[i, j] = c[i, j] + d[i, j]\n  }\n"
                "  copy c -> C\n"),
            "c 1, d 1");
}

// Rows, where columns are mixed.
TEST(EpilogueCut, AlongRows) {
  EXPECT_EQ(cut("  reduce c -> r {axis=1}\n  copy r -> R\n"),
            "k/reduce#0 is no loop over elements, copy or fill");
  EXPECT_EQ(cut("  parallel i, j in 64, 64 {\n    C[i, j] = c[i, 2 * j]\n  }\n"), "c 0");
}

// Each row of a tensor is read by the share that writes it.
TEST(EpilogueCut, AlongRowsOfATensorThatIsReadToo) {
  EXPECT_EQ(cut("  parallel i, j in 64, 128 {\n    c[i, j] = c[i, j] + C[i, (j + 1) % 128]\n  }\n"
                "  copy c -> C\n"),
            "c 0");
}

TEST(EpilogueCut, RefusesByName) {
  EXPECT_EQ(cut("  copy c -> C\n", 3), "3 blocks do not divide the 128 of 'c'");
  EXPECT_EQ(cut("  parallel i in 64 {\n    R[i] = c[i, 2 * i]\n  }\n"), "k/i reads 'c' across its elements");
  EXPECT_EQ(cut("  parallel i, j in 64, 128 {\n    atomic_add(V[j], c[i, j])\n  }\n"),
            "k/i.j changes elements in an order of its own");
  EXPECT_EQ(cut("  copy c -> C\n  fill r, 1.0f32\n  copy r -> R\n"), "k/copy#1 stores what is no sum");
  EXPECT_EQ(cut("  if n > 64 {\n    copy c -> C\n  }\n"), "k/if#0 is no loop over elements, copy or fill");
}

// A block would read what another one writes.
TEST(EpilogueCut, RefusesTensorsReadElsewhere) {
  const std::string elsewhere = "tensor 'C' is read at other places than it is written";
  EXPECT_EQ(cut("  parallel i, j in 64, 128 {\n    c[i, j] = c[i, j] + C[0, 0]\n  }\n  copy c -> C\n"),
            elsewhere);
  EXPECT_EQ(cut("  copy c -> C\n  copy C[0 :+ 1, 0 :+ 64] -> r\n"), elsewhere);
  EXPECT_EQ(cut("  parallel i, j in 64, 128 {\n    c[i, j] = c[i, j] + C[(i + 1) % 64, (j + 1) % 128]\n  }\n"
                "  copy c -> C\n")
                .find("tensor 'C' is read at other places than it is written"),
            0u);
}

}  // namespace
}  // namespace tilegen::analysis
