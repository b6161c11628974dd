// Calls end soon after the moment in which the cancel callback, or the clock, says so: wherever they are.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "scope.h"

namespace tilegen::test {
namespace {

using Clock = std::chrono::steady_clock;

// The promise is 50 ms; a loaded machine may keep any thread from running for as long again, and longer.
constexpr double kPromisedMs = 50, kAllowedMs = 400;

double ms_since(Clock::time_point t) {
  return std::chrono::duration<double, std::milli>(Clock::now() - t).count();
}

// Says yes `after_ms` after its making, and remembers when it first did.
struct Asked {
  explicit Asked(double ms) : after_ms(ms) {}
  static int32_t answer(void* user) {
    auto& self = *static_cast<Asked*>(user);
    ++self.times;
    if (self.closed) self.asked_behind_the_call = true;
    if (ms_since(self.start) < self.after_ms) return 0;
    if (!self.said.exchange(true)) self.said_at = Clock::now();
    return 1;
  }
  const double after_ms;
  Clock::time_point start = Clock::now(), said_at{};
  std::atomic<int> times{0};
  std::atomic<bool> said{false}, closed{false}, asked_behind_the_call{false};
};

// `call` lasts much longer than 30 ms unless it is stopped, by a callback and by the clock.
void expect_soon(const char* what, const Context& context,
                 const std::function<tl_status(int64_t ms, tl_error** e)>& call) {
  Asked asked(30);
  ASSERT_EQ(tl_context_set_cancel(context.get(), Asked::answer, nullptr, &asked, nullptr), TL_OK);
  tl_error* error = nullptr;
  EXPECT_EQ(call(0, &error), TL_CANCELLED) << what << ": " << tl_error_message(error);
  double late = ms_since(asked.said_at);
  asked.closed = true;
  EXPECT_STREQ(first(Failure(error)).code, "cancelled_by_caller") << what;
  EXPECT_TRUE(asked.said) << what;
  EXPECT_LE(late, kAllowedMs) << what;
  std::printf("%-28s callback %6.1f ms after", what, late);

  ASSERT_EQ(tl_context_set_cancel(context.get(), nullptr, nullptr, nullptr, nullptr), TL_OK);
  EXPECT_FALSE(asked.asked_behind_the_call) << what;
  error = nullptr;
  const auto start = Clock::now();
  EXPECT_EQ(call(30, &error), TL_CANCELLED) << what << ": " << tl_error_message(error);
  late = ms_since(start) - 30;
  EXPECT_STREQ(first(Failure(error)).code, "cancelled_by_caller") << what;
  EXPECT_LE(late, kAllowedMs) << what;
  std::printf(", clock %6.1f ms (promised: %.0f)\n", late, kPromisedMs);
}

std::string in_kernel(const std::string& body, const std::string& grid = "b: 1") {
  return "tl 1 program p\ndim n\ntensor X: f32[65536] readonly\ntensor Y: f32[65536]\nkernel k grid (" +
         grid + ") {\n" + body + "}\n";
}

// What the checks must enumerate, so often that they take seconds.
std::string long_to_check() {
  std::string loops;
  for (int i = 0; i < 400; ++i)
    loops += "  parallel i in 65536 {\n    Y[(i * " + std::to_string(2 * i + 3) + ") % 65536] = X[i]\n  }\n";
  return in_kernel(loops);
}

// Many statements of one tile, which take a while in every stage.
std::string long_to_compile(int statements) {
  std::string loops = "  alloc t: fragment f32[64]\n  copy X[0 :+ 64] -> t\n";
  for (int i = 0; i < statements; ++i)
    loops += "  parallel i in 64 {\n    t[i] = exp(t[i]) + X[i + " + std::to_string(i % 64) + "]\n  }\n";
  return in_kernel(loops + "  copy t -> Y[0 :+ 64]\n");
}

const char* const kEndlessLoop =
    "  alloc t: fragment f32[64]\n  fill t, 0.0f32\n  serial s in 0 .. n {\n    parallel i in 64 {\n"
    "      t[i] = t[i] + 1.0f32\n    }\n  }\n  copy t -> Y[0 :+ 64]\n";

Program parse(const Context& context, const std::string& text) {
  tl_program* made = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_program_parse(context.get(), text.data(), text.size(), nullptr, &made, &error), TL_OK)
      << tl_error_message(error);
  tl_error_release(error);
  return Program(made);
}

tl_status compile(const Context& context, const Program& program, const char* target, int64_t timeout_ms,
                  Artifact* artifact, tl_error** error) {
  tl_target* parsed = nullptr;
  EXPECT_EQ(tl_target_parse(target, &parsed, nullptr), TL_OK);
  const Target owned(parsed);
  tl_options* options = nullptr;
  tl_options_create(&options, nullptr);
  const Options owned_options(options);
  EXPECT_EQ(tl_options_set_i64(options, "timeout_ms", timeout_ms, nullptr), TL_OK);
  tl_artifact* made = nullptr;
  const tl_status status = tl_compile(context.get(), program.get(), parsed, options, &made, error);
  Artifact got(made);
  if (artifact) *artifact = std::move(got);
  return status;
}

TEST(Cancel, ParsingAndItsChecks) {
  const Context context = make_context();
  const std::string text = long_to_check();
  expect_soon("parse", context, [&](int64_t ms, tl_error** e) {
    EXPECT_EQ(tl_context_set_timeout(context.get(), ms, nullptr), TL_OK);
    tl_program* made = nullptr;
    const tl_status status = tl_program_parse(context.get(), text.data(), text.size(), nullptr, &made, e);
    EXPECT_EQ(made, nullptr);
    return status;
  });
}

TEST(Cancel, FinishingABuilder) {
  const Context context = make_context();
  expect_soon("builder_finish", context, [&](int64_t ms, tl_error** e) {
    EXPECT_EQ(tl_context_set_timeout(context.get(), ms, nullptr), TL_OK);
    const Builder b = make_builder(context);
    const tl_expr size = tl_index(b.get(), 65536), one = tl_index(b.get(), 1);
    const tl_buffer y = tl_tensor(b.get(), "Y", TL_F32, 1, &size, nullptr, 0);
    tl_expr block;
    const tl_scope kernel = tl_begin_kernel(b.get(), "k", 1, &one, 0, nullptr, &block);
    const int64_t extent = 65536;
    for (int i = 0; i < 400; ++i) {
      tl_expr var;
      const tl_scope loop = tl_begin_parallel(b.get(), 1, &extent, nullptr, &var);
      const tl_expr at = tl_binary(b.get(), TL_FLOORMOD,
                                   tl_binary(b.get(), TL_MUL, var, tl_index(b.get(), 2 * i + 3)), size);
      tl_store(b.get(), y, 1, &at, tl_const_f64(b.get(), TL_F32, 1.0));
      tl_end(b.get(), loop);
    }
    tl_end(b.get(), kernel);
    tl_program* made = nullptr;
    const tl_status status = tl_builder_finish(b.get(), &made, e);
    EXPECT_EQ(made, nullptr);
    return status;
  });
}

TEST(Cancel, CompilingForEveryKindOfTarget) {
  const Context context = make_context();
  const Program program = parse(context, long_to_compile(2500));
  for (const char* target : {"host", "sm_80", "sm_90a", "sim:sm_80"})
    expect_soon(target, context,
                [&](int64_t ms, tl_error** e) { return compile(context, program, target, ms, nullptr, e); });
  // The next compilation waits for nobody's, or for one of those that were left, and is whole.
  const Program small = parse(context, long_to_compile(2));
  Artifact artifact;
  tl_error* error = nullptr;
  EXPECT_EQ(compile(context, small, "host", 60000, &artifact, &error), TL_OK) << tl_error_message(error);
  EXPECT_TRUE(artifact);
}

// No pass of LLVM's code generator is as short as the promise.
TEST(Cancel, WhileLlvmWorks) {
  struct Watch {
    std::atomic<bool> lowered{false};
    std::atomic<int> asked{0};
    Clock::time_point said_at{};
  } watch;
  const auto dump = [](void* user, const char* stage, const char*, size_t) {
    if (std::strcmp(stage, "thread") == 0) static_cast<Watch*>(user)->lowered = true;
  };
  const auto ask = [](void* user) -> int32_t {
    auto& w = *static_cast<Watch*>(user);
    if (!w.lowered || ++w.asked < 20) return 0;  // some tens of milliseconds into the stages behind lowering
    if (w.asked == 20) w.said_at = Clock::now();
    return 1;
  };
  const Context context = make_context();
  const Program program = parse(context, long_to_compile(1200));
  ASSERT_EQ(tl_context_set_dump(context.get(), dump, nullptr, &watch, nullptr), TL_OK);
  ASSERT_EQ(tl_context_set_cancel(context.get(), ask, nullptr, &watch, nullptr), TL_OK);
  tl_error* error = nullptr;
  EXPECT_EQ(compile(context, program, "sm_80", 0, nullptr, &error), TL_CANCELLED);
  const double late = ms_since(watch.said_at);
  const Failure failure(error);
  EXPECT_NE(std::string(first(failure).message).find("stage 'generate'"), std::string::npos)
      << first(failure).message;
  EXPECT_LE(late, kAllowedMs);
  std::printf("%-28s callback %6.1f ms after (promised: %.0f)\n", "LLVM", late, kPromisedMs);
}

TEST(Cancel, TheErrorNamesTheStage) {
  std::atomic<bool> planned{false};
  const auto dump = [](void* user, const char* stage, const char*, size_t) {
    if (std::strcmp(stage, "schedule") == 0) *static_cast<std::atomic<bool>*>(user) = true;
  };
  const auto ask = [](void* user) -> int32_t { return *static_cast<std::atomic<bool>*>(user); };
  const Context context = make_context();
  const Program program = parse(context, long_to_compile(2500));
  ASSERT_EQ(tl_context_set_dump(context.get(), dump, nullptr, &planned, nullptr), TL_OK);
  ASSERT_EQ(tl_context_set_cancel(context.get(), ask, nullptr, &planned, nullptr), TL_OK);
  std::vector<std::string> told;
  const auto tell = [](void* user, tl_log_level, const char*, const char* message) {
    static_cast<std::vector<std::string>*>(user)->push_back(message);
  };
  ASSERT_EQ(tl_context_set_log(context.get(), TL_LOG_ERROR, tell, nullptr, &told, nullptr), TL_OK);
  tl_error* error = nullptr;
  EXPECT_EQ(compile(context, program, "sm_80", 0, nullptr, &error), TL_CANCELLED);
  const Failure failure(error);
  EXPECT_NE(std::string(first(failure).message).find("stage '"), std::string::npos) << first(failure).message;
  EXPECT_STREQ(first(failure).op, "tl_compile");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find(first(failure).message), std::string::npos) << told[0];
}

TEST(Cancel, NoDumpArrivesBehindTheCall) {
  const Context context = make_context();
  const Program program = parse(context, long_to_compile(1500));
  static std::atomic<bool> returned;
  static std::atomic<int> late;
  returned = false, late = 0;
  const auto dump = [](void*, const char*, const char*, size_t) {
    if (returned) ++late;
  };
  ASSERT_EQ(tl_context_set_dump(context.get(), dump, nullptr, nullptr, nullptr), TL_OK);
  EXPECT_EQ(compile(context, program, "host", 20, nullptr, nullptr), TL_CANCELLED);
  returned = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(late, 0);
}

tl_arg tensor(std::vector<float>& data) {
  return {TL_ARG_POINTER, 0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(data.data()))};
}

class CancelRuns : public testing::Test {
 protected:
  std::vector<tl_arg> args(int64_t n) {
    return {{TL_ARG_I64, 0, static_cast<uint64_t>(n)}, tensor(x_), tensor(y_)};
  }
  static tl_launch launch(const tl_context* context, int64_t ms) {
    tl_launch how{};
    how.struct_size = sizeof how;
    how.timeout_ms = ms;
    how.context = context;
    return how;
  }
  void interpret(const char* what, const std::string& text, int64_t n) {
    const Program program = parse(context_, text);
    const std::vector<tl_arg> given = args(n);
    expect_soon(what, context_, [&](int64_t ms, tl_error** e) {
      const tl_launch how = launch(context_.get(), ms);
      return tl_interpret_launch(program.get(), &how, given.data(), given.size(), e);
    });
  }
  void run(const char* target, const std::string& text, int64_t n) {
    const Program program = parse(context_, text);
    Artifact artifact;
    tl_error* error = nullptr;
    ASSERT_EQ(compile(context_, program, target, 0, &artifact, &error), TL_OK) << tl_error_message(error);
    tl_kernel* loaded = nullptr;
    ASSERT_EQ(tl_kernel_load(context_.get(), artifact.get(), 0, &loaded, nullptr), TL_OK);
    const Kernel kernel(loaded);
    const std::vector<tl_arg> given = args(n);
    expect_soon(target, context_, [&](int64_t ms, tl_error** e) {
      const tl_launch how = launch(context_.get(), ms);
      return tl_kernel_launch(kernel.get(), &how, given.data(), given.size(), e);
    });
  }
  Context context_ = make_context();
  std::vector<float> x_ = std::vector<float>(65536), y_ = std::vector<float>(65536);
};

TEST_F(CancelRuns, Interpretation) {
  interpret("interpreted loop", in_kernel(kEndlessLoop), int64_t{1} << 40);
  interpret("interpreted empty loop", in_kernel("  serial s in 0 .. n {\n  }\n"), int64_t{1} << 40);
  interpret("interpreted grid", in_kernel("  parallel i in 64 {\n    Y[i] = X[i]\n  }\n", "b: n"),
            int64_t{1} << 31);
  interpret(
      "interpreted gemm",
      in_kernel("  alloc a: shared f32[2048, 2048]\n  alloc c: fragment f32[2048, 2048]\n  fill a, 1.0f32\n"
                "  gemm a, a -> c {clear}\n  copy c[0 :+ 1, 0 :+ 64] -> Y[0 :+ 64]\n"),
      1);
}

TEST_F(CancelRuns, LaunchesOnTheSimulator) {
  run("sim:sm_80", in_kernel(kEndlessLoop), int64_t{1} << 40);
  run("sim:sm_90a", in_kernel("  parallel i in 64 {\n    Y[i] = X[i]\n  }\n", "b: n"), int64_t{1} << 31);
}

TEST_F(CancelRuns, LaunchesOnTheHost) {
  run("host", in_kernel("  parallel i in 64 {\n    Y[i] = X[i]\n  }\n", "b: n"), int64_t{1} << 46);
  run("host", in_kernel(kEndlessLoop), int64_t{1} << 40);
  run("host",
      in_kernel("  serial s in 0 .. 1099511627776 {\n    parallel i in 64 {\n      Y[i] = Y[i] + X[i]\n    "
                "}\n  }\n"),
      1);
}

// Whoever sets no limit is asked nothing, and whoever has time enough has the result.
TEST_F(CancelRuns, LimitsThatAreNotReachedChangeNothing) {
  const Program program =
      parse(context_, in_kernel("  parallel i in 64 {\n    Y[i] = X[i] + 2.0f32\n  }\n", "b: n"));
  const std::vector<tl_arg> given = args(1);
  const tl_launch how = launch(context_.get(), 60000);
  EXPECT_EQ(tl_interpret_launch(program.get(), &how, given.data(), given.size(), nullptr), TL_OK);
  EXPECT_EQ(y_[63], 2.0f);
  EXPECT_EQ(tl_interpret_launch(program.get(), nullptr, given.data(), given.size(), nullptr), TL_OK);
  tl_launch first_version{};
  first_version.struct_size = offsetof(tl_launch, timeout_ms);
  EXPECT_EQ(tl_interpret_launch(program.get(), &first_version, given.data(), given.size(), nullptr), TL_OK);
  tl_launch negative = launch(nullptr, -1);
  EXPECT_EQ(tl_interpret_launch(program.get(), &negative, given.data(), given.size(), nullptr),
            TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_context_set_timeout(context_.get(), -1, nullptr), TL_INVALID_ARGUMENT);
}

TEST_F(CancelRuns, GridsThatNobodyLivesToSeeAreRefused) {
  const Program program = parse(context_, in_kernel("  parallel i in 64 {\n    Y[i] = X[i]\n  }\n", "b: n"));
  const std::vector<tl_arg> given = args(int64_t{1} << 40);
  tl_error* error = nullptr;
  EXPECT_EQ(tl_interpret(program.get(), given.data(), given.size(), &error), TL_LIMIT_EXCEEDED);
  EXPECT_STREQ(first(Failure(error)).code, "launch_limit");
  Artifact artifact;
  ASSERT_EQ(compile(context_, program, "sim:sm_80", 0, &artifact, nullptr), TL_OK);
  tl_kernel* loaded = nullptr;
  ASSERT_EQ(tl_kernel_load(context_.get(), artifact.get(), 0, &loaded, nullptr), TL_OK);
  const Kernel kernel(loaded);
  error = nullptr;
  EXPECT_EQ(tl_kernel_launch(kernel.get(), nullptr, given.data(), given.size(), &error), TL_LIMIT_EXCEEDED);
  EXPECT_STREQ(first(Failure(error)).code, "launch_limit");
}

}  // namespace
}  // namespace tilegen::test
