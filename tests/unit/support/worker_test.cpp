#include "support/worker.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <cfenv>
#include <stdexcept>
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

}  // namespace
}  // namespace tilegen
