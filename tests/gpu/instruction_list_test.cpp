// Every row of the atom tables and every statement of thread programs that is an instruction has a test that
// runs it alone, or stands here, and in docs/simulator.md, with the reason why it has none. A row that is
// added fails until it does.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::gpu {
namespace {

constexpr const char* kMma = "Instructions.MatrixAtomsAreSumsOfProducts";
constexpr const char* kWarpgroup = "WarpgroupInstructions.EveryRowInEveryWidth";

// Of a row of a table or a statement: the test, or why there is none, as the document says it.
struct Entry {
  const char* name;
  const char* test;
  const char* untested = nullptr;
};

constexpr const char* kPlain = "plain expressions";
constexpr Entry kAtoms[] = {
    {"mma.m16n8k16.f32.f16", kMma},
    {"mma.m16n8k16.f16.f16", kMma},
    {"mma.m16n8k16.f32.bf16", kMma},
    {"mma.m16n8k32.s32.s8.s8", kMma},
    {"mma.m16n8k32.s32.u8.u8", kMma},
    {"mma.m16n8k32.s32.s8.u8", kMma},
    {"mma.m16n8k32.s32.u8.s8", kMma},
    {"mma.m8n8k4.f64", kMma},
    {"mma.m16n8k8.f32.tf32", kMma},
    {"mma.m16n8k4.f32.tf32", kMma},
    {"mma.m16n8k32.f32.e4m3.e4m3", kMma},
    {"mma.m16n8k32.f32.e4m3.e5m2", kMma},
    {"mma.m16n8k32.f32.e5m2.e4m3", kMma},
    {"mma.m16n8k32.f32.e5m2.e5m2", kMma},
    {"dp4a.s32.s8.s8:4x4", kMma},
    {"dp4a.s32.s8.s8:1x1", kMma},
    {"dp4a.s32.s8.u8:4x4", kMma},
    {"dp4a.s32.s8.u8:1x1", kMma},
    {"dp4a.s32.u8.s8:4x4", kMma},
    {"dp4a.s32.u8.s8:1x1", kMma},
    {"dp4a.s32.u8.u8:4x4", kMma},
    {"dp4a.s32.u8.u8:1x1", kMma},
    {"fma.f32", nullptr, kPlain},
    {"fma.f32.f16", nullptr, kPlain},
    {"fma.f32.bf16", nullptr, kPlain},
    {"fma.f32.e4m3.e4m3", nullptr, kPlain},
    {"fma.f32.e4m3.e5m2", nullptr, kPlain},
    {"fma.f32.e5m2.e4m3", nullptr, kPlain},
    {"fma.f32.e5m2.e5m2", nullptr, kPlain},
    {"fma.f32.e4m3fnuz.e4m3fnuz", nullptr, kPlain},
    {"fma.f32.e4m3fnuz.e5m2fnuz", nullptr, kPlain},
    {"fma.f32.e5m2fnuz.e4m3fnuz", nullptr, kPlain},
    {"fma.f32.e5m2fnuz.e5m2fnuz", nullptr, kPlain},
    {"fma.f64", nullptr, kPlain},
    {"fma.s32.s8.s8", nullptr, kPlain},
    {"fma.s32.u8.u8", nullptr, kPlain},
    {"fma.s32.s8.u8", nullptr, kPlain},
    {"fma.s32.u8.s8", nullptr, kPlain},
    {"wgmma.k16.f32.f16.f16", kWarpgroup},
    {"wgmma.k16.f32.bf16.bf16", kWarpgroup},
    {"wgmma.k16.f16.f16.f16", kWarpgroup},
    {"wgmma.k8.f32.tf32.tf32", kWarpgroup},
    {"wgmma.k32.f32.e4m3.e4m3", kWarpgroup},
    {"wgmma.k32.f32.e4m3.e5m2", kWarpgroup},
    {"wgmma.k32.f32.e5m2.e4m3", kWarpgroup},
    {"wgmma.k32.f32.e5m2.e5m2", kWarpgroup},
    {"wgmma.k32.s32.s8.s8", kWarpgroup},
    {"wgmma.k32.s32.s8.u8", kWarpgroup},
    {"wgmma.k32.s32.u8.s8", kWarpgroup},
    {"wgmma.k32.s32.u8.u8", kWarpgroup},
};

constexpr const char* kFlow = "control flow and plain accesses";
constexpr const char* kHost = "of the host alone";
constexpr const char* kCluster = "in kernels of clusters; not alone";
// In the order of thread::StmtNode.
constexpr Entry kStatements[] = {
    {"Loop", nullptr, kFlow},
    {"Branch", nullptr, kFlow},
    {"Store", nullptr, kFlow},
    {"LaneReduce", nullptr, kHost},
    {"HostMma", nullptr, kHost},
    {"Prefetch", nullptr, kHost},
    {"Barrier", "Transactions.BarriersOfAWarpgroup"},
    {"AsyncCopy", "Instructions.AsyncCopiesFillWithZeros"},
    {"AsyncCommit", "Instructions.AsyncCopiesFillWithZeros"},
    {"AsyncWait", "Instructions.AsyncCopiesFillWithZeros"},
    {"Shuffle", "Instructions.Shuffles"},
    {"Vote", "Instructions.Votes"},
    {"LoadMatrix", "Instructions.MatrixLoadsOfBytes"},
    {"StoreMatrix", "Instructions.MatrixStoresOfBytes"},
    {"WarpMma", kMma},
    {"Roles", "Transactions.RegistersOfTheRoles"},
    {"OneThread", nullptr, "in kernels with a producer; not alone"},
    {"TransactionArrive", "Transactions.PhasesOfOneAndMoreArrivals"},
    {"TransactionWait", "Transactions.PhasesOfOneAndMoreArrivals"},
    {"TransactionTest", "Transactions.PhasesAskedAhead"},
    {"FetchTile", nullptr, "in kernels whose blocks take tiles from a counter; not alone"},
    {"TensorLoad", "TensorCopies.LoadsOfEveryRankSwizzleAndElement"},
    {"TensorStore", "TensorCopies.StoresOfEveryRankSwizzleAndElement"},
    {"BulkCommit", "TensorCopies.BulkGroupsInARing"},
    {"BulkWait", "TensorCopies.BulkGroupsInARing"},
    {"ProxyFence", "Transactions.ThreadsAndTheCopyEngineTakeTurns"},
    {"ClusterBarrier", nullptr, kCluster},
    {"GridDependencyWait", nullptr, "between launches: launches_in_order.py"},
    {"ClusterLoad", nullptr, kCluster},
    {"WarpgroupMma", kWarpgroup},
    {"WarpgroupFence", "WarpgroupInstructions.GroupsUnderWay"},
    {"WarpgroupCommit", "WarpgroupInstructions.GroupsUnderWay"},
    {"WarpgroupWait", "WarpgroupInstructions.GroupsUnderWay"},
};
static_assert(std::size(kStatements) == std::variant_size_v<thread::StmtNode>,
              "a new statement has a test, or a reason");
static_assert(std::is_same_v<std::variant_alternative_t<12, thread::StmtNode>, thread::LoadMatrix> &&
              std::is_same_v<std::variant_alternative_t<26, thread::StmtNode>, thread::ClusterBarrier>);

std::set<std::string> tests() {
  std::set<std::string> names;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s)
    for (int t = 0; t < all.GetTestSuite(s)->total_test_count(); ++t)
      names.insert(std::string(all.GetTestSuite(s)->name()) + "." +
                   all.GetTestSuite(s)->GetTestInfo(t)->name());
  return names;
}

// Both arrangements of a multiply-add are one entry.
std::string entry_of(const std::string& atom) {
  return atom.starts_with("fma.") ? atom.substr(0, atom.find(':')) : atom;
}

TEST(InstructionList, HasEveryRowOfTheTables) {
  std::set<std::string> rows, listed;
  for (const char* name : {"sm_80", "sm_89", "sm_90", "sm_90a"}) {
    const auto target = target::find_target(name);
    ASSERT_TRUE(target) << name;
    for (const target::MmaAtom& atom : target->mma) rows.insert(entry_of(atom.name));
    for (const target::WarpgroupAtom& atom : target->warpgroup_mma) rows.insert(atom.name);
  }
  for (const Entry& e : kAtoms) EXPECT_TRUE(listed.insert(e.name).second) << e.name << " is listed twice";
  for (const std::string& row : rows)
    EXPECT_TRUE(listed.count(row)) << row << " has no test and no reason for having none";
  for (const std::string& row : listed) EXPECT_TRUE(rows.count(row)) << row << " is no row of a table";
}

TEST(InstructionList, NamesTestsOfThisProgram) {
  const std::set<std::string> known = tests();
  for (const auto* entries : {&kAtoms[0], &kStatements[0]}) {
    const size_t count = entries == kAtoms ? std::size(kAtoms) : std::size(kStatements);
    for (size_t i = 0; i < count; ++i) {
      const Entry& e = entries[i];
      EXPECT_NE(e.test == nullptr, e.untested == nullptr) << e.name;
      if (e.test) {
        EXPECT_TRUE(known.count(e.test)) << e.name << ": there is no test " << e.test;
      }
    }
  }
}

// The document has the tests by name, and what has none.
TEST(InstructionList, IsTheDocuments) {
  const std::filesystem::path file = std::filesystem::path(TILEGEN_SOURCE_DIR) / "docs/simulator.md";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "away from its source tree";
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  const std::string document = text.str();
  const auto has = [&](const std::string& part) { return document.find(part) != std::string::npos; };
  for (const Entry& e : kAtoms)
    EXPECT_TRUE(e.untested ? has(e.untested) : has(std::string(e.test))) << e.name;
  for (const Entry& e : kStatements) {
    if (e.test) {
      const std::string test = e.test;  // further tests of a suite are named without it
      EXPECT_TRUE(has(test.substr(test.find('.') + 1))) << e.name << ": " << test;
    } else if (e.untested != std::string(kFlow) && e.untested != std::string(kHost)) {
      EXPECT_TRUE(has("`" + std::string(e.name) + "`") && has(e.untested)) << e.name;
    }
  }
}

}  // namespace
}  // namespace tilegen::gpu
