// The instruments themselves: would they notice?
#include "executors.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "fault_guard.h"
#include "guarded_memory.h"

namespace tilegen::differential {
namespace {

using Kind = Outcome::Kind;

TEST(GuardedMemory, AWriteBesideTheTensorIsSeen) {
  for (bool at_end : {false, true}) {
    GuardedMemory m(100, at_end);
    m.bytes()[0] = m.bytes()[99] = std::byte{1};
    EXPECT_TRUE(m.marks_intact());
    (at_end ? m.bytes().data()[-1] : m.bytes().data()[100]) = std::byte{1};
    EXPECT_FALSE(m.marks_intact());
  }
}

TEST(GuardedMemory, AnAccessPastTheGuardIsAFault) {
  GuardedMemory end(100, true), start(4096, false);
  volatile std::byte sink{};
  EXPECT_EQ(crash_of([&] { sink = end.bytes().data()[100]; }), "SIGSEGV");
  EXPECT_EQ(crash_of([&] { sink = start.bytes().data()[-1]; }), "SIGSEGV");
  EXPECT_EQ(crash_of([&] { sink = end.bytes()[99]; }), std::nullopt);
  EXPECT_EQ(crash_of([] { std::abort(); }), "SIGABRT");
}

constexpr const char* kScale = R"(tl 1 program scale
dim n
tensor X: f32[n] readonly
tensor Y: f32[n, 2] strides [3, 1]
kernel k grid (b: ceildiv(n, 8)) {
  parallel i in 8 {
    Y[b * 8 + i, 1] = X[b * 8 + i] * 2.0f32
  }
}
)";

TEST(Executors, Agree) {
  for (int64_t n : {0, 1, 7, 8, 9, 100}) {
    for (uint64_t seed : {1, 2}) {
      const Outcome o = compare_executors({kScale, {{{"n", n}}, seed}});
      EXPECT_EQ(o.kind, Kind::agree) << o.text;
    }
  }
}

// AMD code may refuse a program for its waves or for memory on chip, and for nothing else.
TEST(Executors, AmdCodeMayRefuseByItsLimitsAlone) {
  const auto outcome = [](int threads, int tile, const std::string& copy, const std::string& target) {
    const std::string elements = std::to_string(tile);
    Subject subject(
        "tl 1 program limits\ntensor X: f32[40000]\ntensor Y: f32[40000]\n"
        "kernel k grid (b: 1) threads " +
            std::to_string(threads) + " {\n  alloc t: shared f32[" + elements + "]\n  copy X[0 :+ " +
            elements + "] -> t " + copy + "\n  copy t -> Y[0 :+ " + elements + "]\n}\n",
        {target});
    EXPECT_EQ(subject.invalid(), "");
    return subject.compile();
  };
  for (const std::string target : {"gfx942", "gfx90a"}) {
    EXPECT_EQ(outcome(64, 64, "", target).kind, Kind::agree);
    for (const Outcome& o : {outcome(32, 64, "", target), outcome(64, 20000, "", target)}) {
      EXPECT_EQ(o.kind, Kind::refused) << o.text;
      EXPECT_TRUE(o.is_fine()) << o.text;
    }
    const Outcome engine = outcome(64, 64, "{engine = tensor_copy}", target);
    EXPECT_EQ(engine.kind, Kind::refused) << engine.text;
    EXPECT_FALSE(engine.is_fine()) << engine.text;
  }
  const Outcome host = outcome(32, 20000, "", "host");
  EXPECT_EQ(host.kind, Kind::agree) << host.text;
}

TEST(Executors, SayWhatCannotRun) {
  EXPECT_EQ(compare_executors({kScale, {}}).kind, Kind::invalid);
  EXPECT_EQ(compare_executors({"tl 1 program", {}}).kind, Kind::invalid);
  const Outcome unwritten = compare_executors({R"(tl 1 program p
tensor Y: f32[8]
scalar a: bool
kernel k grid (b: 1) {
  alloc t: shared f32[8]
  if a and not(a) {
    fill t, 1.0f32
  }
  copy t -> Y
}
)",
                                               {}});
  EXPECT_EQ(unwritten.kind, Kind::invalid);
  EXPECT_NE(unwritten.text.find("uninitialised_read"), std::string::npos) << unwritten.text;
}

// Executors compute functions without an exact form each within a bound, so some of 4096 values differ in
// their last bits: compared exactly they must be seen to differ, compared by the bound to agree.
TEST(Executors, ADifferenceIsReportedWithItsElement) {
  Launch inexact;
  inexact.data = Data::reals;
  inexact.magnitude = 3;
  const char* text = R"(tl 1 program p
tensor X: f32[4096] readonly
tensor Y: f32[4096]
kernel k grid (b: 1) {
  parallel i in 4096 {
    Y[i] = exp(X[i]) + tanh(X[i]) * erf(X[i])
  }
}
)";
  const Outcome exact = compare_executors({text, inexact});
  EXPECT_EQ(exact.kind, Kind::differ) << "4096 values of exp, tanh and erf agree to the last bit";
  EXPECT_NE(exact.text.find("Y["), std::string::npos) << exact.text;
  inexact.bound = {2e-6, 8};
  EXPECT_EQ(compare_executors({text, inexact}).kind, Kind::agree);
}

TEST(Bound, OfASum) {
  EXPECT_DOUBLE_EQ(Bound::of_sum(ir::DType::f32, 4, 2).absolute, 2 * 4 * 0x1p-23 * 8);
  EXPECT_GT(Bound::of_sum(ir::DType::bf16, 4, 2).absolute, Bound::of_sum(ir::DType::f16, 4, 2).absolute);
}

}  // namespace
}  // namespace tilegen::differential
