// Attention whose products have operands that threads write to shared memory: weights, scaled queries, keys
// and values of bytes.
#include <algorithm>
#include <array>

#include "written_operand.h"

namespace tilegen::differential {
namespace {

// Batch, heads, queries, keys: 0, 1, 2, 3 and 7 blocks of 64 keys.
const std::vector<std::array<int64_t, 4>> kLengths = {{1, 1, 64, 0},    {2, 1, 64, 64},   {1, 2, 130, 128},
                                                      {1, 1, 64, 192},  {1, 1, 100, 448}, {1, 1, 1, 70},
                                                      {1, 1, 200, 100}, {1, 1, 0, 64}};

void run_attention(const Attention& a, const std::string& written,
                   const std::vector<std::array<int64_t, 4>>& lengths = kLengths, On on = On::hopper,
                   std::string text = "") {
  if (text.empty()) text = attention_text(a);
  if (!take_case) {
    ASSERT_EQ(products_refusal(text, written), "") << text;
  }
  Subject subject(text, covering(targets(on), text));
  ASSERT_EQ(subject.invalid(), "") << text;
  uint64_t seed = 1;
  for (const auto& [batch, heads, queries, keys] : lengths) {
    Launch l;
    l.dims = {{"batch", batch}, {"heads", heads}, {"queries", queries}, {"keys", keys}};
    l.seed = seed++;
    l.data = Data::reals;
    l.magnitude = 2;
    l.bound = {a.type == "f16" ? 4e-3 : 3e-2, 2};
    expect_agree(subject, text, l);
    if (testing::Test::HasFailure()) return;
  }
}

Attention through_memory(int64_t dim, int64_t rows, int threads) {
  Attention a;
  a.weights = "shared";
  a.dim = dim, a.rows = rows, a.threads = threads;
  return a;
}

TEST(ThreadWrittenOperand, WeightsOfAttention) {
  Attention a = through_memory(64, 64, 128);
  EXPECT_EQ(plan_refusal(attention_text(a)), "");
  run_attention(a, kByWarpgroup, kLengths, On::all);
  a.right = 0;
  run_attention(a, kByWarpgroup);
}

TEST(ThreadWrittenOperand, WeightsOfSeveralWarpgroups) {
  for (int64_t dim : {64, 128}) {
    Attention a = through_memory(dim, 128, 256);
    a.keys = 128;
    for (bool causal : {false, true}) {
      if (causal) a.right = 0;
      EXPECT_EQ(plan_refusal(attention_text(a)), "");
      run_attention(a, kByWarpgroup, {{1, 1, 300, 896}, {1, 1, 130, 300}, {1, 2, 1, 256}, {1, 1, 256, 0}});
      if (HasFailure()) return;
    }
  }
}

TEST(ThreadWrittenOperand, WeightsOfAnotherType) {
  Attention a = through_memory(128, 64, 128);
  a.type = "bf16";
  run_attention(a, kByWarpgroup, {{1, 2, 70, 130}, {1, 1, 3, 0}, {1, 1, 100, 30}});
}

TEST(ThreadWrittenOperand, QueriesThatThreadsScale) {
  Attention a;
  a.scaled_queries = true;
  run_attention(a, kByWarpgroup, kLengths, On::all);
  a.dim = a.rows = 128;
  a.threads = 256;
  a.weights = "shared";
  for (bool causal : {false, true}) {
    if (causal) a.right = 0;
    run_attention(a, kByAll, {{1, 1, 700, 450}, {1, 2, 130, 64}, {1, 1, 1, 1}, {1, 1, 256, 0}});
    if (HasFailure()) return;
  }
}

// Keys and values of bytes, unpacked by threads: the values of the iteration before beside the scores of this
// one.
TEST(ThreadWrittenOperand, KeysAndValuesOfBytes) {
  for (const auto& [rows, threads, weights] :
       {std::tuple{64, 128, "fragment"}, {128, 256, "fragment"}, {128, 256, "shared"}}) {
    Attention a;
    a.rows = rows, a.threads = threads, a.weights = weights;
    std::string text = attention_text(a);
    const auto put = [&](const std::string& from, const std::string& to) {
      const size_t at = text.find(from);
      ASSERT_NE(at, text.npos) << from;
      text.replace(at, from.size(), to);
    };
    for (const std::string t : {"K", "V"}) {
      put("tensor " + t + ": f16", "tensor " + t + ": i8");
      put("  alloc " + t + "s:", "  alloc " + t + "r: shared i8[64, 64]\n  alloc " + t + "s:");
      put("-> " + t + "s\n", "-> " + t + "r\n    parallel i, j in 64, 64 {\n      " + t +
                                 "s[i, j] = cast(f16, " + t + "r[i, j]) * 0.5f16\n    }\n");
    }
    plan::KernelSchedule k;
    ASSERT_EQ(plan_on_hopper(text, k), "");
    EXPECT_EQ(k.pipelines.size(), 3u);
    run_attention(a, threads == 128 ? kByWarpgroup : kByAll,
                  {{1, 1, 200, 448}, {1, 2, 70, 130}, {1, 1, 64, 64}, {1, 1, 3, 0}}, On::hopper, text);
    if (HasFailure()) return;
  }
}

// One tile is keys and values; warpgroups share the columns of the result, so that each multiplies weights of
// both.
TEST(ThreadWrittenOperand, LatentHeads) {
  const std::string text = R"(tl 1 program mla
dim batch
dim keys
tensor Q: f16[batch, 64, 512] readonly
tensor P: f16[batch, 64, 64] readonly
tensor KV: f16[batch, keys, 512] readonly
tensor KP: f16[batch, keys, 64] readonly
tensor O: f16[batch, 64, 512]
kernel mla grid (bb: batch) threads 256 {
  alloc Qs: shared f16[64, 512]
  alloc Ps: shared f16[64, 64]
  alloc Ks: shared f16[32, 512]
  alloc Kp: shared f16[32, 64]
  alloc S: shared f16[64, 32]
  alloc scores: fragment f32[64, 32]
  alloc out: fragment f32[64, 512]
  alloc top: fragment f32[64]
  alloc before: fragment f32[64]
  alloc part: fragment f32[64]
  alloc total: fragment f32[64]
  copy Q[bb :+ 1, 0 :+ 64, 0 :+ 512] -> Qs
  copy P[bb :+ 1, 0 :+ 64, 0 :+ 64] -> Ps
  fill out, 0.0f32
  fill total, 0.0f32
  fill top, -1e30f32
  pipelined kb in 0 .. ceildiv(keys, 32) stages 2 {
    copy KV[bb :+ 1, kb * 32 :+ 32, 0 :+ 512] -> Ks
    copy KP[bb :+ 1, kb * 32 :+ 32, 0 :+ 64] -> Kp
    gemm Qs, Ks -> scores {transpose_b, clear}
    gemm Ps, Kp -> scores {transpose_b}
    parallel i, j in 64, 32 {
      scores[i, j] = select(kb * 32 + j < keys, scores[i, j], -inf:f32)
    }
    copy top -> before
    reduce scores -> top {kind=max, axis=1, accumulate}
    parallel i, j in 64, 32 {
      scores[i, j] = exp2((scores[i, j] - top[i]) * 0.18f32)
    }
    parallel i in 64 {
      before[i] = exp2((before[i] - top[i]) * 0.18f32)
    }
    reduce scores -> part {axis=1}
    parallel i in 64 {
      total[i] = total[i] * before[i] + part[i]
    }
    copy scores -> S
    parallel i, j in 64, 512 {
      out[i, j] = out[i, j] * before[i]
    }
    gemm S, Ks -> out
  }
  parallel i in 64 {
    total[i] = select(total[i] > 0.0f32, 1.0f32 / total[i], 0.0f32)
  }
  parallel i, j in 64, 512 {
    out[i, j] = out[i, j] * total[i]
  }
  copy out -> O[bb :+ 1, 0 :+ 64, 0 :+ 512]
}
)";
  if (!take_case) {
    ASSERT_EQ(products_refusal(text, kByAll), "");
  }
  Subject subject(text, targets(On::hopper));
  ASSERT_EQ(subject.invalid(), "");
  for (const int64_t keys : {200, 33, 20, 1, 64, 0}) {  // the first block whole, ragged, a row
    Launch l;
    l.dims = {{"batch", 2}, {"keys", keys}};
    l.seed = static_cast<uint64_t>(keys);
    l.data = Data::reals;
    l.magnitude = 1;
    l.bound = {4e-3, 2};
    expect_agree(subject, text, l);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tilegen::differential
