#include "driver/stage_words.h"

#include <set>

namespace tilegen::driver {
namespace {

std::string counted(size_t n, const std::string& one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

}  // namespace

std::string words_of(const plan::KernelSchedule& plan) {
  std::string text = plan.kernel + ": " + counted(static_cast<size_t>(plan.threads.value_or(0)), "thread");
  if (plan.has_producer())
    for (size_t r = 1; r < plan.roles->size(); ++r)
      text += " and " + counted(static_cast<size_t>((*plan.roles)[r].warps), "warp") + " of a producer";
  std::set<std::string> atoms;
  for (const plan::OpPlan& op : plan.ops)
    if (!op.atom.empty()) atoms.insert(op.atom);
  for (const std::string& atom : atoms) text += ", " + atom;
  for (const plan::LoopPlan& loop : plan.loops)
    text += ", " + counted(static_cast<size_t>(loop.num_stages), "stage");
  if (plan.raster && plan.raster->order != "row_major") text += ", " + plan.raster->order;
  if (plan.persistence && plan.persistence->persistent)
    text += plan.persistence->dynamic() ? ", persistent, tiles taken dynamically" : ", persistent";
  if (plan.cluster && plan.cluster->blocks > 1)
    text += ", clusters of " + std::to_string(plan.cluster->blocks);
  if (plan.split && plan.split->parts > 1)
    text += ", " + plan.split->loop + " in " + std::to_string(plan.split->parts) + " parts";
  if (plan.overlap && !plan.overlap->along.empty()) text += ", last tiles overlapping";
  if (!plan.conversions.empty()) text += ", " + counted(plan.conversions.size(), "conversion");
  if (!plan.notes.empty()) text += ", " + counted(plan.notes.size(), "note");
  return text;
}

std::string words_of(const expand::ScheduledKernel& scheduled) {
  return scheduled.schedule->kernel + ": " + counted(scheduled.roles.size(), "role") + ", " +
         counted(scheduled.pipelines.size(), "pipeline");
}

std::string words_of(const thread::ThreadProgram& code) {
  std::string text = code.name + ": " + counted(code.stmts.size(), "statement");
  if (code.arena_bytes > 0) text += ", " + std::to_string(code.arena_bytes) + " bytes of shared memory";
  if (const size_t guards = code.guards.size() + code.tensor_maps.size(); guards > 0)
    text += ", " + counted(guards, "guard");
  return text;
}

}  // namespace tilegen::driver
