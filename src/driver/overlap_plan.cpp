#include "driver/overlap_plan.h"

#include <set>

#include "analysis/shared_rows.h"
#include "support/diag_codes.h"

namespace tilegen::driver {

namespace {

std::shared_ptr<const ir::Program> form_of(const ir::Program& p, int kernel, const plan::OverlapPlan& plan) {
  return std::make_shared<const ir::Program>(expand::overlap_form(p, kernel, plan.along));
}

Checked check_along(const ir::Program& p, int kernel, const std::string& along) {
  const ir::Kernel& k = p.kernels[static_cast<size_t>(kernel)];
  if (!analysis::block_index(p, k, along)) {
    std::string known;
    for (ir::VarId v : k.block_vars) known += (known.empty() ? "" : ", ") + p.var(v).name;
    return Error(DiagCode::schedule_mismatch, k.name,
                 "the given `overlap` names block index '" + along + "', which the kernel does not have",
                 "block indices: " + known, k.location);
  }
  const std::string why = expand::overlap_refusal(p, kernel, along);
  if (why.empty()) return Unit{};
  return Error(DiagCode::schedule_illegal, k.name,
               "the last tile along '" + along + "' cannot overlap the one before: " + why,
               "leave `overlap` out of the schedule", k.location);
}

}  // namespace

Expected<OverlapChoice> choose_overlap(const ir::Program& p, int kernel, const target::Target& t,
                                       const plan::OverlapPlan* given, bool copy_engine) {
  OverlapChoice choice;
  if (given && !given->last_tiles) {
    choice.plan = *given;
    choice.plan->along.clear();
    return choice;
  }
  if (given && !given->along.empty()) {
    std::set<std::string> seen;
    for (const std::string& along : given->along) {
      if (Checked ok = check_along(p, kernel, along); !ok) return ok.error();
      if (seen.insert(along).second) continue;
      const ir::Kernel& k = p.kernels[static_cast<size_t>(kernel)];
      return Error(DiagCode::schedule_mismatch, k.name,
                   "the given `overlap` names block index '" + along + "' twice", "name it once", k.location);
    }
    choice.plan = *given;
    choice.form = form_of(p, kernel, *given);
    return choice;
  }
  if (!copy_engine) return choice;
  expand::Overlap found = expand::find_overlap(p, kernel, t);
  choice.note = std::move(found.refusal);
  if (found.along.empty()) return choice;
  choice.plan = plan::OverlapPlan{true, std::move(found.along),
                                  "the copy engine would fill what lies beyond a tensor with zeros"};
  choice.form = form_of(p, kernel, *choice.plan);
  return choice;
}

}  // namespace tilegen::driver
