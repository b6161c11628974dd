#include "support/once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

namespace tilegen {
namespace {

TEST(Once, IsTriedAgainUntilItComesToItsEnd) {
  Once once;
  int tried = 0;
  const auto work = [&] {
    if (++tried < 3) throw std::bad_alloc();
  };
  EXPECT_THROW(once.run(work), std::bad_alloc);
  EXPECT_THROW(once.run(work), std::bad_alloc);
  once.run(work);
  once.run(work);
  EXPECT_EQ(tried, 3);
}

TEST(Once, IsDoneByOneOfManyThreads) {
  Once once;
  std::atomic<int> done{0}, seen{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      once.run([&] { ++done; });
      seen += done;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(seen, 8);
}

}  // namespace
}  // namespace tilegen
