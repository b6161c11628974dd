// Plans depend on what a program does, not on what things are called nor on the order of independent
// statements.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "plan_support.h"

namespace tilegen::schedule {
namespace {

ir::Program renamed(ir::Program p) {
  p.name += "_zz";
  for (ir::Var& v : p.vars) v.name += "_zz";
  for (ir::Buffer& b : p.buffers) b.name += "_zz";
  for (ir::Kernel& k : p.kernels) k.name += "_zz";
  return p;
}

std::string without(std::string text, const std::string& what) {
  for (size_t at; (at = text.find(what)) != std::string::npos;) text.erase(at, what.size());
  return text;
}

// schedule_to_text aligns columns, so longer names move blanks: compare words.
std::string words(const std::string& text) {
  std::istringstream in(text);
  std::string out, word;
  while (in >> word) out += word + " ";
  return out;
}

class Renamed : public ::testing::TestWithParam<const char*> {};

TEST_P(Renamed, PlanIsUnchanged) {
  for (const char* folder : {"tests/files/plan", "tests/files/text"}) {
    for (const auto& entry : std::filesystem::directory_iterator(source_path(folder))) {
      if (entry.path().extension() != ".tl") continue;
      auto program = program_from(read_file(entry.path().string()));
      ASSERT_TRUE(program);
      auto a = plan_for(*program, GetParam());
      auto b = plan_for(renamed(*program), GetParam());
      ASSERT_EQ(static_cast<bool>(a), static_cast<bool>(b)) << entry.path();
      if (!a) continue;
      EXPECT_EQ(words(plan::schedule_to_text(*a)), words(without(plan::schedule_to_text(*b), "_zz")))
          << entry.path();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Renamed, ::testing::Values("sm_80", "x86-64-v4"),
                         [](const auto& info) { return info.index == 0 ? "sm_80" : "host"; });

// Ops of a plan without their ordinals, which count statements.
std::multiset<std::string> op_decisions(const plan::KernelSchedule& k) {
  std::multiset<std::string> set;
  for (const plan::OpPlan& o : k.ops)
    set.insert(o.op.substr(0, o.op.find('#')) + " " + plan::engine_name(*o.engine) + " " + o.atom + " " +
               std::to_string(o.vector) + " " + (o.iteration ? o.iteration->to_text() : ""));
  return set;
}
std::map<std::string, std::string> value_layouts(const plan::KernelSchedule& k) {
  std::map<std::string, std::string> map;
  for (const plan::ValuePlan& v : k.values)
    map[v.value] = v.fragment ? v.fragment->to_text() : v.memory->to_text();
  return map;
}

TEST(Permuted, IndependentCopiesAndAllocationsMayBeSwapped) {
  const std::string head =
      "tl 1 program p\ntensor A: f16[128, 64] readonly\ntensor B: f16[64, 128] readonly\n"
      "tensor bias: f32[128] readonly\ntensor D: f32[128, 128]\nkernel k grid (b: 1) threads 128 {\n";
  const std::string allocs[2] = {
      "alloc As: shared f16[128, 64]\nalloc Bs: shared f16[64, 128]\nalloc d: fragment f32[128]\nalloc c: "
      "fragment f32[128, 128]\n",
      "alloc c: fragment f32[128, 128]\nalloc d: fragment f32[128]\nalloc Bs: shared f16[64, 128]\nalloc As: "
      "shared f16[128, 64]\n"};
  const std::string copies[2] = {"copy A -> As\ncopy B -> Bs\ncopy bias -> d\n",
                                 "copy bias -> d\ncopy B -> Bs\ncopy A -> As\n"};
  const std::string tail =
      "gemm As, Bs -> c {clear}\nparallel i, j in 128, 128 { c[i, j] = c[i, j] + d[j] }\ncopy c -> D\n}\n";
  for (const char* target : {"sm_80", "x86-64-v4"}) {
    auto first = program_from(head + allocs[0] + copies[0] + tail);
    auto a = plan_for(*first, target);
    ASSERT_TRUE(static_cast<bool>(a)) << a.error().to_text();
    for (int i = 1; i < 4; ++i) {
      auto other = program_from(head + allocs[i & 1] + copies[i >> 1] + tail);
      auto b = plan_for(*other, target);
      ASSERT_TRUE(static_cast<bool>(b)) << b.error().to_text();
      EXPECT_EQ(op_decisions(a->kernels[0]), op_decisions(b->kernels[0]));
      EXPECT_EQ(value_layouts(a->kernels[0]), value_layouts(b->kernels[0]));
    }
  }
}

// The plan of a file, by places of ops and with `factor` for the value that rows are scaled by.
std::string anonymous_plan(const std::string& file, const std::string& factor) {
  auto p = program_from(read_file(source_path("tests/files/plan/" + file)));
  auto s = plan_for(*p, "sm_90a");
  EXPECT_TRUE(static_cast<bool>(s)) << s.error().to_text();
  if (!s) return "";
  plan::KernelSchedule& k = s->kernels[0];
  std::map<std::string, std::string> places;
  for (plan::OpPlan& o : k.ops) {
    places[o.op] = "op" + std::to_string(places.size());
    if (o.skip_if_identity == factor) o.skip_if_identity = "factor";
    o.reason.clear();
  }
  const auto rename = [&](std::string& op) {
    const size_t end = std::min(op.find(':'), op.size());
    if (const auto it = places.find(op.substr(0, end)); it != places.end()) op = it->second + op.substr(end);
  };
  for (plan::OpPlan& o : k.ops) rename(o.op);
  for (plan::LoopPlan& l : k.loops) {
    for (auto& [op, stage] : l.stages) rename(op);
    l.reason.clear();
  }
  for (plan::MemoryPlan& m : k.memory) rename(m.owner);
  for (plan::ValuePlan& v : k.values) v.reason.clear();
  std::erase_if(k.values, [](const plan::ValuePlan& v) {
    return v.value == "attention:factor" || v.value == "attention:top_before";
  });
  k.notes.clear();
  for (std::string* reason : {&k.raster->reason, &k.persistence->reason, &k.launch->reason}) reason->clear();
  for (plan::RolePlan& r : *k.roles) r.reason.clear();
  return plan::schedule_to_text(*s);
}

// The factor in place or in a buffer of its own, in a loop of its own or with the sum that it scales.
TEST(Spelled, ARescaleFactorMayStandAnywhere) {
  const std::string plan = anonymous_plan("flash_attention.tl", "attention:top_before");
  EXPECT_NE(plan.find("skipped where factor is 1"), std::string::npos) << plan;
  EXPECT_EQ(anonymous_plan("hopper/rescale_in_place.tl", "attention:top_before"), plan);
  EXPECT_EQ(anonymous_plan("hopper/rescale_in_own_buffer.tl", "attention:factor"), plan);
  EXPECT_EQ(anonymous_plan("hopper/rescale_in_one_loop.tl", "attention:factor"), plan);
}

}  // namespace
}  // namespace tilegen::schedule
