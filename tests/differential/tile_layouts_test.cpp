// How shared tiles that threads alone touch lie, judged by what the simulator counts. For each such tile of
// the programs of tests/files, of the regressions and of the samples no candidate of the planner takes fewer
// transactions, all accesses of the tile together; and what has conflicts of two ways or more is listed in
// kConflicts.
// Programs that are listed there are judged on both targets of warps, others on one of them by turns; one
// of waves has conflicts of its own, which no candidate may avoid, and a part of the programs.
//   TILEGEN_LONG=1         all programs on all
//   TILEGEN_SHOW=1         every tile that has conflicts
//   TILEGEN_PROGRAMS=DIR   other programs, which may have any conflicts that no candidate avoids
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <set>

#include "analysis/kernel_ops.h"
#include "check/check_program.h"
#include "files.h"
#include "ir/text.h"
#include "launch_memory.h"
#include "runtime/sim/sim_executable.h"
#include "schedule/form/canonical_form.h"
#include "schedule/memory/tile_accesses.h"
#include "schedule/memory/tile_layouts.h"

namespace tilegen::differential {
namespace {

namespace fs = std::filesystem;

// What moves a unit whole keeps it together. Of lanes that take single elements of it the banks serve as many
// units at once as they have: 8 of 16 bytes.
constexpr const char kBackwards[] = "vectors of threads are read backwards, elements a unit apart at a time";
constexpr const char kRuns[] =
    "each thread takes a run of neighbours, of units that stay whole elements at one place at a time";
constexpr const char kComputed[] = "elements are read at an index that is computed for each";
constexpr const char kConditional[] =
    "vectors of threads are taken element by element, under a condition of each";
constexpr const char kUnaligned[] =
    "the tensor's rows, or its region, begin anywhere: units are copied in parts";
constexpr const char kBothWays[] = "one operation takes rows of 4-byte elements, another columns";
constexpr const char kAcross[] = "one operation reads pairs of a row and elements across the rows";
constexpr const char kData[] = "data tells the index";
constexpr const char kNumbers[] = "elements are read to find others, which planning does not count";

struct Conflict {
  const char *program, *value, *why;
};
constexpr Conflict kConflicts[] = {
    {"accesses_outside_a_tensor", "k:t", kUnaligned},
    {"barrier_beside_a_branch", "k:t", kConditional},
    {"bits", "bits:x", kConditional},
    {"carried_scans", "rows:factor", kRuns},
    {"carried_scans", "rows:factor_part", kRuns},
    {"carried_scans", "rows:h_part", kRuns},
    {"carried_scans", "rows:most", kBackwards},
    {"condition_on_what_the_if_around_writes", "k:w", kConditional},
    {"conversions", "quantise:codes", kRuns},
    {"exchange_beside_a_tile_in_flight", "k:t", kBackwards},
    {"exchange_in_the_other_branch", "k:t", kBackwards},
    {"exchange_under_a_condition_in_a_loop", "k:t", kConditional},
    {"fragment_read_by_others", "k:y", kData},
    {"gathered_rows", "rows:ids", kNumbers},
    {"jumps", "columns:x", kUnaligned},
    {"local_larger_than_registers", "k:l", kComputed},
    {"loop_that_a_condition_skips", "k:other", kBackwards},
    {"loop_that_a_condition_skips", "k:x", kBackwards},
    {"loops_of_different_extents_over_one_fragment", "k:f", kConditional},
    {"operand_written_under_a_condition", "elements:packed", kUnaligned},
    {"pair_at_an_odd_element", "k:t", kUnaligned},
    {"part_filled_behind_a_copy", "k:t", kBackwards},
    {"part_filled_behind_a_copy", "k:t@1", kBackwards},
    {"pipeline_that_reads_what_it_wrote", "k:t", kBackwards},
    {"pipelined_tile_read_at_any_index", "g:Bs", kData},
    {"reduce_in_a_loop_goes_on", "k:t", kBackwards},
    {"regions_that_begin_beyond_i64", "k:u", kUnaligned},
    {"rows_in_order", "k:u@1", kRuns},
    {"rows_in_order", "k:u_part", kRuns},
    {"rows_in_order", "k:v", kRuns},
    {"rows_in_order", "k:v_part", kRuns},
    {"sparse_gemm", "prune:values", kRuns},
    {"sparse_gemm", "prune:w", kRuns},
    {"sparse_operand_by_columns", "k:a", kRuns},
    {"tile_and_its_transpose", "k:x", kAcross},
    {"tile_of_rows_of_one", "k:x", kConditional},
    {"tiles_of_branches_share_bytes", "k:first", kBackwards},
    {"tiles_of_branches_share_bytes", "k:second", kComputed},
    {"value_of_an_earlier_iteration_behind_a_branch", "branch:t", kBackwards},
    {"views", "pixels:o", kBothWays},
    {"views_as_operands", "k:x", kBothWays},
};

const Conflict* conflict_of(const std::string& program, const std::string& value) {
  for (const Conflict& c : kConflicts)
    if (program == c.program && value == c.value) return &c;
  return nullptr;
}

bool has_conflicts(const std::string& program) {
  return std::any_of(std::begin(kConflicts), std::end(kConflicts),
                     [&](const Conflict& c) { return program == c.program; });
}

std::shared_ptr<const ir::Program> program_of(const std::string& text) {
  auto p = ir::parse_program(text, "case.tl", Limits{});
  if (!p) return nullptr;
  for (const Diagnostic& d : check::check_program(*p, Limits{}))
    if (d.severity == Severity::error) return nullptr;
  return std::make_shared<const ir::Program>(std::move(*p));
}

// Of the accesses to one memory of a kernel.
struct Cost {
  int64_t taken = 0, least = 0;
  bool two_ways = false;  // some access takes twice its least
};

// A program on the simulator, under one launch.
class Run {
 public:
  Run(std::shared_ptr<const ir::Program> p, const char* target, const Launch& launch)
      : p_(std::move(p)), target_(*target::find_target(target)) {
    done_ = memory_.bind(*p_, launch).empty() && under(nullptr);
  }
  bool done() const { return done_; }
  const plan::Schedule& schedule() const { return artifact_->schedule; }

  bool under(const plan::Schedule* given) {
    driver::CompileOptions options;
    if (given) options.schedule = *given;
    auto artifact = driver::compile(p_, target_, options);
    if (!artifact) return false;
    artifact_ = *artifact;
    const std::vector<GuardedMemory> memory = memory_.fresh(false);
    sim::SimOptions simulation;
    simulation.workers = 1;
    simulation.max_statements = 20000;
    auto results = runtime::simulate_artifact(*artifact_, memory_.slots(memory), simulation);
    if (!results || !runtime::findings_error(*results)) return false;
    results_ = std::move(*results);
    return true;
  }

  // Nothing where engines, matrix loads or products touch the tile.
  std::optional<Cost> cost(const analysis::KernelOps& ops, size_t kernel, const std::string& value) const {
    static const std::set<std::string> kOfThreads = {"load", "store", "async copy", "matrix store"};
    std::set<std::string> products;
    for (const analysis::KernelOp& op : ops.ops)
      if (op.form == analysis::OpForm::contraction) products.insert(op.path);
    Cost c;
    for (const sim::AccessCount& a : results_[kernel].counters.accesses) {
      if (a.memory != value) continue;
      if (!kOfThreads.count(a.action) || products.count(a.op)) return std::nullopt;
      c.taken += a.transactions;
      c.least += a.least;
      c.two_ways = c.two_ways || a.transactions >= 2 * a.least;
    }
    return c;
  }

 private:
  std::shared_ptr<const ir::Program> p_;
  const target::Target target_;
  LaunchMemory memory_;
  std::shared_ptr<const driver::Artifact> artifact_;
  std::vector<sim::SimResult> results_;
  bool done_ = false;
};

// Round sizes, for which the first version is made; some programs run too long for them.
std::optional<Run> run_of(std::shared_ptr<const ir::Program> p, const std::string& text, const char* target) {
  Launch round = launch_near(*p, {128, 128, 128, 128});
  round.whole = {{"query_ends", {0, 50, 128}}, {"key_ends", {0, 40, 128}}};  // of packed sequences
  std::vector<Launch> launches = stated_launches(text);
  launches.insert(launches.begin(), std::move(round));
  for (const Launch& launch : launches)
    if (Run run(p, target, launch); run.done()) return run;
  return std::nullopt;
}

// The same plan with the tile lying otherwise; widths of accesses follow.
plan::Schedule with_layout(plan::Schedule s, size_t kernel, analysis::ValueId value,
                           const layout::Layout& l) {
  for (plan::OpPlan& op : s.kernels[kernel].ops) op.vector = 0;
  s.kernels[kernel].values[value.index()].memory = l;
  return s;
}

// Those of the planner.
std::vector<layout::Layout> candidates(const ir::Program& p, const analysis::KernelOps& ops,
                                       analysis::ValueId value, const plan::KernelSchedule& s,
                                       const target::Target& t) {
  const ir::BufferId buffer = ops.values[value].buffer;
  const int bytes = ir::dtype_bytes(p.buffer(buffer).type);
  int64_t widest = schedule::accesses_of_tile(p, ops, value, s.values, s.ops, t).widest;
  for (analysis::OpId i : ops.ops.ids())
    if (s.ops[i.index()].matrix_stores.value_or(false) && ops.value_of(ops.ops[i], buffer) == value)
      widest = std::max<int64_t>(widest, 16 / bytes);
  return schedule::tile_layout_candidates(ops.values[value].shape, bytes, widest);
}

struct Judged {
  int tiles = 0, otherwise = 0;  // of them lie otherwise than row-major
  std::set<const Conflict*> conflicts;
};

void judge(const std::string& name, const std::string& text, const char* target, bool listed,
           Judged& judged) {
  const auto p = program_of(text);
  if (!p) return;  // files of the parser's tests
  const auto planned = run_of(p, text, target);
  if (!planned) return;
  const auto canonical = schedule::canonical_form(*p, *target::find_target(target));
  const ir::Program& form = canonical ? *canonical : *p;
  for (size_t k = 0; k < planned->schedule().kernels.size(); ++k) {
    const auto ops = analysis::collect_kernel_ops(form, static_cast<int>(k));
    const plan::KernelSchedule& s = planned->schedule().kernels[k];
    for (analysis::ValueId v : ops.values.ids()) {
      const plan::ValuePlan& tile = s.values[v.index()];
      if (!tile.memory || tile.origin != plan::Origin::free) continue;
      const auto own = planned->cost(ops, k, tile.value);
      if (!own || own->taken == 0) continue;
      ++judged.tiles;
      judged.otherwise += *tile.memory != layout::Layout::row_major(tile.memory->shape());
      if (own->taken == own->least) continue;
      const std::string what = name + " for " + target + ": " + tile.value + " lies as " +
                               tile.memory->to_text() + " and takes " + std::to_string(own->taken) +
                               " transactions, " + std::to_string(own->least) + " at least";
      if (std::getenv("TILEGEN_SHOW")) std::cout << what << (own->two_ways ? " *" : "") << "\n";
      const Conflict* known = conflict_of(name, tile.value);
      if (own->two_ways && listed) {
        EXPECT_TRUE(known) << what << ": conflicts that kConflicts does not have";
      }
      if (known) judged.conflicts.insert(known);
      if (known && (known->why == kData || known->why == kNumbers)) continue;
      for (const layout::Layout& l : candidates(form, ops, v, s, *target::find_target(target))) {
        if (l == *tile.memory) continue;
        Run other = *planned;
        const plan::Schedule given = with_layout(planned->schedule(), k, v, l);
        if (!other.under(&given)) continue;
        const auto cost = other.cost(ops, k, tile.value);
        if (!cost) continue;
        EXPECT_GE(cost->taken, own->taken) << what << "; as " << l.to_text();
      }
    }
  }
}

// One program of so many is judged, those whose name draws `first`: another program changes nothing for them.
struct Judging {
  const char* target;
  size_t first, of;
  bool listed;        // its conflicts are those of kConflicts
  int64_t transpose;  // transactions of ATransposeHasNoConflicts
};
void PrintTo(const Judging& j, std::ostream* o) { *o << j.target; }

class TileLayouts : public testing::TestWithParam<Judging> {};

TEST_P(TileLayouts, NoneTakesFewerTransactions) {
  Judged judged;
  if (const char* folder = std::getenv("TILEGEN_PROGRAMS")) {
    for (const fs::path& file : programs_in(folder))
      judge(file.stem(), text_of(file), GetParam().target, false, judged);
    std::cout << judged.tiles << " tiles, " << judged.otherwise << " of them not row-major\n";
    return;
  }
  const auto [target, first, of, listed, transpose] = GetParam();
  const auto drawn = [first = first, of = of](const fs::path& file) {
    return Random(1, file.stem().string()).below(static_cast<int64_t>(of)) == static_cast<int64_t>(first);
  };
  for (const fs::path& folder :
       {test_data("files"), test_data("regressions"), fs::path(TILEGEN_SAMPLE_PROGRAMS)}) {
    const auto files = programs_in(folder);
    EXPECT_FALSE(files.empty()) << folder;
    for (const fs::path& file : files)
      if (drawn(file) || long_run() || (listed && has_conflicts(file.stem())))
        judge(file.stem(), text_of(file), target, listed, judged);
  }
  std::cout << judged.tiles << " tiles, " << judged.otherwise << " of them not row-major\n";
  EXPECT_GE(judged.tiles, 80 / static_cast<int>(of));
  EXPECT_GE(judged.otherwise, 8 / static_cast<int>(of));
  if (!listed) return;
  for (const Conflict& c : kConflicts)
    EXPECT_TRUE(c.why == kData || judged.conflicts.count(&c)) << c.program << " " << c.value << " has none";
}

TEST_P(TileLayouts, ATransposeHasNoConflicts) {
  const std::string text = text_of(test_data("regressions") / "tile_read_across_its_rows.tl");
  const auto p = program_of(text);
  ASSERT_TRUE(p);
  const auto run = run_of(p, text, GetParam().target);
  ASSERT_TRUE(run);
  const auto cost = run->cost(analysis::collect_kernel_ops(*p, 0), 0, "k:S");
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->taken, GetParam().transpose) << "of 128x128 elements: 512 each to write and to read";
  EXPECT_EQ(cost->least, 1024);
}

// Threads of waves are laid so that two lanes meet in a bank where columns are read.
INSTANTIATE_TEST_SUITE_P(Targets, TileLayouts,
                         testing::Values(Judging{"sim:sm_80", 0, 2, true, 1024},
                                         Judging{"sim:sm_90a", 1, 2, true, 1024},
                                         Judging{"sim:gfx942", 5, 8, false, 1536}));

}  // namespace
}  // namespace tilegen::differential
