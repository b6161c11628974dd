// Attention in numbers of keys and queries, sizes of heads, masks, packed sequences. What the interpreter
// makes of each program is held to the definition of attention, and everything else to the interpreter; on
// sm_90a both products have to be products of warpgroups, the second an iteration behind the first.
#include <cmath>

#include "attention_program.h"
#include "interp/interpreter.h"
#include "launch_memory.h"

namespace tilegen::differential {
namespace {

constexpr double kScale = 0.18, kCap = 3;  // of scores to powers of two, as in the program

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
    for (size_t i = 0; i < memory_.tensors().size(); ++i) {
      const std::string& name = memory_.tensors()[i].name;
      for (const auto& [of_name, to] : {std::pair("Q", &q_), {"K", &k_}, {"V", &v_}, {"O", &o_}, {"L", &l_}})
        if (name == of_name) *to = numbers(i);
    }
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

  // What a tensor holds, by offset; elements of a row are neighbours.
  struct Numbers {
    std::vector<int64_t> strides;
    std::vector<double> values;

    const double* at(std::initializer_list<int64_t> index) const {
      int64_t offset = 0;
      size_t d = 0;
      for (int64_t i : index) offset += i * strides[d++];
      return values.data() + offset;
    }
  };
  Numbers numbers(size_t tensor) const {
    const Tensor& t = memory_.tensors()[tensor];
    Numbers n{t.strides, {}};
    const auto bytes = got_[tensor].bytes();
    for (int64_t k = 0; k < t.elements; ++k) {
      const auto at = static_cast<size_t>(t.offset(k));
      if (n.values.size() <= at) n.values.resize(at + 1);
      n.values[at] = ir::is_float(t.type) ? ir::float_from_bits(t.type, t.element(bytes, t.offset(k))) : 0;
    }
    return n;
  }
  const double* of(const Numbers& n, int64_t first, int64_t row, int64_t batch, int64_t head) const {
    if (a_.packed) return n.at({first + row, head});
    return a_.heads_last ? n.at({batch, row, head}) : n.at({batch, head, row});
  }

  void row(const Sequence& s, int64_t head, int64_t i) {
    std::vector<double> weights(static_cast<size_t>(s.keys), 0), out(static_cast<size_t>(a_.dim), 0);
    double top = -INFINITY, total = 0;
    const double* const query = of(q_, s.first_query, i, s.batch, head);
    for (int64_t j = 0; j < s.keys; ++j) {
      const int64_t behind = j - (i + s.keys - s.queries);
      const double* const key = of(k_, s.first_key, j, s.batch, head / a_.group);
      double score = 0;
      for (int64_t c = 0; c < a_.dim; ++c) score += query[c] * key[c];
      score = a_.cap ? std::tanh(score * 0.06) * kCap : score * kScale;
      if ((a_.right && behind > *a_.right) || (a_.left && -behind > *a_.left)) score = -INFINITY;
      weights[static_cast<size_t>(j)] = score;
      top = std::max(top, score);
    }
    for (int64_t j = 0; j < s.keys; ++j) {
      const double weight = top == -INFINITY ? 0 : std::exp2(weights[static_cast<size_t>(j)] - top);
      total += weight;
      const double* const value = of(v_, s.first_key, j, s.batch, head / a_.group);
      for (int64_t c = 0; c < a_.dim; ++c) out[static_cast<size_t>(c)] += weight * value[c];
    }
    const double allowed = a_.type == "f16" ? 4e-3 : 3e-2;
    const double* const result = of(o_, s.first_query, i, s.batch, head);
    for (int64_t c = 0; c < a_.dim; ++c)
      expect(result[c], total > 0 ? out[static_cast<size_t>(c)] / total : 0, allowed, s, head, i);
    if (!a_.row_sums) return;
    const double sum = *(a_.packed ? l_.at({head, s.first_query + i}) : l_.at({s.batch, head, i}));
    expect(sum, total > 0 ? (top + std::log2(total)) * std::log(2) : -INFINITY, 1e-3, s, head, i);
  }

  void expect(double got, double want, double allowed, const Sequence& s, int64_t head, int64_t i) {
    if (got == want || std::fabs(got - want) <= allowed || !error.empty()) return;
    error = "sequence " + std::to_string(s.batch) + " head " + std::to_string(head) + " query " +
            std::to_string(i) + ": " + std::to_string(got) + " should be " + std::to_string(want);
  }

  const Attention& a_;
  const Launch& launch_;
  LaunchMemory memory_;
  std::vector<GuardedMemory> got_;
  Numbers q_, k_, v_, o_, l_;
};

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
// Tensors have rows after the last sequence, which nobody may touch.
Launch launch_of(const Ends& e) {
  int64_t longest = 0;
  for (size_t b = 1; b < e.queries.size(); ++b) longest = std::max(longest, e.queries[b] - e.queries[b - 1]);
  Launch launch;
  launch.dims = {{"batch", static_cast<int64_t>(e.queries.size()) - 1},
                 {"heads", e.heads},
                 {"queries", longest},
                 {"all_queries", e.queries.back() + 3},
                 {"all_keys", e.keys.back() + 2}};
  launch.whole = {{"query_ends", e.queries}, {"key_ends", e.keys}};
  return launch;
}

template <class Case>
void run_attention(const Attention& a, const std::vector<Case>& cases, On on = On::hopper,
                   const std::optional<plan::Schedule>& given = std::nullopt) {
  const std::string text = attention_text(a);
  if (!take_case) {
    ASSERT_EQ(plan_refusal(text), "") << text;
  }
  Subject subject(text, covering(targets(on), text));
  ASSERT_EQ(subject.invalid(), "") << text;
  if (given) subject.give(*given);
  uint64_t seed = 1;
  for (const Case& c : cases) {
    Launch l = launch_of(c);
    l.seed = seed++;
    l.data = Data::reals;
    l.magnitude = 2;
    l.bound = {4e-3, 2};
    if (!take_case && !is_run(seed, cases.size(), text)) continue;
    if (!take_case) {
      Definition definition(a, subject.program(), l);
      ASSERT_EQ(definition.judge(), "") << to_text({text, l});
    }
    expect_agree(subject, text, l);
    if (testing::Test::HasFailure()) return;
  }
}

// 0, 1, 2, 3 and 7 blocks of keys; full ones and ragged ones; one query, none; queries and keys of other
// lengths.
const std::vector<Lengths> kLengths = {{1, 1, 64, 0},    {2, 1, 64, 64}, {1, 2, 130, 128}, {1, 1, 64, 192},
                                       {1, 1, 100, 448}, {1, 1, 1, 1},   {1, 1, 1, 70},    {1, 1, 65, 33},
                                       {1, 1, 200, 100}, {1, 1, 0, 64}};
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

// As many tiles as blocks, more, fewer; tiles of no work among them.
TEST(Attention, BlocksThatClaimTheirTiles) {
  const std::vector<Lengths> lengths = {{2, 1, 300, 300}, {1, 1, 700, 130}, {1, 3, 70, 150}, {1, 1, 1, 1}};
  const std::vector<Ends> ends = {{1, {0, 200, 200, 210, 500}, {0, 130, 130, 200, 320}},
                                  {1, {0, 0, 300, 301}, {0, 0, 64, 164}}};
  Attention a;
  a.rows = 128;
  a.threads = 256;
  a.right = 0;
  EXPECT_EQ(walk_order(attention_text(a)), "dynamic");
  run_attention(a, lengths);
  a.left = 90;
  EXPECT_EQ(walk_order(attention_text(a)), "dynamic");
  run_attention(a, lengths);
  a = Attention();
  a.rows = 128;
  a.threads = 256;
  for (bool guarded : {false, true}) {
    a.packed = true;
    a.guarded = guarded;
    EXPECT_EQ(walk_order(attention_text(a)), "dynamic");
    run_attention(a, ends);
    if (HasFailure()) return;
  }
}

// The same results from tiles that are dealt out beforehand, and from a block a tile.
TEST(Attention, EveryOrderOfTiles) {
  Attention a;
  a.rows = 128;
  a.threads = 256;
  a.right = 0;
  Attention packed = a;
  packed.packed = true;
  Attention guarded = packed;
  guarded.guarded = true;
  for (const char* order : {"none", "static", "dynamic"}) {
    run_attention(a, std::vector<Lengths>{{1, 2, 390, 200}}, On::specialised, persistence(order));
    run_attention(guarded, std::vector<Ends>{{1, {0, 140, 140, 150}, {0, 70, 70, 200}}}, On::specialised,
                  persistence(order));
    if (HasFailure()) return;
  }
  // Sequences without a tile of their own in the second place, or in any: those that claim pass over these.
  const std::vector<Ends> ends = {{1, {0, 140, 140, 150, 420}, {0, 70, 70, 200, 300}},
                                  {2, {0, 0, 0, 130}, {0, 10, 10, 64}}};
  for (const Attention& form : {packed, guarded})
    run_attention(form, ends, On::specialised, persistence("dynamic", true));
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

// Blocks in the middle of the window, which the mask leaves alone; limits inside a block and between two.
TEST(Attention, WindowsOfSeveralBlocks) {
  const std::vector<Lengths> lengths = {{1, 1, 260, 260}, {1, 1, 70, 330}, {1, 1, 200, 130}};
  for (const auto& [left, right] :
       std::vector<std::pair<int64_t, std::optional<int64_t>>>{{150, std::nullopt}, {191, 0}, {130, 150}}) {
    Attention a;
    a.left = left;
    a.right = right;
    run_attention(a, lengths, right ? On::hopper : On::all);
    if (HasFailure()) return;
  }
  Attention a;
  a.left = 150;
  a.right = 0;
  a.group = 2;
  run_attention(a, std::vector<Lengths>{{1, 1, 70, 250}});
  a.group = 1;
  a.packed = true;
  run_attention(a, std::vector<Ends>{{1, {0, 200, 200, 210}, {0, 230, 300, 300}}});
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
