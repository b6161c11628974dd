// Versions of operations: which statements they are, what the checks tell of wrong ones, and that lowering
// makes those that the scheduled program has, whatever the schedule says.
#include <algorithm>

#include "expand/versions.h"
#include "lower/lower_kernel.h"
#include "scheduled_mutants.h"

namespace tilegen::expand {
namespace {

using Condition = Version::Condition;

Expanded subject(const char* file, const char* target) {
  auto e = expanded_from(schedule::source_path(file), target);
  EXPECT_TRUE(e) << file;
  return std::move(*e);
}

// The Run or Issue that the version's bodies agree on.
const Stmt& versioned_operation(const Version& v) {
  const Stmt& s = v.then_body.front();
  const auto* inner = std::get_if<Version>(&s.node);
  return inner ? versioned_operation(*inner) : s;
}

// Versions in a kernel by condition.
std::map<Condition, int> versions_of(ScheduledKernel& k) {
  std::map<Condition, int> count;
  for (Role& r : k.roles)
    for (Block* b : blocks_of(r.body))
      for (const Stmt& s : *b)
        if (const auto* v = std::get_if<Version>(&s.node)) ++count[v->condition];
  return count;
}

void for_each_version(ScheduledKernel& k, const std::function<void(Stmt&, Version&)>& change) {
  for (Role& r : k.roles)
    for (Block* b : blocks_of(r.body))
      for (Stmt& s : *b)
        if (auto* v = std::get_if<Version>(&s.node)) return change(s, *v);
}

int branches_of(const Expanded& e, const char* target) {
  const auto code = lower::lower_kernel(*e.program, e.kernel, schedule::target_named(target));
  EXPECT_TRUE(code);
  int count = 0;
  for (const thread::Stmt& s : code->stmts) count += std::holds_alternative<thread::Branch>(s.node);
  return count;
}

constexpr const char* kCausal = "tests/unit/schedule/flagship/attention_causal.tl";
constexpr const char* kGemm = "tests/files/plan/gemm_bias_relu.tl";

TEST(Versions, AreStatementsOfWhatThePlanSays) {
  for (const char* target : {"sm_80", "sm_90a", "x86-64-v3"}) {
    for (const char* file : {kCausal, kGemm, "tests/unit/schedule/flagship/softmax_rows.tl"}) {
      Expanded e = subject(file, target);
      std::map<Condition, int> planned;
      for (const plan::OpPlan& op : e.schedule->kernels[0].ops) {
        planned[Condition::full_tile] += op.full_tile_version.value_or(false);
        planned[Condition::unmasked] += op.unmasked_version.value_or(false);
        planned[Condition::factor_is_not_one] += op.skip_if_identity && !op.skip_if_identity->empty();
      }
      const std::map<Condition, int> made = versions_of(e.kernel);
      for (const auto& [condition, count] : planned)
        EXPECT_EQ(made.count(condition) > 0, count > 0)
            << file << " " << target << static_cast<int>(condition);
    }
  }
  Expanded e = subject(kCausal, "sm_90a");
  EXPECT_GT(versions_of(e.kernel)[Condition::unmasked], 0);
  EXPECT_GT(versions_of(e.kernel)[Condition::factor_is_not_one], 0);
  e = subject(kGemm, "sm_80");
  EXPECT_GT(versions_of(e.kernel)[Condition::full_tile], 0);
}

TEST(Versions, LoweringMakesThoseOfTheStatements) {
  for (const auto& [file, target] :
       {std::pair(kCausal, "sm_90a"), std::pair(kGemm, "sm_80"), std::pair(kGemm, "x86-64-v3")}) {
    Expanded e = subject(file, target);
    const int with = branches_of(e, target);
    int gone = 0;
    for (bool more = true; more;) {
      more = false;
      for_each_version(e.kernel, [&](Stmt& s, Version& v) {
        s = Stmt(versioned_operation(v));
        more = true;
        ++gone;
      });
    }
    EXPECT_GT(gone, 0) << file << " " << target;
    EXPECT_LE(branches_of(e, target), with - gone) << file << " " << target;
    add_versions(e.kernel);
    EXPECT_EQ(branches_of(e, target), with) << file << " " << target;
  }
}

TEST(Versions, WrongOnesAreTold) {
  using Change = std::function<void(Stmt&, Version&)>;
  const auto told = [](const char* file, const char* target, const Change& change) {
    Expanded e = subject(file, target);
    EXPECT_TRUE(verify_scheduled(*e.program, e.kernel).empty());
    for_each_version(e.kernel, change);
    const std::vector<std::string> broken = verify_scheduled(*e.program, e.kernel);
    return broken.empty() ? std::string() : broken.front();
  };
  const auto has = [](const std::string& text, const char* words) { return text.find(words) != text.npos; };
  EXPECT_TRUE(has(told(kGemm, "sm_80", [](Stmt&, Version& v) { v.else_body.clear(); }), "not one statement"));
  EXPECT_TRUE(has(told(kGemm, "sm_80", [](Stmt&, Version& v) { v.then_body.clear(); }), "not one statement"));
  EXPECT_TRUE(has(told(kGemm, "sm_80",
                       [](Stmt&, Version& v) {
                         v.else_body = {Stmt{expand::Run{std::get<Issue>(versioned_operation(v).node).op}}};
                       }),
                  "differ in how it is done"));
  EXPECT_TRUE(has(told(kGemm, "sm_80", [](Stmt&, Version& v) { v.then_body = {Stmt{Fence{}}}; }),
                  "not of its operation"));
  EXPECT_TRUE(has(told(kGemm, "sm_80",
                       [](Stmt& s, Version& v) {
                         const Stmt inner = s;
                         v.then_body = {inner};
                       }),
                  "asks for what is known"));
  EXPECT_TRUE(
      has(told(kGemm, "sm_80", [](Stmt&, Version& v) { v.factor = ValueId(0); }), "against its condition"));
  EXPECT_TRUE(has(told(kCausal, "sm_90a",
                       [](Stmt&, Version& v) {
                         v.condition = Condition::factor_is_not_one;
                         v.factor = ValueId(0);
                         v.else_body = v.then_body;
                       }),
                  "where factors are one"));
}

}  // namespace
}  // namespace tilegen::expand
