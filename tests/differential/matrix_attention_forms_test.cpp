// Attention written otherwise: each a few lines beside the plain program, and planned and computed as well as
// that one.
#include "attention_program.h"

namespace tilegen::differential {
namespace {

using Edits = std::vector<std::pair<std::string, std::string>>;

struct Form {
  const char* name;
  Edits edits;  // each must be found
  std::map<std::string, std::vector<int64_t>> whole = {};
  std::map<std::string, int64_t> dims = {};
};

const std::string kKeysIn = "copy K[bb :+ 1, bh :+ 1, kb * 64 :+ 64, 0 :+ 64] -> Ks";
const std::string kValuesIn = "copy V[bb :+ 1, bh :+ 1, kb * 64 :+ 64, 0 :+ 64] -> Vs";
const std::string kResultOut = "copy out -> O[bb :+ 1, bh :+ 1, bq * 64 :+ 64, 0 :+ 64]";
const std::string kSeen = "select(kb * 64 + j < keys, scores[i, j], -inf:f32)";
const std::string kLoop = "pipelined kb in 0 .. ceildiv(keys, 64) stages 2 {";
const std::string kProduct = "gemm Qs, Ks -> scores {transpose_b, clear}";
const std::string kV = "tensor V: f16[batch, heads, keys, 64] readonly\n";
const std::string kOut = "alloc out: fragment f32[64, 64]\n";
const std::string kTotals = "total[i] = select(total[i] > 0.0f32";

// Beside the tensors, tiles, and the scores that are seen.
Form with(const char* name, const std::string& tensors, const std::string& tiles,
          const std::string& behind_product, const std::string& seen) {
  return {name,
          {{kV, kV + tensors},
           {kOut, kOut + tiles},
           {kProduct, kProduct + "\n" + behind_product},
           {kSeen, seen}}};
}

const std::vector<Form>& forms() {
  static const std::vector<Form> list = {
      with("a bias in registers", "tensor B: f16[queries, keys] readonly\n",
           "alloc bt: fragment f16[64, 64]\n", "copy B[bq * 64 :+ 64, kb * 64 :+ 64] -> bt",
           "select(kb * 64 + j < keys, scores[i, j] + cast(f32, bt[i, j]), -inf:f32)"),
      with("a bias in shared memory", "tensor B: f16[queries, keys] readonly\n",
           "alloc bt: shared f16[64, 64]\n", "copy B[bq * 64 :+ 64, kb * 64 :+ 64] -> bt",
           "select(kb * 64 + j < keys, scores[i, j] + cast(f32, bt[i, j]), -inf:f32)"),
      with("a bias by elements", "tensor B: f16[queries, keys] readonly\n", "", "",
           "select(kb * 64 + j < keys, scores[i, j] + cast(f32, B[bq * 64 + i, kb * 64 + j]), -inf:f32)"),
      with("a mask in memory", "tensor M: bool[queries, keys] readonly\n", "", "",
           "select(M[bq * 64 + i, kb * 64 + j] and kb * 64 + j < keys, scores[i, j], -inf:f32)"),
      with("slopes of heads", "tensor slope: f32[heads] readonly\n", "", "",
           "select(kb * 64 + j < keys, scores[i, j] + slope[bh] * cast(f32, kb * 64 + j - bq * 64 - i - keys "
           "+ queries), -inf:f32)"),
      with("a prefix seen by all", "", "", "",
           "select(kb * 64 + j < keys and (kb * 64 + j < 30 or kb * 64 + j <= bq * 64 + i), scores[i, j], "
           "-inf:f32)"),
      with("chunks", "", "", "",
           "select(kb * 64 + j < keys and (kb * 64 + j) // 48 == (bq * 64 + i) // 48, scores[i, j], "
           "-inf:f32)"),
      {"a mask before the product",
       {{kProduct,
         "parallel i, j in 64, 64 { scores[i, j] = select(kb * 64 + j < keys, 0.0f32, -inf:f32) }\n"
         "gemm Qs, Ks -> scores {transpose_b}"},
        {"parallel i, j in 64, 64 {\n      scores[i, j] = " + kSeen + "\n    }", ""}}},
      {"from minus infinity, guarded",
       {{"fill top, -1e30f32", "fill top, -inf:f32"},
        {kSeen, "select(kb * 64 + j < keys and kb * 64 + j >= bq * 64 + i - 20, scores[i, j], -inf:f32)"},
        {"- top[i] * 0.18f32)", "- select(top[i] == -inf:f32, 0.0f32, top[i] * 0.18f32))"},
        {"exp2((before[i] - top[i]) * 0.18f32)",
         "exp2(before[i] * 0.18f32 - select(top[i] == -inf:f32, 0.0f32, top[i] * 0.18f32))"}}},
      {"V transposed",
       {{kV, "tensor V: f16[batch, heads, 64, keys] readonly\n"},
        {kValuesIn, "copy V[bb :+ 1, bh :+ 1, 0 :+ 64, kb * 64 :+ 64] -> Vs"},
        {"gemm weights, Vs -> out", "gemm weights, Vs -> out {transpose_b}"}}},
      {"K and V in one tensor",
       {{"K: f16[batch, heads, keys, 64]", "K: f16[batch, keys, 2, heads, 64]"},
        {kKeysIn, "copy K[bb :+ 1, kb * 64 :+ 64, 0 :+ 1, bh :+ 1, 0 :+ 64] -> Ks"},
        {kValuesIn, "copy K[bb :+ 1, kb * 64 :+ 64, 1 :+ 1, bh :+ 1, 0 :+ 64] -> Vs"}}},
      {"pages of keys",
       {{"K: f16[batch, heads, keys, 64]", "K: f16[5, heads, 64, 64]"},
        {kV, "tensor V: f16[5, heads, 64, 64] readonly\ntensor pages: i32[3] readonly\n"},
        {kKeysIn, "copy K[cast(i64, pages[kb]) :+ 1, bh :+ 1, 0 :+ 64, 0 :+ 64] -> Ks"},
        {kValuesIn, "copy V[cast(i64, pages[kb]) :+ 1, bh :+ 1, 0 :+ 64, 0 :+ 64] -> Vs"}},
       {{"pages", {4, 1, 3}}}},
      {"pages of sequences of different lengths",
       {{"K: f16[batch, heads, keys, 64]", "K: f16[5, heads, 64, 64]"},
        {kV,
         "tensor V: f16[5, heads, 64, 64] readonly\ntensor pages: i32[batch, 3] readonly\ntensor lengths: "
         "i32[batch] readonly\n"},
        {kLoop, "pipelined kb in 0 .. ceildiv(cast(i64, lengths[bb]), 64) stages 2 {"},
        {kSeen, "select(kb * 64 + j < cast(i64, lengths[bb]), scores[i, j], -inf:f32)"},
        {kKeysIn, "copy K[cast(i64, pages[bb, kb]) :+ 1, bh :+ 1, 0 :+ 64, 0 :+ 64] -> Ks"},
        {kValuesIn, "copy V[cast(i64, pages[bb, kb]) :+ 1, bh :+ 1, 0 :+ 64, 0 :+ 64] -> Vs"}},
       {{"pages", {4, 1, 3, 0, 2, 1}}, {"lengths", {150, 0}}},
       {{"batch", 2}}},
      {"from the last block to the first",
       {{kKeysIn, "copy K[bb :+ 1, bh :+ 1, (ceildiv(keys, 64) - 1 - kb) * 64 :+ 64, 0 :+ 64] -> Ks"},
        {kValuesIn, "copy V[bb :+ 1, bh :+ 1, (ceildiv(keys, 64) - 1 - kb) * 64 :+ 64, 0 :+ 64] -> Vs"},
        {kSeen, "select((ceildiv(keys, 64) - 1 - kb) * 64 + j < keys, scores[i, j], -inf:f32)"}}},
      {"parts of the keys",
       {{kLoop, "pipelined kb in bh * 2 .. min(ceildiv(keys, 64), bh * 2 + 2) stages 2 {"}},
       {},
       {{"heads", 2}}},
      {"a key that is always seen",
       {{kV, kV + "tensor sink: f32[heads] readonly\n"},
        {kTotals, "total[i] = total[i] + exp2(sink[bh] - top[i] * 0.18f32)\n " + kTotals}}},
      {"both copies in front", {{kValuesIn, ""}, {kKeysIn, kKeysIn + "\n" + kValuesIn}}},
      {"results through shared memory",
       {{kOut, kOut + "alloc Os: shared f16[64, 64]\n"},
        {kResultOut, "copy out -> Os\ncopy Os -> O[bb :+ 1, bh :+ 1, bq * 64 :+ 64, 0 :+ 64]"}}},
      {"heads smaller than the tile",
       {{"Q: f16[batch, heads, queries, 64]", "Q: f16[batch, heads, queries, 56]"},
        {"K: f16[batch, heads, keys, 64]", "K: f16[batch, heads, keys, 56]"},
        {"V: f16[batch, heads, keys, 64]", "V: f16[batch, heads, keys, 56]"},
        {"O: f16[batch, heads, queries, 64]", "O: f16[batch, heads, queries, 56]"}}}};
  return list;
}

TEST(Attention, Forms) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    std::string text = attention_text({});
    for (const auto& [from, to] : form.edits) {
      const size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    }
    if (!take_case) {
      EXPECT_EQ(plan_refusal(text), "") << text;
    }
    Subject subject(text, targets(On::hopper));
    ASSERT_EQ(subject.invalid(), "") << text;
    uint64_t seed = 1;
    for (const auto& [queries, keys] :
         std::vector<std::pair<int64_t, int64_t>>{{70, 130}, {64, 64}, {3, 0}}) {
      Launch l;
      l.dims = {{"batch", 1}, {"heads", 1}, {"queries", queries}, {"keys", keys}};
      for (const auto& [name, value] : form.dims) l.dims[name] = value;
      l.whole = form.whole;
      l.seed = seed++;
      l.data = Data::reals;
      l.magnitude = 2;
      l.bound = {4e-3, 2};
      expect_agree(subject, text, l);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tilegen::differential
