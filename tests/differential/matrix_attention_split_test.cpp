// Attention with the keys of a head split into parts, and a kernel that combines them: as plain attention
// computes it, for parts of any number, of no key, and more than there are blocks of keys. The heads of
// queries that share a head of keys are rows of one tile.
#include <cmath>
#include <utility>

#include "attention_program.h"
#include "interp/interpreter.h"
#include "launch_memory.h"

namespace tilegen::differential {
namespace {

void replace_once(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << "\n" << text;
  text.replace(at, from.size(), to);
}

std::string combine_text(const Attention& a, int64_t together) {
  return replaced(
      R"(
kernel combine grid (bb: batch, bh: heads, row: queries * $G) threads 64 {
  alloc share: fragment f32[$P]
  alloc found: fragment f32[$P, $D]
  alloc top: fragment f32[1]
  alloc before: fragment f32[1]
  alloc piece: fragment f32[1]
  alloc total: fragment f32[1]
  alloc out: fragment f32[$D]
  alloc more: fragment f32[$D]
  fill out, 0.0f32
  fill total, 0.0f32
  fill top, -1e30f32
  serial step in 0 .. ceildiv(parts, $P) {
    copy sums[bb * heads + bh :+ 1, step * $P :+ $P, row :+ 1] -> share
    copy partial[bb * heads + bh :+ 1, step * $P :+ $P, row :+ 1, 0 :+ $D] -> found
    parallel i in $P {
      share[i] = select(step * $P + i < parts, share[i], -inf:f32)
    }
    copy top -> before
    reduce share -> top {kind=max, axis=0, accumulate}
    parallel i in $P {
      share[i] = exp2(share[i] - top[0])
    }
    parallel i in 1 {
      before[i] = exp2(before[i] - top[i])
    }
    reduce share -> piece {axis=0}
    parallel i in 1 {
      total[i] = total[i] * before[i] + piece[i]
    }
    parallel i, j in $P, $D {
      found[i, j] = found[i, j] * share[i]
    }
    reduce found -> more {axis=0}
    parallel i in $D {
      out[i] = out[i] * before[0] + more[i]
    }
  }
  parallel i in 1 {
    L[bb, bh, row] = (top[i] + log2(total[i])) * 0.6931472f32
  }
  parallel i in 1 {
    total[i] = select(total[i] > 0.0f32, 1.0f32 / total[i], 0.0f32)
  }
  parallel i in $D {
    out[i] = out[i] * total[0]
  }
  copy out -> O[bb :+ 1, bh :+ 1, row :+ 1, 0 :+ $D]
}
)",
      {{"P", std::to_string(together)}, {"D", std::to_string(a.dim)}, {"G", std::to_string(a.group)}});
}

// Of `a` with its sums of rows; K and V as there, queries and their results with the heads that share keys
// side by side.
std::string split_text(const Attention& a, int64_t together) {
  Attention plain = a;
  plain.group = 1;
  plain.row_sums = false;
  std::string text = attention_text(plain);
  const auto with = [&](const char* t) {
    return replaced(t, {{"first", a.left ? "(max(keys - queries - $left, 0) // $K)" : "0"},
                        {"left", std::to_string(a.left.value_or(0))},
                        {"G", std::to_string(a.group)},
                        {"M", std::to_string(a.rows)},
                        {"K", std::to_string(a.keys)},
                        {"D", std::to_string(a.dim)}});
  };
  replace_once(text, "dim keys", "dim keys\ndim parts >= 1");
  for (int i = 0; i < 2; ++i) replace_once(text, "heads, queries, ", with("heads, $G * queries, "));
  replace_once(text, "\n\nkernel attention grid (bb: batch, bh: heads * 1, bq: ceildiv(queries,",
               with("\ntensor L: f32[batch, heads, $G * queries]\ntensor partial: f32[batch * heads, parts, "
                    "$G * queries, $D] workspace\n"
                    "tensor sums: f32[batch * heads, parts, $G * queries] workspace\n"
                    "kernel attention grid (pair: batch * heads, slice: parts, bq: ceildiv(queries * $G,"));
  const size_t loop = text.find("pipelined kb in "), stages = text.find(" stages", loop);
  text.replace(loop, stages - loop,
               with("pipelined kb in $first + slice * (ceildiv(keys, $K) - $first) // parts .. "
                    "$first + (slice + 1) * (ceildiv(keys, $K) - $first) // parts"));
  for (const std::string from = with("bq * $M + i + keys"),
                         to = with("(bq * $M + i) % max(queries, 1) + keys");
       text.find(from) != std::string::npos;)
    replace_once(text, from, to);
  replace_once(text, "copy out -> O[bb :+ 1, bh :+ 1, ", "copy out -> partial[pair :+ 1, slice :+ 1, ");
  const size_t behind = text.find("parallel", text.find("-> out\n"));
  text.insert(behind, with("parallel i in $M {\nif bq * $M + i < queries * $G {\n"
                           "sums[pair, slice, bq * $M + i] = top[i]") +
                          (a.cap ? "" : " * 0.18f32") + " + log2(total[i])\n}\n}\n");
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"bb :+", "pair // heads :+"}, {"bh :+", "pair % heads :+"}})
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  return text + combine_text(a, together);
}

using Values = std::map<std::string, std::vector<double>>;  // by tensor

Values values_of(const LaunchMemory& memory, const std::vector<GuardedMemory>& got) {
  Values values;
  for (size_t i = 0; i < got.size(); ++i) {
    const Tensor& t = memory.tensors()[i];
    for (int64_t k = 0; k < t.elements; ++k)
      values[t.name].push_back(ir::float_from_bits(t.type, t.element(got[i].bytes(), t.offset(k))));
  }
  return values;
}

// What the interpreter makes of a launch.
Values interpreted(const ir::Program& p, const Launch& launch) {
  LaunchMemory memory;
  EXPECT_EQ(memory.bind(p, launch), "");
  const std::vector<GuardedMemory> got = memory.fresh(false);
  const Checked ran = interp::interpret(p, memory.slots(got));
  EXPECT_TRUE(ran) << ran.error().to_text();
  return values_of(memory, got);
}

struct Split {
  int64_t batch, heads, queries, keys, parts;
};

// What the interpreter makes of the split program is what it makes of the plain one.
void expect_unsplit(const Values& want, const Values& got, const std::string& of) {
  for (const auto& [name, allowed] : {std::pair<std::string, double>{"O", 4e-3}, {"L", 1e-3}}) {
    ASSERT_EQ(got.count(name), want.count(name));
    if (!want.count(name)) continue;
    ASSERT_EQ(got.at(name).size(), want.at(name).size());
    for (size_t i = 0; i < want.at(name).size(); ++i) {
      const double x = got.at(name)[i], y = want.at(name)[i];
      ASSERT_TRUE(x == y || std::fabs(x - y) <= allowed)
          << name << ", element " << i << ": " << x << ", unsplit " << y << "\n"
          << of;
    }
  }
}

// One run of the interpreter is compared with that of the plain program and with the executors.
void expect_agree(const ir::Program& plain, Subject& split, const std::string& text, Launch l,
                  int64_t parts) {
  const Values want = take_case ? Values() : interpreted(plain, l);
  l.dims["parts"] = parts;
  if (take_case) return take_case(text, l);
  bool judged = false;
  const auto differ = [&](const LaunchMemory& memory, const std::vector<GuardedMemory>& expected,
                          const std::vector<GuardedMemory>& got) {
    if (!std::exchange(judged, true)) expect_unsplit(want, values_of(memory, expected), to_text({text, l}));
    return memory.compare(expected, got, l.bound);
  };
  const Outcome o = split.compare(l, differ);
  EXPECT_TRUE(o.is_fine()) << kind_name(o.kind) << ": " << o.text << "\n" << to_text({text, l});
  if (!judged) expect_unsplit(want, interpreted(split.program(), l), to_text({text, l}));
}

void run_split(Attention a, const std::vector<Split>& cases, On on = On::hopper, int64_t together = 4) {
  a.row_sums = true;
  const std::string text = split_text(a, together);
  if (testing::Test::HasFatalFailure()) return;
  if (a.rows >= 64 && !take_case) {
    ASSERT_EQ(plan_refusal(text), "") << text;
  }
  Subject subject(text, covering(targets(on), text)), plain(attention_text(a));
  ASSERT_EQ(subject.invalid(), "") << text;
  ASSERT_EQ(plain.invalid(), "");
  uint64_t seed = 1;
  for (const Split& s : cases) {
    Launch l;
    l.dims = {{"batch", s.batch}, {"heads", s.heads}, {"queries", s.queries}, {"keys", s.keys}};
    l.seed = seed++;
    l.data = Data::reals;
    l.magnitude = 2;
    l.bound = {4e-3, 2};
    if (!take_case && !is_run(seed, cases.size(), text)) continue;
    expect_agree(plain.program(), subject, text, l, s.parts);
    if (testing::Test::HasFailure()) return;
  }
}

// One part; as many as blocks of keys; more than these; more than the second kernel takes at once; no keys;
// no queries.
const std::vector<Split> kSplits = {{1, 2, 1, 448, 1},  {2, 1, 3, 448, 7},  {1, 1, 1, 130, 5},
                                    {1, 2, 70, 300, 2}, {1, 1, 2, 640, 10}, {1, 1, 5, 0, 3},
                                    {1, 1, 0, 64, 2},   {1, 1, 1, 1, 2},    {1, 1, 40, 20, 3}};

TEST(AttentionSplit, Parts) { run_split({}, kSplits, On::all); }

TEST(AttentionSplit, Causal) {
  Attention a;
  a.right = 0;
  run_split(a, kSplits, On::all);
}

TEST(AttentionSplit, HeadsThatShareKeysAreRowsOfATile) {
  Attention a;
  a.group = 4;
  run_split(a, kSplits);
  a.group = 3;
  a.right = 0;
  run_split(a, kSplits);
}

TEST(AttentionSplit, Windows) {
  Attention a;
  a.left = 100;
  a.right = 0;
  a.group = 2;
  run_split(a, kSplits);
  a.right = 30;
  a.cap = true;
  run_split(a, {{1, 1, 40, 300, 3}, {1, 2, 1, 500, 4}});
}

TEST(AttentionSplit, TilesAndSizesOfHeads) {
  Attention deep, large, few;
  deep.stages = 4;
  deep.keys = 32;
  deep.type = "bf16";
  run_split(deep, {{1, 1, 3, 300, 3}});
  large.dim = large.keys = 128;
  large.group = 8;
  run_split(large, {{1, 2, 1, 700, 3}}, On::hopper, 16);
  few.rows = 16;
  few.dim = 128;
  few.group = 8;
  run_split(few, {{1, 2, 1, 300, 3}, {1, 1, 5, 100, 2}}, On::all);
}

}  // namespace
}  // namespace tilegen::differential
