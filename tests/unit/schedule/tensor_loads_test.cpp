// Tiles that threads read come from a producer, and tiles leave by the copy engine, where a schedule asks so.
#include "hopper_plans.h"

namespace tilegen::schedule {
namespace {

using plan::Engine;

ir::Program program_of(const char* file) {
  auto p = program_from(read_file(source_path(std::string("tests/files/plan/") + file)));
  EXPECT_TRUE(p) << file;
  return p ? std::move(*p) : ir::Program{};
}

plan::Schedule engines(const std::vector<std::pair<std::string, Engine>>& ops) {
  plan::Schedule s;
  s.kernels.push_back({.kernel = "k"});
  for (const auto& [op, engine] : ops) s.kernels[0].ops.push_back({.op = op, .engine = engine});
  return s;
}

std::string code_of(const ir::Program& p, const plan::Schedule& s) {
  return thread::print_thread_program(*lowered_as_planned(p, 0, s.kernels[0], target_named("sm_90a")));
}

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(TensorLoads, ALoopWithoutProductsHasItsTilesFromAProducer) {
  const ir::Program p = program_of("rows_times_vector.tl");
  EXPECT_FALSE(planned(p).kernels[0].has_producer());
  const plan::Schedule given = engines({{"k/ko/copy#0", Engine::tensor_copy}});
  const plan::Schedule s = planned(p, TensorCopies::loads_and_stores, &given);
  const plan::KernelSchedule& k = s.kernels[0];
  EXPECT_TRUE(k.has_producer());
  EXPECT_EQ(plan::find_op(k, "k/ko/copy#1")->engine, Engine::tensor_copy);
  ASSERT_EQ(k.pipelines.size(), 1u);
  EXPECT_EQ(k.pipelines[0].values, (std::vector<std::string>{"k:As", "k:xs"}));
  EXPECT_EQ(k.pipelines[0].slots, 2);
  EXPECT_FALSE(plan::find_value(k, "k:As")->memory->swizzle().none());
  const std::string code = code_of(p, s);
  EXPECT_EQ(count(code, "tensor_load k:As"), 8) << code;
  EXPECT_EQ(count(code, "async_copy"), 0) << code;
}

TEST(TensorLoads, ATileOutsideOfLoopsComesFromAProducerToo) {
  const ir::Program p = program_of("tile_through_shared.tl");
  const plan::Schedule given = engines({{"k/copy#0", Engine::tensor_copy}});
  const plan::Schedule s = planned(p, TensorCopies::loads_and_stores, &given);
  EXPECT_TRUE(s.kernels[0].has_producer());
  ASSERT_EQ(s.kernels[0].pipelines.size(), 1u);
  EXPECT_EQ(s.kernels[0].pipelines[0].loop, "");
}

// Threads fill it where that costs no iteration time; in the loop, where the product is given to warpgroups.
TEST(TensorLoads, TilesThatTheEngineCannotCopyMayBeFilledByThreads) {
  const auto text = [](const char* q) {
    return R"(tl 1 program t
dim m
dim n divisible 64
tensor A: f16[m, 64] )" +
           std::string(q) + R"( readonly
tensor B: f16[n, 64] readonly
tensor C: f32[m, 64]
kernel k grid (b: ceildiv(m, 64)) threads 128 {
  alloc As: shared f16[64, 64]
  alloc Bs: shared f16[64, 64]
  alloc c: fragment f32[64, 64]
  fill c, 0.0f32
  copy A[b * 64 :+ 64, 0 :+ 64] -> As
  pipelined ko in 0 .. n // 64 stages 2 {
    copy B[ko * 64 :+ 64, 0 :+ 64] -> Bs
    gemm As, Bs -> c {transpose_b}
  }
  copy c -> C[b * 64 :+ 64, 0 :+ 64]
}
)";
  };
  const std::string outside = text("strides [65, 1]");
  const plan::Schedule s = planned(*program_from(outside));
  const plan::KernelSchedule& k = s.kernels[0];
  EXPECT_EQ(plan::find_op(k, "k/ko/gemm#0")->engine, Engine::warpgroup_mma);
  EXPECT_EQ(plan::find_op(k, "k/copy#0")->engine, Engine::vector_copy);
  EXPECT_EQ(plan::find_op(k, "k/ko/copy#0")->engine, Engine::tensor_copy);
  EXPECT_EQ(note_of(k, "k/copy#0"), "no tensor copies: a stride of tensor 'A' is no multiple of 16 bytes");

  std::string inside = outside;
  const std::string copy = "  copy A[b * 64 :+ 64, 0 :+ 64] -> As\n";
  inside.erase(inside.find(copy), copy.size());
  inside.insert(inside.find("    gemm As"), copy);
  const ir::Program p = *program_from(inside);
  EXPECT_EQ(plan::find_op(planned(p).kernels[0], "k/ko/gemm#0")->engine, Engine::mma);
  const plan::Schedule given = engines({{"k/ko/gemm#0", Engine::warpgroup_mma}});
  const plan::Schedule asked = planned(p, TensorCopies::loads_and_stores, &given);
  EXPECT_EQ(plan::find_op(asked.kernels[0], "k/ko/gemm#0")->engine, Engine::warpgroup_mma);
  EXPECT_EQ(plan::find_op(asked.kernels[0], "k/ko/copy#0")->engine, Engine::tensor_copy);
  EXPECT_EQ(plan::find_op(asked.kernels[0], "k/ko/copy#1")->engine, Engine::vector_copy);
  EXPECT_EQ(planned(*program_from(text(""))).kernels[0].pipelines.size(), 2u);
}

// A tile that threads read is no tile of a product outside of loops.
TEST(TensorLoads, AProductOfWrittenTilesStaysWithoutAProducer) {
  auto p = program_from(
      "tl 1 program q\ntensor A: f16[64, 64] readonly\ntensor C: f32[64, 64]\ntensor D: f16[64, 64]\n"
      "kernel k grid (b: 1) threads 128 {\n alloc S: shared f16[64, 64]\n alloc T: shared f16[64, 64]\n"
      " alloc c: fragment f32[64, 64]\n copy A[0 :+ 64, 0 :+ 64] -> S\n"
      " parallel i, j in 64, 64 { D[i, j] = S[i, j] }\n parallel i, j in 64, 64 { T[i, j] = A[i, j] * 2.0f16 "
      "}\n"
      " gemm T, T -> c {clear}\n copy c -> C[0 :+ 64, 0 :+ 64]\n}\n");
  ASSERT_TRUE(p);
  const plan::Schedule given = engines({{"k/copy#0", Engine::tensor_copy}});
  const auto engine_of = [&](const plan::Schedule& s) {
    return plan::find_op(s.kernels[0], "k/gemm#0")->engine;
  };
  EXPECT_EQ(engine_of(planned(*p, TensorCopies::loads_and_stores, &given)), engine_of(planned(*p)));
}

TEST(TensorLoads, ATargetWithoutACopyEngineSaysSo) {
  const ir::Program p = program_of("rows_times_vector.tl");
  const plan::Schedule given = engines({{"k/ko/copy#0", Engine::tensor_copy}});
  auto s = plan_for(p, "sm_80", &given);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().diagnostics[0].message,
            "the schedule gives tensor copies, but sm_80 has no copy engine");
}

TEST(TensorLoads, WhatAProducerCannotLoadIsRefusedWithTheReason) {
  const ir::Program p = program_of("rows_times_vector.tl");
  EXPECT_EQ(
      refused(p, engines({{"k/ko/copy#0", Engine::tensor_copy}, {"k/ko/copy#1", Engine::async_copy}})),
      "the schedule gives tensor copies, but k/ko/copy#1 of its loop is left to threads: the schedule gives "
      "another engine");
  const auto with = [](const std::string& head, const std::string& behind) {
    auto q = program_from(
        "tl 1 program q\ntensor A: f16[64, 512] readonly\ntensor C: f16[64, 64]\n"
        "kernel k grid (b: 1) threads " +
        head +
        " {\n alloc S: shared f16[64, 64]\n pipelined ko in 0 .. 8 stages 2 {\n"
        " copy A[0 :+ 64, ko * 64 :+ 64] -> S\n"
        " parallel i, j in 64, 64 { C[i, j] = S[i, j] }\n }\n" +
        behind + "}\n");
    EXPECT_TRUE(q);
    return refused(*q, engines({{"k/ko/copy#0", Engine::tensor_copy}}));
  };
  EXPECT_EQ(with("128", ""), "not refused");
  EXPECT_EQ(
      with("64", ""),
      "the schedule gives tensor copies, but 64 threads are no whole warpgroups of 128, which hand tiles "
      "back to a producer");
  EXPECT_NE(with("128", " parallel i, j in 64, 64 { C[i, j] = S[j, i] }\n")
                .find("the schedule gives tensor copies"),
            std::string::npos);
}

TEST(TensorStores, ATileLeavesWithoutAProducer) {
  const ir::Program p = program_of("tile_through_shared.tl");
  const plan::Schedule given = engines({{"k/copy#1", Engine::tensor_copy}});
  const plan::Schedule s = planned(p, TensorCopies::loads_and_stores, &given);
  EXPECT_FALSE(s.kernels[0].has_producer());
  EXPECT_FALSE(plan::find_op(s.kernels[0], "k/copy#1")->iteration);
  const std::string code = code_of(p, s);
  EXPECT_EQ(count(code, "tensor_store C.map"), 2) << code;
  EXPECT_EQ(count(code, "bulk_wait"), 1) << code;
}

// Threads wait until the engine has read what they overwrite.
TEST(TensorStores, ATileIsOverwrittenWhenItHasBeenRead) {
  const ir::Program p = program_of("tiles_in_a_loop.tl");
  const plan::Schedule given = engines({{"k/x/copy#0", Engine::tensor_copy}});
  const std::string code = code_of(p, planned(p, TensorCopies::loads_and_stores, &given));
  EXPECT_EQ(count(code, "bulk_wait"), 2) << code;
  const size_t wait = code.find("bulk_wait"), store = code.find("tensor_store"), loop = code.find("serial x");
  EXPECT_LT(loop, wait);
  EXPECT_LT(wait, store);
}

}  // namespace
}  // namespace tilegen::schedule
