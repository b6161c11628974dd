// Every mutant of a pipelined matrix product dies.
#include "mutants.h"

#include <iostream>

#include "gemm_program.h"

namespace tilegen::sim::test {
namespace {

TEST(SimMutants, AllMutantsOfAMatrixProductAreKilled) {
  for (int64_t stages : {2, 3}) {
    const GemmProgram g(6, stages);
    const std::vector<Mutant> mutants = mutants_of(g.p);
    const MutantReport report = judge_mutants(mutants, [](const thread::ThreadProgram& p) {
      GemmData data(6 * 32);
      const Arguments arguments = data.arguments();
      auto result = simulate(p, sm80(), arguments.slots, arguments.extents, {});
      EXPECT_TRUE(static_cast<bool>(result));
      MutantOutcome outcome;
      for (const Finding& f : result->findings) outcome.findings.push_back(f.kind);
      outcome.values_differ = data.c != data.expected;
      return outcome;
    });
    std::cout << report.to_text();
    EXPECT_EQ(report.survivors(), 0);
    for (Mutation m : {Mutation::barrier_removed, Mutation::wait_weakened, Mutation::slots_reduced,
                       Mutation::swizzle_dropped, Mutation::predicate_removed, Mutation::commit_removed}) {
      ASSERT_EQ(report.rows.count(m), 1u) << mutation_name(m);
      EXPECT_GT(report.rows.at(m).mutants, 0) << mutation_name(m);
    }
    // What is a matter of order is found as such, not by luck with the values.
    EXPECT_EQ(report.rows.at(Mutation::barrier_removed).by_values, 0);
    EXPECT_EQ(report.rows.at(Mutation::wait_weakened).by_values, 0);
    EXPECT_EQ(report.rows.at(Mutation::slots_reduced).by_values, 0);
  }
}

TEST(SimMutants, TheHarnessKnowsSurvivors) {
  GpuProgram g(32);
  const MemoryId out = g.tensor("Out", DType::i32);
  g.store(out, g.thread(), cast(DType::i32, g.thread()));
  g.barrier();  // nothing needs it
  const MutantReport report = judge_mutants(mutants_of(g.p), [](const thread::ThreadProgram& p) {
    std::vector<int32_t> v(32);
    const Arguments arguments = Arguments().tensor(v);
    return MutantOutcome{simulate(p, sm80(), arguments.slots, arguments.extents, {})->findings.empty()
                             ? std::vector<FindingKind>()
                             : std::vector<FindingKind>{FindingKind::data_race},
                         false};
  });
  EXPECT_EQ(report.survivors(), 1) << report.to_text();
  EXPECT_NE(report.to_text().find("survives: barrier"), std::string::npos);
}

// Whether the one probe of a store or of a branch around stores, of a program of 32 threads, runs without a
// finding.
bool store_probe_is_silent(const GpuProgram& g) {
  std::vector<float> v(32);
  const Arguments arguments = Arguments().tensor(v);
  std::vector<bool> silent;
  for (const MutationSite& site : mutation_sites(g.p))
    if (const auto probe = store_probe(g.p, site))
      silent.push_back(simulate(*probe, sm80(), arguments.slots, arguments.extents, {})->findings.empty());
  EXPECT_EQ(silent.size(), 1u);
  return silent.size() == 1 && silent[0];
}

// A store that puts what is there already needs no predicate; one that puts something else does.
TEST(SimMutants, AStoreOfWhatIsThereIsProvenToNeedNoPredicate) {
  for (const bool same : {true, false}) {
    GpuProgram g(32);
    const MemoryId out = g.tensor("Out", DType::f32), kept = g.registers("Kept", DType::f32, 1);
    g.store(kept, g.i(0), cast(DType::f32, g.thread()));
    const E value = same ? g.load(kept, g.i(0)) : g.load(kept, g.i(0)) + cast(DType::f32, g.i(1));
    g.store_if(kept, g.i(0), value, g.thread() < g.i(16));
    g.store(out, g.thread(), g.load(kept, g.i(0)));
    EXPECT_EQ(store_probe_is_silent(g), same);
  }
}

// A branch around a loop of stores, which mask what lies after a limit: needed where the limit is before it,
// not where all is before it in any case.
TEST(SimMutants, ABranchAroundStoresOfWhatIsThereIsProvenToBeNeedless) {
  for (const bool same : {true, false}) {
    GpuProgram g(32);
    const MemoryId out = g.tensor("Out", DType::f32), kept = g.registers("Kept", DType::f32, 4);
    const auto each = [&](const std::function<E(E)>& value) {
      g.loop(g.i(4), thread::LoopForm::unrolled, [&](E k) { g.store(kept, k, value(k)); });
    };
    each([](E k) { return cast(DType::f32, k); });
    g.branch(g.thread() < g.i(16), [&] {
      each([&](E k) {
        const ir::ExprId reached = (k < g.i(same ? 4 : 3)).id, below = cast(DType::f32, g.i(-1)).id;
        return E{&g.p.exprs, g.p.exprs.select(reached, g.load(kept, k).id, below)};
      });
    });
    g.store(out, g.thread(), g.load(kept, g.i(3)));
    EXPECT_EQ(store_probe_is_silent(g), same);
  }
}

}  // namespace
}  // namespace tilegen::sim::test
