#include "mutant_judge.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "ir/text.h"
#include "launch_memory.h"
#include "runtime/kernel_version.h"
#include "runtime/sim/element_places.h"
#include "thread/sync_verify.h"

namespace tilegen::differential {

using sim::test::Mutation;
using sim::test::MutationSite;
using thread::ThreadProgram;

namespace {

constexpr uint64_t kMoreData = 12;  // launches with other numbers, for mutants that survive

// One launch of the program, to run any of its kernels alone.
struct Stage {
  Launch launch;
  bool further = false, filled = false;
  LaunchMemory memory;
  std::vector<sim::TensorExtent> extents;
  std::vector<uint64_t> probe_slots;  // to choose forms by

  // Most further ones are never asked for.
  void fill() {
    if (filled) return;
    memory.fill(launch);
    if (further) memory.add_zeros();
    filled = true;
  }
};

struct RunResult {
  std::set<std::string> findings;
  std::vector<std::vector<std::byte>> bytes;
  int64_t statements = 0;
};

// A kernel in one form, with the launches that take it and what it comes to there; `further` ones are for
// mutants that survive.
struct Form {
  const ThreadProgram* program = nullptr;
  std::vector<Stage*> stages, further;
  std::vector<RunResult> expected;
};

class Judge {
 public:
  Judge(std::string name, const driver::Artifact& artifact, size_t kernel, const MutantSample& sample,
        MutantTally& tally)
      : name_(std::move(name)), artifact_(artifact), kernel_(kernel), sample_(sample), tally_(tally) {}

  std::string judge(Form& form) {
    if (form.stages.empty()) form.stages.push_back(form.further[0]);
    if (std::string wrong = run_unspoilt(form); !wrong.empty()) return wrong;
    if (const auto hazards = thread::verify_synchronization(*form.program); !hazards.empty())
      return name_ + ": the unspoilt program has hazards: " + hazards[0];
    uint64_t number = 0;
    for (const MutationSite& site : sim::test::mutation_sites(*form.program)) {
      Random random(sample_.seed, name_ + form.program->name + std::to_string(number++));
      if (random.below(sample_.of) != 0) continue;
      if (const auto mutant = sim::test::mutate(*form.program, site)) judge(form, site, *mutant);
    }
    return {};
  }

 private:
  // The short launches come first: they find most defects.
  std::string run_unspoilt(Form& form) {
    std::multimap<int64_t, std::pair<Stage*, RunResult>> by_length;
    for (Stage* s : form.stages) {
      RunResult result = run(*form.program, *s);
      if (!result.findings.empty())
        return name_ + ": the unspoilt program has findings: " + *result.findings.begin();
      by_length.emplace(result.statements, std::pair(s, std::move(result)));
    }
    form.stages.clear();
    for (auto& [statements, ran] : by_length) {
      form.stages.push_back(ran.first);
      form.expected.push_back(std::move(ran.second));
    }
    return {};
  }

  // Ends at the first finding: nothing more is asked of a run that has one.
  RunResult run(const ThreadProgram& p, Stage& s, sim::WarpOrder order = sim::WarpOrder::round_robin,
                bool latest = true) {
    s.fill();
    std::vector<GuardedMemory> memory = s.memory.fresh(false);
    sim::SimOptions options;
    options.count = false;
    options.order = order;
    options.async_latest = latest;
    options.workers = 1;
    options.first_finding_ends = true;
    options.max_statements = 2'000'000;
    const sim::ElementPlaces places = runtime::element_places(artifact_, kernel_, p, s.memory.slots(memory));
    options.places = &places;
    const auto result = sim::simulate(p, artifact_.target, s.memory.slots(memory), s.extents, options);
    RunResult out;
    if (!result) {
      out.findings.insert("refused: " + result.error().to_text());
      return out;
    }
    for (const sim::Finding& f : result->findings) out.findings.insert(sim::finding_name(f.kind));
    out.statements = result->counters.statements;
    for (const GuardedMemory& m : memory) out.bytes.emplace_back(m.bytes().begin(), m.bytes().end());
    return out;
  }

  void judge(const Form& form, const MutationSite& site, const ThreadProgram& mutant) {
    MutantTally::Row& row = tally_.rows[site.mutation];
    ++row.mutants;
    const std::string what =
        name_ + " " + form.program->name + ": " + mutation_name(site.mutation) + " " + site.where;
    bool differ = false;
    const auto named = [&](Stage& s, const RunResult& expected) {
      const RunResult result = run(mutant, s);
      for (const std::string& f : result.findings) ++row.checks[f];
      if (!result.findings.empty()) return true;
      differ |= result.bytes != expected.bytes;
      return false;
    };
    for (size_t i = 0; i < form.stages.size(); ++i)
      if (named(*form.stages[i], form.expected[i])) return void(++row.named);
    const bool safe = thread::verify_synchronization(mutant).empty();
    if (!safe) {
      ++row.checks["verify_synchronization"];
      return void(++row.named);
    }
    if (differ) {
      tally_.by_values.push_back(what);
      return void(++row.by_values);
    }
    const std::string proof = proof_of(form, site, mutant);
    for (size_t i = 0; proof.empty() && i < form.further.size(); ++i) {
      if (named(*form.further[i], run(*form.program, *form.further[i]))) return void(++row.named);
      if (!differ) continue;
      tally_.by_values.push_back(what);
      return void(++row.by_values);
    }
    (proof.empty() ? tally_.unproven : tally_.proven).push_back(what + (proof.empty() ? "" : ": " + proof));
    if (proof.empty()) return;
    ++row.proven;
    ++row.proofs[proof];
  }

  // Why a mutant that nobody notices is the same program on these launches; empty: no proof.
  std::string proof_of(const Form& form, const MutationSite& site, const ThreadProgram& mutant) {
    const auto on_all = [&](const ThreadProgram& p, bool same_results) {
      for (size_t i = 0; i < form.stages.size(); ++i) {
        const RunResult result = run(p, *form.stages[i]);
        if (!result.findings.empty() || (same_results && result.bytes != form.expected[i].bytes))
          return false;
      }
      return true;
    };
    if (const auto probe = sim::test::reach_probe(*form.program, site); probe && on_all(*probe, false))
      return "the statement never runs";
    if (const auto probe = sim::test::predicate_probe(*form.program, site); probe && on_all(*probe, false))
      return "the predicate is never false";
    if (const auto probe = sim::test::store_probe(*form.program, site); probe && on_all(*probe, false))
      return "it stores what is there already";
    const auto poison = [&](int value) { return sim::test::poisoned(*form.program, site, value); };
    if (const auto first = poison(85), second = poison(-3);
        first && second && on_all(*first, true) && on_all(*second, true))
      return "nothing uses what is done where the predicate is false";
    if (site.mutation == Mutation::predicate_removed || site.mutation == Mutation::swizzle_dropped) return {};
    return ordered_without(form, mutant) ? "all is ordered without it, for any number of iterations" : "";
  }

  // Beside verify_synchronization and one order, which judged it already: other orders of warps, both times
  // of landing.
  bool ordered_without(const Form& form, const ThreadProgram& mutant) {
    for (const bool latest : {false, true})
      for (Stage* s : form.stages) {
        const auto order = latest ? sim::WarpOrder::random : sim::WarpOrder::reversed;
        if (!run(mutant, *s, order, latest).findings.empty()) return false;
      }
    return true;
  }

  std::string name_;
  const driver::Artifact& artifact_;
  size_t kernel_;  // of the program
  const MutantSample& sample_;
  MutantTally& tally_;
};

std::string prepare(const ir::Program& p, Stage& s) {
  if (std::string error = s.memory.place(p, s.launch); !error.empty()) return error;
  for (const int tensor : s.memory.tensor_of())
    s.extents.push_back(
        {0, tensor < 0
                ? 0
                : static_cast<int64_t>(s.memory.tensors()[static_cast<size_t>(tensor)].initial.size())});
  std::vector<GuardedMemory> memory = s.memory.fresh(false);
  s.probe_slots = s.memory.slots(memory);
  return {};
}

}  // namespace

MutantTally::Row MutantTally::total() const {
  Row sum;
  for (const auto& [mutation, row] : rows) {
    sum.mutants += row.mutants;
    sum.named += row.named;
    sum.by_values += row.by_values;
    sum.proven += row.proven;
  }
  return sum;
}

std::string MutantTally::to_text() const {
  std::string text;
  for (const auto& [mutation, row] : rows) {
    text += std::string(mutation_name(mutation)) + ": " + std::to_string(row.mutants) + " mutants, " +
            std::to_string(row.named) + " named, " + std::to_string(row.by_values) + " by values only, " +
            std::to_string(row.proven) + " proven to be the same program;";
    for (const auto& [check, n] : row.checks) text += " " + check + " " + std::to_string(n);
    for (const auto& [proof, n] : row.proofs) text += "; " + proof + ": " + std::to_string(n);
    text += "\n";
  }
  return text;
}

std::string judge_program(const std::string& name, const std::string& text, const std::string& target,
                          const std::vector<Launch>& launches, const MutantSample& sample,
                          MutantTally& tally) {
  if (Random(sample.seed, name + target).below(sample.programs) != 0) return {};
  auto parsed = ir::parse_program(text, name, Limits{});
  if (!parsed) return name + ": " + parsed.error().to_text();
  const auto program = std::make_shared<const ir::Program>(std::move(*parsed));
  const auto artifact = driver::compile(program, *target::find_target(target), {});
  if (!artifact) return {};
  std::vector<std::unique_ptr<Stage>> stages;
  std::string error;
  const auto add = [&](const Launch& launch, bool further) {
    auto stage = std::make_unique<Stage>();
    stage->launch = launch;
    stage->further = further;
    error = prepare((*artifact)->launch_program(), *stage);
    if (error.empty()) stages.push_back(std::move(stage));
  };
  for (const Launch& launch : launches) add(launch, false);
  for (Launch launch : launches) {
    add(launch, true);
    // Sizes that forms with wide accesses take.
    for (auto& [dim, value] : launch.dims) value = (value + 31) / 16 * 16;
    add(launch, true);
  }
  for (uint64_t more = 1; !launches.empty() && more <= kMoreData; ++more) {
    Launch launch = launches[0];
    launch.seed += 100 * more;
    add(launch, true);
  }
  if (stages.empty()) return name + ": no launch is possible: " + error;
  const auto kernels = runtime::kernel_versions(**artifact);
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::map<const runtime::KernelVersion*, Form> forms;
    for (const auto& stage : stages) {
      const auto chosen = runtime::choose_version(kernels[k], program->kernels[k].name, stage->probe_slots);
      if (!chosen) continue;
      Form& form = forms[*chosen];
      form.program = &(*chosen)->program();
      (stage->further ? form.further : form.stages).push_back(stage.get());
    }
    for (auto& [chosen, form] : forms) {
      Judge judge(name + " " + target, **artifact, k, sample, tally);
      if (std::string wrong = judge.judge(form); !wrong.empty()) return wrong;
    }
  }
  return {};
}

}  // namespace tilegen::differential
