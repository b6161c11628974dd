// Registers of kernels and the blocks that have room, against what ptxas 13.0 gives their code for sm_90a.
#include "cost/occupancy.h"

#include "planned.h"

namespace tilegen::cost {
namespace {

struct Attention {
  int64_t rows, keys, dim, stages, threads;

  std::string text() const {
    const auto s = [](int64_t v) { return std::to_string(v); };
    const std::string tq = s(rows), tk = s(keys), d = s(dim);
    const std::string row = "[" + tq + "]", out = "[" + tq + ", " + d + "]",
                      scores = "[" + tq + ", " + tk + "]";
    const auto tensor = [&](const char* name, const char* end) {
      return std::string("tensor ") + name + ": f16[n, " + d + "]" + end + "\n";
    };
    return "tl 1 program attention\ndim n\nscalar scale: f32\n" + tensor("Q", " readonly") +
           tensor("K", " readonly") + tensor("V", " readonly") + tensor("O", "") +
           "kernel attention grid (bq: ceildiv(n, " + tq + ")) threads " + s(threads) +
           " {\n  alloc Qs: shared f16" + out + "\n  alloc Ks: shared f16[" + tk + ", " + d +
           "]\n  alloc Vs: shared f16[" + tk + ", " + d + "]\n  alloc scores: fragment f32" + scores +
           "\n  alloc weights: fragment f16" + scores + "\n  alloc out: fragment f32" + out +
           "\n  alloc top: fragment f32" + row + "\n  alloc before: fragment f32" + row +
           "\n  alloc part: fragment f32" + row + "\n  alloc total: fragment f32" + row + "\n  copy Q[bq * " +
           tq + " :+ " + tq + ", 0 :+ " + d +
           "] -> Qs\n  fill out, 0.0f32\n  fill total, 0.0f32\n  fill top, -1e30f32\n"
           "  pipelined kb in 0 .. ceildiv(n, " +
           tk + ") stages " + s(stages) + " {\n    copy K[kb * " + tk + " :+ " + tk + ", 0 :+ " + d +
           "] -> Ks\n    gemm Qs, Ks -> scores {transpose_b, clear}\n"
           "    parallel i, j in " +
           tq + ", " + tk + " { scores[i, j] = select(kb * " + tk +
           " + j < n, scores[i, j], -inf:f32) }\n    copy top -> before\n"
           "    reduce scores -> top {kind=max, axis=1, accumulate}\n    parallel i, j in " +
           tq + ", " + tk +
           " { scores[i, j] = exp2(scores[i, j] * scale - top[i] * scale) }\n    parallel i in " + tq +
           " { before[i] = exp2((before[i] - top[i]) * scale) }\n"
           "    reduce scores -> part {kind=sum, axis=1}\n    parallel i in " +
           tq +
           " { total[i] = total[i] * before[i] + part[i] }\n    copy scores -> weights\n"
           "    parallel i, j in " +
           tq + ", " + d + " { out[i, j] = out[i, j] * before[i] }\n    copy V[kb * " + tk + " :+ " + tk +
           ", 0 :+ " + d + "] -> Vs\n    gemm weights, Vs -> out\n  }\n  parallel i, j in " + tq + ", " + d +
           " { out[i, j] = out[i, j] / total[i] }\n  copy out -> O[bq * " + tq + " :+ " + tq + ", 0 :+ " + d +
           "]\n}\n";
  }
};

TEST(Occupancy, RegistersOfAttentionAreThoseOfItsCode) {
  const std::vector<std::pair<Attention, int64_t>> kernels = {
      {{128, 64, 64, 1, 256}, 96},  {{128, 128, 64, 1, 256}, 133}, {{64, 80, 64, 2, 128}, 118},
      {{64, 192, 64, 3, 128}, 202}, {{64, 128, 128, 1, 128}, 157}, {{64, 160, 128, 2, 128}, 212},
      {{64, 32, 128, 1, 128}, 108}, {{128, 32, 64, 2, 256}, 82},
  };
  for (const auto& [a, registers] : kernels) {
    const Occupancy o = planned(a.text()).estimate({{"n", 4096}}).kernels[0].occupancy;
    EXPECT_NEAR(static_cast<double>(o.registers), static_cast<double>(registers), 0.05 * registers)
        << a.rows << "x" << a.keys << " of " << a.dim << ", " << a.stages << " stages";
  }
}

// An iteration's scores live beside the weights of the one before where products lag.
TEST(Occupancy, ProductsThatLagTakeRegisters) {
  const std::string text = Attention{64, 128, 64, 2, 128}.text();
  const Planned p = planned(text);
  const plan::LoopPlan& loop = p.schedule.kernels[0].loops[0];
  ASSERT_TRUE(std::any_of(loop.stages.begin(), loop.stages.end(),
                          [&](const auto& s) { return s.second > loop.num_stages - 1; }));
  const Planned in_turn = planned(Attention{64, 128, 64, 1, 128}.text());
  EXPECT_GE(p.estimate({{"n", 4096}}).kernels[0].occupancy.registers,
            in_turn.estimate({{"n", 4096}}).kernels[0].occupancy.registers + 20);
}

}  // namespace
}  // namespace tilegen::cost
