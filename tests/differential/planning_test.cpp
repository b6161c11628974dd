// Random programs through planning for a GPU: a schedule or a diagnostic with a way out, always the same one,
// and one that does not depend on what things are called.
#include <gtest/gtest.h>

#include <cctype>
#include <map>

#include "fault_guard.h"
#include "files.h"
#include "ir/text.h"
#include "random_program.h"
#include "schedule/form/canonical_form.h"
#include "schedule/plan_program.h"
#include "shrink.h"
#include "support/diag_codes.h"

namespace tilegen::differential {
namespace {

constexpr const char* kTarget = "sm_80";

ir::Program parsed(const std::string& text) {
  auto p = ir::parse_program(text, "case.tl", Limits());
  EXPECT_TRUE(p) << p.error().to_text() << text;
  return p ? std::move(*p) : ir::Program();
}

// The form that is planned.
ir::Program form_of(const ir::Program& p, const target::Target& t) {
  auto canonical = schedule::canonical_form(p, t);
  return canonical ? std::move(*canonical) : p;
}

struct Plan {
  bool made = false;
  std::string text;  // of the schedule or of the refusal
  std::string defect;
};

Plan plan_of(const ir::Program& p) {
  Plan plan;
  const auto crash = crash_of([&] {
    const auto target = target::find_target(kTarget);
    const auto schedule = schedule::plan_program(form_of(p, *target), *target, {});
    plan.made = static_cast<bool>(schedule);
    if (plan.made) {
      plan.text = plan::schedule_to_text(*schedule);
      return;
    }
    plan.text = schedule.error().to_text();
    for (const Diagnostic& d : schedule.error().diagnostics)
      if (d.hint.empty() || d.message.empty() || d.code == DiagCode::internal_error)
        plan.defect = "a refusal without a way out: " + d.to_text();
  });
  if (crash) plan.defect = "planning ends in " + *crash;
  return plan;
}

// New names for everything, in another alphabetical order, all as long as each other.
std::map<std::string, std::string> rename_all(ir::Program& p) {
  std::map<std::string, std::string> old_of;
  int next = 9000;
  std::map<std::string, std::string> given;  // loops that do not contain each other may share a name
  const auto rename = [&](std::string& name) {
    auto& fresh = given[name];
    if (fresh.empty()) fresh = "q" + std::to_string(next--) + "z";
    old_of[fresh] = name;
    name = fresh;
  };
  for (ir::Var& v : p.vars) rename(v.name);
  for (ir::Buffer& b : p.buffers) rename(b.name);
  for (ir::Kernel& k : p.kernels) rename(k.name);
  return old_of;
}

std::string with_old_names(const std::string& text, const std::map<std::string, std::string>& old_of) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    const std::string word = text.substr(i, std::max<size_t>(end - i, 1));
    auto at = old_of.find(word);
    out += at == old_of.end() ? word : at->second;
    i += word.size();
  }
  return out;
}

// Columns are padded to the longest name.
std::string without_spaces(const std::string& text) {
  std::string out;
  for (char c : text)
    if (c != ' ') out += c;
  return out;
}

// The decisions; notes tell how they were come by.
std::string decisions(plan::Schedule s) {
  for (plan::KernelSchedule& k : s.kernels) k.notes.clear();
  return plan::schedule_to_json(s);
}

// A whole schedule, written and read back, is taken as it is.
std::string replay_defect(const ir::Program& p, const char* target_name) {
  std::string defect;
  const auto crash = crash_of([&] {
    const auto target = target::find_target(target_name);
    const ir::Program form = form_of(p, *target);
    const auto schedule = schedule::plan_program(form, *target, {});
    if (!schedule) return;
    const auto read = plan::schedule_from_json(plan::schedule_to_json(*schedule), Limits());
    if (!read) {
      defect = "its JSON is refused: " + read.error().to_text();
      return;
    }
    schedule::PlanOptions options;
    options.given = &*read;
    const auto replayed = schedule::plan_program(form, *target, options);
    if (!replayed)
      defect = "the replay is refused: " + replayed.error().to_text();
    else if (decisions(*replayed) != decisions(*schedule))
      defect = "the replay differs\n" + plan::schedule_to_text(*schedule) + "\nreplayed:\n" +
               plan::schedule_to_text(*replayed);
  });
  if (crash) return "replaying ends in " + *crash;
  return defect.empty() ? defect : std::string(target_name) + ": " + defect;
}

std::string defect_of(const Case& c) {
  ir::Program p = parsed(c.text);
  for (const char* target : {"host", kTarget})
    if (std::string defect = replay_defect(p, target); !defect.empty()) return defect;
  const Plan first = plan_of(p);
  if (!first.defect.empty()) return first.defect;
  if (plan_of(p).text != first.text) return "planning twice gives two plans";
  const auto old_of = rename_all(p);
  const Plan renamed = plan_of(p);
  if (!renamed.defect.empty()) return "renamed: " + renamed.defect;
  const std::string back = with_old_names(renamed.text, old_of);
  if (without_spaces(back) != without_spaces(first.text))
    return "the plan depends on names\n" + first.text + "\nrenamed:\n" + back;
  return {};
}

// Of programs that do not care what a GPU can do most are refused.
RandomProgramOptions options_of(uint64_t seed) {
  RandomProgramOptions options;
  options.for_gpu = seed % 4 != 0;
  options.budget = 1000000;  // nothing runs
  return options;
}

TEST(Planning, RandomPrograms) {
  const uint64_t count = long_run() ? 2000 : 150;
  uint64_t made = 0, defects = 0;
  for (uint64_t seed = 1; seed <= count && defects < 3; ++seed) {
    const Case c = random_case(seed, options_of(seed));
    const Subject subject(c.text);
    if (!subject.invalid().empty()) continue;
    made += plan_of(subject.program()).made;
    const std::string defect = defect_of(c);
    if (defect.empty()) continue;
    ++defects;
    const std::string kind = defect.substr(0, 20);
    const Case small = shrink(
        c, [&](const Case& x) { return defect_of(x).substr(0, 20) == kind; }, 1500);
    ADD_FAILURE() << "seed " << seed << ": " << defect.substr(0, 200) << "\nsmallest such program:\n"
                  << small.text << defect_of(small);
  }
  if (defects == 0) {
    EXPECT_GE(made * 5, count * 2) << "too few programs are planned for this to be a test";
  }
}

// A vector along rows of a tile whose last dimension is one, which lowering takes apart.
TEST(Planning, TileOfRowsOfOneReplays) {
  const ir::Program p = parsed(R"(tl 1 program p
kernel k grid (b: 0) {
  alloc x: shared u64[24, 1]
  parallel i, j in 1, 24 {
    if true {
    } else {
      x[j, 0] = 0u64
    }
  }
}
)");
  EXPECT_EQ(replay_defect(p, kTarget), "");
}

// Whole schedules of the programs of the tests, on the targets whose plans have most to say.
TEST(Planning, FilesReplay) {
  for (const char* folder : {"files", "regressions"})
    for (const auto& path : programs_in(test_data(folder)))
      for (const char* target : {kTarget, "sm_90a", "gfx942"}) {
        const std::string defect = replay_defect(parsed(text_of(path)), target);
        EXPECT_EQ(defect, "") << path;
      }
}

}  // namespace
}  // namespace tilegen::differential
