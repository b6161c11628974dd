// Tiles that come past the registers (global_load_lds, buffer_load with lds) where a schedule asks for it, or
// the cost model: by machine code in the strict interpreter of its instructions, and on the simulator,
// against the interpreter.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "driver/fallback_version.h"
#include "files.h"
#include "given_schedule.h"
#include "ir/text.h"
#include "runtime/sim/sim_executable.h"

namespace tilegen::differential {
namespace {

using plan::Engine;

struct Loop {
  const char *name, *type, *sum;
  int m, n, k, threads, stages;
  bool rows_along_k = true;  // B's
};
void PrintTo(const Loop& l, std::ostream* o) { *o << l.name; }

std::string text_of(const Loop& l) {
  const std::string m = std::to_string(l.m), n = std::to_string(l.n), k = std::to_string(l.k);
  const std::string columns = "bx * " + n + " :+ " + n, steps = "ko * " + k + " :+ " + k;
  std::ostringstream o;
  o << "tl 1 program product\ndim m\ndim n\ndim k divisible 4\n"
    << "tensor A: " << l.type << "[m, k] readonly\n"
    << "tensor B: " << l.type << (l.rows_along_k ? "[n, k]" : "[k, n]") << " readonly\n"
    << "tensor C: " << l.sum << "[m, n]\n"
    << "kernel gemm grid (by: ceildiv(m, " << m << "), bx: ceildiv(n, " << n << ")) threads " << l.threads
    << " {\n"
    << "  alloc As: shared " << l.type << "[" << m << ", " << k << "]\n"
    << "  alloc Bs: shared " << l.type << "[" << (l.rows_along_k ? n + ", " + k : k + ", " + n) << "]\n"
    << "  alloc acc: fragment " << l.sum << "[" << m << ", " << n << "]\n"
    << "  fill acc, " << (std::string(l.sum) == "i32" ? "0i32" : "0.0f32") << "\n"
    << "  pipelined ko in 0 .. ceildiv(k, " << k << ") stages " << l.stages << " {\n"
    << "    copy A[by * " << m << " :+ " << m << ", " << steps << "] -> As\n"
    << "    copy B[" << (l.rows_along_k ? columns + ", " + steps : steps + ", " + columns) << "] -> Bs\n"
    << "    gemm As, Bs -> acc" << (l.rows_along_k ? " {transpose_b}" : "") << "\n  }\n"
    << "  copy acc -> C[by * " << m << " :+ " << m << ", " << columns << "]\n}\n";
  return o.str();
}

plan::Schedule direct(std::initializer_list<const char*> ops, const char* kernel = "gemm") {
  plan::Schedule given;
  given.kernels.push_back({.kernel = kernel});
  for (const char* op : ops) given.kernels[0].ops.push_back({.op = op, .engine = Engine::async_copy});
  return given;
}

Expected<std::shared_ptr<const driver::Artifact>> compiled(const std::string& text, const char* target,
                                                           std::optional<plan::Schedule> given) {
  auto program = ir::parse_program(text, "case.tl", Limits());
  if (!program) return program.error();
  driver::CompileOptions options;
  options.keep_assembly = true;
  options.schedule = std::move(given);
  return driver::compile(std::make_shared<const ir::Program>(std::move(*program)),
                         *target::find_target(target), options);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool has(const std::string& line, const char* word) { return line.find(word) != std::string::npos; }

// No barrier, and no end, between loads to shared memory and a wait for loads.
std::string barrier_before_wait(const std::string& assembly) {
  bool open = false;
  for (const std::string& line : lines_of(assembly)) {
    if (has(line, "global_load_lds") || has(line, " offen lds")) open = true;
    if (has(line, "s_waitcnt") && has(line, "vmcnt")) open = false;
    if (open && (has(line, "s_barrier") || has(line, "s_endpgm"))) return line;
  }
  return "";
}

constexpr Loop kLoops[] = {
    {"Halves", "f16", "f32", 64, 64, 32, 256, 2},
    {"HalvesOfThreeStages", "f16", "f32", 64, 64, 64, 256, 3},
    {"HalvesOfOneWave", "bf16", "f32", 32, 32, 16, 64, 4},
    {"Bytes", "i8", "i32", 64, 64, 64, 128, 3},
    {"ByteFloats", "e4m3fnuz", "f32", 32, 64, 32, 64, 2},
    {"Words", "f32", "f32", 64, 32, 16, 128, 3},
    {"WordsAlongN", "f32", "f32", 64, 64, 16, 128, 3, false},
};

class DirectCopies : public testing::TestWithParam<Loop> {};

TEST_P(DirectCopies, AgreeWithTheInterpreter) {
  const Loop& l = GetParam();
  const std::string text = text_of(l);
  const plan::Schedule given = direct({"gemm/ko/copy#0", "gemm/ko/copy#1"});
  for (const char* target : {"gfx942", "gfx90a"}) {
    const auto artifact = compiled(text, target, given);
    ASSERT_TRUE(artifact) << artifact.error().to_text() << text;
    const bool of_buffers = std::string(target) == "gfx90a";
    EXPECT_EQ(has((*artifact)->assembly, "global_load_lds_dword"), !of_buffers);
    EXPECT_EQ(has((*artifact)->assembly, " 0 offen lds"), of_buffers);
    EXPECT_TRUE(has((*artifact)->assembly, "amdhsa_private_segment_fixed_size 0"));
    // Where lanes multiply a wave waits at the loop's begin.
    if (has((*artifact)->assembly, "v_mfma")) {
      EXPECT_EQ(barrier_before_wait((*artifact)->assembly), "");
    }
    EXPECT_EQ(plan::find_value((*artifact)->schedule.kernels[0], "gemm:As")->slots, l.stages);
    if (!of_buffers) continue;
    // Tensors that are larger than a buffer come through registers.
    ASSERT_NE((*artifact)->fallback, nullptr);
    const auto plain = (*artifact)->fallback->get();
    ASSERT_TRUE(plain) << plain.error().to_text();
    EXPECT_FALSE(has((*plain)->assembly, " offen lds"));
    EXPECT_TRUE((*plain)->kernels[0].guards.empty());
  }
  Subject subject(text, {"gfx942", "sim:gfx942", "gfx90a", "sim:gfx90a"});
  ASSERT_EQ(subject.invalid(), "");
  subject.give(given);
  for (int64_t steps : {0, 1, 2, 3, 6}) {
    Launch launch;
    launch.dims = {{"m", l.m + 5}, {"n", l.n + 3}, {"k", steps == 2 ? l.k + 4 : l.k * steps}};
    launch.seed = static_cast<uint64_t>(steps) + 1;
    const Outcome o = subject.compare(launch);
    EXPECT_EQ(o.kind, Outcome::Kind::agree) << o.text << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, DirectCopies, testing::ValuesIn(kLoops),
                         [](const auto& info) { return std::string(info.param.name); });

// Copies of later iterations are on their way beside the products: what a wait leaves under way is told by
// its number, in machine code as in the simulator.
TEST(DirectCopiesAhead, StayUnderWay) {
  const Loop& l = kLoops[1];  // three stages, 64 x 64 halves: 8 words a thread, of two tiles
  const std::string text = text_of(l);
  const auto artifact = compiled(text, "gfx942", direct({"gemm/ko/copy#0", "gemm/ko/copy#1"}));
  ASSERT_TRUE(artifact);
  EXPECT_TRUE(has((*artifact)->assembly, "vmcnt(16)")) << (*artifact)->assembly;
  const auto simulated = compiled(text, "sim:gfx942", direct({"gemm/ko/copy#0", "gemm/ko/copy#1"}));
  ASSERT_TRUE(simulated);
  Launch launch;
  launch.dims = {{"m", l.m}, {"n", l.n}, {"k", l.k * 5}};
  LaunchMemory memory;
  ASSERT_EQ(memory.bind(*ir::parse_program(text, "case.tl", Limits()), launch), "");
  const std::vector<GuardedMemory> bytes = memory.fresh(false);
  const auto results = runtime::simulate_artifact(**simulated, memory.slots(bytes), {});
  ASSERT_TRUE(results) << results.error().to_text();
  const sim::Counters& counters = (*results)[0].counters;
  std::map<std::string, int64_t> ahead;
  for (const sim::AccessCount& a : counters.accesses) ahead[a.memory] = std::max(ahead[a.memory], a.ahead);
  EXPECT_GE(ahead["A"], counters.matrix_instructions / 5 / 4);  // of each wave
  EXPECT_GE(ahead["B"], counters.matrix_instructions / 5 / 4);  // of each wave
}

// The same where it is known how often a loop runs: a group is one iteration's.
TEST(DirectCopiesAhead, StayUnderWayInLoopsOfKnownLength) {
  const Loop& l = kLoops[1];
  std::string text = text_of(l);
  const std::string extent = "ceildiv(k, " + std::to_string(l.k) + ")";
  text.replace(text.find(extent), extent.size(), "9");
  const plan::Schedule given = direct({"gemm/ko/copy#0", "gemm/ko/copy#1"});
  const auto artifact = compiled(text, "gfx942", given);
  ASSERT_TRUE(artifact);
  EXPECT_TRUE(has((*artifact)->assembly, "vmcnt(16)")) << (*artifact)->assembly;
  Subject subject(text, {"gfx942"});
  ASSERT_EQ(subject.invalid(), "");
  subject.give(given);
  Launch launch;
  launch.dims = {{"m", l.m + 5}, {"n", l.n + 3}, {"k", l.k * 9 - 4}};
  const Outcome o = subject.compare(launch);
  EXPECT_EQ(o.kind, Outcome::Kind::agree) << o.text << text;
}

// Refused by name, with a way out.
TEST(DirectCopiesRefused, WhereTheyCannotBe) {
  const auto refusal = [](const std::string& text, const char* target) {
    const auto artifact = compiled(text, target, direct({"gemm/ko/copy#0"}));
    EXPECT_FALSE(artifact);
    if (artifact) return std::string();
    EXPECT_TRUE(is_refusal(artifact.error())) << artifact.error().to_text();
    return artifact.error().to_text();
  };
  Loop wide = kLoops[0];
  wide.type = "f64", wide.sum = "f64", wide.k = 8;
  std::string text = text_of(wide);
  text.replace(text.find("0.0f32"), 6, "0.0f64");
  EXPECT_TRUE(has(refusal(text, "gfx942"), "8 bytes")) << text;
  Loop few = kLoops[0];  // 16 x 16 halves are 128 words
  few.m = few.n = 16, few.k = 16;
  EXPECT_TRUE(has(refusal(text_of(few), "gfx942"), "words"));
}

// Rows that an index names are fetched ahead in no other way, which pays in long loops; products of tiles
// stay with loads of 16 bytes.
TEST(DirectCopiesChosen, WhereTheEstimateIsShorter) {
  for (const auto& file : program_files()) {
    const std::string name = file.filename().string();
    if (file.parent_path().filename() != "text" || (name != "gathered_rows.tl" && name != "gemm.tl"))
      continue;
    std::string text = differential::text_of(file);
    const std::string few = "dim k <= 72 ";
    if (const size_t at = text.find(few); at != std::string::npos)
      text.replace(at, few.size(), "dim k >= 2048 ");
    Scheduled program(name, text);
    ASSERT_TRUE(program) << name;
    const plan::Schedule* planned = program.schedule("gfx942");
    ASSERT_TRUE(planned) << name;
    const plan::KernelSchedule& kernel = planned->kernels[0];
    const bool direct = std::any_of(kernel.ops.begin(), kernel.ops.end(),
                                    [](const plan::OpPlan& op) { return op.engine == Engine::async_copy; });
    EXPECT_EQ(direct, program.name() == "gathered_rows.tl") << program.name();
    for (const plan::LoopPlan& l : kernel.loops)
      EXPECT_EQ(l.reason.find("through registers") != std::string::npos, direct) << l.reason;
    // The plan given back is the plan.
    const auto again = program.compile("gfx942", *planned, true);
    ASSERT_TRUE(again) << again.error().to_text();
    for (const plan::OpPlan& op : kernel.ops)
      EXPECT_EQ(plan::find_op((*again)->schedule.kernels[0], op.op)->engine, op.engine) << op.op;
  }
}

// Every load of a tile, in all programs: as asked, or refused with a way out.
TEST(DirectCopiesAsked, OfEveryProgram) {
  int ran = 0, refused = 0;
  for (Scheduled& program : scheduled_programs()) {
    const plan::Schedule* planned = program.schedule("sim:gfx942");
    if (!planned) continue;
    for (const plan::KernelSchedule& kernel : planned->kernels) {
      plan::Schedule given;
      given.kernels.push_back({.kernel = kernel.kernel});
      for (const plan::OpPlan& op : kernel.ops)
        if (program.loads_tile(op.op))
          given.kernels[0].ops.push_back({.op = op.op, .engine = Engine::async_copy});
      if (given.kernels[0].ops.empty()) continue;
      const auto artifact = program.compile("sim:gfx942", given, false);
      if (!artifact) {
        ++refused;
        EXPECT_TRUE(is_refusal(artifact.error())) << program.name() << ": " << artifact.error().to_text();
        continue;
      }
      EXPECT_EQ(program.run(**artifact, static_cast<uint64_t>(++ran)), "") << program.name();
    }
  }
  EXPECT_GE(ran, 10);
  EXPECT_GE(refused, 1);
  RecordProperty("ran", ran);
}

}  // namespace
}  // namespace tilegen::differential
