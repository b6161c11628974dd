// Thread programs as text: every program of tests/files/lower, for a host of each vector width (the bf16
// product also for one with dot products), after the steps of a compile; some for a GPU, with and without
// the facts that a launch has to check.
// The expected text stands beside the program as NAME.<target>.thread; TILEGEN_BLESS=1 writes it anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "../schedule/complete_plan.h"
#include "check/check_program.h"
#include "ir/text.h"
#include "lower/host/forward_stores.h"
#include "lower/host/fuse_loops.h"
#include "lower/host/interleave_rows.h"
#include "lower/host/prefetch_blocks.h"
#include "lower/host/prefetch_tiles.h"
#include "schedule/form/canonical_form.h"
#include "schedule/plan_program.h"
#include "target/host/host.h"
#include "thread/sync_verify.h"

namespace tilegen::lower {
namespace {

std::filesystem::path folder() { return std::filesystem::path(TILEGEN_SOURCE_DIR) / "tests/files/lower"; }

std::vector<std::string> programs() {
  std::vector<std::string> list;
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    if (entry.path().extension() == ".tl") list.push_back(entry.path().stem().string());
  std::sort(list.begin(), list.end());
  return list;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

// Some programs stand with the plans.
std::string source_of(const std::string& name) {
  const std::filesystem::path own = folder() / (name + ".tl");
  return read_file(std::filesystem::exists(own) ? own : folder().parent_path() / "plan" / (name + ".tl"));
}

// A named target, or a CPU with the dot products of AVX-512.
target::Target target_named(const std::string& name) {
  if (name == "avx512-dot") {
    target::host::CpuFacts facts;
    facts.avx512 = facts.avx512_bf16 = facts.avx512_vnni = true;
    return target::host::from_facts(name, facts);
  }
  auto target = target::find_target(name);
  EXPECT_TRUE(target) << name;
  return target ? *target : target::Target();
}

void expect_legal(const thread::ThreadProgram& p, const char* step) {
  for (const std::string& hazard : thread::verify_synchronization(p))
    ADD_FAILURE() << "after " << step << ": " << hazard;
  for (const std::string& broken : thread::verify_thread_program(p))
    ADD_FAILURE() << "after " << step << ": " << broken;
}

class ThreadFile : public ::testing::TestWithParam<std::tuple<std::string, const char*>> {};

TEST_P(ThreadFile, IsAsWritten) {
  const auto& [name, target_name] = GetParam();
  auto program = ir::parse_program(source_of(name), name + ".tl", Limits{});
  ASSERT_TRUE(program) << program.error().to_text();
  for (const Diagnostic& d : check::check_program(*program, Limits{})) ADD_FAILURE() << d.to_text();
  const target::Target target = target_named(target_name);
  if (auto form = schedule::canonical_form(*program, target)) *program = std::move(*form);
  auto schedule = schedule::plan_program(*program, target, {});
  ASSERT_TRUE(schedule) << schedule.error().to_text();
  std::string got;
  for (size_t k = 0; k < program->kernels.size(); ++k) {
    auto lowered = schedule::lowered_as_planned(*program, static_cast<int>(k), schedule->kernels[k], target);
    ASSERT_TRUE(lowered) << lowered.error().to_text();
    expect_legal(*lowered, "lower_kernel");
    if (target.has_block_threads()) {
      got += thread::print_thread_program(*lowered);
      auto small = schedule::lowered_as_planned(*program, static_cast<int>(k), schedule->kernels[k], target,
                                                schedule::Assumptions::none);
      ASSERT_TRUE(small) << small.error().to_text();
      expect_legal(*small, "lower_kernel without assumptions");
      EXPECT_TRUE(small->guards.empty());
      if (!lowered->guards.empty()) got += "\nwithout assumptions: " + thread::print_thread_program(*small);
      continue;
    }
    fuse_loops(*lowered);
    expect_legal(*lowered, "fuse_loops");
    forward_stores(*lowered);
    expect_legal(*lowered, "forward_stores");
    prefetch_blocks(*lowered);
    expect_legal(*lowered, "prefetch_blocks");
    prefetch_tiles(*lowered, target.l2_bytes);
    expect_legal(*lowered, "prefetch_tiles");
    interleave_rows(*lowered);
    expect_legal(*lowered, "interleave_rows");
    got += thread::print_thread_program(*lowered);
  }
  const std::filesystem::path golden = folder() / (name + "." + target_name + ".thread");
  if (std::getenv("TILEGEN_BLESS")) {
    std::ofstream(golden, std::ios::binary) << got;
    return;
  }
  EXPECT_EQ(got, read_file(golden)) << "TILEGEN_BLESS=1 rewrites the file when the change is meant";
}

std::string test_name(const ::testing::TestParamInfo<ThreadFile::ParamType>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ThreadFile,
                         ::testing::Combine(::testing::ValuesIn(programs()),
                                            ::testing::Values("x86-64-v3", "x86-64-v4")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(
    Gpu, ThreadFile,
    ::testing::Combine(::testing::Values("branch_changes_condition", "elementwise_ragged", "strided_tensors",
                                         "wide_stores", "row_softmax", "reduce_both_axes",
                                         "streamed_beside_kept", "fragment_parts", "copies_of_points",
                                         "convert_shuffle", "convert_replication", "convert_shared_bounce",
                                         "bias_replication"),
                       ::testing::Values("sm_80")),
    test_name);
INSTANTIATE_TEST_SUITE_P(
    GpuOnly, ThreadFile,
    ::testing::Combine(::testing::Values("gpu/gemm_f16_nn", "gpu/gemm_f16_nt", "gpu/gemm_f16_tn",
                                         "gpu/gemm_f16_tt", "gpu/gemm_i8_nt", "gpu/gemm_f64", "gpu/gemm_f32",
                                         "gpu/gemm_tf32", "gpu/gemm_dp4a", "gpu/chained_gemm"),
                       ::testing::Values("sm_80")),
    test_name);
INSTANTIATE_TEST_SUITE_P(Fp8, ThreadFile,
                         ::testing::Combine(::testing::Values("gpu/gemm_fp8_nt"), ::testing::Values("sm_90")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(DotProducts, ThreadFile,
                         ::testing::Combine(::testing::Values("gemm_bf16"), ::testing::Values("avx512-dot")),
                         test_name);

}  // namespace
}  // namespace tilegen::lower
