// Masks of attention: blocks of keys that a mask leaves alone take a path with nothing of it, blocks that it
// hides are not even read.
#include <algorithm>

#include "arith/prove.h"
#include "attention_kernel.h"

namespace tilegen::differential {
namespace {

using ir::ExprId;
using thread::ThreadProgram;

// ---- reading a thread program

bool is_masked_store(const ThreadProgram& p, const thread::Stmt& s) {
  const auto* store = std::get_if<thread::Store>(&s.node);
  return store && p.memory(store->memory).name == "attention:scores" &&
         p.exprs[store->value].op == ir::ExprOp::select;
}

bool holds_mask(const ThreadProgram& p, const thread::Block& block) {
  return std::any_of(block.begin(), block.end(), [&](thread::StmtId id) {
    const thread::Stmt& s = p.stmts[id.value];
    if (is_masked_store(p, s)) return true;
    const auto inside = thread::blocks_inside(s.node);
    return std::any_of(inside.begin(), inside.end(),
                       [&](const thread::Block* b) { return holds_mask(p, *b); });
  });
}

struct Masks {
  int branches = 0;     // of the mask's own operation that lead past it, the same way for all threads
  int unavoidable = 0;  // masks in no such branch
};
void count_masks(const ThreadProgram& p, const thread::Block& block, bool avoidable, Masks& m) {
  for (thread::StmtId id : block) {
    const thread::Stmt& s = p.stmts[id.value];
    m.unavoidable += is_masked_store(p, s) && !avoidable;
    const auto* branch = std::get_if<thread::Branch>(&s.node);
    const bool uniform = branch && !arith::depends_on(p.exprs, branch->condition, p.thread_var);
    const bool past = uniform && s.origin.find("/kb/") != s.origin.npos &&
                      holds_mask(p, branch->then_body) != holds_mask(p, branch->else_body);
    m.branches += past && !avoidable;
    for (const thread::Block* inside : thread::blocks_inside(s.node))
      count_masks(p, *inside, avoidable || past, m);
  }
}

struct Form {
  const char* name;
  Attention a;
};
std::vector<Form> forms() {
  Attention plain;
  plain.dim = plain.rows = plain.keys = 128;
  plain.threads = 256;
  std::vector<Form> list = {{"no mask but the last key", plain}};
  const auto add = [&](const char* name, std::optional<int64_t> left,
                       std::optional<int64_t> right) -> Attention& {
    Attention a = plain;
    a.left = left;
    a.right = right;
    list.push_back({name, a});
    return list.back().a;
  };
  add("causal", std::nullopt, 0);
  add("limited on the left", 1024, std::nullopt);
  add("limited on both sides", 1024, 256);
  add("limited on the left, causal", 1024, 0);
  add("limited at odd places", 1001, 77);
  add("shared heads", 1024, 0).group = 4;
  add("after the length", 1000, 0).heads_last = true;
  Attention& small = add("in tiles of 64", 600, 0);
  small.dim = small.rows = small.keys = 64;
  small.threads = 128;
  Attention& wide = add("in tiles of 192 x 96", 1000, 0);
  wide.dim = 64;
  wide.rows = 192;
  wide.keys = 96;
  wide.threads = 384;
  for (bool guarded : {false, true}) {
    Attention& packed = add(guarded ? "packed, in a branch" : "packed", 1024, 0);
    packed.packed = true;
    packed.guarded = guarded;
  }
  return list;
}

// The first iteration stands alone, and the loop: each has a path past the mask.
TEST(Masks, BlocksThatAMaskLeavesAloneEvaluateNothingOfIt) {
  for (const Form& f : forms()) {
    SCOPED_TRACE(f.name);
    const AttentionKernel kernel(f.a);
    Masks m;
    count_masks(kernel.best(), kernel.best().body, false, m);
    EXPECT_EQ(m.branches, 2);
    EXPECT_EQ(m.unavoidable, 0);
  }
}

// ---- what is read

// Blocks of keys that some query of a tile sees, of all tiles of a head.
int64_t blocks_seen(const Attention& a, int64_t queries, int64_t keys) {
  int64_t blocks = 0;
  for (int64_t tile = 0; tile < queries; tile += a.rows) {
    const int64_t place = tile + keys - queries;
    for (int64_t key = 0; key < keys; key += a.keys) {
      const int64_t last = std::min(key + a.keys, keys) - 1;
      const bool behind = a.right && key > place + a.rows - 1 + *a.right,
                 before = a.left && last < place - *a.left;
      blocks += !behind && !before;
    }
  }
  return blocks;
}

TEST(Masks, BlocksThatAMaskHidesAreNotRead) {
  for (const auto& [left, right] :
       std::vector<std::pair<std::optional<int64_t>, std::optional<int64_t>>>{{100, std::nullopt},
                                                                              {100, 0},
                                                                              {64, 130},
                                                                              {0, 0},
                                                                              {std::nullopt, 0},
                                                                              {std::nullopt, std::nullopt}}) {
    Attention a;
    a.left = left;
    a.right = right;
    const AttentionKernel kernel(a);
    for (const auto& [queries, keys] :
         std::vector<std::pair<int64_t, int64_t>>{{512, 512}, {130, 700}, {64, 449}, {1, 300}}) {
      const auto run = kernel.run(kernel.best(), attention_launch(queries, keys), {});
      EXPECT_EQ(run.findings, std::set<std::string>());
      int64_t copies = 0;
      for (const sim::AccessCount& c : run.counters.accesses)
        if (c.action == "tensor copy" && c.memory == "K") copies += c.requests;
      EXPECT_EQ(copies, blocks_seen(a, queries, keys))
          << left.value_or(-1) << " " << right.value_or(-1) << ": " << queries << " x " << keys;
    }
  }
}

}  // namespace
}  // namespace tilegen::differential
