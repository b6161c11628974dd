// GPU thread programs, run by the simulator, against the interpreter on random inputs; ragged sizes included.
#include "gpu_arguments.h"

namespace tilegen::lower {
namespace {

struct Case {
  const char* file;           // below tests/files
  std::vector<int64_t> dims;  // dims and scalars, in parameter order
  const char* name;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class GpuProgram : public ::testing::TestWithParam<Case> {};

TEST_P(GpuProgram, ComputesWhatTheInterpreterDoes) {
  const ir::Program p = load_program(GetParam().file);
  ASSERT_FALSE(HasFailure());
  const target::Target target = *target::find_target("sm_80");
  auto schedule = schedule::plan_program(p, target, {});
  ASSERT_TRUE(schedule) << schedule.error().to_text();
  bool ran = false;
  run_lowered(p, target, *schedule, GetParam().dims, true, &ran);
  run_lowered(p, target, *schedule, GetParam().dims, false, &ran);
  EXPECT_TRUE(ran) << "the form without assumptions runs always";
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuProgram,
    ::testing::Values(Case{"lower/elementwise_ragged.tl", {1000}, "ragged_aligned"},
                      Case{"lower/elementwise_ragged.tl", {769}, "ragged_odd"},
                      Case{"lower/branch_changes_condition.tl", {}, "branches"},
                      Case{"lower/strided_tensors.tl", {32, 72}, "strided"},
                      Case{"lower/strided_tensors.tl", {16, 65}, "strided_odd_pitch"},
                      Case{"lower/wide_stores.tl", {20, 136}, "wide"},
                      Case{"lower/wide_stores.tl", {17, 131}, "wide_odd"},
                      Case{"lower/row_softmax.tl", {3}, "row_softmax"},
                      Case{"lower/reduce_both_axes.tl", {48}, "both_axes"},
                      Case{"lower/streamed_beside_kept.tl", {128}, "streamed"},
                      Case{"plan/softmax.tl", {2}, "softmax"}, Case{"plan/layernorm.tl", {2, 1}, "layernorm"},
                      Case{"plan/convert_replication.tl", {}, "convert_replication"},
                      Case{"plan/convert_shared_bounce.tl", {}, "convert_shared_bounce"},
                      Case{"plan/convert_doubles.tl", {}, "convert_doubles"},
                      Case{"plan/convert_shuffle.tl", {}, "convert_shuffle"},
                      Case{"plan/bias_replication.tl", {}, "bias_replication"},
                      Case{"plan/chained_gemm.tl", {130}, "chained_gemm"},
                      Case{"plan/gemm_bias_relu.tl", {136, 136, 72}, "gemm_bias_relu"},
                      Case{"plan/flash_attention.tl", {70, 128, 1}, "flash_attention"},
                      Case{"text/all_dtypes.tl", {130, 1, 2, 3, 4, 5, 6, 7, 8, 1}, "all_dtypes"},
                      Case{"text/all_dtypes.tl", {128, 1, 2, 3, 4, 5, 6, 7, 8, 1}, "all_dtypes_whole"},
                      Case{"text/elementwise_add.tl", {33, 132}, "add"},
                      Case{"text/elementwise_add.tl", {33, 131}, "add_odd"},
                      Case{"text/elementwise_gelu.tl", {1033}, "gelu"},
                      Case{"text/expressions.tl", {200, 2, 3, 4, 1}, "expressions"},
                      Case{"text/loops_and_branches.tl", {128, 70, 1, 3}, "loops_and_branches"},
                      Case{"text/rmsnorm.tl", {2, 1}, "rmsnorm"},
                      Case{"text/row_reductions.tl", {10}, "row_reductions"},
                      Case{"text/strided.tl", {20, 68, 72}, "strided_tiles"},
                      Case{"text/strided.tl", {20, 68, 80}, "strided_tiles_pitch"},
                      Case{"lower/fragment_parts.tl", {}, "fragment_parts"},
                      Case{"lower/copies_of_points.tl", {}, "copies_of_points"},
                      Case{"lower/scalars_from_tiles.tl", {}, "scalars_from_tiles"},
                      Case{"text/transpose.tl", {40, 36}, "transpose"},
                      Case{"text/transpose.tl", {33, 37}, "transpose_odd"}),
    [](const auto& info) { return info.param.name; });

TEST(GpuProgram, AnyOrderOfBlocks) {
  const target::Target target = *target::find_target("sm_80");
  for (const char* file : {"lower/wide_stores.tl", "lower/grid_of_three.tl"}) {
    const ir::Program p = load_program(file);
    auto schedule = schedule::plan_program(p, target, {});
    ASSERT_TRUE(schedule) << schedule.error().to_text();
    for (const auto& [order, group] : {std::pair("row_major", 1),
                                       {"column_major", 1},
                                       {"grouped", 2},
                                       {"grouped", 3},
                                       {"grouped", 64},
                                       {"by_die", 1},
                                       {"by_die", 3}}) {
      schedule->kernels[0].raster->order = order;
      schedule->kernels[0].raster->group = group;
      schedule->kernels[0].raster->dies = 4;
      bool ran = false;
      run_lowered(p, target, *schedule, {67, 264}, true, &ran);
      EXPECT_TRUE(ran);
      ASSERT_FALSE(HasFailure()) << file << ", " << order << " " << group;
    }
  }
}

// Rows and columns of the tiles in the order of blocks, as the kernel's first statements tell them.
std::vector<std::pair<int64_t, int64_t>> walk_of(const ir::Program& p, const plan::Schedule& schedule,
                                                 const target::Target& target, int64_t rows,
                                                 int64_t columns) {
  auto lowered = schedule::lowered_as_planned(p, 0, schedule.kernels[0], target, schedule::Assumptions::none);
  EXPECT_TRUE(lowered) << lowered.error().to_text();
  if (!lowered) return {};
  std::map<ir::VarId, int64_t> values;
  const int64_t sizes[] = {rows * 64, columns * 64, 64};
  for (size_t i = 0; i < 3; ++i) values[lowered->params[i].var] = sizes[i];
  std::vector<std::pair<int64_t, int64_t>> walk;
  for (int64_t block = 0; block < rows * columns; ++block) {
    values[lowered->block_vars[0]] = block;
    const auto index = [&](size_t statement) {
      const auto& store = std::get<thread::Store>(lowered->stmts[lowered->body[statement].value].node);
      return test::launch_value(lowered->exprs, store.value, values);
    };
    walk.emplace_back(index(0), index(1));
  }
  return walk;
}

// The rows that are left for the last band of a grouped order share their columns as those of others do.
TEST(GpuProgram, EveryBandIsWalkedByColumns) {
  const target::Target target = *target::find_target("sm_80");
  const ir::Program p = load_program("lower/gpu/gemm_f16_nt.tl");
  auto schedule = schedule::plan_program(p, target, {});
  ASSERT_TRUE(schedule) << schedule.error().to_text();
  schedule->kernels[0].raster->order = "grouped";
  for (int64_t group : {3, 8})
    for (int64_t rows : {1, 2, 3, 7, 8, 11, 16}) {
      schedule->kernels[0].raster->group = group;
      const int64_t columns = 5;
      std::vector<std::pair<int64_t, int64_t>> want;
      for (int64_t first = 0; first < rows; first += group)
        for (int64_t column = 0; column < columns; ++column)
          for (int64_t row = first; row < std::min(rows, first + group); ++row)
            want.emplace_back(row, column);
      EXPECT_EQ(walk_of(p, *schedule, target, rows, columns), want) << rows << " rows by " << group;
    }
}

// Every die's blocks, which come in turn, have a part of the grouped order, each as many as any other give or
// take one.
TEST(GpuProgram, DiesWalkPartsOfTheGrid) {
  const target::Target target = *target::find_target("sm_80");
  const ir::Program p = load_program("lower/gpu/gemm_f16_nt.tl");
  auto schedule = schedule::plan_program(p, target, {});
  ASSERT_TRUE(schedule) << schedule.error().to_text();
  schedule->kernels[0].raster->group = 3;
  for (int64_t rows : {1, 2, 7, 16}) {
    const int64_t columns = 5, tiles = rows * columns;
    schedule->kernels[0].raster->order = "grouped";
    schedule->kernels[0].raster->dies = 0;
    const auto grouped = walk_of(p, *schedule, target, rows, columns);
    schedule->kernels[0].raster->order = "by_die";
    for (int64_t dies : {1, 3, 8}) {
      schedule->kernels[0].raster->dies = dies;
      std::vector<std::pair<int64_t, int64_t>> want(static_cast<size_t>(tiles));
      auto next = grouped.begin();
      for (int64_t die = 0; die < dies; ++die)
        for (int64_t block = die; block < tiles; block += dies) want[static_cast<size_t>(block)] = *next++;
      EXPECT_EQ(walk_of(p, *schedule, target, rows, columns), want) << rows << " rows, " << dies << " dies";
    }
  }
}

// Threads that hold no column of a tile of 24 do not push a block to the edge.
TEST(GpuProgram, BlocksInsideTheTensorsCountNoPadding) {
  auto p = ir::parse_program(R"(tl 1 program padded
dim m
dim n
dim k
tensor A: f32[k, m] readonly
tensor B: f32[k, n] readonly
tensor C: f32[m, n]

kernel gemm grid (y: ceildiv(m, 8), x: ceildiv(n, 24)) {
  alloc a: shared f32[1, 8]
  alloc b: shared f32[1, 24]
  alloc c: fragment f32[8, 24]
  fill c, 0.0f32
  pipelined step in 0 .. k stages 2 {
    copy A[step :+ 1, y * 8 :+ 8] -> a
    copy B[step :+ 1, x * 24 :+ 24] -> b
    gemm a, b -> c {transpose_a, tf32}
  }
  copy c -> C[y * 8 :+ 8, x * 24 :+ 24]
}
)",
                             "padded.tl", Limits{});
  ASSERT_TRUE(p) << p.error().to_text();
  const auto target = *target::find_target("sm_80");
  auto schedule = schedule::plan_program(*p, target, {});
  ASSERT_TRUE(schedule) << schedule.error().to_text();
  auto lowered = schedule::lowered_as_planned(*p, 0, schedule->kernels[0], target);
  ASSERT_TRUE(lowered) << lowered.error().to_text();
  const std::string text = thread::print_thread_program(*lowered);
  EXPECT_NE(text.find("* 24 + 23 < n {"), std::string::npos) << text;
  EXPECT_EQ(text.find("* 24 + 31 < n"), std::string::npos) << text;
}

}  // namespace
}  // namespace tilegen::lower
