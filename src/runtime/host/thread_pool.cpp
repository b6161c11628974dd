#include "runtime/host/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace tilegen::runtime {
namespace {

// How often an idle thread looks again before it sleeps: tens of microseconds, which covers back-to-back
// launches.
constexpr int kSpins = 1000;

struct Job {
  PoolTask* task = nullptr;
  int64_t count = 0, chunk = 1;
  int helpers_wanted = 0;  // under the pool's mutex
  int helpers_inside = 0;  // under the pool's mutex
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> done{0};

  void work() {
    for (;;) {
      int64_t first = next.fetch_add(chunk, std::memory_order_relaxed);
      if (first >= count) return;
      int64_t last = std::min(first + chunk, count);
      task->work(first, last);
      done.fetch_add(last - first, std::memory_order_acq_rel);
    }
  }
};

class Pool {
 public:
  void run(PoolTask& task, int64_t count, int64_t chunk, int threads) {
    Job job;
    job.task = &task;
    job.count = count;
    job.chunk = chunk;
    job.helpers_wanted = threads - 1;
    {
      std::lock_guard lock(mutex_);
      start_workers(threads - 1);
      jobs_.push_back(&job);
      open_.fetch_add(1, std::memory_order_release);
    }
    if (threads == 2)
      wake_.notify_one();
    else
      wake_.notify_all();
    job.work();
    for (int i = 0; i < kSpins && job.done.load(std::memory_order_acquire) < count; ++i) _mm_pause();
    std::unique_lock lock(mutex_);
    withdraw(&job);
    left_.wait(lock, [&] { return job.helpers_inside == 0; });
  }

 private:
  void start_workers(int wanted) {
    while (static_cast<int>(workers_) < wanted) {
      pthread_attr_t attributes;
      pthread_attr_init(&attributes);
      pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
      sigset_t all, before;  // the host's signals are for the host's threads
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      pthread_t thread;
      int failed = pthread_create(&thread, &attributes, worker_entry, this);
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      pthread_attr_destroy(&attributes);
      if (failed) return;  // fewer helpers: the caller still does all the work
      ++workers_;
    }
  }

  static void* worker_entry(void* pool) {
    static_cast<Pool*>(pool)->worker();
    return nullptr;
  }

  void worker() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Job* job = pick();
      if (!job) {
        lock.unlock();
        for (int i = 0; i < kSpins && open_.load(std::memory_order_acquire) == 0; ++i) _mm_pause();
        lock.lock();
        job = pick();
      }
      if (!job) {
        wake_.wait(lock, [&] { return (job = pick()) != nullptr; });
      }
      --job->helpers_wanted;
      ++job->helpers_inside;
      if (job->helpers_wanted == 0) withdraw(job);
      lock.unlock();
      if (job->task->prepare()) job->work();
      lock.lock();
      withdraw(job);  // all handed out, or this thread could not take part and another look would not help
      if (--job->helpers_inside == 0) left_.notify_all();
    }
  }

  // The next job that wants another thread.
  Job* pick() { return jobs_.empty() ? nullptr : jobs_.front(); }

  void withdraw(Job* job) {
    auto it = std::find(jobs_.begin(), jobs_.end(), job);
    if (it == jobs_.end()) return;
    jobs_.erase(it);
    open_.fetch_sub(1, std::memory_order_release);
  }

  std::mutex mutex_;
  std::condition_variable wake_, left_;
  std::vector<Job*> jobs_;
  std::atomic<int> open_{0};  // jobs_.size(), readable without the mutex
  int workers_ = 0;
};

// Leaked on purpose. A forked child has none of the threads and maybe a held mutex: it forgets the pool.
std::atomic<Pool*> g_pool{nullptr};

void forget_pool() { g_pool.store(nullptr, std::memory_order_relaxed); }

[[maybe_unused]] const int g_fork_handler = pthread_atfork(nullptr, nullptr, forget_pool);

Pool& pool() {
  Pool* p = g_pool.load(std::memory_order_acquire);
  if (p) return *p;
  Pool* fresh = new Pool;
  if (g_pool.compare_exchange_strong(p, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;  // another thread was first; no thread of this one has started
  return *p;
}

}  // namespace

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void run_on_pool(PoolTask& task, int64_t count, int64_t chunk, int max_threads) {
  if (count <= 0) return;
  int64_t chunks = (count - 1) / chunk + 1;
  int threads = static_cast<int>(std::min<int64_t>(std::max(1, max_threads), chunks));
  if (threads <= 1) return task.work(0, count);
  pool().run(task, count, chunk, threads);
}

}  // namespace tilegen::runtime
