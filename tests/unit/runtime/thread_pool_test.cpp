#include "runtime/host/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

namespace tilegen::runtime {
namespace {

struct CountTask : PoolTask {
  explicit CountTask(size_t n) : hits(n) {}
  std::vector<std::atomic<int>> hits;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  bool helpers = true;
  bool prepare() override { return helpers; }
  void work(int64_t first, int64_t last) override {
    {
      std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    for (int64_t i = first; i < last; ++i) hits[static_cast<size_t>(i)].fetch_add(1);
  }
  bool each_once() const {
    for (const auto& h : hits)
      if (h.load() != 1) return false;
    return true;
  }
};

TEST(ThreadPool, EveryItemOnce) {
  for (int64_t count : {1, 2, 7, 64, 1000})
    for (int64_t chunk : {1, 3, 64})
      for (int threads : {1, 2, 4, 9}) {
        CountTask task(static_cast<size_t>(count));
        run_on_pool(task, count, chunk, threads);
        ASSERT_TRUE(task.each_once()) << count << " " << chunk << " " << threads;
        EXPECT_LE(task.threads.size(), static_cast<size_t>(threads));
      }
}

TEST(ThreadPool, NothingForNoItems) {
  CountTask task(0);
  run_on_pool(task, 0, 1, 4);
  EXPECT_TRUE(task.threads.empty());
}

TEST(ThreadPool, TheCallerWorksWhenHelpersDecline) {
  CountTask task(100);
  task.helpers = false;
  run_on_pool(task, 100, 1, 4);
  EXPECT_TRUE(task.each_once());
  EXPECT_EQ(task.threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

// Two threads must meet inside the work, which fails (by not ending) if only one of them runs.
TEST(ThreadPool, HelpersReallyHelp) {
  struct Meet : PoolTask {
    std::atomic<int> inside{0};
    void work(int64_t, int64_t) override {
      inside.fetch_add(1);
      while (inside.load() < 2) std::this_thread::yield();
    }
  } task;
  run_on_pool(task, 2, 1, 2);
  EXPECT_EQ(task.inside.load(), 2);
}

TEST(ThreadPool, ConcurrentLaunches) {
  std::atomic<int> bad{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c)
    callers.emplace_back([&, c] {
      for (int round = 0; round < 200; ++round) {
        CountTask task(static_cast<size_t>(17 + c));
        run_on_pool(task, 17 + c, 1, 3);
        if (!task.each_once()) bad.fetch_add(1);
      }
    });
  for (auto& t : callers) t.join();
  EXPECT_EQ(bad.load(), 0);
}

TEST(ThreadPool, AForkedChildStartsItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends a forked child that starts threads";
#endif
  CountTask before(50);
  run_on_pool(before, 50, 1, 3);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    CountTask task(50);
    run_on_pool(task, 50, 1, 3);
    _exit(task.each_once() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ThreadPool, CoresFollowTheAffinityMask) {
  std::thread([] {
    int all = available_cores();
    EXPECT_GE(all, 1);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) {
      EXPECT_EQ(available_cores(), 1);
    }
  }).join();
}

}  // namespace
}  // namespace tilegen::runtime
