// Plans with a copy engine: what is given is obeyed or refused, what is left out is planned again, and
// everything has a place of its own in shared memory.
#include <algorithm>
#include <filesystem>

#include "analysis/epilogue_tile.h"
#include "hopper_plans.h"
#include "infer/infer_layouts.h"
#include "layout/tensor_tile.h"

namespace tilegen::schedule {
namespace {

using plan::Engine;

constexpr const char* kRagged = "tests/files/plan/hopper/gemm_ragged.tl";

std::vector<std::string> hopper_programs() {
  std::vector<std::string> list;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/files/plan/hopper")))
    if (entry.path().extension() == ".tl")
      list.push_back("tests/files/plan/hopper/" + entry.path().filename().string());
  std::sort(list.begin(), list.end());
  return list;
}

int engines(const plan::Schedule& s, Engine e) {
  int n = 0;
  for (const plan::KernelSchedule& k : s.kernels)
    n += static_cast<int>(
        std::count_if(k.ops.begin(), k.ops.end(), [&](const plan::OpPlan& o) { return o.engine == e; }));
  return n;
}

plan::Schedule one_op(const std::string& kernel, const std::string& op, Engine e) {
  plan::Schedule s;
  s.kernels.resize(1);
  s.kernels[0].kernel = kernel;
  s.kernels[0].ops.resize(1);
  s.kernels[0].ops[0].op = op;
  s.kernels[0].ops[0].engine = e;
  return s;
}

std::string note_of(const plan::KernelSchedule& k, const std::string& path) {
  for (const plan::Note& n : k.notes)
    if (n.path == path) return n.text;
  return "";
}

class HopperFile : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    program_ = program_from(read_file(source_path(GetParam())));
    ASSERT_TRUE(program_);
  }
  std::shared_ptr<const ir::Program> program_;
};

TEST_P(HopperFile, AFullScheduleReplaysThroughJson) {
  const plan::Schedule full = planned(*program_);
  auto read = plan::schedule_from_json(plan::schedule_to_json(full), Limits{});
  ASSERT_TRUE(read) << read.error().to_text();
  const int64_t before = infer::infer_layouts_calls();
  plan::Schedule again = planned(*program_, TensorCopies::loads_and_stores, &*read);
  EXPECT_EQ(infer::infer_layouts_calls(), before);
  ASSERT_EQ(again.kernels.size(), full.kernels.size());
  for (size_t k = 0; k < full.kernels.size(); ++k) {
    again.kernels[k].notes = full.kernels[k].notes;  // they tell of choices, and there were none
    EXPECT_TRUE(again.kernels[k] == full.kernels[k]) << plan::schedule_to_text(again);
  }
}

TEST_P(HopperFile, WhatIsLeftOutIsPlannedAgain) {
  const plan::Schedule full = planned(*program_);
  for (size_t k = 0; k < full.kernels.size(); ++k) {
    auto same = [&](const plan::Schedule& given) {
      const plan::Schedule again = planned(*program_, TensorCopies::loads_and_stores, &given);
      ASSERT_EQ(again.kernels.size(), full.kernels.size());
      const plan::KernelSchedule &a = again.kernels[k], &b = full.kernels[k];
      EXPECT_EQ(a.roles, b.roles);
      EXPECT_EQ(a.persistence, b.persistence);
      EXPECT_EQ(a.cluster, b.cluster);
      EXPECT_EQ(a.pipelines, b.pipelines);
      EXPECT_EQ(a.memory, b.memory);
      ASSERT_EQ(a.ops.size(), b.ops.size());
      for (size_t i = 0; i < a.ops.size(); ++i) {
        EXPECT_EQ(a.ops[i].engine, b.ops[i].engine) << a.ops[i].op;
        EXPECT_EQ(a.ops[i].atom, b.ops[i].atom) << a.ops[i].op;
        EXPECT_EQ(a.ops[i].epilogue_columns, b.ops[i].epilogue_columns) << a.ops[i].op;
      }
    };
    plan::Schedule given = full;
    given.kernels[k].roles.reset();
    given.kernels[k].persistence.reset();
    given.kernels[k].cluster.reset();
    same(given);
    given = full;
    given.kernels[k].pipelines.clear();
    same(given);
    for (size_t i = 0; i < full.kernels[k].ops.size(); ++i) {
      given = full;
      given.kernels[k].ops.erase(given.kernels[k].ops.begin() + static_cast<long>(i));
      same(given);
    }
  }
}

// Without the engine the plan is the one of a target that has none; so it is when the schedule given was made
// with it.
TEST_P(HopperFile, WithoutTensorCopiesThePlanIsThatOfWarps) {
  const plan::Schedule full = planned(*program_), without = planned(*program_, TensorCopies::none);
  auto warps = plan_with(*program_, TensorCopies::none, nullptr, "sm_90");
  ASSERT_TRUE(warps) << warps.error().to_text();
  for (const plan::Schedule& s : {without, planned(*program_, TensorCopies::none, &full)}) {
    EXPECT_EQ(engines(s, Engine::tensor_copy), 0);
    EXPECT_EQ(engines(s, Engine::warpgroup_mma), 0);
    for (size_t k = 0; k < s.kernels.size(); ++k) {
      EXPECT_FALSE(s.kernels[k].has_producer());
      EXPECT_FALSE(s.kernels[k].persistence->persistent);
      EXPECT_TRUE(s.kernels[k].pipelines.empty());
    }
  }
  for (size_t k = 0; k < without.kernels.size(); ++k) {
    if (program_->kernels[k].threads == 0) continue;  // warpgroups want other numbers of threads
    EXPECT_EQ(without.kernels[k].ops, warps->kernels[k].ops);
    EXPECT_EQ(without.kernels[k].values, warps->kernels[k].values);
    EXPECT_EQ(without.kernels[k].loops, warps->kernels[k].loops);
    EXPECT_EQ(without.kernels[k].memory, warps->kernels[k].memory);
  }
}

TEST_P(HopperFile, LoadsAloneLeaveStoresToThreads) {
  const plan::Schedule full = planned(*program_);
  for (const plan::Schedule& s :
       {planned(*program_, TensorCopies::loads), planned(*program_, TensorCopies::loads, &full)}) {
    EXPECT_EQ(engines(s, Engine::warpgroup_mma), engines(full, Engine::warpgroup_mma));
    int produced = 0;
    for (const plan::KernelSchedule& k : s.kernels)
      for (const plan::PipelinePlan& c : k.pipelines) produced += static_cast<int>(c.values.size());
    EXPECT_EQ(engines(s, Engine::tensor_copy), produced);
    EXPECT_GE(produced, engines(full, Engine::warpgroup_mma));
    for (const plan::KernelSchedule& k : s.kernels)
      for (const plan::OpPlan& o : k.ops) {
        EXPECT_EQ(o.epilogue_columns, 0);
        if (o.engine == Engine::vector_copy) {
          EXPECT_TRUE(o.iteration) << o.op;
        }
      }
  }
}

TEST_P(HopperFile, EverythingOfTheEngineHasAPlaceOfItsOwn) {
  const plan::Schedule full = planned(*program_);
  for (const plan::KernelSchedule& k : full.kernels) {
    if (k.pipelines.empty()) continue;
    auto place = [&](plan::Storage storage, const std::string& owner) {
      const plan::MemoryPlan* m = plan::find_memory(k, storage, owner);
      EXPECT_NE(m, nullptr) << plan::storage_name(storage) << " of " << owner;
      return m ? *m : plan::MemoryPlan{};
    };
    std::vector<plan::MemoryPlan> own;
    for (const plan::PipelinePlan& c : k.pipelines) {
      own.push_back(place(plan::Storage::barriers, c.name));
      EXPECT_EQ(own.back().bytes, 16 * c.slots);
      EXPECT_EQ(own.back().offset % 16, 0);
      for (const std::string& v : c.values) {
        own.push_back(place(plan::Storage::value, v));
        EXPECT_EQ(own.back().offset % 1024, 0) << v;
        EXPECT_EQ(plan::find_value(k, v)->slots, c.slots);
        // Every slot begins where the swizzle does.
        const layout::Layout& l = *plan::find_value(k, v)->memory;
        EXPECT_EQ(own.back().bytes / c.slots % (int64_t{128} << l.swizzle().bits), 0) << v;
        EXPECT_TRUE(layout::tensor_tile(l, l.rank() - 1, l.element_bytes(), nullptr));
      }
    }
    for (const plan::OpPlan& o : k.ops)
      if (o.epilogue_columns > 0) {
        own.push_back(place(plan::Storage::stage, o.op));
        EXPECT_EQ(own.back().offset % 1024, 0);
      }
    for (const plan::MemoryPlan& a : own) {
      EXPECT_LE(a.offset + a.bytes, 227 * 1024);
      for (const plan::MemoryPlan& b : k.memory)
        EXPECT_TRUE(a == b || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset)
            << a.owner << " meets " << b.owner;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, HopperFile, ::testing::ValuesIn(hopper_programs()),
                         [](const auto& info) { return std::filesystem::path(info.param).stem().string(); });

// ---- given fields

class GivenFields : public ::testing::Test {
 protected:
  void SetUp() override {
    program_ = program_from(read_file(source_path(kRagged)));
    ASSERT_TRUE(program_);
  }
  std::shared_ptr<const ir::Program> program_;
};

TEST_F(GivenFields, EnginesOfWarpsKeepTheKernelWithoutAProducer) {
  for (const auto& [op, engine] : {std::pair("gemm/ko/gemm#0", Engine::mma),
                                   {"gemm/ko/copy#0", Engine::async_copy},
                                   {"gemm/ko/copy#1", Engine::vector_copy}}) {
    plan::Schedule given = one_op("gemm", op, engine);
    if (engine != Engine::mma) given.kernels[0].ops[0].vector = 8;
    const plan::Schedule s = planned(*program_, TensorCopies::loads_and_stores, &given);
    EXPECT_EQ(plan::find_op(s.kernels[0], op)->engine, engine);
    EXPECT_EQ(plan::find_op(s.kernels[0], "gemm/ko/gemm#0")->engine, Engine::mma);
    EXPECT_FALSE(s.kernels[0].has_producer());
    EXPECT_EQ(engines(s, Engine::tensor_copy), 0);
  }
  const plan::Schedule given = one_op("gemm", "gemm/copy#0", Engine::vector_copy),
                       s = planned(*program_, TensorCopies::loads_and_stores, &given);
  EXPECT_EQ(plan::find_op(s.kernels[0], "gemm/copy#0")->engine, Engine::vector_copy);
  EXPECT_EQ(engines(s, Engine::warpgroup_mma), 1);
}

TEST_F(GivenFields, TensorCopiesThatCannotBeAreRefusedWithTheReason) {
  auto odd = program_from(read_file(source_path("tests/files/plan/hopper/gemm_refusals.tl")));
  ASSERT_TRUE(odd);
  EXPECT_EQ(refused(*odd, one_op("odd_stride", "odd_stride/ko/copy#0", Engine::tensor_copy)),
            "the schedule gives tensor copies, but a stride of tensor 'odd' is no multiple of 16 bytes; "
            "odd_stride/ko/gemm#0: tile 'As' does not come by a tensor copy: a stride of tensor 'odd' is no "
            "multiple of 16 "
            "bytes");
  EXPECT_EQ(refused(*odd, one_op("halves", "halves/ko/gemm#0", Engine::warpgroup_mma)),
            "the schedule gives warpgroup instructions, but tile 'As' does not come by a tensor copy: "
            "several operations write it");
  auto s = plan_for(*program_, "sm_80");
  ASSERT_TRUE(s);
  const plan::Schedule given = one_op("gemm", "gemm/ko/copy#0", Engine::tensor_copy);
  EXPECT_FALSE(plan_for(*program_, "sm_80", &given));
}

TEST_F(GivenFields, NoRolesIsThePlanOfWarps) {
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "gemm";
  given.kernels[0].roles.emplace();
  const plan::Schedule s = planned(*program_, TensorCopies::loads_and_stores, &given);
  EXPECT_EQ(engines(s, Engine::mma), 1);
  EXPECT_EQ(note_of(s.kernels[0], "gemm/ko/gemm#0"),
            "no warpgroup instructions: the schedule gives no producer");
}

TEST_F(GivenFields, PassesStagesAndPersistenceAreTakenAsTheyAre) {
  plan::Schedule given = one_op("gemm", "gemm/copy#0", Engine::tensor_copy);
  given.kernels[0].ops[0].epilogue_columns = 64;
  given.kernels[0].persistence = plan::PersistencePlan{false, "static", false, "x"};
  given.kernels[0].loops = {{"gemm/ko", 3, {}, "x"}};
  const plan::Schedule s = planned(*program_, TensorCopies::loads_and_stores, &given);
  const plan::KernelSchedule& k = s.kernels[0];
  EXPECT_EQ(plan::find_op(k, "gemm/copy#0")->epilogue_columns, 64);
  EXPECT_FALSE(k.persistence->persistent);
  EXPECT_EQ(k.pipelines[0].slots, 3);
  given.kernels[0].ops[0].epilogue_columns = 48;
  EXPECT_EQ(
      refused(*program_, given),
      "the schedule gives tensor copies, but epilogue tiles of 48 columns do not divide 256 into multiples "
      "of 64");
}

TEST_F(GivenFields, ClustersAreTakenOrRefusedWithTheReason) {
  const auto with_cluster = [](int64_t blocks, const char* along) {
    plan::Schedule s;
    s.kernels.resize(1);
    s.kernels[0].kernel = "gemm";
    s.kernels[0].cluster = plan::ClusterPlan{blocks, along, "x"};
    return s;
  };
  for (const char* along : {"by", "bx"})
    for (int64_t blocks : {1, 2, 4, 8}) {
      const plan::Schedule given = with_cluster(blocks, along);
      EXPECT_EQ(planned(*program_, TensorCopies::loads_and_stores, &given).kernels[0].cluster,
                given.kernels[0].cluster);
      EXPECT_EQ(planned(*program_, TensorCopies::loads, &given).kernels[0].cluster, given.kernels[0].cluster);
      EXPECT_EQ(planned(*program_, TensorCopies::none, &given).kernels[0].cluster->blocks, 1);
    }
  EXPECT_EQ(planned(*program_).kernels[0].cluster->blocks, 1);
  const std::string impossible = "the given cluster is not possible: ";
  EXPECT_EQ(refused(*program_, with_cluster(3, "by")), impossible + "3 blocks are no power of two up to 8");
  EXPECT_EQ(refused(*program_, with_cluster(16, "by")), impossible + "16 blocks are no power of two up to 8");
  plan::Schedule given = with_cluster(2, "bz");
  auto unknown = plan_for(*program_, "sm_90a", &given);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().diagnostics[0].code, DiagCode::schedule_mismatch);
  EXPECT_EQ(unknown.error().diagnostics[0].message,
            "the given cluster is along 'bz', which is no block index of the kernel");
  EXPECT_EQ(unknown.error().diagnostics[0].hint, "known: by, bx");
  given = with_cluster(2, "by");
  given.kernels[0].roles.emplace();
  EXPECT_EQ(refused(*program_, given), impossible + "the kernel has no producer");
  std::string text = read_file(source_path(kRagged));
  const std::string loop = "0 .. ceildiv(k, 64) stages 4";
  text.replace(text.find(loop), loop.size(), "0 .. by + ceildiv(k, 64) stages 4");
  EXPECT_EQ(refused(*program_from(text), with_cluster(2, "bx")),
            impossible + "blocks have different amounts of work");
}

// What is not known is taken to be aligned.
TEST_F(GivenFields, ClustersAreNotPlannedForUnknownSizes) {
  EXPECT_EQ(planned(*program_).kernels[0].cluster->blocks, 1);
}

TEST_F(GivenFields, ChannelsHoldTheTilesOfALoop) {
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "gemm";
  given.kernels[0].pipelines = {{"mine", "gemm/ko", {"gemm:Bs", "gemm:As"}, 4}};
  EXPECT_EQ(planned(*program_, TensorCopies::loads_and_stores, &given).kernels[0].pipelines,
            given.kernels[0].pipelines);
  for (const std::vector<plan::PipelinePlan>& wrong :
       {std::vector<plan::PipelinePlan>{{"a", "gemm/ko", {"gemm:As"}, 4}, {"b", "gemm/ko", {"gemm:Bs"}, 4}},
        {{"a", "gemm/ko", {"gemm:As"}, 4}},
        {{"a", "gemm/ko", {"gemm:As", "gemm:Bs", "gemm:acc"}, 4}}}) {
    given.kernels[0].pipelines = wrong;
    EXPECT_NE(refused(*program_, given).find("the given pipelines do not hold"), std::string::npos);
  }
  given.kernels[0].pipelines = {{"a", "gemm/ki", {"gemm:As", "gemm:Bs"}, 4}};
  auto s = plan_for(*program_, "sm_90a", &given);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().diagnostics[0].code, DiagCode::schedule_mismatch);
}

TEST_F(GivenFields, ATileLaidOutOtherwiseKeepsItsProductFromWarpgroups) {
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "gemm";
  given.kernels[0].values = {
      {"gemm:As", std::nullopt, layout::Layout::row_major(std::vector<int64_t>{128, 64}), 0, {}, ""}};
  const plan::Schedule s = planned(*program_, TensorCopies::loads_and_stores, &given);
  EXPECT_EQ(note_of(s.kernels[0], "gemm/ko/gemm#0"),
            "no warpgroup instructions: tile 'As' lies as the schedule says");
  EXPECT_EQ(engines(s, Engine::mma), 1);
  EXPECT_EQ(engines(s, Engine::tensor_copy), 0);
}

// ---- memory and registers

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
  };
  for (const Row& r :
       {Row{128, 256, 256, 64, 256, 2, 1, 64, 32768}, Row{64, 256, 256, 64, 128, 1, 2, 64, 16384},
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

}  // namespace
}  // namespace tilegen::schedule
