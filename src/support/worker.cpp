#include "support/worker.h"

#include <pthread.h>
#include <signal.h>

#include <cfenv>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <optional>

namespace tilegen {
namespace {

thread_local bool on_worker = false;

struct Job {
  const std::function<void()>& work;
  std::optional<Error> error;
};

std::optional<Error> run_and_catch(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
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
  job->error = run_and_catch(job->work);
  return nullptr;
}

// Signals a thread raises by its own fault stay open, so that the caller's crash reporter still works.
sigset_t asynchronous_signals() {
  sigset_t set;
  sigfillset(&set);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&set, s);
  return set;
}

Error start_failure(int code) {
  return Error(DiagCode::internal_error, "", std::string("cannot start a worker thread: ") + std::strerror(code));
}

}  // namespace

Checked run_on_big_stack(const std::function<void()>& work) {
  Job job{work, std::nullopt};
  if (on_worker) {
    job.error = run_and_catch(work);
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
    if (failed != 0) return start_failure(failed);
    pthread_join(thread, nullptr);
  }
  if (job.error) return *std::move(job.error);
  return Unit{};
}

}  // namespace tilegen
