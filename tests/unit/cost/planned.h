// Programs from text with their plans and estimates.
#pragma once

#include <gtest/gtest.h>

#include "../schedule/plan_support.h"
#include "cost/cliffs.h"

namespace tilegen::cost {

struct Planned {
  target::Target target;
  ir::Program program;  // in the form that is planned
  plan::Schedule schedule;

  Estimate estimate(const Sizes& sizes = {}) const {
    return cost::estimate(program, schedule, target, sizes);
  }
  double us(const Sizes& sizes = {}) const { return estimate(sizes).microseconds(); }
  std::vector<Cliff> cliffs(const Sizes& sizes = {}) const {
    return find_cliffs(program, schedule, target, sizes);
  }
};

inline Planned planned(const std::string& text, const std::string& target = "sm_90a") {
  Planned out;
  out.target = schedule::target_named(target);
  const auto p = schedule::program_from(text);
  if (!p) return out;
  out.program = schedule::planned_form(*p, target);
  auto plan = schedule::plan_for(*p, target);
  EXPECT_TRUE(plan) << plan.error().to_text();
  if (plan) out.schedule = std::move(*plan);
  return out;
}

struct Gemm {
  int64_t tm = 128, tn = 128, tk = 64, threads = 256, stages = 4;
  std::string type = "f16";

  std::string text() const {
    const std::string m = std::to_string(tm), n = std::to_string(tn), k = std::to_string(tk);
    return "tl 1 program gemm\ndim m\ndim n\ndim k\ntensor A: " + type +
           "[m, k] readonly\ntensor B: " + type +
           "[n, k] readonly\ntensor C: f32[m, n]\nkernel gemm grid (by: ceildiv(m, " + m +
           "), bx: ceildiv(n, " + n + ")) threads " + std::to_string(threads) + " {\n  alloc As: shared " +
           type + "[" + m + ", " + k + "]\n  alloc Bs: shared " + type + "[" + n + ", " + k +
           "]\n  alloc acc: fragment f32[" + m + ", " + n +
           "]\n  fill acc, 0.0f32\n  pipelined ko in 0 .. ceildiv(k, " + k + ") stages " +
           std::to_string(stages) + " {\n    copy A[by * " + m + " :+ " + m + ", ko * " + k + " :+ " + k +
           "] -> As\n    copy B[bx * " + n + " :+ " + n + ", ko * " + k + " :+ " + k +
           "] -> Bs\n    gemm As, Bs -> acc {transpose_b}\n  }\n  copy acc -> C[by * " + m + " :+ " + m +
           ", bx * " + n + " :+ " + n + "]\n}\n";
  }
};

}  // namespace tilegen::cost
