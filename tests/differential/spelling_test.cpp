// One meaning, one plan: every program of tests/files and of the planning tests is written in other words
// (spelling_rewrites.h), computes the same bits then, and has the same plan. What a rewrite adds is left out
// of the comparison; of all that was there, every decision is compared.
//
//   TILEGEN_FILTER=s  programs whose path has s
#include <gtest/gtest.h>

#include "analysis/kernel_ops.h"
#include "ir/statement_paths.h"
#include "small_programs.h"
#include "spelling_rewrites.h"

namespace tilegen::differential {
namespace {

// Those, and one made of a sorting network, whose loops share memory across others.
std::vector<std::string> spelt_programs() {
  std::vector<std::string> list = all_programs();
  if (!std::getenv("TILEGEN_FILTER"))
    list.push_back(schedule::source_path("tests/differential/regressions/moe_gate.tl"));
  return list;
}

// What the statements of an op are known by: they stay what they are.
std::set<ir::StmtId> marks_of(const ir::Program& p, const analysis::KernelOp& op) {
  std::set<ir::StmtId> marks;
  const auto* loop = p.as<ir::Loop>(op.stmt);
  if (!loop) return {op.stmt};
  ir::for_each_statement(p, loop->body, [&](ir::StmtId s, int) {
    if (p.as<ir::Store>(s)) marks.insert(s);
  });
  return marks;
}

// The decisions of a rewritten kernel, in the words of the one that it was made of.
class Translation {
 public:
  Translation(const ir::Program& from, const ir::Program& to, int kernel)
      : from_(analysis::collect_kernel_ops(from, kernel)), to_(analysis::collect_kernel_ops(to, kernel)) {
    std::map<ir::StmtId, const analysis::KernelOp*> by_mark;
    for (const analysis::KernelOp& op : to_.ops)
      for (ir::StmtId mark : marks_of(to, op)) by_mark[mark] = &op;
    const std::vector<std::string> from_paths = ir::statement_paths(from), to_paths = ir::statement_paths(to);
    ir::for_each_statement(from, from.kernels[static_cast<size_t>(kernel)].body, [&](ir::StmtId s, int) {
      if (const auto* loop = from.as<ir::Loop>(s); loop && loop->kind != ir::LoopKind::parallel)
        names_[from_paths[s.value]] = to_paths[s.value];
    });
    names_[from.kernels[static_cast<size_t>(kernel)].name] = to.kernels[static_cast<size_t>(kernel)].name;
    for (size_t v = 0; v < std::min(from.vars.size(), to.vars.size()); ++v)
      names_.emplace(from.vars[v].name, to.vars[v].name);
    for (const analysis::KernelOp& op : from_.ops)
      for (ir::StmtId mark : marks_of(from, op))
        if (const auto it = by_mark.find(mark); it != by_mark.end()) pair(op, *it->second);
  }

  // Nothing where a name stands for what the rewrite has added.
  std::optional<std::string> name(const std::string& of) const {
    if (of.empty()) return of;
    if (const auto it = names_.find(of); it != names_.end()) return it->second;
    const size_t slash = of.rfind('/');  // what planning has put in front of an op
    if (slash != std::string::npos && ops_.count(of.substr(0, slash)))
      return names_.at(of.substr(0, slash)) + of.substr(slash);
    const size_t colon = of.rfind(':');  // of a pipeline: the loop, and the buffers in it
    if (colon == std::string::npos) return std::nullopt;
    const auto loop = name(of.substr(0, colon));
    const auto tile = loop ? buffers_.find(of.substr(colon + 1)) : buffers_.end();
    return tile == buffers_.end() ? std::nullopt : std::optional(*loop + ":" + tile->second);
  }

  // Two ops in place of one, or one in place of two.
  const std::string& broken() const { return broken_; }

 private:
  void pair(const analysis::KernelOp& from, const analysis::KernelOp& to) {
    const auto [it, fresh] = names_.emplace(from.path, to.path);
    if (!fresh && it->second != to.path)
      broken_ += from.path + " is " + it->second + " and " + to.path + "\n";
    if (!fresh) return;
    ops_.insert(from.path);
    if (!pairs_.insert(to.path).second) broken_ += to.path + " is several ops\n";
    // What planning has made is a buffer of the same name, behind those that a rewrite has added.
    for (const analysis::OpAccess& a : from.accesses)
      for (const analysis::OpAccess& b : to.accesses)
        if (a.value.valid() && b.value.valid()) {
          const std::string& value = from_.values[a.value].name;
          const std::string& other = to_.values[b.value].name;
          if (a.buffer != b.buffer && value != other) continue;
          names_.emplace(value, other);
          buffers_.emplace(value.substr(value.find(':') + 1), other.substr(other.find(':') + 1));
        }
  }

  analysis::KernelOps from_, to_;
  std::map<std::string, std::string> names_, buffers_;
  std::set<std::string> pairs_, ops_;
  std::string broken_;
};

// Decisions alone, with names of `words`; reasons, origins, notes and places in memory say how they came
// about.
plan::KernelSchedule translated(plan::KernelSchedule k, const Translation& words,
                                const std::map<std::string, std::string>& params) {
  const auto name = [&](std::string& of) {
    const auto other = words.name(of);
    if (other) of = *other;
    return other.has_value();
  };
  const auto keep = [&](auto& list, const auto& kept) {
    std::erase_if(list, [&](auto& entry) { return !kept(entry); });
  };
  name(k.kernel);
  if (k.raster) k.raster->reason.clear();
  if (k.roles)
    for (plan::RolePlan& r : *k.roles) {
      r.reason.clear();
      for (std::string& op : r.ops) name(op);
    }
  if (k.persistence) k.persistence->reason.clear();
  if (k.cluster) k.cluster->reason.clear(), name(k.cluster->along);
  if (k.launch) k.launch->reason.clear();
  keep(k.ops, [&](plan::OpPlan& o) {
    o.reason.clear();
    std::erase_if(o.through_memory, [&](std::string& v) { return !name(v); });
    if (o.deferred_to) name(*o.deferred_to);
    if (o.skip_if_identity) name(*o.skip_if_identity);
    return name(o.op);
  });
  keep(k.values, [&](plan::ValuePlan& v) {
    v.reason.clear();
    v.origin = plan::Origin::free;
    return name(v.value);
  });
  keep(k.loops, [&](plan::LoopPlan& l) {
    l.reason.clear();
    std::erase_if(l.stages, [&](auto& s) { return !name(s.first); });
    return name(l.loop);
  });
  keep(k.pipelines, [&](plan::PipelinePlan& c) {
    std::erase_if(c.values, [&](std::string& v) { return !name(v); });
    return name(c.loop) && name(c.name);
  });
  keep(k.conversions, [&](plan::ConversionPlan& c) {
    c.reason.clear();
    return name(c.value) && name(c.producer) && name(c.consumer);
  });
  if (k.assumptions) {
    for (plan::Assumption& a : *k.assumptions) a.param = params.at(a.param);
    std::sort(k.assumptions->begin(), k.assumptions->end(),
              [](const auto& a, const auto& b) { return a.param < b.param; });
  }
  std::stable_sort(k.values.begin(), k.values.end(),
                   [](const auto& a, const auto& b) { return a.value < b.value; });
  // What is overwritten as a whole is another value than before, and held alike.
  k.values.erase(std::unique(k.values.begin(), k.values.end()), k.values.end());
  k.memory.clear();
  k.notes.clear();
  return k;
}

// Columns are as wide as their longest entry, which a rewrite may have added: one blank between words.
std::string text_of(const plan::KernelSchedule& k) {
  plan::Schedule s;
  s.kernels.push_back(k);
  std::string text = plan::schedule_to_text(s);
  const auto both_blank = [](char a, char b) { return a == ' ' && b == ' '; };
  text.erase(std::unique(text.begin(), text.end(), both_blank), text.end());
  return text;
}

// The first line that differs, with what it stands below.
std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream x(a), y(b);
  std::string before, p, q;
  while (true) {
    const bool more = static_cast<bool>(std::getline(x, p)), other = static_cast<bool>(std::getline(y, q));
    if (!more && !other) return "";
    if (more != other || p != q) return before + "\n- " + (more ? p : "") + "\n+ " + (other ? q : "");
    before = p;
  }
}

std::string name_of(const ir::Program& p, const ir::Param& param) {
  return param.kind == ir::Param::Kind::tensor ? p.buffer(param.buffer).name : p.var(param.var).name;
}

std::string difference_of_plans(const ir::Program& a, const ir::Program& b, const char* target) {
  const auto x = schedule::plan_for(a, target), y = schedule::plan_for(b, target);
  if (!x || !y) {
    if (static_cast<bool>(x) == static_cast<bool>(y)) return "";
    return "one is refused: " + (x ? y : x).error().to_text();
  }
  // Params keep their places.
  std::map<std::string, std::string> own_params, params;
  for (size_t i = 0; i < a.params.size(); ++i) {
    own_params.emplace(name_of(a, a.params[i]), name_of(a, a.params[i]));
    params.emplace(name_of(b, b.params[i]), name_of(a, a.params[i]));
  }
  for (size_t k = 0; k < a.kernels.size(); ++k) {
    const Translation words(b, a, static_cast<int>(k)), own(a, a, static_cast<int>(k));
    if (!words.broken().empty()) return words.broken();
    const std::string was = text_of(translated(x->kernels[k], own, own_params));
    const std::string is = text_of(translated(y->kernels[k], words, params));
    if (was != is) return first_difference(was, is);
  }
  return "";
}

class Spelling : public ::testing::TestWithParam<Rewrite> {};

// Nothing of programs that report: the places that these name are those of the loops as written.
std::optional<ir::Program> as_written(const std::string& text) {
  auto p = ir::parse_program(text, "test.tl", Limits{});
  if (!p || !check::check_program(*p, Limits{}).empty()) return std::nullopt;
  if (std::any_of(p->buffers.begin(), p->buffers.end(),
                  [](const ir::Buffer& b) { return b.report != ir::Report::none; }))
    return std::nullopt;
  return std::move(*p);
}

TEST_P(Spelling, PlanIsUnchanged) {
  size_t written = 0;
  for (const std::string& path : spelt_programs()) {
    const auto p = as_written(schedule::read_file(path));
    if (!p) continue;
    ir::Program other = *p;
    if (!GetParam().apply(other)) continue;
    ++written;
    for (const Diagnostic& d : check::check_program(other, Limits{}))
      ADD_FAILURE() << path << ": " << d.to_text();
    for (const char* target : {"sm_80", "sm_90a", "gfx942"})
      EXPECT_EQ(difference_of_plans(schedule::planned_form(*p, target), schedule::planned_form(other, target),
                                    target),
                "")
          << path << " for " << target;
  }
  EXPECT_GE(written, 1u);
}

// The rewrites are what they say.
TEST_P(Spelling, BitsAreUnchanged) {
  for (const std::string& path : spelt_programs()) {
    const auto p = as_written(scaled(schedule::read_file(path)));
    if (!p) continue;
    ir::Program other = *p;
    if (!GetParam().apply(other)) continue;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      Expectation want;
      if (!want.make(*p, launch_of(*p, seed))) continue;
      EXPECT_EQ(want.difference([&](const auto& slots) { return interp::interpret(other, slots); }), "")
          << path << ", launch " << seed << "\n"
          << ir::print_program(other);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rewrites, Spelling, ::testing::ValuesIn(spelling_rewrites()), [](const auto& info) {
  std::string name(info.param.name);
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace tilegen::differential
