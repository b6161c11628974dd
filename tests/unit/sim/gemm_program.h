// A pipelined matrix product as a GPU would run it: cp.async into swizzled tiles, ldmatrix, mma, one barrier
// an iteration.
#pragma once

#include "gpu_program.h"

namespace tilegen::sim::test {

// C[128 x 128] = A[128 x 32*steps] * B[32*steps x 128], f16 with f32 sums, by one block of 4 warps, 64 x 64
// each.
struct GemmProgram : GpuProgram {
  static constexpr int64_t kTile = 128, kDepth = 32;
  MemoryId a, b, c, as, bs, ar, br, acc;
  int64_t steps, stages;

  explicit GemmProgram(int64_t k_steps, int64_t pipeline_stages = 3)
      : GpuProgram(128), steps(k_steps), stages(pipeline_stages) {
    a = tensor("A", DType::f16), b = tensor("B", DType::f16), c = tensor("C", DType::f32);
    p.memories[a.value].read_only = p.memories[b.value].read_only = true;
    as = shared("As", DType::f16, stages * kTile * kDepth, stages);
    bs = shared("Bs", DType::f16, stages * kTile * kDepth, stages);
    ar = registers("ar", DType::f16, 4 * 8), br = registers("br", DType::f16, 8 * 4);
    acc = registers("acc", DType::f32, 4 * 8 * 4);
    loop(i(128), LoopForm::unrolled, [&](E u) { store(acc, u, num(0, DType::f32), "gemm/fill#0"); });
    for (int64_t s = 0; s + 1 < stages; ++s) {
      issue(i(s));
      commit();
    }
    loop(i(steps), LoopForm::serial, [&](E ko) {
      add(thread::AsyncWait{stages - 2}, "gemm/ko");
      barrier(0, 0, false, "gemm/ko");
      branch(ko + (stages - 1) < i(steps), [&] { issue(ko + (stages - 1)); });
      commit();
      multiply(ko % stages);
    });
    loop(i(4), LoopForm::unrolled, [&](E m) {
      loop(i(8), LoopForm::unrolled, [&](E n) {
        loop(i(2), LoopForm::unrolled, [&](E h) {
          loop(i(2), LoopForm::vectorized, [&](E v) {
            const E row = warp() / 2 * 64 + m * 16 + h * 8 + lane() / 4,
                    column = warp() % 2 * 64 + n * 8 + lane() % 4 * 2;
            store(c, row * kTile + column + v, load(acc, m * 32 + n * 4 + h * 2 + v), "gemm/copy#2");
          });
        });
      });
    });
  }

  E a_place(E slot, E row, E chunk) {
    return slot * (kTile * kDepth) + row * kDepth + (chunk ^ (row / 2 % 4)) * 8;
  }
  E b_place(E slot, E row, E chunk) {
    return slot * (kTile * kDepth) + row * kTile + (chunk ^ (row % 8)) * 8;
  }

  void issue(E ko) {
    const E slot = ko % stages;
    loop(i(4), LoopForm::unrolled, [&](E u) {
      const E at = u * 128 + thread();
      copy_async(as, a_place(slot, at / 4, at % 4), a, at / 4 * (steps * kDepth) + ko * kDepth + at % 4 * 8,
                 16, "gemm/ko/copy#0");
      copy_async(bs, b_place(slot, at / 16, at % 16), b, (ko * kDepth + at / 16) * kTile + at % 16 * 8, 16,
                 "gemm/ko/copy#1");
    });
  }

  void multiply(E slot) {
    const E i8 = lane() / 8, r = lane() % 8;
    loop(i(2), LoopForm::unrolled, [&](E kk) {
      loop(i(4), LoopForm::unrolled, [&](E m) {
        const E row = warp() / 2 * 64 + m * 16 + i8 % 2 * 8 + r;
        add(thread::LoadMatrix{ar, (m * 8).id, as, a_place(slot, row, kk * 2 + i8 / 2).id, 4, false},
            "gemm/ko/gemm#0");
      });
      loop(i(4), LoopForm::unrolled, [&](E n) {
        const E row = kk * 16 + i8 % 2 * 8 + r, chunk = warp() % 2 * 8 + n * 2 + i8 / 2;
        add(thread::LoadMatrix{br, (n * 8).id, bs, b_place(slot, row, chunk).id, 4, true}, "gemm/ko/gemm#0");
      });
      loop(i(4), LoopForm::unrolled, [&](E m) {
        loop(i(8), LoopForm::unrolled, [&](E n) {
          add(thread::WarpMma{"mma.m16n8k16.f32.f16", ar, br, acc, (m * 8).id, (n * 4).id,
                              (m * 32 + n * 4).id, 8, 4, 4},
              "gemm/ko/gemm#0");
        });
      });
    });
  }
};

// Small integers, whose products and sums are exact in f16 and f32.
struct GemmData {
  std::vector<uint16_t> a, b;
  std::vector<float> c, expected;

  explicit GemmData(int64_t depth)
      : a(128 * depth), b(depth * 128), c(128 * 128, -1), expected(128 * 128, 0) {
    std::vector<float> fa(a.size()), fb(b.size());
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = f16_bits(fa[i] = static_cast<float>((i * 7 + i / 128) % 5) - 2);
    for (size_t i = 0; i < b.size(); ++i)
      b[i] = f16_bits(fb[i] = static_cast<float>((i * 3 + i / 100) % 7) - 3);
    for (int64_t i = 0; i < 128; ++i)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t j = 0; j < 128; ++j) expected[i * 128 + j] += fa[i * depth + k] * fb[k * 128 + j];
  }
  Arguments arguments() { return Arguments().tensor(a).tensor(b).tensor(c); }
};

}  // namespace tilegen::sim::test
