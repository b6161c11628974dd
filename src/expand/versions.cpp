#include "expand/versions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace tilegen::expand {

namespace {

using Condition = Version::Condition;

ValueId factor_of(const ScheduledKernel& k, const analysis::KernelOp& op, const std::string& name) {
  for (const analysis::OpAccess& a : op.accesses)
    if (a.value.valid() && k.ops->values[a.value].name == name) return a.value;
  return ValueId();
}

Stmt version(Condition condition, StmtId op, ValueId factor, Stmt then, std::optional<Stmt> otherwise) {
  Version v{condition, op, factor, {}, {}};
  v.then_body.push_back(std::move(then));
  if (otherwise) v.else_body.push_back(std::move(*otherwise));
  return Stmt{std::move(v)};
}

Stmt with_versions(const ScheduledKernel& k, const analysis::KernelOp& op, const plan::OpPlan& plan, Stmt s) {
  if (plan.full_tile_version.value_or(false)) s = version(Condition::full_tile, op.stmt, ValueId(), s, s);
  if (plan.unmasked_version.value_or(false)) s = version(Condition::unmasked, op.stmt, ValueId(), s, s);
  if (plan.skip_if_identity && !plan.skip_if_identity->empty())
    if (const ValueId factor = factor_of(k, op, *plan.skip_if_identity); factor.valid())
      s = version(Condition::factor_is_not_one, op.stmt, factor, std::move(s), std::nullopt);
  return s;
}

bool same_way(const Stmt& a, const Stmt& b) {
  const auto* run = std::get_if<Run>(&a.node);
  const auto* other_run = std::get_if<Run>(&b.node);
  if (run && other_run)
    return run->op == other_run->op && run->overwrite == other_run->overwrite &&
           run->stages_in_turn == other_run->stages_in_turn;
  const auto* issue = std::get_if<Issue>(&a.node);
  const auto* other_issue = std::get_if<Issue>(&b.node);
  return issue && other_issue && issue->op == other_issue->op && issue->overwrite == other_issue->overwrite;
}

// `around`: conditions that are known in `b`.
std::string broken_body(const Version& v, const Block& b, std::vector<Condition> around, const Stmt*& way) {
  if (b.size() != 1) return "a version has not one statement";
  if (const auto* inner = std::get_if<Version>(&b[0].node)) {
    if (inner->op != v.op) return "a version of one operation is in one of another";
    if (std::find(around.begin(), around.end(), inner->condition) != around.end())
      return "a version asks for what is known";
    around.push_back(inner->condition);
    for (const Block* body : {&inner->then_body, &inner->else_body}) {
      if (body == &inner->else_body && inner->condition == Condition::factor_is_not_one) continue;
      if (std::string broken = broken_body(*inner, *body, around, way); !broken.empty()) return broken;
    }
    return "";
  }
  if (operation_of(b[0]) != v.op) return "a version is not of its operation";
  if (way && !same_way(*way, b[0])) return "versions of an operation differ in how it is done";
  way = &b[0];
  return "";
}

std::string broken_versions(const Version& v) {
  const bool skips = v.condition == Condition::factor_is_not_one;
  if (skips != v.factor.valid()) return "a version has a factor, or none, against its condition";
  if (skips && !v.else_body.empty()) return "a version does something where factors are one";
  const Stmt* way = nullptr;
  std::string broken = broken_body(v, v.then_body, {v.condition}, way);
  if (broken.empty() && !skips) broken = broken_body(v, v.else_body, {v.condition}, way);
  return broken;
}

}  // namespace

void add_versions(ScheduledKernel& k) {
  std::map<StmtId, std::pair<const analysis::KernelOp*, const plan::OpPlan*>> of;
  for (OpId i : k.ops->ops.ids()) of[k.ops->ops[i].stmt] = {&k.ops->ops[i], &k.schedule->ops[i.index()]};
  for (Role& r : k.roles) {
    if (r.kind == RoleKind::producer) continue;  // its copies are the engine's
    for_each_block(r.body, [&](Block& b) {
      for (Stmt& s : b)
        if (const auto at = of.find(operation_of(s)); at != of.end())
          s = with_versions(k, *at->second.first, *at->second.second, std::move(s));
    });
  }
}

std::string broken_version(const Block& b) {
  std::string broken;
  for_each_block(b, [&](const Block& list) {
    for (const Stmt& s : list)
      if (const auto* v = std::get_if<Version>(&s.node); v && broken.empty()) broken = broken_versions(*v);
  });
  return broken;
}

}  // namespace tilegen::expand
