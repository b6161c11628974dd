// The checks of scheduled programs hold for all that is expanded, and tell when a hand-over or a wait is left
// out, doubled or moved.
#include <filesystem>

#include "scheduled_support.h"

namespace tilegen::expand {
namespace {

std::vector<std::string> program_files() {
  std::vector<std::string> list;
  for (const char* folder : {"tests/files", "tests/unit/schedule/flagship"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(schedule::source_path(folder)))
      if (entry.path().extension() == ".tl") list.push_back(entry.path().string());
  std::sort(list.begin(), list.end());
  return list;
}

TEST(VerifyScheduled, HoldsForEveryProgram) {
  size_t pipelined = 0;
  for (const std::string& path : program_files()) {
    auto p = ir::parse_program(schedule::read_file(path), "test.tl", Limits{});
    if (!p || !check::check_program(*p, Limits{}).empty()) continue;
    for (const char* target : {"sm_80", "sm_90a", "x86-64-v3"}) {
      const auto plan = schedule::plan_for(*p, target);
      if (!plan) continue;
      for (size_t k = 0; k < p->kernels.size(); ++k) {
        const auto e =
            expand_kernel(*p, static_cast<int>(k), plan->kernels[k], schedule::target_named(target));
        ASSERT_TRUE(e) << path << ": " << e.error().to_text();
        pipelined += !e->pipelines.empty();
        for (const std::string& broken : verify_scheduled(*p, *e))
          ADD_FAILURE() << path << " " << target << ": " << broken << "\n" << print_scheduled(*p, *e);
      }
    }
  }
  EXPECT_GT(pipelined, 70u);
}

// Every block of a kernel, outermost first.
void blocks_of(Block& b, std::vector<Block*>& list) {
  list.push_back(&b);
  for (Stmt& s : b)
    std::visit(
        [&](auto& node) {
          if constexpr (requires { node.body; }) blocks_of(node.body, list);
          if constexpr (requires { node.before_last; }) blocks_of(node.before_last, list);
          if constexpr (requires { node.then_body; }) blocks_of(node.then_body, list);
          if constexpr (requires { node.else_body; }) blocks_of(node.else_body, list);
        },
        s.node);
}

// Statements that order roles and engines.
bool orders(const Stmt& s) {
  return std::visit(
      [](const auto& node) {
        using Node = std::decay_t<decltype(node)>;
        return std::is_same_v<Node, Acquire> || std::is_same_v<Node, Commit> || std::is_same_v<Node, Wait> ||
               std::is_same_v<Node, Release> || std::is_same_v<Node, Await> ||
               std::is_same_v<Node, CommitGroup> || std::is_same_v<Node, WaitGroup>;
      },
      s.node);
}

struct Counts {
  int mutants = 0, told = 0;
};

// `change` at every statement that orders something.
Counts mutate(Expanded& e, const std::function<bool(Block&, size_t)>& change) {
  Counts counts;
  for (Role& role : e.kernel.roles) {
    std::vector<Block*> blocks;
    blocks_of(role.body, blocks);
    for (size_t b = 0; b < blocks.size(); ++b)
      for (size_t i = 0; i < blocks[b]->size(); ++i) {
        if (!orders((*blocks[b])[i])) continue;
        const Block before = role.body;
        if (change(*blocks[b], i)) {
          ++counts.mutants;
          const bool told = !verify_scheduled(*e.program, e.kernel).empty();
          counts.told += told;
          if (!told) std::printf("survives: statement %zu of block %zu, %s\n", i, b, role.name.c_str());
        }
        role.body = before;
        blocks.clear();
        blocks_of(role.body, blocks);
      }
  }
  return counts;
}

class Mutants : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Mutants, AreTold) {
  auto e = expanded_from(schedule::source_path(GetParam().first), GetParam().second);
  ASSERT_TRUE(e);
  ASSERT_TRUE(verify_scheduled(*e->program, e->kernel).empty());
  const Counts left_out = mutate(*e, [](Block& b, size_t i) {
    b.erase(b.begin() + static_cast<ptrdiff_t>(i));
    return true;
  });
  EXPECT_GE(left_out.mutants, 3);
  EXPECT_EQ(left_out.told, left_out.mutants) << "left out";
  const Counts doubled = mutate(*e, [](Block& b, size_t i) {
    if (std::holds_alternative<Await>(b[i].node) || std::holds_alternative<WaitGroup>(b[i].node) ||
        std::holds_alternative<CommitGroup>(b[i].node))
      return false;  // no harm
    b.insert(b.begin() + static_cast<ptrdiff_t>(i), Stmt(b[i]));
    return true;
  });
  EXPECT_EQ(doubled.told, doubled.mutants) << "doubled";
  const Counts later = mutate(*e, [](Block& b, size_t i) {
    const At* next = i + 1 < b.size() ? std::get_if<At>(&b[i + 1].node) : nullptr;
    if (!next || (std::holds_alternative<WaitGroup>(b[i].node) && next->where_exists)) return false;
    if (!std::holds_alternative<Wait>(b[i].node) && !std::holds_alternative<WaitGroup>(b[i].node))
      return false;
    std::swap(b[i], b[i + 1]);
    return true;
  });
  EXPECT_EQ(later.told, later.mutants) << "a wait behind what it is for";
}

INSTANTIATE_TEST_SUITE_P(
    All, Mutants,
    ::testing::Values(std::pair("tests/unit/schedule/flagship/gemm_flagship.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_full.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_causal.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_split.tl", "sm_90a"),
                      std::pair("tests/files/plan/hopper/products_without_loop.tl", "sm_90a"),
                      std::pair("tests/files/plan/hopper/tile_of_an_outer_loop.tl", "sm_90a"),
                      std::pair("tests/files/plan/hopper/product_in_a_branch.tl", "sm_90a"),
                      std::pair("tests/files/plan/gemm_bias_relu.tl", "sm_80"),
                      std::pair("tests/files/plan/flash_attention.tl", "sm_80")));

}  // namespace
}  // namespace tilegen::expand
