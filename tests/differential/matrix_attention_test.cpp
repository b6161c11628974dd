// Attention as a user writes it: copies, two products, row maxima and sums and a mask in one loop over the keys. Numbers of
// keys and queries, sizes of heads, masks, packed sequences. What the interpreter makes of each program is held to the
// definition of attention, and everything else to the interpreter; on sm_90a both products have to be products of
// warpgroups, the second an iteration behind the first.
#include <cmath>
#include <cstdlib>
#include <optional>

#include "driver/compile.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "launch_memory.h"
#include "matrix.h"

namespace tilegen::differential {
namespace {

constexpr double kScale = 0.18, kCap = 3;  // of scores to powers of two

struct Attention {
  std::string type = "f16";
  int64_t dim = 64, rows = 64, keys = 64;  // of a head, of a tile
  int threads = 128, stages = 2;
  int64_t group = 1;                 // heads of queries to a head of keys
  std::optional<int64_t> left, right;  // keys seen in front of and behind the query's place
  bool cap = false, packed = false, heads_last = false, row_sums = false;
  bool mask_in_branch = false;  // where a block of keys ends behind the last
  bool guarded = false;         // nothing is done where the tile has no query
};

std::string loop_text(const Attention& a) {
  std::string seen = "kb * $K + j < $keys";
  if (a.right) seen += " and kb * $K + j <= bq * $M + i + $keys - $queries + $right";
  if (a.left) seen += " and kb * $K + j >= bq * $M + i + $keys - $queries - $left";
  return replaced(R"(pipelined kb in $first .. ceildiv($end, $K) stages $S {
    copy K[$kbox] -> Ks
    gemm Qs, Ks -> scores {transpose_b, clear}
    $mask
    copy top -> before
    reduce scores -> top {kind=max, axis=1, accumulate}
    parallel i, j in $M, $K {
      scores[i, j] = exp2(scores[i, j]$scale - top[i]$scale)
    }
    parallel i in $M {
      before[i] = exp2((before[i] - top[i])$scale)
    }
    reduce scores -> part {axis=1}
    parallel i in $M {
      total[i] = total[i] * before[i] + part[i]
    }
    copy scores -> weights
    parallel i, j in $M, $D {
      out[i, j] = out[i, j] * before[i]
    }
    copy V[$kbox] -> Vs
    gemm weights, Vs -> out
  })",
                  {{"mask", a.mask_in_branch ? "if kb * $K + $K > $keys {\n$each\n}" : "$each"},
                   {"each", "parallel i, j in $M, $K {\n      scores[i, j] = select($seen, $score, -inf:f32)\n    }"},
                   {"seen", seen}, {"score", a.cap ? "tanh(scores[i, j] * 0.06f32) * 3.0f32" : "scores[i, j]"},
                   {"scale", a.cap ? "" : " * 0.18f32"}});
}

std::string store_text(const Attention& a) {
  std::string text;
  if (a.row_sums)
    text = R"(parallel i in $M {
    if bq * $M + i < $queries {
      L[$lrow] = (top[i]$scale + log2(total[i])) * 0.6931472f32
    }
  }
  )";
  text += R"(parallel i in $M {
    total[i] = select(total[i] > 0.0f32, 1.0f32 / total[i], 0.0f32)
  }
  parallel i, j in $M, $D {
    out[i, j] = out[i, j] * total[i]
  }
  )";
  text += !a.packed ? "copy out -> O[$qbox]" : R"(if bq * $M + $M <= $queries {
    copy out -> O[$qbox]
  } else {
    parallel i, j in $M, $D {
      if bq * $M + i < $queries {
        O[$qrow + i, bh, j] = cast($type, out[i, j])
      }
    }
  })";
  return replaced(text, {{"scale", a.cap ? "" : " * 0.18f32"}, {"lrow", a.packed ? "bh, $qrow + i" : "bb, bh, $qrow + i"}});
}

std::string attention_text(const Attention& a) {
  const std::string qbegin = "cast(i64, query_ends[bb])", kbegin = "cast(i64, key_ends[bb])";
  const auto box = [&](const char* row, const char* rows, const char* head) {
    if (a.packed) return replaced("$row :+ $rows, $head :+ 1, 0 :+ $D", {{"rows", rows}, {"row", row}, {"head", head}});
    return replaced(a.heads_last ? "bb :+ 1, $row :+ $rows, $head :+ 1, 0 :+ $D" : "bb :+ 1, $head :+ 1, $row :+ $rows, 0 :+ $D",
                    {{"rows", rows}, {"row", row}, {"head", head}});
  };
  const auto shape = [&](const char* length, const char* heads) {
    const char* order = a.packed ? "all_$length, $heads, $D" : a.heads_last ? "batch, $length, $heads, $D" : "batch, $heads, $length, $D";
    return replaced(order, {{"length", length}, {"heads", heads}});
  };
  std::string end = a.right ? "min($keys, bq * $M + $M + $keys - $queries + $right)" : "$keys";
  if (a.packed && !a.guarded) end = "select(bq * $M < $queries, " + end + ", 0)";
  return replaced(
      R"(tl 1 program attention
dim batch
dim heads
dim queries
$dims
tensor Q: $type[$qshape] readonly
tensor K: $type[$kshape] readonly
tensor V: $type[$kshape] readonly
$ends
tensor O: $type[$qshape]
$sums
kernel attention grid (bb: batch, bh: heads * $G, bq: ceildiv(queries, $M)) threads $T {
  alloc Qs: shared $type[$M, $D]
  alloc Ks: shared $type[$K, $D]
  alloc Vs: shared $type[$K, $D]
  alloc scores: fragment f32[$M, $K]
  alloc weights: fragment $type[$M, $K]
  alloc out: fragment f32[$M, $D]
  alloc top: fragment f32[$M]
  alloc before: fragment f32[$M]
  alloc part: fragment f32[$M]
  alloc total: fragment f32[$M]
  $guard
  copy Q[$qbox] -> Qs
  fill out, 0.0f32
  fill total, 0.0f32
  fill top, -1e30f32
  $loop
  $store
  $endguard
}
)",
      {{"loop", loop_text(a)},
       {"store", store_text(a)},
       {"guard", a.guarded ? "if bq * $M < $queries {" : ""},
       {"endguard", a.guarded ? "}" : ""},
       {"dims", a.packed ? "dim all_queries\ndim all_keys" : "dim keys"},
       {"ends", a.packed ? "tensor query_ends: i32[batch + 1] readonly\ntensor key_ends: i32[batch + 1] readonly" : ""},
       {"sums", !a.row_sums ? "" : a.packed ? "tensor L: f32[heads * $G, all_queries]" : "tensor L: f32[batch, heads * $G, queries]"},
       {"qshape", shape("queries", "heads * $G")},
       {"kshape", shape("keys", "heads")},
       {"first", a.left ? "max(bq * $M + $keys - $queries - $left, 0) // $K" : "0"},
       {"end", end},
       {"qbox", box("$qrow", "$M", "bh")},
       {"kbox", box("$krow", "$K", a.group == 1 ? "bh" : "bh // $G")},
       {"qrow", (a.packed ? qbegin + " + " : "") + "bq * $M"},
       {"krow", (a.packed ? kbegin + " + " : "") + "kb * $K"},
       {"queries", a.packed ? "(cast(i64, query_ends[bb + 1]) - " + qbegin + ")" : "queries"},
       {"keys", a.packed ? "(cast(i64, key_ends[bb + 1]) - " + kbegin + ")" : "keys"},
       {"left", std::to_string(a.left.value_or(0))},
       {"right", std::to_string(a.right.value_or(0))},
       {"type", a.type},
       {"D", std::to_string(a.dim)},
       {"G", std::to_string(a.group)},
       {"M", std::to_string(a.rows)},
       {"K", std::to_string(a.keys)},
       {"T", std::to_string(a.threads)},
       {"S", std::to_string(a.stages)}});
}

// ---- the definition

struct Sequence {
  int64_t first_query = 0, queries = 0, first_key = 0, keys = 0, batch = 0;
};

class Definition {
 public:
  Definition(const Attention& a, const ir::Program& p, const Launch& launch) : a_(a), launch_(launch) {
    error = memory_.bind(p, launch);
    if (!error.empty()) return;
    got_ = memory_.fresh(false);
    if (Checked ran = interp::interpret(p, memory_.slots(got_)); !ran) error = ran.error().to_text();
    for (size_t i = 0; i < memory_.tensors().size(); ++i) at_[memory_.tensors()[i].name] = i;
  }

  // What the interpreter's results are wrong in; empty: nothing.
  std::string judge() {
    for (const Sequence& s : sequences())
      for (int64_t h = 0; h < launch_.dims.at("heads") * a_.group; ++h)
        for (int64_t i = 0; i < s.queries && error.empty(); ++i) row(s, h, i);
    return error;
  }

  std::string error;

 private:
  std::vector<Sequence> sequences() const {
    std::vector<Sequence> all;
    for (int64_t b = 0; b < launch_.dims.at("batch"); ++b) {
      if (!a_.packed) {
        all.push_back({0, launch_.dims.at("queries"), 0, launch_.dims.at("keys"), b});
        continue;
      }
      const auto &q = launch_.whole.at("query_ends"), &k = launch_.whole.at("key_ends");
      const auto at = static_cast<size_t>(b);
      all.push_back({q[at], q[at + 1] - q[at], k[at], k[at + 1] - k[at], b});
    }
    return all;
  }

  double element(const char* name, std::initializer_list<int64_t> index) const {
    const size_t at = at_.at(name);
    const Tensor& t = memory_.tensors()[at];
    int64_t offset = 0;
    size_t d = 0;
    for (int64_t i : index) offset += i * t.strides[d++];
    return ir::float_from_bits(t.type, t.element(got_[at].bytes(), offset));
  }
  double of(const char* name, int64_t first, int64_t row, int64_t batch, int64_t head, int64_t c) const {
    if (a_.packed) return element(name, {first + row, head, c});
    return a_.heads_last ? element(name, {batch, row, head, c}) : element(name, {batch, head, row, c});
  }

  void row(const Sequence& s, int64_t head, int64_t i) {
    std::vector<double> weights(static_cast<size_t>(s.keys), 0), out(static_cast<size_t>(a_.dim), 0);
    double top = -INFINITY, total = 0;
    for (int64_t j = 0; j < s.keys; ++j) {
      const int64_t behind = j - (i + s.keys - s.queries);
      double score = 0;
      for (int64_t c = 0; c < a_.dim; ++c)
        score += of("Q", s.first_query, i, s.batch, head, c) * of("K", s.first_key, j, s.batch, head / a_.group, c);
      score = a_.cap ? std::tanh(score * 0.06) * kCap : score * kScale;
      if ((a_.right && behind > *a_.right) || (a_.left && -behind > *a_.left)) score = -INFINITY;
      weights[static_cast<size_t>(j)] = score;
      top = std::max(top, score);
    }
    for (int64_t j = 0; j < s.keys; ++j) {
      const double weight = top == -INFINITY ? 0 : std::exp2(weights[static_cast<size_t>(j)] - top);
      total += weight;
      for (int64_t c = 0; c < a_.dim; ++c)
        out[static_cast<size_t>(c)] += weight * of("V", s.first_key, j, s.batch, head / a_.group, c);
    }
    const double allowed = a_.type == "f16" ? 4e-3 : 3e-2;
    for (int64_t c = 0; c < a_.dim; ++c)
      expect(of("O", s.first_query, i, s.batch, head, c), total > 0 ? out[static_cast<size_t>(c)] / total : 0, allowed, s, head, i);
    if (!a_.row_sums) return;
    const double sum = a_.packed ? element("L", {head, s.first_query + i}) : element("L", {s.batch, head, i});
    expect(sum, total > 0 ? (top + std::log2(total)) * std::log(2) : -INFINITY, 1e-3, s, head, i);
  }

  void expect(double got, double want, double allowed, const Sequence& s, int64_t head, int64_t i) {
    if (got == want || std::fabs(got - want) <= allowed || !error.empty()) return;
    error = "sequence " + std::to_string(s.batch) + " head " + std::to_string(head) + " query " + std::to_string(i) + ": " +
            std::to_string(got) + " should be " + std::to_string(want);
  }

  const Attention& a_;
  const Launch& launch_;
  LaunchMemory memory_;
  std::vector<GuardedMemory> got_;
  std::map<std::string, size_t> at_;
};

// ---- the plan

// Empty: both products are warpgroups', the second lags behind the first, and results leave by tensor copies.
std::string plan_refusal(const std::string& text) {
  auto program = ir::parse_program(text, "attention.tl", Limits{});
  if (!program) return "no program: " + program.error().to_text();
  driver::CompileOptions options;
  options.plan_only = true;
  auto artifact =
      driver::compile(std::make_shared<const ir::Program>(std::move(*program)), *target::find_target("sm_90a"), options);
  if (!artifact) return "no plan: " + artifact.error().to_text();
  const plan::KernelSchedule& k = (*artifact)->schedule.kernels[0];
  int products = 0, stores = 0;
  for (const plan::OpPlan& op : k.ops) {
    const bool inside = op.op.find("/kb/") != std::string::npos;
    if (inside && op.op.find("/gemm#") != std::string::npos) products += op.engine == plan::Engine::warpgroup_mma;
    if (!inside && op.op.find("/copy#") != std::string::npos) stores += op.engine == plan::Engine::tensor_copy;
  }
  if (products != 2) return "a product is not done by warpgroups";
  if (stores != 2) return "Q or O does not go by tensor copies";
  for (const auto& [op, stage] : k.loops[0].stages)
    if (op.ends_with("/kb/gemm#1") && stage == k.loops[0].num_stages) return "";
  return "the second product does not lag";
}

// ---- running

// Batch, heads of keys, queries, keys; or where packed sequences begin.
struct Lengths {
  int64_t batch, heads, queries, keys;
};
struct Ends {
  int64_t heads;
  std::vector<int64_t> queries, keys;
};

Launch launch_of(const Lengths& l) {
  Launch launch;
  launch.dims = {{"batch", l.batch}, {"heads", l.heads}, {"queries", l.queries}, {"keys", l.keys}};
  return launch;
}
// Tensors have rows behind the last sequence, which nobody may touch.
Launch launch_of(const Ends& e) {
  int64_t longest = 0;
  for (size_t b = 1; b < e.queries.size(); ++b) longest = std::max(longest, e.queries[b] - e.queries[b - 1]);
  Launch launch;
  launch.dims = {{"batch", static_cast<int64_t>(e.queries.size()) - 1}, {"heads", e.heads}, {"queries", longest},
                 {"all_queries", e.queries.back() + 3}, {"all_keys", e.keys.back() + 2}};
  launch.whole = {{"query_ends", e.queries}, {"key_ends", e.keys}};
  return launch;
}

enum class On { hopper, all };

// Where TILEGEN_TARGETS names a device everything runs there too.
Strings targets(On on) {
  const bool asked = std::getenv("TILEGEN_TARGETS") != nullptr;
  Strings list = on == On::all || asked ? executable_targets() : Strings{};
  if (on == On::all && !asked) list.push_back("sim:sm_80");
  list.push_back("sim:sm_90a");
  return list;
}

template <class Case>
void run_attention(const Attention& a, const std::vector<Case>& cases, On on = On::hopper) {
  if (take_case) GTEST_SKIP() << "results within a bound say little of a program that is spoilt a little";
  const std::string text = attention_text(a);
  ASSERT_EQ(plan_refusal(text), "") << text;
  Subject subject(text, targets(on));
  ASSERT_EQ(subject.invalid(), "") << text;
  uint64_t seed = 1;
  for (const Case& c : cases) {
    Launch l = launch_of(c);
    l.seed = seed++;
    l.data = Data::reals;
    l.magnitude = 2;
    l.bound = {4e-3, 2};
    Definition definition(a, subject.program(), l);
    ASSERT_EQ(definition.judge(), "") << to_text({text, l});
    expect_agree(subject, text, l);
    if (testing::Test::HasFailure()) return;
  }
}

// 0, 1, 2, 3 and 7 blocks of keys; full ones and ragged ones; one query, none; queries and keys of other lengths.
const std::vector<Lengths> kLengths = {{1, 1, 64, 0},  {2, 1, 64, 64},  {1, 2, 130, 128}, {1, 1, 64, 192}, {1, 1, 100, 448},
                                       {1, 1, 1, 1},   {1, 1, 1, 70},   {1, 1, 65, 33},   {1, 1, 200, 100}, {1, 1, 0, 64}};
const std::vector<Lengths> kFew = {{1, 2, 70, 130}, {1, 1, 3, 0}, {1, 1, 100, 30}};
const std::vector<Ends> kEnds = {{2, {0, 64, 64, 70, 200}, {0, 64, 100, 100, 300}},
                                 {1, {0, 1}, {0, 200}},
                                 {1, {0, 0, 130}, {0, 0, 64}},
                                 {1, {5, 70, 133}, {3, 80, 200}}};

TEST(Attention, Lengths) { run_attention({}, kLengths, On::all); }

TEST(Attention, Causal) {
  Attention a;
  a.right = 0;
  run_attention(a, kLengths, On::all);
}

TEST(Attention, SizesOfHeads) {
  for (int64_t dim : {80, 96, 128, 192, 256}) {
    Attention a;
    a.dim = dim;
    if (dim == 192) a.keys = 48;
    run_attention(a, kFew);
    if (HasFailure()) return;
  }
}

TEST(Attention, Tiles) {
  Attention wide, deep;
  wide.rows = 128;
  wide.threads = 256;
  wide.right = 0;
  run_attention(wide, kFew);
  deep.keys = 96;
  deep.stages = 3;
  run_attention(deep, kFew);
}

TEST(Attention, Bf16) {
  Attention a;
  a.type = "bf16";
  a.right = 0;
  run_attention(a, kFew, On::all);
}

TEST(Attention, Windows) {
  Attention both, front, behind;
  both.left = 20;
  both.right = 70;
  run_attention(both, kLengths, On::all);
  front.left = 100;
  front.row_sums = true;
  run_attention(front, kFew);
  behind.left = 50;
  behind.right = 0;
  run_attention(behind, kLengths);
}

TEST(Attention, MaskInABranch) {
  Attention a;
  a.mask_in_branch = true;
  run_attention(a, kLengths);
}

TEST(Attention, SharedHeadsBehindTheLength) {
  Attention a;
  a.group = 3;
  a.heads_last = true;
  a.right = 0;
  run_attention(a, kFew, On::all);
}

TEST(Attention, CapsAndSums) {
  Attention a;
  a.cap = a.row_sums = true;
  run_attention(a, kFew, On::all);
}

TEST(Attention, PackedSequences) {
  Attention a;
  a.packed = true;
  run_attention(a, kEnds, On::all);
  a.right = 0;
  a.row_sums = true;
  a.group = 2;
  run_attention(a, kEnds);
  a.left = 40;
  a.cap = true;
  run_attention(a, kEnds);
  a = Attention();
  a.packed = a.guarded = true;
  run_attention(a, kEnds, On::all);
}

}  // namespace
}  // namespace tilegen::differential
