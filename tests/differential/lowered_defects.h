// A lowered program with roles, spoilt in one place, and the check that names the defect: at compile time
// verify_thread_program, verify_synchronization or verify_transactions, and the simulator under every order
// of warps and both times of landing.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "../unit/sim/gpu_program.h"
#include "ir/text.h"
#include "launch_memory.h"
#include "runtime/kernel_version.h"
#include "thread/sync_verify.h"
#include "thread/transaction_verify.h"

namespace tilegen::differential {

using thread::StmtId;
using thread::ThreadProgram;

// One form with roles, and a launch of it: ragged tiles, several for a block where it walks them, 6 steps.
class Lowered {
 public:
  Lowered(const std::string& text, int64_t columns, int64_t k = 6 * 64 - 8,
          std::optional<plan::Schedule> given = std::nullopt) {
    auto parsed = ir::parse_program(text, "product.tl", Limits{});
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().to_text());
    const auto program = std::make_shared<const ir::Program>(std::move(*parsed));
    auto artifact =
        driver::compile(program, *target::find_target("sim:sm_90a"), {.schedule = std::move(given)});
    EXPECT_TRUE(artifact) << (artifact ? "" : artifact.error().to_text());
    artifact_ = *artifact;
    Launch launch;
    launch.dims = {{"m", 3 * 128 + 24}, {"n", columns}, {"k", k}};
    EXPECT_EQ(memory_.bind(*program, launch), "");
    for (int tensor : memory_.tensor_of())
      extents_.push_back(
          {0, tensor < 0
                  ? 0
                  : static_cast<int64_t>(memory_.tensors()[static_cast<size_t>(tensor)].initial.size())});
    const auto memory = memory_.fresh(false);
    const auto forms = runtime::kernel_versions(*artifact_);
    const auto form = runtime::choose_version(forms[0], "gemm", memory_.slots(memory));
    EXPECT_TRUE(form);
    program_ = (*form)->program();
  }
  ThreadProgram program() const { return program_; }

  // Kinds of findings.
  std::set<std::string> simulate(const ThreadProgram& p, sim::SimOptions options) const {
    const std::vector<GuardedMemory> memory = memory_.fresh(false);
    options.count = false;
    if (p.dynamic_tiles) options.resident_blocks = 1;
    options.max_statements = 200'000;
    const auto result = sim::simulate(p, artifact_->target, memory_.slots(memory), extents_, options);
    std::set<std::string> kinds;
    if (!result) kinds.insert("refused: " + result.error().to_text());
    if (result)
      for (const sim::Finding& f : result->findings) kinds.insert(sim::finding_name(f.kind));
    return kinds;
  }

 private:
  std::shared_ptr<const driver::Artifact> artifact_;
  LaunchMemory memory_;
  std::vector<sim::TensorExtent> extents_;
  ThreadProgram program_;
};

// ---- finding and changing statements

// f(block, place in it) of every statement with that node, in program order.
template <class Node>
void each(ThreadProgram& p, thread::Block& block,
          const std::function<void(thread::Block&, size_t, Node&)>& f) {
  for (size_t i = 0; i < block.size(); ++i) {
    const StmtId id = block[i];
    auto& node = p.stmts[id.value].node;
    if (auto* found = std::get_if<Node>(&node)) f(block, i, *found);
    if (i >= block.size() || block[i] != id) {  // it was removed
      --i;
      continue;
    }
    for (thread::Block* inner : thread::blocks_inside(node)) each<Node>(p, *inner, f);
  }
}
template <class Node>
int change(ThreadProgram& p, const std::function<bool(Node&)>& f) {
  int changed = 0;
  each<Node>(p, p.body, [&](thread::Block&, size_t, Node& n) { changed += f(n); });
  return changed;
}
template <class Node>
int remove(ThreadProgram& p) {
  int removed = 0;
  each<Node>(p, p.body, [&](thread::Block& block, size_t i, Node&) {
    block.erase(block.begin() + static_cast<std::ptrdiff_t>(i));
    ++removed;
  });
  return removed;
}

// ---- the defects

struct Defect {
  const char* name;
  std::function<int(ThreadProgram&)> spoil;  // how many places
  const char*
      verifier;  // what verify_thread_program or verify_transactions says, with its name; null: nothing
  std::set<std::string> findings;  // of the simulator: one of these under every order
};

inline std::vector<std::string> verifiers(const ThreadProgram& p) {
  std::vector<std::string> all;
  for (const std::string& line : thread::verify_thread_program(p))
    all.push_back("verify_thread_program: " + line);
  for (const std::string& line : thread::verify_synchronization(p))
    all.push_back("verify_synchronization: " + line);
  for (const std::string& line : thread::verify_transactions(p))
    all.push_back("verify_transactions: " + line);
  return all;
}

inline void expect_named(const Lowered& lowered, const Defect& d) {
  SCOPED_TRACE(d.name);
  ThreadProgram p = lowered.program();
  ASSERT_GT(d.spoil(p), 0);
  const std::vector<std::string> said = verifiers(p);
  if (d.verifier == nullptr) {
    EXPECT_EQ(said, std::vector<std::string>());
  } else {
    EXPECT_TRUE(std::any_of(said.begin(), said.end(), [&](const auto& s) {
      return s.find(d.verifier) != s.npos;
    })) << testing::PrintToString(said);
  }
  sim::test::for_each_schedule([&](const sim::SimOptions& options) {
    const std::set<std::string> kinds = lowered.simulate(p, options);
    EXPECT_TRUE(
        std::any_of(kinds.begin(), kinds.end(), [&](const auto& k) { return d.findings.contains(k); }))
        << sim::test::order_name(options) << ": " << testing::PrintToString(kinds);
  });
}

}  // namespace tilegen::differential
