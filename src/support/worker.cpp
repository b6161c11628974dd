#include "support/worker.h"

#include <pthread.h>
#include <signal.h>

#include <cfenv>
#include <exception>
#include <initializer_list>

namespace tilegen {
namespace {

thread_local bool on_worker = false;

struct Job {
  const std::function<void()>& work;
  std::exception_ptr thrown;
};

// Keeping an exception needs no memory; putting it into words may.
void run_and_keep(Job& job) noexcept {
  try {
    job.work();
  } catch (...) {
    job.thrown = std::current_exception();
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

void* thread_main(void* argument) {
  auto* job = static_cast<Job*>(argument);
  on_worker = true;
  std::fesetenv(FE_DFL_ENV);  // a new thread inherits the modes of its creator
  run_and_keep(*job);
  return nullptr;
}

// Signals a thread raises by its own fault stay open, so that the caller's crash reporter still works.
sigset_t asynchronous_signals() {
  sigset_t set;
  sigfillset(&set);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&set, s);
  return set;
}

}  // namespace

const char* NoThread::what() const noexcept { return "the system starts no further thread"; }

Checked run_on_big_stack(const std::function<void()>& work) {
  Job job{work, nullptr};
  if (on_worker) {
    run_and_keep(job);
  } else {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kWorkerStackBytes);
    const sigset_t blocked = asynchronous_signals();
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, &blocked, &before);  // inherited by the new thread
    pthread_t thread;
    const int failed = pthread_create(&thread, &attributes, thread_main, &job);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    if (failed != 0) throw NoThread();
    pthread_join(thread, nullptr);
  }
  return outcome(job.thrown);
}

}  // namespace tilegen
