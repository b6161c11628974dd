// Plans with a copy engine: what is given is obeyed or refused, what is left out is planned again, and
// everything has a place of its own in shared memory.
#include <algorithm>
#include <filesystem>

#include "analysis/epilogue_tile.h"
#include "hopper_plans.h"
#include "infer/infer_layouts.h"
#include "layout/tensor_tile.h"
#include "support/diag_codes.h"

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

plan::Schedule one_op(const std::string& kernel, const std::string& op, Engine e) {
  plan::Schedule s;
  s.kernels.resize(1);
  s.kernels[0].kernel = kernel;
  s.kernels[0].ops.resize(1);
  s.kernels[0].ops[0].op = op;
  s.kernels[0].ops[0].engine = e;
  return s;
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
    // Staged tiles take turns in the place of an operand that no producer fills, where there is no other.
    const auto may_meet = [&](const plan::MemoryPlan& a, const plan::MemoryPlan& b) {
      const bool filled =
          std::any_of(k.pipelines.begin(), k.pipelines.end(), [&](const plan::PipelinePlan& c) {
            return std::find(c.values.begin(), c.values.end(), b.owner) != c.values.end();
          });
      return a.storage == plan::Storage::stage &&
             (b.storage == plan::Storage::stage || (b.storage == plan::Storage::value && !filled));
    };
    for (const plan::MemoryPlan& a : own) {
      EXPECT_LE(a.offset + a.bytes, 227 * 1024);
      for (const plan::MemoryPlan& b : k.memory)
        EXPECT_TRUE(a == b || may_meet(a, b) || may_meet(b, a) || a.offset + a.bytes <= b.offset ||
                    b.offset + b.bytes <= a.offset)
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
  // Threads may fill a tile by several copies, for products of warpgroups too.
  const plan::Schedule twice = one_op("written_twice", "written_twice/ko/gemm#0", Engine::warpgroup_mma);
  const plan::Schedule filled = planned(*odd, TensorCopies::loads_and_stores, &twice);
  const plan::OpPlan* product = plan::find_op(*filled.find("written_twice"), "written_twice/ko/gemm#0");
  ASSERT_TRUE(product);
  EXPECT_EQ(product->engine, Engine::warpgroup_mma);
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
  for (int64_t blocks : {3, 32})
    EXPECT_EQ(refused(*program_, with_cluster(blocks, "by")),
              impossible + std::to_string(blocks) + " blocks are no power of two up to 16");
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

std::vector<std::vector<std::string>> pipelines_of(const plan::KernelSchedule& k) {
  std::vector<std::vector<std::string>> list;
  for (const plan::PipelinePlan& c : k.pipelines) list.push_back(c.values);
  return list;
}

TEST(CopiedTiles, AreHandedOverTogetherWhereThreadsFetchThemAtOnce) {
  using Names = std::vector<std::vector<std::string>>;
  const std::string name = "chunk_state:";
  const std::string text = read_file(source_path("tests/files/plan/hopper/chunk_state.tl"));
  const Names joined = {{name + "xs", name + "as", name + "ts"}, {name + "bs"}};
  EXPECT_EQ(pipelines_of(planned(*program_from(text)).kernels[0]), joined);

  std::string work_between = text;
  const std::string fetch = "copy as -> ak";
  work_between.replace(work_between.find(fetch), fetch.size(),
                       fetch + "\n    parallel q in 64 { ak[q] = exp2(ak[q]) }");
  const Names apart = {{name + "xs", name + "ts"}, {name + "as"}, {name + "bs"}};
  EXPECT_EQ(pipelines_of(planned(*program_from(work_between)).kernels[0]), apart);
}

TEST(CopiedTiles, MayBeGivenApart) {
  const auto p = program_from(read_file(source_path("tests/files/plan/hopper/chunk_state.tl")));
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "chunk_state";
  for (const char* tile : {"xs", "as", "ts", "bs"})
    given.kernels[0].pipelines.push_back({tile, "chunk_state/k", {std::string("chunk_state:") + tile}, 0});
  const plan::Schedule s = planned(*p, TensorCopies::loads_and_stores, &given);
  EXPECT_EQ(s.kernels[0].pipelines.size(), 4u);
  EXPECT_EQ(engines(s, Engine::warpgroup_mma), 1);
}

}  // namespace
}  // namespace tilegen::schedule
