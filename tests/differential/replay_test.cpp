// A schedule is complete: from it, in JSON, and the program comes the code that was planned. This program has
// no planner: CMake links what it names, and a test looks that nothing of src/schedule and src/infer is among
// it.
#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "expand/expand_kernel.h"
#include "expand/overlap_form.h"
#include "expand/split_form.h"
#include "ir/text.h"
#include "lower/host/host_steps.h"
#include "lower/lower_kernel.h"
#include "replay_records.h"

namespace tilegen::differential {
namespace {

void give_paths(ir::Program& p, const std::string& paths) {
  ir::Program::Written written;
  written.paths.resize(p.stmts.size());
  std::istringstream lines(paths);
  for (ir::StmtId id : statements_in_order(p)) std::getline(lines, written.paths[id.value]);
  p.written = std::make_shared<const ir::Program::Written>(std::move(written));
}

std::string code_of(const ReplayRecord& r) {
  auto program = ir::parse_program(r.program, "replay.tl", Limits{});
  if (program) give_paths(*program, r.paths);
  auto schedule = plan::schedule_from_json(r.schedule, Limits{});
  auto target = target::find_target(r.target);
  if (!program || !schedule || !target) return "not read";
  if (const auto& overlap = schedule->kernels.at(0).overlap; overlap && !overlap->along.empty())
    *program = expand::overlap_form(*program, std::stoi(r.kernel), overlap->along);
  if (const auto& split = schedule->kernels.at(0).split; split && split->parts > 1)
    *program = expand::split_form(*program, std::stoi(r.kernel),
                                  expand::loop_of_path(*program, std::stoi(r.kernel), split->loop),
                                  split->parts, expand::split_through(*split));
  auto scheduled = expand::expand_kernel(*program, std::stoi(r.kernel), schedule->kernels.at(0), *target);
  if (!scheduled) return scheduled.error().to_text();
  auto code = lower::lower_kernel(*program, *scheduled, *target);
  if (!code) return code.error().to_text();
  if (!target->has_block_threads()) {
    lower::host_steps(*code, *target);
  }
  return thread::print_thread_program(*code);
}

TEST(Replay, GivesTheCodeThatWasPlanned) {
  std::ifstream in(TILEGEN_REPLAY_RECORDS, std::ios::binary);
  ASSERT_TRUE(in.good()) << TILEGEN_REPLAY_RECORDS;
  int count = 0, differ = 0;
  while (const auto r = read_record(in)) {
    ++count;
    const std::string got = code_of(*r);
    if (got == r->code) continue;
    if (++differ > 5) continue;
    const auto at = std::mismatch(got.begin(), got.end(), r->code.begin(), r->code.end());
    const auto from = [](const std::string& text, auto it) {
      const size_t i = static_cast<size_t>(it - text.begin()), begin = i < 100 ? 0 : i - 100;
      return text.substr(begin, 300);
    };
    ADD_FAILURE() << r->origin << ", kernel " << r->kernel << " for " << r->target << ": replayed\n"
                  << from(got, at.first) << "\nplanned\n"
                  << from(r->code, at.second);
  }
  EXPECT_EQ(differ, 0);
  EXPECT_GT(count, 1000);
}

}  // namespace
}  // namespace tilegen::differential
