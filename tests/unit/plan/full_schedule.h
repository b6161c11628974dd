// A schedule in which every field of every struct holds something other than its default.
#pragma once

#include <gtest/gtest.h>

#include "plan/schedule.h"

namespace tilegen::plan {

using layout::Fragment;
using layout::Layout;

constexpr const char* kSwizzled = "(128,32) -> [0: d0/1%128*32 + d1/1%32*1] swizzle(2,4,3)@2";

inline Layout swizzled() {
  auto l = Layout::from_text(kSwizzled);
  EXPECT_TRUE(l) << l.error().to_text();
  return *l;
}

// Every field of every struct holds something other than its default.
inline Schedule full_schedule() {
  const int64_t tile[] = {64, 64}, row[] = {128, 32}, vec[] = {16};
  Fragment acc = Fragment::row_major_vectors(tile, 128, 4);
  Fragment everywhere = Fragment::replicated(vec, 128);
  KernelSchedule k;
  k.kernel = "gemm";
  k.threads = 128;
  k.raster = RasterPlan{"grouped", 8, 2, 1, false, 40, 128, "neighbouring blocks share B"};
  k.roles = {{"consumer", 8, 232, {}, ""},
             {"producer", 4, 40, {"gemm/ko/copy#0"}, "one thread issues the copies"}};
  k.persistence = PersistencePlan{true, "dynamic", true, "one block fills a multiprocessor"};
  k.cluster = ClusterPlan{2, "by", "B is read once for two rows"};
  k.pipelines = {{"gemm/ko", "gemm/ko", {"gemm:As", "gemm:Bs"}, 4}, {"gemm/ko@1", "gemm/ko", {"gemm:Vs"}, 1}};
  k.ops = {
      {"gemm/ko/copy#0",
       Engine::async_copy,
       "cp_async_16",
       1,
       1,
       std::nullopt,
       8,
       false,
       "",
       0,
       "16 bytes per thread",
       {}},
      {"gemm/ko/gemm#0",
       Engine::mma,
       "mma_m16n8k16_f16",
       2,
       2,
       std::nullopt,
       1,
       false,
       "",
       0,
       "fewest shared loads",
       {}},
      {"gemm/i.j/store#0",
       Engine::loop,
       "",
       1,
       1,
       acc,
       4,
       true,
       "evict_first",
       0,
       "rows are contiguous",
       {"gemm:acc@1"}},
      {"gemm/copy#0", Engine::tensor_copy, "", 1, 1, std::nullopt, 1, false, "", 128, "staged", {}},
      {"gemm/ko/reduce#0",
       Engine::lane_reduce,
       "",
       1,
       1,
       std::nullopt,
       1,
       false,
       "",
       0,
       "only added up",
       {},
       "gemm/ko"},
      {"gemm/ko/reduce#1", Engine::lane_reduce, "", 1, 1, std::nullopt, 1, false, "", 0, "", {}, ""},
  };
  k.values = {
      {"gemm:As", std::nullopt, swizzled(), 3, Origin::strict, "free of bank conflicts"},
      {"gemm:Bs", std::nullopt, Layout::padded_row_major(row, 8), 2, Origin::free, "padding costs 2 KiB"},
      {"gemm:acc", acc, std::nullopt, 1, Origin::common, "layout of gemm#0"},
      {"gemm:acc@1", everywhere, std::nullopt, 1, Origin::given, ""},
  };
  k.loops = {{"gemm/ko", 3, {{"gemm/ko/copy#0", 0}, {"gemm/ko/gemm#0", 2}}, "default 3 stages"}};
  k.loops[0].ping_pong = true;
  k.conversions = {{"gemm:acc", "gemm/ko/gemm#0", "gemm/i.j/store#0", layout::ConversionKind::shared_bounce,
                    acc, everywhere, 420, "the two ops hold the value on different warps"}};
  k.memory = {{Storage::value, "gemm:As", "", 0, 24576}, {Storage::value, "gemm:Bs", "", 24576, 20480}};
  k.notes = {{"gemm/ko", "fewer stages: 4 do not fit\nshared memory"}};
  KernelSchedule open;
  open.kernel = "cast";
  Schedule s;
  s.target = "sm_80";
  s.program_hash = "0123456789abcdef0123456789abcdef";
  s.kernels = {k, open};
  return s;
}

}  // namespace tilegen::plan
