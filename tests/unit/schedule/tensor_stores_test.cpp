// What products with a copy engine have in memory and registers: staged tiles of stores, accumulators,
// channels, boxes.
#include <algorithm>

#include "analysis/epilogue_tile.h"
#include "hopper_plans.h"
#include "infer/infer_layouts.h"
#include "layout/tensor_tile.h"

namespace tilegen::schedule {
namespace {

using plan::Engine;

TEST(TensorStores, GiveWayToStagesFirstByPassesThenAltogether) {
  struct Row {
    int64_t m, n, k, stages, pass, fit;
    const char* c;
  };
  for (const Row& r : {Row{128, 256, 64, 3, 256, 3, "f16"},  // the whole width fits
                       Row{128, 256, 64, 4, 128, 4, "f16"},  // half of it
                       Row{128, 256, 64, 5, 128, 4, "f16"},  // a stage less
                       Row{128, 192, 128, 2, 192, 2, "f16"}, Row{128, 256, 128, 2, 128, 2, "f16"},
                       Row{256, 128, 128, 2, 32, 2, "f32"},
                       Row{128, 256, 144, 2, 0, 2, "f32"}}) {  // 2 stages leave less than a box
    auto p = program_from(gemm_text(r.m, r.n, r.k, r.stages, 256, r.c));
    ASSERT_TRUE(p);
    const plan::Schedule s = planned(*p);
    const std::string what = std::to_string(r.m) + "x" + std::to_string(r.n) + "x" + std::to_string(r.k);
    const plan::OpPlan& store = *plan::find_op(s.kernels[0], "gemm/copy#0");
    EXPECT_EQ(store.engine, r.pass > 0 ? Engine::tensor_copy : Engine::vector_copy) << what;
    EXPECT_EQ(store.epilogue_columns, r.pass) << what;
    EXPECT_EQ(s.kernels[0].loops[0].num_stages, r.fit) << what;
    if (r.pass == 0) {
      EXPECT_EQ(note_of(s.kernels[0], "gemm/copy#0"),
                "no tensor copies: its staged tile of 16384 bytes does not fit beside two stages of the "
                "loop's tiles");
    }
  }
}

TEST(TensorStores, StagesFollowTheAccumulators) {
  struct Row {
    int64_t m, n, threads, rows, columns, wm, wn, inner, part;
    bool transposed = false;
  };
  for (const Row& r :
       {Row{32, 128, 256, 32, 64, 1, 2, 64, 4096, true}, Row{8, 192, 128, 8, 192, 1, 1, 64, 3072, true},
        Row{128, 256, 256, 64, 256, 2, 1, 64, 32768}, Row{64, 256, 256, 64, 128, 1, 2, 64, 16384},
        Row{256, 128, 256, 128, 128, 2, 1, 64, 32768}, Row{64, 96, 128, 64, 96, 1, 1, 32, 12288},
        Row{64, 48, 128, 64, 48, 1, 1, 16, 6144}}) {
    auto p = program_from(gemm_text(r.m, r.n, 32, 2, r.threads));
    ASSERT_TRUE(p);
    const plan::Schedule s = planned(*p);
    const auto ops = analysis::collect_kernel_ops(*p, 0);
    const auto stage =
        epilogue_tile(*p, ops.ops.back(), *plan::find_value(s.kernels[0], "gemm:acc")->fragment,
                      *target::find_target("sm_90a"), nullptr);
    ASSERT_TRUE(stage) << r.m << "x" << r.n;
    EXPECT_EQ(stage->rows, r.rows);
    EXPECT_EQ(stage->columns, r.columns);
    EXPECT_EQ(stage->warpgroups_m, r.wm);
    EXPECT_EQ(stage->warpgroups_n, r.wn);
    EXPECT_EQ(stage->inner, r.inner);
    EXPECT_EQ(stage->swizzle, r.inner * 2);
    EXPECT_EQ(stage->part_bytes, r.part);
    EXPECT_EQ(stage->transposed, r.transposed) << "rows are columns of the instructions";
    EXPECT_EQ(stage->least_columns, r.inner);
  }
  auto p = program_from(gemm_text(64, 24, 32, 2, 128));
  ASSERT_TRUE(p);
  std::string why;
  const auto ops = analysis::collect_kernel_ops(*p, 0);
  EXPECT_FALSE(epilogue_tile(*p, ops.ops.back(),
                             layout::Fragment::replicated(std::vector<int64_t>{64, 24}, 128),
                             *target::find_target("sm_90a"), &why));
  EXPECT_EQ(why, "its source is not held as warpgroup instructions leave it");
}

// Two loops add into one accumulator; the second splits it otherwise.
TEST(WarpgroupProducts, AnAccumulatorHeldOtherwiseGoesToWarps) {
  const std::string second =
      " pipelined kk in 0 .. ceildiv(k, 32) stages 2 {\n copy A[by * 128 :+ 128, kk * 32 :+ 32] -> A2\n"
      " copy B[kk * 32 :+ 32, bx * 128 :+ 128] -> B2\n gemm A2, B2 -> acc {policy=full_col}\n }\n";
  auto p =
      program_from(gemm_text(128, 128, 32, 2, 256, "f16",
                             " alloc A2: shared f16[128, 32]\n alloc B2: shared f16[32, 128]\n", second));
  ASSERT_TRUE(p);
  const plan::Schedule s = planned(*p);
  EXPECT_EQ(plan::find_op(s.kernels[0], "gemm/ko/gemm#0")->engine, Engine::warpgroup_mma);
  EXPECT_EQ(plan::find_op(s.kernels[0], "gemm/kk/gemm#0")->engine, Engine::mma);
  EXPECT_EQ(note_of(s.kernels[0], "gemm/kk/gemm#0"),
            "no warpgroup instructions: 'gemm:acc' is held otherwise");
  ASSERT_EQ(s.kernels[0].pipelines.size(), 1u);
  EXPECT_EQ(s.kernels[0].pipelines[0].name, "gemm/ko");
}

TEST(WarpgroupProducts, TilesOfAProductShareAChannel) {
  const std::string text =
      "tl 1 program p\ndim m\ndim n\ndim k\ntensor A: f16[m, k] readonly\ntensor B: f16[k, n] readonly\n"
      "tensor X: f16[k, n] readonly\ntensor Y: f16[k, m] readonly\ntensor C: f16[m, n]\ntensor D: f16[m, n]\n"
      "kernel gemm grid (by: ceildiv(m, 64), bx: ceildiv(n, 64)) threads 128 {\n alloc As: shared f16[64, "
      "64]\n"
      " alloc Bs: shared f16[64, 64]\n alloc Xs: shared f16[64, 64]\n alloc Ys: shared f16[64, 64]\n"
      " alloc c: fragment f32[64, 64]\n alloc d: fragment f32[64, 64]\n fill c, 0.0f32\n fill d, 0.0f32\n"
      " pipelined ko in 0 .. ceildiv(k, 64) stages 3 {\n copy A[by * 64 :+ 64, ko * 64 :+ 64] -> As\n"
      " copy B[ko * 64 :+ 64, bx * 64 :+ 64] -> Bs\n gemm As, Bs -> c\n"
      " copy X[ko * 64 :+ 64, bx * 64 :+ 64] -> Xs\n copy Y[ko * 64 :+ 64, by * 64 :+ 64] -> Ys\n"
      " gemm Ys, Xs -> d {transpose_a}\n }\n copy c -> C[by * 64 :+ 64, bx * 64 :+ 64]\n"
      " copy d -> D[by * 64 :+ 64, bx * 64 :+ 64]\n}\n";
  auto p = program_from(text);
  ASSERT_TRUE(p);
  const plan::KernelSchedule k = planned(*p).kernels[0];
  ASSERT_EQ(k.pipelines.size(), 2u);
  EXPECT_EQ(k.pipelines[0], (plan::PipelinePlan{"gemm/ko:As", "gemm/ko", {"gemm:As", "gemm:Bs"}, 3}));
  EXPECT_EQ(k.pipelines[1], (plan::PipelinePlan{"gemm/ko:Xs", "gemm/ko", {"gemm:Xs", "gemm:Ys"}, 3}));
}

// Measured on an H200: the engine's instructions are illegal there.
TEST(TensorCopies, BeginAtMultiplesOf16BytesAndStoresNotInFrontOfTheTensor) {
  const std::string text = gemm_text(128, 128, 64, 3, 256);
  const auto note = [&](const char* from, const std::string& to, const char* op) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, std::string(from).size(), to);
    auto p = program_from(changed);
    return p ? note_of(planned(*p).kernels[0], op) : "no program";
  };
  EXPECT_NE(note("ko * 64 :+ 64] -> As", "ko * 64 + m :+ 64] -> As", "gemm/ko/gemm#0")
                .find("not known to be a multiple of 16 bytes"),
            std::string::npos);
  EXPECT_EQ(note("ko * 64 :+ 64] -> As", "ko * 64 + m * 8 :+ 64] -> As", "gemm/ko/gemm#0"), "");
  EXPECT_NE(note("C[by * 128", "C[by * 128 - m", "gemm/copy#0").find("may lie before tensor 'C'"),
            std::string::npos);
  EXPECT_EQ(note("C[by * 128", "C[max(by * 128 - m, 0)", "gemm/copy#0"), "");
  EXPECT_EQ(note("C[by * 128", "C[by // ceildiv(m, 3) * 128", "gemm/copy#0"), "");
  EXPECT_EQ(note("C[by * 128", "C[(7 - by % 8) * 128", "gemm/copy#0"), "");
  EXPECT_NE(note("C[by * 128", "C[(6 - by % 8) * 128", "gemm/copy#0").find("may lie before tensor 'C'"),
            std::string::npos);
  EXPECT_NE(note("C[by * 128", "C[by // (m - 1) * 128", "gemm/copy#0").find("may lie before tensor 'C'"),
            std::string::npos);
}

// Strides become multiples by what is known of sizes, through quotients too; a note does not say that none
// can.
TEST(TensorCopies, StridesThatQuotientsMake) {
  const auto note = [&](const std::string& facts, const std::string& columns) {
    std::string text = gemm_text(128, 128, 64, 3, 256);
    const auto change = [&](const std::string& from, const std::string& to) {
      text.replace(text.find(from), from.size(), to);
    };
    change("dim k\n", "dim k " + facts + "\n");
    change("A: f16[m, k]", "A: f16[m, " + columns + "]");
    auto p = program_from(text);
    return p ? note_of(planned(*p).kernels[0], "gemm/ko/gemm#0") : "no program";
  };
  for (const char* facts : {"", "divisible 128", ">= 1"})
    for (const char* columns : {"k", "k // 2", "ceildiv(k, 3)", "k // 2 * 3 + 64", "max(k // 4, 64)"})
      EXPECT_EQ(note(facts, columns), "") << facts << ", " << columns;
  const std::string begin = "no warpgroup instructions: tile 'As' does not come by a tensor copy: ";
  EXPECT_EQ(note("", "100"), begin + "a stride of tensor 'A' is no multiple of 16 bytes");
  EXPECT_EQ(note("<= 15", "k // 2"),
            begin + "no size is known that makes a stride of tensor 'A' a multiple of 16 bytes");
  EXPECT_EQ(note("", "k * 8 + 1"),
            begin + "no size is known that makes a stride of tensor 'A' a multiple of 16 bytes");
}

// The engine orders no stores: those of one block go to places of their own.
TEST(TensorStores, OfALoopDoNotMeet) {
  const std::string text = gemm_text(128, 128, 64, 3, 256),
                    store = "copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]\n";
  const auto note = [&](const std::string& loops, const std::string& row, const std::string& column,
                        const std::string& op) {
    std::string changed = text;
    const size_t at = changed.find(store);
    EXPECT_NE(at, std::string::npos) << text;
    if (at == std::string::npos) return std::string("no store");
    changed.replace(at, store.size(), loops + "copy acc -> C[" + row + " :+ 128, " + column + " :+ 128]\n");
    for (size_t open = loops.find('{'); open != std::string::npos; open = loops.find('{', open + 1))
      changed += "}\n";
    auto p = program_from(changed);
    return p ? note_of(planned(*p).kernels[0], op) : "no program";
  };
  const std::string one = "serial z in 0 .. 3 {\n", two = "serial z in 0 .. m {\nserial y in 0 .. 4 {\n";
  EXPECT_EQ(note("", "by * 128", "bx * 128", "gemm/copy#0"), "");
  EXPECT_EQ(note(one, "by * 128", "z * 128", "gemm/z/copy#0"), "");
  EXPECT_EQ(note(one, "by * 128 + z * 256", "0", "gemm/z/copy#0"), "");
  EXPECT_EQ(note(two, "by * 128", "(z * 4 + y) * 128", "gemm/z/y/copy#0"), "");
  EXPECT_EQ(note(two, "by * 128 + z * 128", "y * 128 + z * 8", "gemm/z/y/copy#0"), "");
  const std::string met = "no tensor copies: iterations of 'z' may store to one place of tensor 'C'";
  for (const char* column : {"bx * 128", "z * 64", "z // 2 * 128", "min(z, 2) * 128"})
    EXPECT_EQ(note(one, "by * 128", column, "gemm/z/copy#0"), met) << column;
  EXPECT_EQ(note(two, "by * 128", "(z * 3 + y) * 128", "gemm/z/y/copy#0"), met);
}

// Two stores of a block to one tensor, in the same loops: parts that never meet.
TEST(TensorStores, OfTwoCopiesDoNotMeet) {
  const std::string text = gemm_text(128, 128, 64, 3, 256),
                    store = "copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]\n";
  const auto note = [&](const std::string& loop, const std::string& first, const std::string& second) {
    std::string changed = text;
    changed.replace(changed.find(store), store.size(),
                    loop + "copy acc -> C[" + first + " :+ 128]\ncopy acc -> C[" + second + " :+ 128]\n" +
                        (loop.empty() ? "" : "}\n"));
    auto p = program_from(changed);
    return p ? note_of(planned(*p).kernels[0], loop.empty() ? "gemm/copy#0" : "gemm/z/copy#0") : "no program";
  };
  const std::string z = "serial z in 0 .. 3 {\n", rows = "by * 128 :+ 128, ";
  EXPECT_EQ(note("", rows + "bx * 256", rows + "bx * 256 + 128"), "");
  EXPECT_EQ(note("", rows + "bx * 256 + 128", rows + "bx * 256"), "");
  EXPECT_EQ(note("", "by * 256 :+ 128, bx * 128", "by * 256 + 128 :+ 128, bx * 128"), "");
  EXPECT_EQ(note(z, rows + "z * 256", rows + "z * 256 + 128"), "");
  EXPECT_EQ(note(z, rows + "z * 128", rows + "z * 128 + 384"), "");  // parts side by side, of three each
  EXPECT_EQ(note(z, "by * 128 :+ 128, z * 128", "by * 128 + 4096 :+ 128, z * 128"), "");
  const auto met = [](const std::string& op) {
    return "no tensor copies: " + op + "copy#1 accesses tensor 'C' too";
  };
  EXPECT_EQ(note("", rows + "bx * 256", rows + "bx * 256 + 64"), met("gemm/"));
  EXPECT_EQ(note("", rows + "bx * 128", rows + "bx * 128"), met("gemm/"));
  EXPECT_EQ(note("", rows + "bx * 128", rows + "by * 128"), met("gemm/"));
  EXPECT_EQ(note(z, rows + "z * 128", rows + "z * 128 + 128"), met("gemm/z/"));  // the next iteration's
  EXPECT_EQ(note(z, rows + "z * 128", rows + "z * 128 + 256"), met("gemm/z/"));
}

// Beside two stages of 80 KiB, 16 KiB and the weights' 40 KiB there is room for nothing else.
TEST(TensorStores, TakeTurnsInThePlaceOfATileThatIsIdle) {
  const std::string text = read_file(source_path("tests/files/plan/hopper/staged_in_idle_tile.tl"));
  const auto places = [](const std::string& program) {
    auto p = program_from(program);
    EXPECT_TRUE(p);
    const plan::Schedule s = planned(*p);
    const plan::KernelSchedule& k = s.kernels[0];
    std::vector<int64_t> offsets;
    for (const char* store : {"weighted/copy#1", "weighted/copy#2"})
      if (const auto* stage = plan::find_memory(k, plan::Storage::stage, store))
        offsets.push_back(stage->offset -
                          plan::find_memory(k, plan::Storage::value, "weighted:weights")->offset);
    EXPECT_EQ(engines(s, Engine::warpgroup_mma), 2);
    return offsets;
  };
  EXPECT_EQ(places(text), (std::vector<int64_t>{0, 0}));
  // With room each has a place of its own.
  std::string smaller = text;
  for (size_t at = 0; (at = smaller.find("320", at)) != std::string::npos;) smaller.replace(at, 3, "192");
  const std::vector<int64_t> apart = places(smaller);
  ASSERT_EQ(apart.size(), 2u);
  EXPECT_NE(apart[0], apart[1]);
  EXPECT_TRUE(std::none_of(apart.begin(), apart.end(), [](int64_t o) { return o >= 0 && o < 64 * 192 * 2; }));
  // Read after the stores: not idle.
  std::string read = text;
  const std::string last = "  copy twice -> D[b * 64 :+ 64, 0 :+ 128]\n";
  read.replace(read.find(last), last.size(), "  copy weights -> W[b * 64 :+ 64, 0 :+ 320]\n" + last);
  read.replace(read.find("tensor D"), 0, "tensor W: f16[m, 320]\n");
  auto p = program_from(read);
  ASSERT_TRUE(p);
  const plan::Schedule s = planned(*p);
  EXPECT_EQ(plan::find_memory(s.kernels[0], plan::Storage::stage, "weighted/copy#1"), nullptr);
}

}  // namespace
}  // namespace tilegen::schedule
