// Accesses under predicates whose offsets have 31 bits, or whose tensors have no more bytes than the hardware
// bounds, are buffer accesses: what is beyond the tile's edge the bounds leave out. By machine code in the
// strict interpreter of its instructions, against the interpreter of programs.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <sstream>

#include "driver/compile.h"
#include "driver/fallback_version.h"
#include "files.h"
#include "ir/text.h"
#include "plan/schedule.h"

namespace tilegen::differential {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* name;
  std::string text;
  bool bounded = true;  // every access under a predicate
};
void PrintTo(const Case& c, std::ostream* o) { *o << c.name; }

// Tiles of 32 x 64 that hang over both edges of 45 rows of 70.
std::string copies(const std::string& type, const std::string& strides = "", int columns = 70) {
  const std::string shape = type + "[45, " + std::to_string(columns) + "]" + strides;
  return "tl 1 program edges\ntensor A: " + shape + " readonly\ntensor B: " + shape +
         "\nkernel edges grid (by: 2, bx: 2) threads 128 {\n  alloc t: fragment " + type + "[32, 64]\n" +
         "  copy A[by * 32 :+ 32, bx * 64 :+ 64] -> t\n  copy t -> B[by * 32 :+ 32, bx * 64 :+ 64]\n}\n";
}

// Neighbours of an element, in front of the tensor for the first.
std::string neighbours(const std::string& n, const std::string& dims) {
  return "tl 1 program shifted\n" + dims + "tensor A: f32[" + n + "] readonly\ntensor B: f32[" + n +
         "]\nkernel shifted grid (b: ceildiv(" + n + ", 64)) threads 64 {\n" +
         "  alloc t: fragment f32[64]\n  copy A[b * 64 - 3 :+ 64] -> t\n  copy t -> B[b * 64 :+ 64]\n}\n";
}

// A place that something is taken from, as it is and in 32 bits.
std::string from_the_end(const std::string& place) {
  return "tl 1 program turned\ntensor A: f32[45, 16] readonly\ntensor B: f32[45, 16]\n"
         "kernel turned grid (b: 3) threads 64 {\n  parallel i, j in 16, 16 {\n"
         "    B[b * 16 + i, " +
         place + "] = A[b * 16 + i, " + place + "]\n  }\n}\n";
}

// Of rows of any number and length.
std::string ragged(const std::string& shape) {
  const bool pitch = shape.find("p,") != std::string::npos;
  return std::string("tl 1 program ragged\ndim m\ndim n\n") + (pitch ? "dim p\n" : "") + "tensor A: f16" +
         shape + " readonly\ntensor B: f16" + shape +
         "\nkernel ragged grid (by: ceildiv(m, 32), bx: ceildiv(n, 64)) threads 128 {\n" +
         "  alloc t: fragment f16[32, 64]\n  copy A[by * 32 :+ 32, bx * 64 :+ 64] -> t\n" +
         "  copy t -> B[by * 32 :+ 32, bx * 64 :+ 64]\n}\n";
}

const Case kCases[] = {
    {"Bytes", copies("i8")},
    {"WideBytes", copies("i8", "", 80)},
    {"Halves", copies("f16")},
    {"WideHalves", copies("bf16", "", 72)},
    {"Words", copies("f32")},
    {"WideWords", copies("f32", "", 72)},
    {"Doubles", copies("f64")},
    {"WideDoubles", copies("i64", "", 72)},
    {"RowsApart", copies("f32", " strides [96, 1]")},
    {"ColumnsApart", copies("f16", " strides [1, 48]")},
    {"InFrontOfTheTensor", neighbours("150", "")},
    {"FromTheEnd", from_the_end("15 - j")},
    {"FromTheEndInWords", from_the_end("cast(i64, 15u32 - cast(u32, j))")},
    {"ByRemaindersOfSums", from_the_end("(j + 30) % 17")},
    // 2^34 bytes at most: by a guard of the version.
    {"OfAnySize", neighbours("n", "dim n\n"), true},
    {"OfAnyRows", ragged("[m, n]"), true},
    {"OfAnyPitch", ragged("[m, n] strides [p, 1]"), true},
};

class BufferAccesses : public testing::TestWithParam<Case> {};

TEST_P(BufferAccesses, LeaveOutWhatThePredicateDoes) {
  const Case& c = GetParam();
  for (const char* target : {"gfx942", "gfx90a"}) {
    auto program = ir::parse_program(c.text, "case.tl", Limits());
    ASSERT_TRUE(program) << program.error().to_text() << c.text;
    driver::CompileOptions options;
    options.keep_assembly = true;
    const auto artifact = driver::compile(std::make_shared<const ir::Program>(std::move(*program)),
                                          *target::find_target(target), options);
    ASSERT_TRUE(artifact) << artifact.error().to_text() << c.text;
    const std::string& code = (*artifact)->assembly;
    const auto has = [&](const char* word) { return code.find(word) != std::string::npos; };
    EXPECT_EQ(has("\tbuffer_load_"), c.bounded) << code;
    EXPECT_EQ(has("\tbuffer_store_"), c.bounded) << code;
    EXPECT_EQ(has("tilegen.zeros"), !c.bounded) << code;
    EXPECT_EQ(has("s_cbranch_execz"), !c.bounded) << code;
    Subject subject(c.text, {target});
    ASSERT_EQ(subject.invalid(), "");
    Launch launch;
    if (c.text.find("dim n") != std::string::npos) launch.dims["n"] = 150;
    if (c.text.find("dim m") != std::string::npos) launch.dims["m"] = 45;
    if (c.text.find("dim p") != std::string::npos) launch.dims["p"] = 160;
    for (launch.seed = 1; launch.seed <= 3; ++launch.seed) {
      const Outcome o = subject.compare(launch);
      EXPECT_EQ(o.kind, Outcome::Kind::agree) << o.text << c.text;
    }
  }
}

Expected<std::shared_ptr<const driver::Artifact>> compiled(const std::string& text, const char* target,
                                                           std::optional<plan::Schedule> given = {}) {
  auto program = ir::parse_program(text, "case.tl", Limits());
  if (!program) return program.error();
  driver::CompileOptions options;
  options.keep_assembly = true;
  options.schedule = std::move(given);
  return driver::compile(std::make_shared<const ir::Program>(std::move(*program)),
                         *target::find_target(target), options);
}

void expect_agreement(const std::string& text, const char* target, const char* dim) {
  Subject subject(text, {target});
  ASSERT_EQ(subject.invalid(), "");
  for (int64_t n : {0, 1, 5, 31, 32, 45, 64, 77, 128, 130}) {
    Launch launch;
    launch.dims = {{dim, n}};
    const Outcome o = subject.compare(launch);
    EXPECT_EQ(o.kind, Outcome::Kind::agree) << n << o.text;
  }
}

// Rows beyond the last lie beyond the tensor: that is the descriptor's bound, and no predicate is computed.
TEST(BufferBytes, RowsBeyondTheLastAreTheHardwares) {
  const std::string shape = "f16[m, 64]";
  const std::string text = "tl 1 program rows\ndim m\ntensor A: " + shape + " readonly\ntensor B: " + shape +
                           "\nkernel rows grid (by: ceildiv(m, 32)) threads 128 {\n" +
                           "  alloc t: fragment f16[32, 64]\n  copy A[by * 32 :+ 32, 0 :+ 64] -> t\n" +
                           "  copy t -> B[by * 32 :+ 32, 0 :+ 64]\n}\n";
  for (const char* target : {"gfx942", "gfx90a"}) {
    const auto artifact = compiled(text, target);
    ASSERT_TRUE(artifact) << artifact.error().to_text();
    const thread::ThreadProgram& kernel = (*artifact)->kernels[0];
    ASSERT_EQ(kernel.guards.size(), 2u) << thread::print_thread_program(kernel);
    for (const thread::Guard& g : kernel.guards) EXPECT_FALSE(g.bounds.empty());
    EXPECT_NE((*artifact)->assembly.find("\tbuffer_store_"), std::string::npos);
    for (const char* word : {"v_cndmask", "v_cmp", "s_cbranch_execz"})
      EXPECT_EQ((*artifact)->assembly.find(word), std::string::npos) << word << (*artifact)->assembly;
    expect_agreement(text, target, "m");
  }
}

// A condition that bounds one access says another thing of one elsewhere.
TEST(BufferBytes, ConditionsOfOtherAccessesStay) {
  const std::string text =
      "tl 1 program shifted\ndim n\ntensor A: f32[n] readonly\ntensor B: f32[n]\ntensor C: f32[n]\n"
      "kernel shifted grid (b: ceildiv(n, 64) + 1) threads 64 {\n"
      "  parallel i in 64 {\n    C[b * 64 + i] = 1.0f32\n"
      "    if b * 64 + i < n { B[b * 64 + i - 5] = A[b * 64 + i] }\n"
      "    if b * 64 + i - 5 >= n - 5 { B[b * 64 + i - 5] = 2.0f32 }\n  }\n}\n";
  for (const char* target : {"gfx942", "gfx90a"}) expect_agreement(text, target, "n");
}

// The guard is the schedule's assumption: what has more bytes takes the version without.
TEST(BufferBytes, LargerTensorsTakeThePlainVersion) {
  const std::string text = neighbours("n", "dim n\n");
  for (const char* target : {"gfx942", "gfx90a", "sim:gfx942"}) {
    const auto artifact = compiled(text, target);
    ASSERT_TRUE(artifact) << artifact.error().to_text();
    plan::Schedule given = (*artifact)->schedule;
    ASSERT_EQ(given.kernels[0].assumptions->size(), 2u) << plan::schedule_to_text(given);
    for (plan::Assumption& a : *given.kernels[0].assumptions) {
      EXPECT_EQ(a.most_bytes, (INT64_C(1) << 32) - 4096) << a.param;
      a.most_bytes = 512;
    }
    Subject subject(text, {target});
    ASSERT_EQ(subject.invalid(), "");
    subject.give(given);
    for (int64_t n : {0, 64, 127, 128, 129, 300}) {
      Launch launch;
      launch.dims = {{"n", n}};
      const Outcome o = subject.compare(launch);
      EXPECT_EQ(o.kind, Outcome::Kind::agree) << n << o.text;
    }
    if (!(*artifact)->fallback) continue;
    const auto plain = (*artifact)->fallback->get();
    ASSERT_TRUE(plain) << plain.error().to_text();
    EXPECT_TRUE((*plain)->kernels[0].guards.empty());
  }
}

// By name, bytes; 0 where only an address is assumed.
using Sizes = std::map<std::string, int64_t>;

Sizes assumed(const plan::KernelSchedule& kernel) {
  Sizes sizes;
  for (const plan::Assumption& a : *kernel.assumptions) sizes[a.param] = a.most_bytes;
  return sizes;
}

Sizes guarded(const thread::ThreadProgram& kernel) {
  Sizes sizes;
  for (const thread::Guard& g : kernel.guards)
    sizes[kernel.params[static_cast<size_t>(g.param)].name] = g.most_bytes;
  return sizes;
}

// Where no access of a tensor has a predicate its size is no matter, and the plan says nothing of it.
TEST(BufferBytes, PlansListWhatTheCodeIsGuardedBy) {
  int bounded = 0;
  const std::vector<fs::path> files = program_files();
  for (size_t f = 0; f < files.size(); f += long_run() ? 1 : 6) {
    const auto artifact = compiled(text_of(files[f]), f / 6 % 2 == 0 ? "gfx942" : "gfx90a");
    if (!artifact) continue;  // a program of another target
    for (size_t i = 0; i < (*artifact)->kernels.size(); ++i) {
      const Sizes sizes = guarded((*artifact)->kernels[i]);
      EXPECT_EQ(assumed((*artifact)->schedule.kernels[i]), sizes) << files[f];
      for (const auto& [name, bytes] : sizes) bounded += bytes > 0;
    }
  }
  EXPECT_GT(bounded, 0);
}

TEST(BufferBytes, NoNoteOfWhatIsPlannedOneOfWhatIsGiven) {
  const std::string text =
      "tl 1 program whole\ndim n divisible 256\ntensor A: f32[n] readonly\ntensor B: f32[n]\n"
      "kernel whole grid (b: n // 256) threads 64 {\n  alloc t: fragment f32[256]\n"
      "  copy A[b * 256 :+ 256] -> t\n  copy t -> B[b * 256 :+ 256]\n}\n";
  const auto planned = compiled(text, "gfx942");
  ASSERT_TRUE(planned) << planned.error().to_text();
  const Sizes addresses = {{"A", 0}, {"B", 0}};
  EXPECT_EQ(guarded((*planned)->kernels[0]), addresses);
  EXPECT_EQ(assumed((*planned)->schedule.kernels[0]), addresses);
  EXPECT_EQ(plan::schedule_to_text((*planned)->schedule).find("most_bytes"), std::string::npos);
  plan::Schedule given;
  given.kernels.push_back({.kernel = "whole"});
  given.kernels[0].assumptions = {{"A", 1, 1024}};
  const auto artifact = compiled(text, "gfx942", given);
  ASSERT_TRUE(artifact) << artifact.error().to_text();
  EXPECT_EQ(assumed((*artifact)->schedule.kernels[0]), Sizes());
  EXPECT_NE(plan::schedule_to_text((*artifact)->schedule)
                .find("`most_bytes` of 'A' is left out: no access to it is bounded by the hardware"),
            std::string::npos)
      << plan::schedule_to_text((*artifact)->schedule);
}

TEST(BufferBytes, RefusedWhereTheyCannotBe) {
  const std::string text = neighbours("n", "dim n\n");
  const auto refusal = [&](const char* target, plan::Assumption a) {
    auto program = ir::parse_program(text, "case.tl", Limits());
    driver::CompileOptions options;
    options.schedule.emplace();
    options.schedule->kernels.push_back({.kernel = "shifted"});
    options.schedule->kernels[0].assumptions = {std::move(a)};
    const auto artifact = driver::compile(std::make_shared<const ir::Program>(std::move(*program)),
                                          *target::find_target(target), options);
    return artifact ? std::string() : artifact.error().to_text();
  };
  EXPECT_NE(refusal("sm_80", {"A", 1, 1024}).find("sm_80 bounds no tensors"), std::string::npos);
  EXPECT_NE(refusal("gfx942", {"A", 1, INT64_C(1) << 32}).find("tensors of at most 4294963200"),
            std::string::npos);
  EXPECT_NE(refusal("gfx942", {"n", 1, 1024}).find("which is a dim"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Table, BufferAccesses, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tilegen::differential
