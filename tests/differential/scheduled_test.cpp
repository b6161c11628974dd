// Scheduled programs against the interpreter, bit for bit: every program of tests/files and of the planning
// tests, expanded for sm_80, sm_90a and a host, with what is issued in effect at once, at the last moment and
// at random ones.
//
//   TILEGEN_SEED=n    that launch of every program, or that random one; TILEGEN_COUNT=n: so many from there
//   TILEGEN_FILTER=s  programs whose path has s; TILEGEN_LONG=1: tiles as large as they are written
#include <gtest/gtest.h>

#include "../unit/expand/scheduled_mutants.h"
#include "files.h"
#include "interp/run_scheduled.h"
#include "launch_memory.h"
#include "random_pipeline.h"
#include "random_program.h"

namespace tilegen::differential {
namespace {

using interp::Order;

constexpr int64_t kScale = 8;
constexpr const char* kFlagship = "tests/unit/schedule/flagship";

uint64_t number_of(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

// Constants of `kScale` and more by it: tiles and what counts them. A scheduled program knows operations and
// values by their place in the program only.
std::string scaled(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    std::string word = text.substr(i, std::max<size_t>(end - i, 1));
    if (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos && word.size() < 7 &&
        (i == 0 || text[i - 1] != '.')) {
      const int64_t n = std::stoll(word);
      if (n >= 2 * kScale && n % kScale == 0) word = std::to_string(n / kScale);
    }
    out += word;
    i += std::max<size_t>(end - i, 1);
  }
  return out;
}

// A program as it is planned, and as it is run.
struct Subject {
  std::string path;
  std::shared_ptr<const ir::Program> planned, run;
};

std::shared_ptr<const ir::Program> parsed(const std::string& text) {
  auto p = ir::parse_program(text, "test.tl", Limits{});
  if (!p || !check::check_program(*p, Limits{}).empty()) return nullptr;
  return std::make_shared<const ir::Program>(std::move(*p));
}

Subject subject_of(const std::string& path) {
  Subject s;
  s.path = path;
  const std::string text = schedule::read_file(path);
  s.planned = s.run = parsed(text);
  if (!s.planned || std::getenv("TILEGEN_LONG")) return s;
  const auto small = parsed(scaled(text));
  if (small && small->stmts.size() == s.planned->stmts.size() &&
      small->buffers.size() == s.planned->buffers.size())
    s.run = small;
  return s;
}

std::vector<std::string> all_programs() {
  std::vector<std::string> list;
  for (const std::string folder : {"tests/files", kFlagship})
    for (const auto& path : programs_in(schedule::source_path(folder))) list.push_back(path.string());
  const char* filter = std::getenv("TILEGEN_FILTER");
  std::erase_if(list, [&](const std::string& p) { return filter && p.find(filter) == std::string::npos; });
  return list;
}

// Arguments of a launch, and the interpreter's results.
struct Expectation {
  LaunchMemory memory;
  std::vector<GuardedMemory> results;

  bool make(const ir::Program& p, const Launch& launch) {
    if (!memory.bind(p, launch).empty()) return false;
    results = memory.fresh(true);
    return static_cast<bool>(interp::interpret(p, memory.slots(results)));
  }

  // What another order of things does to the results; empty: nothing.
  std::string difference(const ir::Program& p, const std::vector<const expand::ScheduledKernel*>& kernels,
                         Order order) const {
    const std::vector<GuardedMemory> got = memory.fresh(true);
    if (Checked ran = interp::interpret_scheduled(p, kernels, memory.slots(got), order); !ran)
      return ran.error().to_text();
    for (size_t i = 0; i < got.size(); ++i)
      if (!memory.tensors()[i].workspace && !got[i].bytes().empty() &&
          std::memcmp(got[i].bytes().data(), results[i].bytes().data(), got[i].bytes().size()) != 0) {
        const std::string where = memory.compare(results, got, Bound::exact());
        return where.empty() ? "bits of tensor " + memory.tensors()[i].name + " differ" : where;
      }
    return {};
  }
};

constexpr Order::Kind kKinds[] = {Order::Kind::early, Order::Kind::late, Order::Kind::random};
constexpr const char* kNames[] = {"early", "late", "random"};

// Dims that give loops and grids from nothing to several times what pipelines hold.
Launch launch_of(const ir::Program& p, uint64_t seed) {
  static const std::vector<std::vector<int64_t>> kSizes = {
      {33, 20, 40}, {17, 30, 0}, {1, 2, 3}, {20, 36, 9}, {3, 50, 16}, {40, 5, 70}, {60, 70, 20}};
  Random random(seed, "sizes");
  std::vector<int64_t> sizes =
      seed < kSizes.size() ? kSizes[seed]
                           : std::vector<int64_t>{random.below(50), random.below(50), random.below(90)};
  if (std::getenv("TILEGEN_LONG"))
    for (int64_t& size : sizes) size = size * kScale - random.below(kScale);
  Launch launch;
  launch.seed = seed + 1;
  if (seed % 2 == 1) launch.data = Data::reals, launch.magnitude = 1;  // no exponential of them is infinite
  size_t next = 0;
  for (const ir::Var& v : p.vars) {
    if (v.kind != ir::VarKind::dim) continue;
    const bool few = v.name == "b" || v.name == "batch" || v.name == "heads" || v.name == "parts";
    launch.dims[v.name] = allowed(v, few ? 1 + random.below(2) : sizes[next++ % sizes.size()]);
  }
  for (const char* ends : {"query_ends", "key_ends"}) {
    int64_t end = 0;
    for (int64_t b = 0; b <= launch.dims["batch"]; ++b, end += random.below(8 * kScale))
      launch.whole[ends].push_back(end);
  }
  return launch;
}

struct Kernels {
  std::shared_ptr<const plan::Schedule> schedule;
  std::vector<expand::ScheduledKernel> owned;
  std::vector<const expand::ScheduledKernel*> list;

  // There are copies or products that go on; else all orders are the same.
  bool issues() const {
    return std::any_of(owned.begin(), owned.end(), [](const expand::ScheduledKernel& k) {
      return !k.pipelines.empty() || k.roles.size() > 1;
    });
  }
};

std::optional<Kernels> kernels_of(const Subject& s, const std::string& target) {
  auto plan = schedule::plan_for(*s.planned, target);
  if (!plan) return std::nullopt;
  Kernels k;
  k.schedule = std::make_shared<const plan::Schedule>(std::move(*plan));
  for (size_t i = 0; i < s.planned->kernels.size(); ++i) {
    auto e = expand::expand_kernel(*s.planned, static_cast<int>(i), k.schedule->kernels[i],
                                   schedule::target_named(target));
    EXPECT_TRUE(e) << s.path << ": " << e.error().to_text();
    if (!e) return std::nullopt;
    k.owned.push_back(std::move(*e));
  }
  for (const expand::ScheduledKernel& e : k.owned) k.list.push_back(&e);
  return k;
}

// A program with its expansions for all targets that have a plan of it.
class Compared {
 public:
  explicit Compared(Subject s) : s_(std::move(s)) {
    for (const char* target : {"sm_80", "sm_90a", "x86-64-v3"})
      if (auto k = kernels_of(s_, target)) targets_.push_back({target, std::move(*k)});
  }

  // False: the interpreter does not run the launch.
  bool launch(const ir::Program& run, const Launch& launch, const std::string& again) {
    Expectation want;
    if (!want.make(run, launch)) return false;
    for (const auto& [target, k] : targets_)
      for (size_t o = 0; o < (k.issues() ? 3 : 1); ++o, ++count)
        EXPECT_EQ(want.difference(run, k.list, {kKinds[o], launch.seed}), "")
            << s_.path << " for " << target << ", " << kNames[o] << again;
    return true;
  }

  uint64_t count = 0;

 private:
  Subject s_;
  std::vector<std::pair<const char*, Kernels>> targets_;
};

TEST(Scheduled, ComputesWhatTheProgramDoes) {
  const uint64_t first = number_of("TILEGEN_SEED", 0);
  const uint64_t count = number_of("TILEGEN_COUNT", std::getenv("TILEGEN_SEED") ? 1 : 7);
  uint64_t compared = 0;
  const std::vector<std::string> paths = all_programs();
  for (const std::string& path : paths) {
    const Subject s = subject_of(path);
    if (!s.planned) continue;
    Compared each(s);
    for (uint64_t seed = first; seed < first + count; ++seed) {
      const std::string again = "\nagain: TILEGEN_FILTER=" + path + " TILEGEN_SEED=" + std::to_string(seed);
      if (!each.launch(*s.run, launch_of(*s.run, seed), again))
        each.launch(*s.planned, launch_of(*s.planned, seed), again);
    }
    compared += each.count;
  }
  EXPECT_GE(compared, paths.size() * count * 3);
}

// Programs that once found something, for the launches they state.
TEST(Scheduled, ComputesWhatRegressionsDo) {
  uint64_t compared = 0;
  for (const auto& path : programs_in(test_data("regressions"))) {
    const std::string text = text_of(path);
    Subject s{path.string(), parsed(text), nullptr};
    if (!s.planned) continue;
    Compared each(s);
    for (const Launch& launch : stated_launches(text)) each.launch(*s.planned, launch, to_text({"", launch}));
    compared += each.count;
  }
  EXPECT_GT(compared, 500u);
}

// And random ones.
void compare_random(uint64_t most, const std::function<Case(uint64_t seed)>& make) {
  const uint64_t first = number_of("TILEGEN_SEED", 1);
  const uint64_t count = number_of("TILEGEN_COUNT", std::getenv("TILEGEN_SEED") ? 1 : most);
  uint64_t compared = 0;
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    const Case c = make(seed);
    const auto p = parsed(c.text);
    if (!p) continue;
    Compared each({"seed " + std::to_string(seed), p, p});
    each.launch(*p, c.launch, "\n" + to_text(c));
    compared += each.count;
  }
  EXPECT_GE(compared, count * 3) << "too few programs are planned for this to be a test";
}

TEST(Scheduled, ComputesWhatRandomProgramsDo) {
  compare_random(40, [](uint64_t seed) { return random_case(seed, {.budget = 60000, .for_gpu = true}); });
}

TEST(Scheduled, ComputesWhatRandomPipelinesDo) { compare_random(12, random_pipeline); }

// What a mutant of the first kernel is told by.
class Judge {
 public:
  Judge(Subject s, expand::Expanded& e, std::vector<const expand::ScheduledKernel*> behind)
      : s_(std::move(s)), e_(e), behind_(std::move(behind)) {
    for (uint64_t seed = 0; seed < 7; ++seed) {
      expected_.emplace_back();
      if (!expected_.back().make(*s_.run, launch_of(*s_.run, seed))) expected_.pop_back();
    }
  }

  bool told() const {
    std::vector<const expand::ScheduledKernel*> kernels = {&e_.kernel};
    kernels.insert(kernels.end(), behind_.begin(), behind_.end());
    // those that tell most first
    for (const Order::Kind kind : {Order::Kind::late, Order::Kind::random, Order::Kind::early})
      for (uint64_t seed = 0; seed < (kind == Order::Kind::random ? 4 : 1); ++seed)
        for (size_t i = expected_.size(); i-- > 0;)
          if (!expected_[i].difference(*s_.run, kernels, {kind, seed}).empty()) return true;
    return false;
  }

 private:
  Subject s_;
  expand::Expanded& e_;
  std::vector<const expand::ScheduledKernel*> behind_;
  std::vector<Expectation> expected_;
};

class ScheduledMutants : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ScheduledMutants, AreTold) {
  Subject s = subject_of(schedule::source_path(GetParam().first));
  auto k = kernels_of(s, GetParam().second);
  ASSERT_TRUE(k);
  expand::Expanded e{s.planned, k->schedule, std::move(k->owned[0])};
  k->list.erase(k->list.begin());
  const Judge judge(s, e, k->list);
  ASSERT_FALSE(judge.told());
  const auto told = [&] { return judge.told(); };
  const expand::Counts left_out = mutate(e, expand::leave_out, told);
  EXPECT_GE(left_out.mutants, 3);
  EXPECT_EQ(left_out.told, left_out.mutants) << "left out";
  const expand::Counts doubled = mutate(
      e,
      [](expand::Block& b, size_t i) {
        return !std::holds_alternative<expand::Wait>(b[i].node) && expand::double_it(b, i);  // no harm
      },
      told);
  EXPECT_EQ(doubled.told, doubled.mutants) << "doubled";
  const expand::Counts later = mutate(e, expand::wait_later, told);
  EXPECT_EQ(later.told, later.mutants) << "a wait behind what it is for";
  const expand::Counts pending = mutate(e, expand::one_more_pending, told);
  EXPECT_EQ(pending.told, pending.mutants) << "one more pending";
  const expand::Counts earlier = mutate(e, expand::release_earlier, told);
  // Some do no harm: the producer waits for another slot first, or fills none any more.
  EXPECT_GE(earlier.told, std::min(earlier.mutants, 1)) << "released in front of the wait";
  for (const expand::Counts& other :
       {mutate(e, expand::another_iteration(e, 1), told), mutate(e, expand::another_iteration(e, -1), told)})
    EXPECT_EQ(other.told, other.mutants) << "another iteration";
}

INSTANTIATE_TEST_SUITE_P(
    All, ScheduledMutants,
    ::testing::Values(std::pair("tests/unit/schedule/flagship/gemm_flagship.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_full.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_causal.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_split.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_packed.tl", "sm_90a"),
                      std::pair("tests/files/plan/hopper/gemm_written_operands.tl", "sm_90a"),
                      std::pair("tests/files/plan/gemm_bias_relu.tl", "sm_80"),
                      std::pair("tests/files/plan/flash_attention.tl", "sm_80")));

// The role's outermost statement of a kind, left out.
template <class Node>
void leave_out_first(expand::Role& role) {
  std::vector<expand::Block*> blocks;
  expand::blocks_of(role.body, blocks);
  for (expand::Block* b : blocks)
    for (size_t i = 0; i < b->size(); ++i)
      if (std::holds_alternative<Node>((*b)[i].node)) return void(expand::leave_out(*b, i));
}

std::string error_without(const std::function<void(expand::ScheduledKernel&)>& change) {
  const Subject s = subject_of(schedule::source_path(std::string(kFlagship) + "/gemm_flagship.tl"));
  auto k = kernels_of(s, "sm_90a");
  Expectation want;
  if (!k || !want.make(*s.run, launch_of(*s.run, 5))) return "not run";
  change(k->owned[0]);
  return want.difference(*s.run, k->list, {Order::Kind::late});
}

TEST(Scheduled, NamesOperationPipelineAndUse) {
  using expand::ScheduledKernel;
  const std::string copy = "gemm/ko/copy#0: ", product = "gemm/ko/gemm#0: ";
  const auto expect = [](const std::string& got, const std::string& words) {
    EXPECT_NE(got.find(words), std::string::npos) << got << "\nand not: " << words;
  };
  expect(error_without([](ScheduledKernel& k) { leave_out_first<expand::Wait>(k.roles[0]); }),
         product + "use 0 of pipeline 'gemm/ko' is read before its copies are waited for");
  expect(error_without([](ScheduledKernel& k) { leave_out_first<expand::Commit>(k.roles[1]); }),
         copy + "use 0 of pipeline 'gemm/ko' is waited for by role consumer for ever");
  expect(error_without([](ScheduledKernel& k) { leave_out_first<expand::Acquire>(k.roles[1]); }),
         copy + "use 0 of pipeline 'gemm/ko' is filled, and its slot is not acquired for it");
  expect(error_without([](ScheduledKernel& k) { leave_out_first<expand::Release>(k.roles[0]); }),
         copy + "use 12 of pipeline 'gemm/ko' is waited for by role consumer for ever");
  expect(error_without([](ScheduledKernel& k) { leave_out_first<expand::Await>(k.roles[0]); }),
         "is filled while use 8 of pipeline 'gemm/ko' in its slot is still read");
}

}  // namespace
}  // namespace tilegen::differential
