// Kernels whose blocks come in clusters and read shared tiles for each other: run on the simulator against
// the interpreter, and spoiled.
#include <fstream>
#include <set>
#include <sstream>

#include "check/check_program.h"
#include "ir/text.h"
#include "simulated_launch.h"
#include "thread/transaction_verify.h"

namespace tilegen::lower {
namespace {

struct Shape {
  const char* b = "B: f16[n, k]";
  const char* b_tile = "f16[64, 64]";
  const char* b_region = "B[bx * 64 :+ 64, ko * 64 :+ 64]";
  const char* product = "gemm As, Bs -> acc {transpose_b}";
  const char* out = "  copy acc -> C[by * 64 :+ 64, bx * 64 :+ 64]\n";
};
constexpr Shape kNt{},
    kNn{"B: f16[k, n]", "f16[64, 64]", "B[ko * 64 :+ 64, bx * 64 :+ 64]", "gemm As, Bs -> acc"};
// Results by plain stores.
constexpr Shape kPlain{.out =
                           "  parallel i, j in 64, 64 {\n    C[by * 64 + i, bx * 64 + j] = cast(f16, acc[i, "
                           "j] + 1.0f32)\n  }\n"};

std::string text_of(const Shape& s, const char* dims = "dim m\ndim n divisible 8\ndim k divisible 8\n",
                    const char* grid = "by: ceildiv(m, 64), bx: ceildiv(n, 64)") {
  return std::string("tl 1 program product\n") + dims + "tensor A: f16[m, k] readonly\ntensor " + s.b +
         " readonly\ntensor C: f16[m, n]\nkernel gemm grid (" + grid +
         ") threads 128 {\n  alloc As: shared f16[64, 64]\n  alloc Bs: shared " + s.b_tile +
         "\n  alloc acc: fragment f32[64, 64]\n  fill acc, 0.0f32\n  pipelined ko in 0 .. ceildiv(k, 64) "
         "stages 3 {\n"
         "    copy A[by * 64 :+ 64, ko * 64 :+ 64] -> As\n    copy " +
         s.b_region + " -> Bs\n    " + s.product + "\n  }\n" + s.out + "}\n";
}

ir::Program program_of(const std::string& text) {
  auto program = ir::parse_program(text, "cluster.tl", Limits{});
  EXPECT_TRUE(program) << program.error().to_text();
  if (!program) return {};
  for (const Diagnostic& d : check::check_program(*program, Limits{})) ADD_FAILURE() << d.to_text();
  return std::move(*program);
}

target::Target hopper() { return *target::find_target("sim:sm_90a"); }

plan::Schedule schedule_of(const ir::Program& p, int64_t blocks, const std::string& along, bool persistent) {
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = p.kernels[0].name;
  given.kernels[0].cluster = plan::ClusterPlan{blocks, along, "given"};
  given.kernels[0].persistence = plan::PersistencePlan{persistent, "static", false, "given"};
  auto s = schedule::plan_program(p, hopper(), {&given});
  EXPECT_TRUE(s) << s.error().to_text();
  return s ? *s : plan::Schedule{};
}

thread::ThreadProgram lowered_of(const ir::Program& p, const plan::Schedule& s) {
  auto lowered = schedule::lowered_as_planned(p, 0, s.kernels[0], hopper());
  EXPECT_TRUE(lowered) << lowered.error().to_text();
  return lowered ? std::move(*lowered) : thread::ThreadProgram{};
}

template <class Node>
std::vector<Node*> all(thread::ThreadProgram& p) {
  std::vector<Node*> found;
  for (thread::Stmt& s : p.stmts)
    if (auto* node = std::get_if<Node>(&s.node)) found.push_back(node);
  return found;
}

int64_t multicasts(thread::ThreadProgram& p) {
  int64_t count = 0;
  for (const auto* load : all<thread::TensorLoad>(p)) count += load->multicast != 0;
  return count;
}

// ---- right results

struct Case {
  const char* name;
  Shape shape;
  int64_t blocks;
  const char* along;
  bool persistent;
};

class Clusters : public ::testing::TestWithParam<Case> {};

TEST_P(Clusters, ComputeProducts) {
  const Case& c = GetParam();
  const ir::Program p = program_of(text_of(c.shape));
  const plan::Schedule s = schedule_of(p, c.blocks, c.along, c.persistent);
  thread::ThreadProgram lowered = lowered_of(p, s);
  EXPECT_EQ(lowered.cluster, c.blocks);
  EXPECT_GT(multicasts(lowered), 0);
  EXPECT_EQ(thread::verify_transactions(lowered), std::vector<std::string>());
  // Steps, ragged edges, numbers of tiles that do not divide into clusters; the second dimension walks
  // several tiles.
  const test::Simulated code(p, hopper(), s, true);
  for (int64_t k : {0, 8, 64, 128, 192, 440}) EXPECT_TRUE(code.run({130, 72, k})) << k;
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{64, 64}, {192, 320}, {200, 456}, {1, 8}})
    EXPECT_TRUE(code.run({m, n, 200})) << m << "x" << n;
}

INSTANTIATE_TEST_SUITE_P(
    All, Clusters,
    ::testing::Values(Case{"rows", kNt, 2, "by", true}, Case{"columns", kNt, 2, "bx", true},
                      Case{"nn", kNn, 2, "by", true}, Case{"plain_stores", kPlain, 2, "bx", true},
                      Case{"a_block_a_tile", kNt, 2, "by", false}, Case{"four", kNt, 4, "bx", true}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ClusterLowering, TilesThatDivideNeedNoCondition) {
  const auto branches = [](const char* dims) {
    const ir::Program p = program_of(text_of(kNt, dims));
    thread::ThreadProgram lowered = lowered_of(p, schedule_of(p, 2, "by", true));
    return all<thread::Branch>(lowered).size();
  };
  EXPECT_EQ(branches("dim m divisible 128\ndim n divisible 8\ndim k divisible 8\n") + 1,
            branches("dim m divisible 64\ndim n divisible 8\ndim k divisible 8\n"));
}

// Rows that are known to be whole tiles are stored without a look at the edge; the block beyond them must
// not.
TEST(ClusterLowering, BlocksBeyondTheGridStoreNothing) {
  const ir::Program p =
      program_of(text_of(kPlain, "dim m divisible 64\ndim n divisible 64\ndim k divisible 64\n"));
  for (const char* along : {"by", "bx"})
    EXPECT_TRUE(test::run_simulated(p, hopper(), schedule_of(p, 2, along, true), {192, 192, 128}, true));
}

TEST(ClusterLowering, GridsOfThreeDimensions) {
  std::string text = text_of(kNt, "dim m\ndim n divisible 8\ndim k divisible 8\n",
                             "bz: 2, by: ceildiv(m, 64), bx: ceildiv(n, 64)");
  for (const auto& [from, to] : {std::pair<const char*, const char*>{"f16[m, k]", "f16[2, m, k]"},
                                 {"C: f16[m, n]", "C: f16[2, m, n]"},
                                 {"A[by", "A[bz :+ 1, by"},
                                 {"C[by", "C[bz :+ 1, by"}})
    text.replace(text.find(from), std::string(from).size(), to);
  const ir::Program p = program_of(text);
  for (const char* along : {"bz", "by", "bx"})
    EXPECT_TRUE(test::run_simulated(p, hopper(), schedule_of(p, 2, along, true), {136, 200, 136}, true))
        << along;
}

// Two pipelines of a loop are shared, and one that is filled once is not.
TEST(ClusterLowering, Attention) {
  std::stringstream text;
  text << std::ifstream(TILEGEN_SOURCE_DIR "/tests/files/plan/flash_attention.tl").rdbuf();
  const ir::Program p = program_of(text.str());
  for (int64_t blocks : {2, 4}) {
    const plan::Schedule s = schedule_of(p, blocks, "bq", false);
    thread::ThreadProgram lowered = lowered_of(p, s);
    EXPECT_EQ(multicasts(lowered), 2);
    EXPECT_EQ(thread::verify_transactions(lowered), std::vector<std::string>());
    const test::Simulated code(p, hopper(), s, true);
    for (int64_t queries : {64, 200, 320}) EXPECT_TRUE(code.run({queries, 192, 1}));
  }
}

// A tile that is the same for all blocks of a cluster is read once.
TEST(ClusterLowering, SharedTilesAreReadOnce) {
  const ir::Program p = program_of(text_of(kNt));
  const auto read = [&](int64_t blocks, const char* along) {
    sim::Counters counters;
    EXPECT_TRUE(test::run_simulated(p, hopper(), schedule_of(p, blocks, along, true), {256, 128, 256}, true,
                                    &counters));
    std::map<std::string, int64_t> bytes;
    for (const sim::AccessCount& a : counters.accesses)
      if (a.action == "tensor copy" && a.space == thread::Space::global) bytes[a.memory] += a.bytes;
    return std::pair{bytes["A"], bytes["B"]};
  };
  const auto [a, b] = read(1, "");
  EXPECT_EQ(read(2, "by"), std::pair(a, b / 2));
  EXPECT_EQ(read(4, "by"), std::pair(a, b / 4));
  EXPECT_EQ(read(2, "bx"), std::pair(a / 2, b));
}

// ---- mutants

class ClusterMutants : public ::testing::Test {
 protected:
  using Change = std::function<void(thread::ThreadProgram&)>;

  // The simulator has a finding of one of these kinds, under every order; the verifier a hazard with these
  // words.
  void expect_found(const std::set<sim::FindingKind>& kinds, const std::string& words, const Change& change) {
    const ir::Program p = program_of(text_of(kNt));
    thread::ThreadProgram spoiled = lowered_of(p, schedule_of(p, 2, "by", true));
    change(spoiled);
    std::string hazards;
    for (const std::string& h : thread::verify_transactions(spoiled)) hazards += h + "\n";
    EXPECT_NE(hazards.find(words), std::string::npos) << hazards;
    for (bool latest : {true, false})
      for (sim::WarpOrder order :
           {sim::WarpOrder::round_robin, sim::WarpOrder::reversed, sim::WarpOrder::random}) {
        test::LaunchArguments arguments(p, {320, 136, 448}, 3);
        sim::SimOptions options;
        options.order = order;
        options.async_latest = latest;
        auto result = sim::simulate(spoiled, hopper(), arguments.slots, arguments.extents, options);
        ASSERT_TRUE(result) << result.error().to_text();
        bool found = false;
        std::string texts;
        for (const sim::Finding& f : result->findings) {
          found |= kinds.count(f.kind) > 0;
          texts += f.to_text() + "\n";
        }
        EXPECT_TRUE(found) << "order " << static_cast<int>(order) << " latest " << latest << "\n" << texts;
      }
  }
  static void remove(thread::Block& body, thread::ThreadProgram& p) {
    std::erase_if(body, [&](thread::StmtId id) {
      return std::holds_alternative<thread::ClusterBarrier>(p.stmts[id.value].node);
    });
  }
};

using sim::FindingKind;

TEST_F(ClusterMutants, AShareGoesToTheOwnBlockAlone) {
  expect_found({FindingKind::deadlock}, "announced bytes that no copy brings", [](thread::ThreadProgram& p) {
    for (auto* load : all<thread::TensorLoad>(p)) load->multicast = 0;
  });
}

TEST_F(ClusterMutants, AShareGoesToTheFirstBlockAlone) {
  expect_found({FindingKind::deadlock}, "announced bytes that no copy brings", [](thread::ThreadProgram& p) {
    for (auto* load : all<thread::TensorLoad>(p))
      if (load->multicast != 0) load->multicast = 1;
  });
}

TEST_F(ClusterMutants, WholeTilesGoToAll) {
  expect_found({FindingKind::transaction_bytes, FindingKind::deadlock}, "than announced",
               [](thread::ThreadProgram& p) {
                 for (auto* load : all<thread::TensorLoad>(p)) load->multicast = 3;
               });
}

TEST_F(ClusterMutants, SlotsAreGivenBackToTheOwnBlockAlone) {
  // Both threads arrive there: the neighbour's products are not waited for.
  expect_found({FindingKind::operand_in_flight, FindingKind::async_not_waited}, "may still read it",
               [](thread::ThreadProgram& p) {
                 for (auto* arrive : all<thread::TransactionArrive>(p)) arrive->block = ir::ExprId();
               });
}

TEST_F(ClusterMutants, TheNeighbourIsNotCounted) {
  expect_found({FindingKind::operand_in_flight, FindingKind::async_not_waited, FindingKind::deadlock},
               "may still read it", [](thread::ThreadProgram& p) {
                 for (thread::TransactionBarriers& b : p.barriers)
                   if (b.arrivals > 1) b.arrivals /= 2;
               });
}

TEST_F(ClusterMutants, OneArrivalTooManyIsCounted) {
  expect_found({FindingKind::deadlock}, "of 3 arrivals", [](thread::ThreadProgram& p) {
    for (thread::TransactionBarriers& b : p.barriers)
      if (b.arrivals > 1) ++b.arrivals;
  });
}

TEST_F(ClusterMutants, OneArrivalGoesToNoBlock) {
  expect_found({FindingKind::out_of_bounds}, "there is no block 2 of the cluster",
               [](thread::ThreadProgram& p) {
                 for (auto* arrive : all<thread::TransactionArrive>(p))
                   if (arrive->block.valid()) arrive->block = p.exprs.add(arrive->block, 1);
               });
}

TEST_F(ClusterMutants, NobodyWaitsAtTheEnd) {
  expect_found({FindingKind::cluster_left}, "of the cluster may be over when threads of another arrive",
               [](thread::ThreadProgram& p) {
                 for (auto* roles : all<thread::Roles>(p))
                   for (thread::Role& role : roles->roles) remove(role.body, p);
               });
}

TEST_F(ClusterMutants, OneRoleDoesNotComeToTheEnd) {
  expect_found({FindingKind::deadlock, FindingKind::barrier_abandoned}, "at the cluster's barrier",
               [](thread::ThreadProgram& p) { remove(all<thread::Roles>(p)[0]->roles[1].body, p); });
}

}  // namespace
}  // namespace tilegen::lower
