// Schedules as text: one golden text.
#include "full_schedule.h"

namespace tilegen::plan {
namespace {

TEST(ScheduleText, ReadsWell) {
  EXPECT_EQ(schedule_to_text(full_schedule()), R"(schedule for sm_80, program 0123456789abcdef0123456789abcdef

kernel gemm  128 threads, raster grouped by 8 -- neighbouring blocks share B
  block
    consumer    8 warps   232 registers
    producer    4 warps   40 registers         -- one thread issues the copies
      gemm/ko/copy#0
    persistent  dynamic   empty tiles skipped  -- one block fills a multiprocessor
    cluster     2 blocks  along by             -- B is read once for two rows
  ops
    gemm/ko/copy#0    async_copy   cp_async_16, vector 8                                              -- 16 bytes per thread
    gemm/ko/gemm#0    mma          mma_m16n8k16_f16, warps 2x2                                        -- fewest shared loads
    gemm/i.j/store#0  loop         vector 4, streaming, cache evict_first, gemm:acc@1 through memory  -- rows are contiguous
      64x64 over 128 threads, 32 registers each
      threads 128 : (64,64) -> [0: d0/1%8*16 + d1/4%16*1; 1: d0/8%8*4 + d1/1%4*1]
    gemm/copy#0       tensor_copy  epilogue tiles of 128 columns                                      -- staged
    gemm/ko/reduce#0  lane_reduce  deferred to gemm/ko                                                -- only added up
    gemm/ko/reduce#1  lane_reduce
  values
    gemm:As     strict  3 slots  memory 128x32 row-major swizzle(2,4,3)                         -- free of bank conflicts
    gemm:Bs     free    2 slots  memory 128x32 row-major, rows padded by 8                      -- padding costs 2 KiB
    gemm:acc    common           fragment 64x64 over 128 threads, 32 registers each             -- layout of gemm#0
      threads 128 : (64,64) -> [0: d0/1%8*16 + d1/4%16*1; 1: d0/8%8*4 + d1/1%4*1]
    gemm:acc@1  given            fragment 16 over 128 threads, 16 registers each, 128 replicas
      threads 128 : (16) -> [0: 0; 1: d0/1%16*1; r: o0/1%128*1]
  loops
    gemm/ko  3 stages, ping-pong  -- default 3 stages
      0: gemm/ko/copy#0  2: gemm/ko/gemm#0
  pipelines
    gemm/ko    in gemm/ko  4 slots  gemm:As  gemm:Bs
    gemm/ko@1  in gemm/ko           gemm:Vs
  conversions
    gemm:acc  shared_bounce  gemm/ko/gemm#0 -> gemm/i.j/store#0  420 cycles  -- the two ops hold the value on different warps
      from threads 128 : (64,64) -> [0: d0/1%8*16 + d1/4%16*1; 1: d0/8%8*4 + d1/1%4*1]
      to   threads 128 : (16) -> [0: 0; 1: d0/1%16*1; r: o0/1%128*1]
  memory  45056 bytes
    gemm:As  [0, 24576)      24576 bytes
    gemm:Bs  [24576, 45056)  20480 bytes
  notes
    gemm/ko  fewer stages: 4 do not fit shared memory

kernel cast  threads open, raster open
)");
}

TEST(ScheduleText, HasOneLinePerDecisionWhateverTheNames) {
  Schedule s;
  EXPECT_EQ(schedule_to_text(s), "schedule for any target\n");
  s.target = "a\nb";
  s.kernels.resize(1);
  s.kernels[0].kernel = "k\tk";
  s.kernels[0].notes = {{"p\n", "t\r\nt"}};
  s.kernels[0].memory = {{Storage::value, "v", "", INT64_MAX, INT64_MAX}};
  EXPECT_EQ(
      schedule_to_text(s),
      "schedule for a b\n\nkernel k k  threads open, raster open\n  memory  18446744073709551614 bytes\n"
      "    v  [9223372036854775807, 18446744073709551614)  9223372036854775807 bytes\n  notes\n    p   t  "
      "t\n");
}

}  // namespace
}  // namespace tilegen::plan
