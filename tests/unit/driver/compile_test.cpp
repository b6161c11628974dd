// The pipeline as a whole: its stages, hooks and options, and what an artifact keeps alive.
#include "driver/compile.h"

#include <gtest/gtest.h>

#include <set>

#include "driver/fallback_version.h"
#include "ir/text.h"
#include "runtime/host/host_runtime.h"
#include "support/diag_codes.h"

namespace tilegen::driver {
namespace {

const char* const kTwoKernels = R"(tl 1 program p
dim n <= 4096
tensor X: f32[n] readonly
tensor Y: f32[n]
tensor total: f32[1]

kernel scale grid (b: ceildiv(n, 64)) {
  alloc x: fragment f32[64]
  copy X[b * 64 :+ 64] -> x
  parallel i in 64 {
    x[i] = x[i] * 2.0f32
  }
  copy x -> Y[b * 64 :+ 64]
}

kernel add_up grid (b: 1) {
  alloc y: fragment f32[64]
  alloc sum: fragment f32[1]
  fill sum, 0.0f32
  serial t in 0 .. ceildiv(n, 64) {
    copy Y[t * 64 :+ 64] -> y
    reduce y -> sum {axis=0, accumulate}
  }
  copy sum -> total
}
)";

std::shared_ptr<const ir::Program> program(const std::string& text = kTwoKernels) {
  auto p = ir::parse_program(text, "test.tl", Limits{});
  if (!p) {
    ADD_FAILURE() << p.error().to_text();
    return nullptr;
  }
  return std::make_shared<const ir::Program>(std::move(*p));
}

target::Target target_named(const char* name) { return *target::find_target(name); }

std::vector<std::string> stages_of(const Artifact& a) {
  std::vector<std::string> names;
  for (const StageTime& t : a.times) names.push_back(t.stage);
  return names;
}

uint64_t slot(const void* p) { return reinterpret_cast<uint64_t>(p); }

TEST(Compile, TimesOfEveryStage) {
  CompileOptions options;
  auto plain = compile(program(), target_named("host"), options);
  ASSERT_TRUE(plain) << plain.error().to_text();
  EXPECT_EQ(stages_of(**plain),
            (std::vector<std::string>{"plan", "expand", "accesses", "lower", "generate", "generate.emit",
                                      "generate.optimise", "generate.codegen"}));
  options.verify = true;
  auto verified = compile(program(), target_named("host"), options);
  ASSERT_TRUE(verified) << verified.error().to_text();
  EXPECT_EQ(stages_of(**verified),
            (std::vector<std::string>{"plan", "expand", "accesses", "lower", "verify", "generate",
                                      "generate.emit", "generate.optimise", "generate.codegen"}));
  double whole = 0, parts = 0;
  for (const StageTime& t : (*verified)->times) {
    EXPECT_GE(t.ms, 0) << t.stage;
    if (t.stage == "generate") whole = t.ms;
    if (t.stage.rfind("generate.", 0) == 0) parts += t.ms;
  }
  EXPECT_GT(parts, 0);
  EXPECT_LE(parts, whole);
}

TEST(Compile, TheDumpCallbackSeesEveryStageInOrder) {
  CompileOptions options;
  std::vector<std::pair<std::string, std::string>> seen;
  options.dump = [&](std::string_view stage, std::string_view text) { seen.emplace_back(stage, text); };
  auto p = program();
  auto a = compile(p, target_named("host"), options);
  ASSERT_TRUE(a) << a.error().to_text();
  std::vector<std::string> names;
  for (const auto& [stage, text] : seen) {
    names.push_back(stage);
    EXPECT_FALSE(text.empty()) << stage;
  }
  ASSERT_EQ(names,
            (std::vector<std::string>{"program", "schedule", "scheduled", "thread", "llvm", "llvm-opt"}));
  EXPECT_EQ(seen[0].second, ir::print_program(*p));
  EXPECT_EQ(seen[1].second, plan::schedule_to_text((*a)->schedule));
  EXPECT_EQ(seen[2].second.find("kernel scale\n"), 0u) << seen[2].second;
  EXPECT_EQ(seen[3].second,
            thread::print_thread_program((*a)->kernels[0]) + thread::print_thread_program((*a)->kernels[1]));
  EXPECT_EQ(seen[4].second, (*a)->llvm_ir);
  EXPECT_EQ(seen[5].second, (*a)->llvm_ir_optimised);
  EXPECT_NE(seen[4].second, seen[5].second);
}

TEST(Compile, IrAndAssemblyAreKeptOnRequestOnly) {
  auto plain = compile(program(), target_named("host"), {});
  ASSERT_TRUE(plain);
  EXPECT_TRUE((*plain)->llvm_ir.empty() && (*plain)->llvm_ir_optimised.empty() && (*plain)->assembly.empty());
  CompileOptions options;
  options.keep_ir = options.keep_assembly = true;
  auto kept = compile(program(), target_named("host"), options);
  ASSERT_TRUE(kept);
  EXPECT_NE((*kept)->llvm_ir.find("scale"), std::string::npos);
  EXPECT_NE((*kept)->llvm_ir_optimised.find("add_up"), std::string::npos);
  EXPECT_NE((*kept)->assembly.find("scale"), std::string::npos);
}

TEST(Compile, CancellationIsAskedForInFrontOfEveryStage) {
  const std::vector<std::string> stages = {"plan", "expand", "accesses", "lower", "verify"};
  for (size_t allowed = 0; allowed < stages.size(); ++allowed) {
    CompileOptions options;
    options.verify = true;
    size_t ended = 0;
    // Once the log has the stage before it; loops inside of stages ask as well.
    const Cancellation cancellation([&] { return ended >= allowed; });
    options.cancellation = &cancellation;
    options.log = Log::make(LogLevel::info, [&](LogLevel, const char*, const char*) { ++ended; });
    auto a = compile(program(), target_named("host"), options);
    ASSERT_FALSE(a) << allowed;
    const Diagnostic& d = a.error().diagnostics.at(0);
    EXPECT_EQ(d.code, DiagCode::cancelled_by_caller);
    EXPECT_EQ(d.op, stages[allowed]);
    EXPECT_FALSE(d.hint.empty());
  }
  CompileOptions options;
  int asked = 0;
  const Cancellation never([&] { return ++asked, false; });
  options.cancellation = &never;
  EXPECT_TRUE(compile(program(), target_named("host"), options));
  EXPECT_GE(asked, 3);
}

TEST(Compile, CodeThatNobodyWaitsForIsNotHandedOut) {
  for (const char* name : {"host", "sm_80"}) {
    CompileOptions options;
    Cancellation told;
    options.cancellation = &told;
    options.dump = [&](std::string_view stage, std::string_view) {
      if (stage == "thread") told.request();
    };
    auto stopped = compile(program(), target_named(name), options);
    ASSERT_FALSE(stopped) << name;
    EXPECT_EQ(stopped.error().diagnostics.at(0).code, DiagCode::cancelled_by_caller);
  }
}

TEST(Compile, PlanOnlyMakesNoCodeOfAnyTarget) {
  for (const std::string& name : target::target_names()) {
    CompileOptions options;
    options.plan_only = true;
    std::vector<std::string> dumped;
    options.dump = [&](std::string_view stage, std::string_view) { dumped.emplace_back(stage); };
    auto a = compile(program(), target_named(name.c_str()), options);
    ASSERT_TRUE(a) << name << ": " << a.error().to_text();
    EXPECT_EQ((*a)->schedule.kernels.size(), 2u);
    EXPECT_EQ((*a)->schedule.target, name);
    EXPECT_TRUE((*a)->kernels.empty());
    EXPECT_EQ((*a)->host_code, nullptr);
    std::vector<std::string> stages = {"plan", "expand", "accesses", "lower"};
    if (target_named(name.c_str()).has_block_threads()) stages.emplace_back("verify");
    EXPECT_EQ(stages_of(**a), stages) << name;
    EXPECT_EQ(dumped, (std::vector<std::string>{"program", "schedule", "scheduled", "thread"})) << name;
  }
}

// A kernel whose version relies on more than the program promises has another one, made when it is asked for.
TEST(Compile, AGpuTargetGivesPtx) {
  CompileOptions options;
  std::vector<std::string> dumped;
  options.dump = [&](std::string_view stage, std::string_view) { dumped.emplace_back(stage); };
  options.keep_assembly = true;
  auto a = compile(program(), target_named("sm_90"), options);
  ASSERT_TRUE(a) << a.error().to_text();
  EXPECT_EQ(stages_of(**a),
            (std::vector<std::string>{"plan", "expand", "accesses", "lower", "verify", "generate",
                                      "generate.emit", "generate.optimise", "generate.codegen"}));
  EXPECT_EQ(dumped, (std::vector<std::string>{"program", "schedule", "scheduled", "thread", "llvm",
                                              "llvm-opt", "ptx"}));
  ASSERT_EQ((*a)->kernels.size(), 2u);
  ASSERT_EQ((*a)->versions.size(), 2u);
  for (size_t k = 0; k < 2; ++k) {
    EXPECT_EQ((*a)->versions[k].first, k);
    EXPECT_EQ((*a)->versions[k].count, 1u);
    EXPECT_EQ((*a)->kernels[k].name, (*a)->program->kernels[k].name);
    EXPECT_FALSE((*a)->kernels[k].guards.empty());
    EXPECT_NE((*a)->code.find(".entry " + (*a)->kernels[k].name + "("), std::string::npos);
  }
  EXPECT_EQ((*a)->assembly, (*a)->code);
  EXPECT_EQ((*a)->host_code, nullptr);

  ASSERT_NE((*a)->fallback, nullptr);
  auto fallback = (*a)->fallback->get();
  ASSERT_TRUE(fallback) << fallback.error().to_text();
  EXPECT_EQ((*fallback)->fallback, nullptr);
  ASSERT_EQ((*fallback)->kernels.size(), 2u);
  for (const thread::ThreadProgram& k : (*fallback)->kernels) EXPECT_TRUE(k.guards.empty()) << k.name;
  EXPECT_NE((*fallback)->code, (*a)->code);
  EXPECT_EQ(*(*a)->fallback->get(), *fallback) << "compiled once";
}

// Code for arguments that the first version refuses is asked for as that one was: by the same schedule, with
// the same options.
TEST(Compile, EveryFormTakesWhatIsGiven) {
  auto p = program(R"(tl 1 program p
dim m
dim n
dim k
tensor A: f16[m, k] readonly
tensor B: f16[k, n] readonly
tensor C: f16[m, n]
kernel gemm grid (by: ceildiv(m, 128), bx: ceildiv(n, 128)) threads 256 {
  alloc As: shared f16[128, 64]
  alloc Bs: shared f16[64, 128]
  alloc acc: fragment f32[128, 128]
  fill acc, 0.0f32
  pipelined ko in 0 .. ceildiv(k, 64) stages 4 {
    copy A[by * 128 :+ 128, ko * 64 :+ 64] -> As
    copy B[ko * 64 :+ 64, bx * 128 :+ 128] -> Bs
    gemm As, Bs -> acc
  }
  copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]
}
)");
  CompileOptions o;
  o.schedule = *plan::schedule_from_json(
      R"({"kernels": [{"kernel": "gemm", "raster": {"order": "column_major"}, "loops": [{"loop": "gemm/ko", "num_stages": 2}]}]})",
      Limits{});
  o.keep_assembly = true;
  auto version = compile(p, target_named("sm_90a"), o);
  int versions = 0;
  for (;; ++versions) {
    ASSERT_TRUE(version) << version.error().to_text();
    const plan::KernelSchedule& k = (*version)->schedule.kernels[0];
    EXPECT_EQ(k.loops[0].num_stages, 2) << versions;
    EXPECT_EQ(k.raster->order, "column_major") << versions;
    EXPECT_FALSE((*version)->assembly.empty()) << versions;
    if (!(*version)->fallback) break;
    version = (*version)->fallback->get();
  }
  EXPECT_GE(versions, 3);
  const auto simulated = compile(p, target_named("sim:sm_90a"), o);
  ASSERT_TRUE(simulated) << simulated.error().to_text();
  for (const plan::KernelSchedule& k : (*simulated)->decisions) EXPECT_EQ(k.loops[0].num_stages, 2);
}

// The simulator chooses among the versions of one artifact.
TEST(Compile, ASimulatedTargetHasEveryFormAtOnce) {
  auto a = compile(program(), target_named("sim:sm_90"), {});
  ASSERT_TRUE(a) << a.error().to_text();
  EXPECT_EQ((*a)->fallback, nullptr);
  ASSERT_EQ((*a)->versions.size(), 2u);
  for (size_t k = 0; k < 2; ++k) {
    const VersionRange& range = (*a)->versions[k];
    ASSERT_EQ(range.count, 2u);
    EXPECT_FALSE((*a)->kernels[range.first].guards.empty());
    EXPECT_TRUE((*a)->kernels[range.first + 1].guards.empty());
    EXPECT_EQ((*a)->kernels[range.first + 1].name, (*a)->program->kernels[k].name + "__v1");
  }
}

TEST(Compile, TheNameOfAFormIsNoKernels) {
  std::string text = kTwoKernels;
  text.replace(text.find("add_up"), 6, "scale__v1");
  auto a = compile(program(text), target_named("sim:sm_80"), {});
  ASSERT_TRUE(a) << a.error().to_text();
  std::set<std::string> names;
  for (const thread::ThreadProgram& k : (*a)->kernels) EXPECT_TRUE(names.insert(k.name).second) << k.name;
  EXPECT_EQ(names.count("scale__v1_"), 1u);
}

TEST(Compile, AScheduleIsTakenFromTheOptions) {
  CompileOptions options;
  auto planned = compile(program(), target_named("host"), options);
  ASSERT_TRUE(planned);
  plan::Schedule schedule = (*planned)->schedule;
  ASSERT_GT(schedule.kernels[0].ops[1].vector, 4);
  schedule.kernels[0].ops[1].vector = 4;
  options.schedule = schedule;
  options.verify = true;
  auto given = compile(program(), target_named("host"), options);
  ASSERT_TRUE(given) << given.error().to_text();
  EXPECT_EQ((*given)->schedule.kernels[0].ops[1].vector, 4);
  EXPECT_NE(thread::print_thread_program((*given)->kernels[0]),
            thread::print_thread_program((*planned)->kernels[0]));
  EXPECT_EQ(thread::print_thread_program((*given)->kernels[1]),
            thread::print_thread_program((*planned)->kernels[1]));

  // One made for another program's kernels is refused in planning.
  options.schedule->kernels[0].ops[1].iteration =
      layout::Fragment::row_major_vectors(std::vector<int64_t>{32}, 1, 1);
  auto refused = compile(program(), target_named("host"), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().diagnostics[0].code, DiagCode::schedule_illegal);
  EXPECT_EQ(refused.error().diagnostics[0].stage, "plan");
}

TEST(Compile, AnArtifactOutlivesTheProgramHandle) {
  auto p = program();
  std::weak_ptr<const ir::Program> watch = p;
  auto a = compile(p, target_named("host"), {});
  ASSERT_TRUE(a) << a.error().to_text();
  p.reset();
  EXPECT_FALSE(watch.expired());  // the artifact keeps what it needs
  const int64_t n = 100;
  std::vector<float> x(n), y(n, -1);
  float total = -1;
  for (int64_t i = 0; i < n; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i);
  const uint64_t params[] = {static_cast<uint64_t>(n), slot(x.data()), slot(y.data()), slot(&total)};
  ASSERT_TRUE(runtime::run_host(**a, params, 1));
  for (int64_t i = 0; i < n; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], static_cast<float>(2 * i));
  EXPECT_EQ(total, static_cast<float>(n * (n - 1)));
  *a = nullptr;
  EXPECT_TRUE(watch.expired());
}

TEST(Compile, IsDeterministic) {
  CompileOptions options;
  options.keep_ir = options.keep_assembly = true;
  auto first = compile(program(), target_named("x86-64-v3"), options);
  auto second = compile(program(), target_named("x86-64-v3"), options);
  ASSERT_TRUE(first && second);
  EXPECT_EQ((*first)->schedule, (*second)->schedule);
  EXPECT_EQ((*first)->llvm_ir, (*second)->llvm_ir);
  EXPECT_EQ((*first)->llvm_ir_optimised, (*second)->llvm_ir_optimised);
  EXPECT_EQ((*first)->assembly, (*second)->assembly);
  for (size_t k = 0; k < 2; ++k)
    EXPECT_EQ(thread::print_thread_program((*first)->kernels[k]),
              thread::print_thread_program((*second)->kernels[k]));
}

TEST(Compile, AnErrorNamesItsStage) {
  auto a = compile(program(R"(tl 1 program p
tensor A: f64[8, 8] readonly
tensor C: f32[8, 8]

kernel k grid (b: 1) {
  alloc a: shared f64[8, 8]
  alloc c: fragment f32[8, 8]
  copy A -> a
  gemm a, a -> c {clear}
  copy c -> C
}
)"),
                   target_named("host"), {});
  ASSERT_FALSE(a);
  EXPECT_EQ(a.error().diagnostics.at(0).code, DiagCode::no_atom);
  EXPECT_EQ(a.error().diagnostics.at(0).stage, "plan");
  EXPECT_EQ(a.error().diagnostics.at(0).op, "k/gemm#0");
}

}  // namespace
}  // namespace tilegen::driver
