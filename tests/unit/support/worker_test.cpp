#include "support/worker.h"
#include "support/diag_codes.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace tilegen {
namespace {

// Uses about `bytes` of stack, touching each page.
__attribute__((noinline)) int use_stack(size_t bytes) {
  volatile char page[4096];
  page[0] = static_cast<char>(bytes);
  return bytes <= sizeof page ? page[0] : use_stack(bytes - sizeof page) + page[0];
}

TEST(Worker, RunsElsewhereAndWaits) {
  std::thread::id where;
  ASSERT_TRUE(run_on_big_stack([&] { where = std::this_thread::get_id(); }));
  EXPECT_NE(where, std::thread::id());
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(Worker, HasABigStackEvenForACallerWithASmallOne) {
  bool ran = false;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 128 << 10);
  pthread_t thread;
  const auto main = [](void* flag) -> void* {
    *static_cast<bool*>(flag) = bool(run_on_big_stack([] { use_stack(8 << 20); }));
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &small, main, &ran), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&small);
  EXPECT_TRUE(ran);
}

TEST(Worker, ExceptionsBecomeInternalErrors) {
  const Checked known = run_on_big_stack([] { throw std::runtime_error("lost the plot"); });
  ASSERT_FALSE(known);
  EXPECT_EQ(known.error().status(), StatusCode::internal);
  EXPECT_NE(known.error().to_text().find("lost the plot"), std::string::npos);
  const Checked unknown = run_on_big_stack([] { throw 7; });
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().to_text().find("unknown type"), std::string::npos);
}

TEST(Worker, NestedCallsStayOnTheWorker) {
  bool same = false, caught = false;
  ASSERT_TRUE(run_on_big_stack([&] {
    const auto outer = std::this_thread::get_id();
    same = bool(run_on_big_stack([&] { EXPECT_EQ(std::this_thread::get_id(), outer); }));
    caught = !run_on_big_stack([] { throw std::runtime_error("inner"); });
  }));
  EXPECT_TRUE(same);
  EXPECT_TRUE(caught);
}

TEST(Worker, StartsFromTheDefaultFloatingPointEnvironment) {
  std::fesetround(FE_UPWARD);
  int rounding = -1;
  EXPECT_TRUE(run_on_big_stack([&] { rounding = std::fegetround(); }));
  EXPECT_EQ(std::fegetround(), FE_UPWARD);  // the caller's own stays
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(rounding, FE_TONEAREST);
}

TEST(Worker, TakesNoAsynchronousSignals) {
  sigset_t before, inside, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  ASSERT_TRUE(run_on_big_stack([&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); }));
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&inside, SIGINT), 1);
  EXPECT_EQ(sigismember(&inside, SIGUSR1), 1);
  EXPECT_EQ(sigismember(&inside, SIGSEGV), 0);
  EXPECT_EQ(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

TEST(LeavableWork, WithoutAWishToStopItIsAwaited) {
  const Cancellation nobody;
  bool ran = false;
  const Expected<bool> done =
      run_until_cancelled([&](const Cancellation& left) { ran = !left.requested(); }, nobody);
  ASSERT_TRUE(done);
  EXPECT_TRUE(*done);
  EXPECT_TRUE(ran);
  EXPECT_FALSE(run_until_cancelled([](const Cancellation&) { throw std::runtime_error("lost"); }, nobody));
}

// Shared by the work and whoever watches it from outside.
struct Watched {
  std::atomic<bool> told{false}, freed{false};
};

LeavableWork until_told(const std::shared_ptr<Watched>& watched) {
  struct Owned {
    std::shared_ptr<Watched> watched;
    ~Owned() { watched->freed = true; }
  };
  return [owned = std::make_shared<Owned>(watched)](const Cancellation& left) {
    left.enter("the long stage");
    while (!left.requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // cannot stop at once
    owned->watched->told = true;
  };
}

bool within_a_second(const std::atomic<bool>& flag) {
  for (int i = 0; i < 1000 && !flag; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return flag;
}

TEST(LeavableWork, GoesOnAloneAndFreesWhatItOwns) {
  const auto watched = std::make_shared<Watched>();
  const Cancellation late({}, Cancellation::deadline_in(20));
  std::string stage;
  const Expected<bool> done =
      run_until_cancelled(until_told(watched), late, [&](const std::string& s) { stage = s; });
  EXPECT_FALSE(watched->freed);  // the caller did not wait
  ASSERT_TRUE(done);
  EXPECT_FALSE(*done);
  EXPECT_EQ(stage, "the long stage");
  EXPECT_TRUE(within_a_second(watched->told));
  EXPECT_TRUE(within_a_second(watched->freed));
}

TEST(LeavableWork, OnlySoManyGoOnAtATime) {
  std::vector<std::shared_ptr<Watched>> all;
  std::atomic<bool> go_on{false};
  for (size_t i = 0; i < kLeftWorkers; ++i) {
    const Cancellation late({}, Cancellation::deadline_in(5));
    const Expected<bool> done = run_until_cancelled(
        [&go_on](const Cancellation&) {
          while (!go_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        },
        late);
    ASSERT_TRUE(done);
    EXPECT_FALSE(*done);
  }
  bool ran = false;
  const Cancellation late({}, Cancellation::deadline_in(20));
  const Expected<bool> full = run_until_cancelled([&ran](const Cancellation&) { ran = true; }, late);
  ASSERT_TRUE(full);
  EXPECT_FALSE(*full);
  EXPECT_FALSE(ran);
  go_on = true;
  const Expected<bool> then =
      run_until_cancelled([&ran](const Cancellation&) { ran = true; }, Cancellation());
  ASSERT_TRUE(then);
  EXPECT_TRUE(*then);
  EXPECT_TRUE(ran);
}

// The host's signals are for the host's threads.
TEST(BesideWorker, BlocksSignalsAndIsWaitedFor) {
  sigset_t inside;
  sigemptyset(&inside);
  std::atomic<bool> done{false};
  {
    const BesideWorker worker([&] {
      pthread_sigmask(SIG_SETMASK, nullptr, &inside);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      done = true;
    });
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(sigismember(&inside, SIGINT), 1);
  EXPECT_EQ(sigismember(&inside, SIGTERM), 1);
}

TEST(Cancellation, FirstReasonStandsAndAYesIsForEver) {
  bool answer = false;
  Cancellation asked([&] { return answer; });
  EXPECT_FALSE(asked.requested());
  answer = true;
  EXPECT_TRUE(asked.requested());
  answer = false;
  EXPECT_TRUE(asked.requested());
  EXPECT_EQ(asked.error("k", "").diagnostics.at(0).code, DiagCode::cancelled_by_caller);
  const Cancellation late({}, Cancellation::Clock::now());
  EXPECT_TRUE(late.requested());
  EXPECT_EQ(late.error("k", "").diagnostics.at(0).code, DiagCode::cancelled_by_caller);
  EXPECT_EQ(Cancellation::deadline_in(0), Cancellation::kNever);
  EXPECT_EQ(Cancellation::deadline_in(INT64_MAX), Cancellation::kNever);
}

TEST(Cancellation, LoopsAskNowAndThenOnly) {
  int asked = 0;
  const Cancellation cancellation([&] { return ++asked, false; });
  StopCheck stop(&cancellation, 100);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(stop());
  EXPECT_GE(asked, 1);
  EXPECT_LE(asked, 10);
  StopCheck nobody(nullptr);
  EXPECT_FALSE(nobody());
}

}  // namespace
}  // namespace tilegen
