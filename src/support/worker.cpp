#include "support/worker.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <thread>

#include "support/diag_codes.h"

namespace tilegen {
namespace {

// How often a caller who waits is asked whether it still does.
constexpr std::chrono::milliseconds kPatience{4};

[[gnu::tls_model("initial-exec")]] constinit thread_local bool on_worker = false;

struct Job {
  const std::function<void()>& work;
  std::exception_ptr thrown;
};

// Keeping an exception needs no memory; putting it into words may.
template <class Work>
std::exception_ptr run_and_keep(const Work& work) noexcept {
  try {
    work();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

Checked outcome(const std::exception_ptr& thrown) {
  if (!thrown) return Unit{};
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    return Error(DiagCode::internal_error, "", std::string("uncaught exception: ") + e.what());
  } catch (...) {
    return Error(DiagCode::internal_error, "", "uncaught exception of an unknown type");
  }
}

void enter_worker() {
  on_worker = true;
  std::fesetenv(FE_DFL_ENV);  // a new thread inherits the modes of its creator
}

void* thread_main(void* argument) {
  auto* job = static_cast<Job*>(argument);
  enter_worker();
  job->thrown = run_and_keep(job->work);
  return nullptr;
}

// Signals a thread raises by its own fault stay open, so that the caller's crash reporter still works.
sigset_t asynchronous_signals() {
  sigset_t set;
  sigfillset(&set);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&set, s);
  return set;
}

void start_thread(pthread_t& thread, void* (*main)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kWorkerStackBytes);
  const sigset_t blocked = asynchronous_signals();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);  // inherited by the new thread
  const int failed = pthread_create(&thread, &attributes, main, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (failed != 0) throw NoThread();
}

// Work whose caller may leave.
struct Leavable {
  LeavableWork work;
  Cancellation left;
  pthread_t thread{};
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;  // with all that the work owned
  std::exception_ptr thrown;
  std::unique_ptr<Leavable> next;  // in LeftWorkers

  // Waits for kPatience at most; true: it is done.
  bool wait() {
    std::unique_lock lock(mutex);
    return ended.wait_for(lock, kPatience, [&] { return done; });
  }
};

void* leavable_main(void* argument) {
  auto* job = static_cast<Leavable*>(argument);
  enter_worker();
  job->thrown = run_and_keep([&] { job->work(job->left); });
  job->work = nullptr;
  const std::lock_guard lock(job->mutex);
  job->done = true;
  job->ended.notify_all();
  return nullptr;
}

// The workers that were left. Never destroyed itself; they are joined before the statics that they use are
// destroyed.
class LeftWorkers {
 public:
  bool has_room() {
    const std::lock_guard lock(mutex_);
    join(/*all=*/false);
    return count_ < kLeftWorkers;
  }
  void add(std::unique_ptr<Leavable> job) noexcept {
    const std::lock_guard lock(mutex_);
    job->next = std::move(first_);
    first_ = std::move(job);
    ++count_;
  }
  void join_all() {
    const std::lock_guard lock(mutex_);
    join(/*all=*/true);
  }

 private:
  void join(bool all) {
    for (std::unique_ptr<Leavable>* at = &first_; *at;) {
      bool ended = all;
      if (!ended) {
        const std::lock_guard lock((*at)->mutex);
        ended = (*at)->done;
      }
      if (!ended) {
        at = &(*at)->next;
        continue;
      }
      pthread_join((*at)->thread, nullptr);
      *at = std::move((*at)->next);
      --count_;
    }
  }

  std::mutex mutex_;
  std::unique_ptr<Leavable> first_;
  size_t count_ = 0;
};

// A forked child has none of the threads and maybe a held mutex: it forgets them.
std::atomic<LeftWorkers*> g_left{nullptr};
void forget_left_workers() { g_left.store(nullptr, std::memory_order_relaxed); }
[[maybe_unused]] const int g_fork_handler = pthread_atfork(nullptr, nullptr, forget_left_workers);

void join_left_workers() {
  if (LeftWorkers* left = g_left.load(std::memory_order_acquire)) left->join_all();
}

LeftWorkers& left_workers() {
  LeftWorkers* left = g_left.load(std::memory_order_acquire);
  if (left) return *left;
  auto fresh = std::make_unique<LeftWorkers>();
  if (!g_left.compare_exchange_strong(left, fresh.get(), std::memory_order_acq_rel)) return *left;
  return *fresh.release();
}

// exit() destroys what is local to its thread before all statics, those that a worker has yet to make
// included; the main thread, which mostly calls it, waits there. Handlers of exit() and of the library's
// unloading run in the reverse order of their registration: one that is registered now runs before the
// destructors of all statics that exist.
struct JoinedByMainThread {
  bool left = false;
  ~JoinedByMainThread() {
    if (left) join_left_workers();
  }
};
thread_local JoinedByMainThread joined_by_main_thread;

void wait_at_exit() {
  std::atexit(join_left_workers);
  if (gettid() == getpid()) joined_by_main_thread.left = true;
}

// The caller's hold on its worker. Whatever it leaves by, the worker is joined or left, never lost.
class Hold {
 public:
  explicit Hold(std::unique_ptr<Leavable> job) : job_(std::move(job)) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    if (!job_) return;
    job_->left.request();
    wait_at_exit();
    left_workers().add(std::move(job_));
  }
  Leavable* operator->() { return job_.get(); }
  std::exception_ptr join() {
    pthread_join(job_->thread, nullptr);
    const std::exception_ptr thrown = std::move(job_->thrown);
    job_.reset();
    return thrown;
  }

 private:
  std::unique_ptr<Leavable> job_;
};

}  // namespace

const char* NoThread::what() const noexcept { return "the system starts no further thread"; }

Checked run_on_big_stack(const std::function<void()>& work) {
  Job job{work, nullptr};
  if (on_worker) {
    job.thrown = run_and_keep(work);
  } else {
    pthread_t thread;
    start_thread(thread, thread_main, &job);
    pthread_join(thread, nullptr);
  }
  return outcome(job.thrown);
}

BesideWorker::BesideWorker(std::function<void()> work) : work_(std::move(work)) {
  const auto main = [](void* argument) -> void* {
    enter_worker();
    run_and_keep(*static_cast<std::function<void()>*>(argument));
    return nullptr;
  };
  start_thread(thread_, main, &work_);
}

BesideWorker::~BesideWorker() { pthread_join(thread_, nullptr); }

Expected<bool> run_until_cancelled(LeavableWork work, const Cancellation& cancellation,
                                   const std::function<void(const std::string& stage)>& leave) {
  while (!left_workers().has_room()) {
    if (cancellation.requested()) return false;
    std::this_thread::sleep_for(kPatience);
  }
  auto job = std::make_unique<Leavable>();
  job->work = std::move(work);
  start_thread(job->thread, leavable_main, job.get());
  Hold hold(std::move(job));
  while (!hold->wait()) {
    if (!cancellation.requested()) continue;
    if (leave) leave(hold->left.stage());
    return false;
  }
  if (Checked ended = outcome(hold.join()); !ended) return ended.error();
  return true;
}

}  // namespace tilegen
