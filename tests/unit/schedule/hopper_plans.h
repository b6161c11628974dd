// Plans for a target with a copy engine.
#pragma once

#include <algorithm>
#include <string>

#include "plan_support.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {

// A product of any sizes; `alloc` and `epilogue` are further statements of it.
inline std::string gemm_text(int64_t m, int64_t n, int64_t k, int64_t stages, int64_t threads,
                             const std::string& c = "f16", const std::string& alloc = "",
                             const std::string& epilogue = "") {
  const std::string M = std::to_string(m), N = std::to_string(n), K = std::to_string(k);
  return "tl 1 program p\ndim m\ndim n\ndim k\ntensor A: f16[m, k] readonly\ntensor B: f16[k, n] "
         "readonly\ntensor C: " +
         c + "[m, n]\nkernel gemm grid (by: ceildiv(m, " + M + "), bx: ceildiv(n, " + N + ")) threads " +
         std::to_string(threads) + " {\n alloc As: shared f16[" + M + ", " + K + "]\n alloc Bs: shared f16[" +
         K + ", " + N + "]\n alloc acc: fragment f32[" + M + ", " + N + "]\n" + alloc +
         " fill acc, 0.0f32\n pipelined ko in 0 .. ceildiv(k, " + K + ") stages " + std::to_string(stages) +
         " {\n copy A[by * " + M + " :+ " + M + ", ko * " + K + " :+ " + K + "] -> As\n copy B[ko * " + K +
         " :+ " + K + ", bx * " + N + " :+ " + N + "] -> Bs\n gemm As, Bs -> acc\n }\n" + epilogue +
         " copy acc -> C[by * " + M + " :+ " + M + ", bx * " + N + " :+ " + N + "]\n}\n";
}

inline Expected<plan::Schedule> plan_with(const ir::Program& p, TensorCopies allowed,
                                          const plan::Schedule* given = nullptr,
                                          const char* target = "sm_90a") {
  PlanOptions options;
  options.given = given;
  options.tensor_copies = allowed;
  Expected<plan::Schedule> plan = plan_program(p, target_named(target), options);
  if (!given || allowed != TensorCopies::none)
    return complete_plan(p, target_named(target), std::move(plan), given);
  // Parts are those of an iteration, which is planned anew where the layouts of warpgroups go.
  plan::Schedule without_parts = *given;
  for (plan::KernelSchedule& k : without_parts.kernels)
    for (plan::OpPlan& o : k.ops) o.mask_parts = 0;
  return complete_plan(p, target_named(target), std::move(plan), &without_parts);
}

inline plan::Schedule planned(const ir::Program& p, TensorCopies allowed = TensorCopies::loads_and_stores,
                              const plan::Schedule* given = nullptr) {
  auto s = plan_with(p, allowed, given);
  EXPECT_TRUE(s) << s.error().to_text();
  return s ? *s : plan::Schedule{};
}

// The message of the refusal.
inline std::string refused(const ir::Program& p, const plan::Schedule& given) {
  auto s = plan_for(p, "sm_90a", &given);
  if (s) return "not refused";
  EXPECT_EQ(s.error().diagnostics[0].code, DiagCode::schedule_illegal) << s.error().to_text();
  return s.error().diagnostics[0].message;
}

// Ops that the engine does.
inline int engines(const plan::Schedule& s, plan::Engine e) {
  int n = 0;
  for (const plan::KernelSchedule& k : s.kernels)
    n += static_cast<int>(
        std::count_if(k.ops.begin(), k.ops.end(), [&](const plan::OpPlan& o) { return o.engine == e; }));
  return n;
}

// The note on an op; empty: none.
inline std::string note_of(const plan::KernelSchedule& k, const std::string& path) {
  for (const plan::Note& n : k.notes)
    if (n.path == path) return n.text;
  return "";
}

}  // namespace tilegen::schedule
