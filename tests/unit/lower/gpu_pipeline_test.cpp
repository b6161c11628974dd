// Asynchronous copies and software pipelines on the simulator, and a reduction of a part of a fragment,
// against the interpreter.
#include "simulated_program.h"

namespace tilegen::lower {
namespace {

// The value of the last iteration is read after the loop; another tile is read before it is copied.
TEST(GpuPipeline, ValuesThatLiveAcrossIterations) {
  expect_simulated(R"(
tl 1 program p
dim n
tensor A: f32[n, 128] readonly
tensor D: f32[2, 128]
kernel last grid (b: 1) threads 64 {
  alloc now: shared f32[128]
  alloc before: shared f32[128]
  alloc sum: fragment f32[128]
  fill sum, 0.0f32
  fill now, 0.0f32
  fill before, 0.0f32
  pipelined i in 0 .. n stages 3 {
    parallel j in 128 {
      sum[j] = sum[j] + before[127 - j]
    }
    copy A[i :+ 1, 0 :+ 128] -> before
    copy A[i :+ 1, 0 :+ 128] -> now
  }
  parallel j in 128 {
    D[0, j] = sum[j]
    D[1, j] = now[127 - j]
  }
})",
                   {5});
}

TEST(GpuPipeline, NestedLoopsAndGuards) {
  expect_simulated(R"(
tl 1 program p
dim n
dim r
tensor A: f32[r * n, 128] readonly
tensor D: f32[r, 128]
kernel rows grid (b: 1) threads 64 {
  alloc s: shared f32[128]
  alloc sum: fragment f32[128]
  serial o in 0 .. r {
    fill sum, 0.0f32
    pipelined i in 0 .. n stages 3 {
      copy A[o * n + i :+ 1, 0 :+ 128] -> s
      if i != 2 {
        parallel j in 128 {
          sum[j] = sum[j] + s[127 - j]
        }
      }
    }
    parallel j in 128 {
      D[o, j] = sum[j]
    }
  }
})",
                   {5, 3});
}

TEST(GpuPipeline, CopiesUnderConditionsDoNotRunAhead) {
  expect_simulated(R"(
tl 1 program p
dim n
tensor A: f32[n, 128] readonly
tensor D: f32[128]
kernel guarded grid (b: 1) threads 64 {
  alloc s: shared f32[128]
  alloc sum: fragment f32[128]
  fill sum, 0.0f32
  fill s, 0.0f32
  pipelined i in 0 .. n stages 2 {
    if i % 2 == 0 {
      copy A[i :+ 1, 0 :+ 128] -> s
    }
    parallel j in 128 {
      sum[j] = sum[j] + s[127 - j]
    }
  }
  copy sum -> D
})",
                   {5});
}

TEST(GpuReduce, APartOfAFragment) {
  expect_simulated(R"(
tl 1 program t
tensor X: f32[32, 64] readonly
tensor Y: f32[32]
kernel k grid (b: 1) threads 128 {
  alloc x: fragment f32[32, 64]
  alloc r: fragment f32[32]
  copy X -> x
  reduce x[0 :+ 32, 8 :+ 16] -> r { axis = 1 }
  copy r -> Y
})",
                   {});
}

}  // namespace
}  // namespace tilegen::lower
