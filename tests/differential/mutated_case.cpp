#include "mutated_case.h"

#include <regex>

#include "fault_guard.h"
#include "files.h"
#include "launch_memory.h"
#include "open_values.h"
#include "program_mutation.h"
#include "sanitized_run.h"
#include "watched_items.h"

namespace tilegen::differential {

using Kind = Outcome::Kind;

namespace {

struct Source {
  std::string name, text;
};

// Functions with their meaning alone: text that stays as it is would disagree with an edited meaning.
std::string without_native_text(const std::string& text) {
  static const std::regex native("(asm|llvm)\\s+((ptx|gcn|host)\\s*)?(\"[^\"\\n]*\"\\s*)+");
  return std::regex_replace(text, native, "");
}

const std::vector<Source>& sources() {
  static const std::vector<Source> list = [] {
    std::vector<Source> found;
    for (const char* folder : {"files", "regressions"})
      for (const auto& file : programs_in(test_data(folder)))
        if (std::string text = without_native_text(text_of(file));
            Subject(text).invalid().empty())  // files of the parser's tests
          found.push_back({file.filename().string(), std::move(text)});
    return found;
  }();
  return list;
}

// Each program bids a number of its own for the seed, so that one more program takes few seeds from the
// others.
const Source& source_of(uint64_t seed) {
  const std::vector<Source>& list = sources();
  return *std::max_element(list.begin(), list.end(), [&](const Source& a, const Source& b) {
    return Random(seed, a.name).bits() < Random(seed, b.name).bits();
  });
}

// A size or a number of statements that the library says it does not serve, or warps with tasks of their own
// whose order is not proven (docs/language.md, "Roles", "Copies under way"): where code for them is made.
bool is_stated_limit(const std::string& text) {
  return text.find("error [misplaced_statement]") != std::string::npos ||
         text.find("error [limit_") != std::string::npos ||
         text.find("error [overflow]") != std::string::npos ||
         text.find("error [launch_limit]") != std::string::npos;
}

bool is_internal(const Outcome& o) {
  return o.kind == Kind::crashed || o.text.find("error [internal_error]") != std::string::npos;
}

SanitizedResult sanitized(const ir::Program& p, const Launch& launch) {
  LaunchMemory memory;
  if (std::string error = memory.bind(p, launch); !error.empty())
    return {SanitizedResult::Kind::too_long, error};
  const std::vector<GuardedMemory> results = memory.fresh(false);
  return run_sanitized(p, memory.slots(results), {});
}

}  // namespace

Launch some_launch(const ir::Program& p, Random& random) {
  static const std::vector<std::vector<int64_t>> kSizes = {{77, 45, 139, 33}, {128, 128, 128, 128},
                                                           {1, 3, 2, 1},      {160, 64, 96, 192},
                                                           {0, 64, 0, 128},   {64, 0, 33, 0}};
  Launch launch = launch_near(p, random.pick<std::vector<int64_t>>(kSizes));
  if (random.chance(3))
    for (const ir::Var& v : p.vars)
      if (v.kind == ir::VarKind::dim)
        launch.dims[v.name] = allowed(v, random.below(random.pick({5, 70, 200})));
  launch.seed = static_cast<uint64_t>(random.between(1, 1000));
  launch.magnitude = 4;
  launch.data =
      random.pick({Data::integers, Data::integers, Data::integers_specials, Data::reals, Data::bit_patterns});
  return launch;
}

MutatedCase mutated_case(uint64_t seed) {
  const Source& source = source_of(seed);
  Random random(seed, "mutated");
  int edits = 1;
  while (edits < 6 && !random.chance(2)) ++edits;
  MutatedCase c{source.name, mutated_program(source.text, random, edits), {}};
  const Subject subject(c.text);
  for (int n = 0; n < 2; ++n) c.launches.push_back(some_launch(subject.program(), random));
  return c;
}

Judgement judge_mutated(const std::string& text, const std::vector<Launch>& launches,
                        const std::vector<std::string>& targets) {
  watched_doing("parsing and checking");
  Subject subject(text, targets);
  if (!subject.invalid().empty()) return {{Kind::invalid, subject.invalid()}, {}};
  watched_doing("compiling");
  const Outcome compiled = subject.compile();
  if (compiled.is_defect() && is_internal(compiled)) return {compiled, launches[0]};
  Judgement judgement{{Kind::invalid, "no launch has a defined result"}, launches[0]};
  if (is_stated_limit(compiled.text)) return {{Kind::refused, compiled.text}, launches[0]};
  for (const Launch& launch : launches) {
    watched_doing("interpreting");
    if (sanitized(subject.program(), launch).kind != SanitizedResult::Kind::defined) continue;
    if (compiled.is_defect()) return {compiled, launch};
    watched_doing("running");
    OpenValues open(subject.program(), launch);
    const Outcome o = subject.compare(launch, [&](const auto& memory, const auto& expected, const auto& got) {
      return open.differ(memory, expected, got);
    });
    judgement = {o, launch};
    if (is_stated_limit(o.text)) judgement.outcome.kind = Kind::refused;
    if (judgement.outcome.is_defect()) break;
  }
  return judgement;
}

}  // namespace tilegen::differential
