#include "driver/fallback_version.h"

#include <chrono>

#include "driver/stages.h"
#include "support/diag_codes.h"
#include "support/worker.h"

namespace tilegen::driver {
namespace {

// How often a caller who waits for another one's compilation is asked whether it still does.
constexpr std::chrono::milliseconds kPatience{4};

// All that the work touches is its own: the caller may leave it.
struct Job {
  std::shared_ptr<const ir::Program> program;
  target::Target target;
  CompileOptions options;
  std::optional<FallbackVersion::Made> done;

  void run(const Cancellation* left) {
    options.cancellation = left;
    done.emplace(compile(program, target, options));
    options = {};
  }
};

bool is_cancelled(const FallbackVersion::Made& made) {
  return !made && made.error().diagnostics[0].code == DiagCode::cancelled_by_caller;
}

}  // namespace

FallbackVersion::FallbackVersion(std::shared_ptr<const ir::Program> program, target::Target target,
                                 CompileOptions options)
    : program_(std::move(program)), target_(std::move(target)), options_(std::move(options)) {
  options_.check = nullptr;
  options_.rejected = nullptr;
  options_.dump = nullptr;
  options_.cancellation = nullptr;
  options_.log = nullptr;
}

FallbackVersion::~FallbackVersion() = default;

std::shared_ptr<const Artifact> FallbackVersion::made() const {
  const std::lock_guard lock(mutex_);
  return made_ && *made_ ? **made_ : nullptr;
}

FallbackVersion::Made FallbackVersion::get(const Cancellation* call, std::shared_ptr<Log> log) const {
  for (;;) {
    std::unique_lock lock(mutex_);
    if (ended_.wait_for(lock, kPatience, [&] { return !busy_; })) {
      if (made_) return *made_;
      busy_ = true;
      break;
    }
    lock.unlock();  // callbacks are called with no lock held
    if (call && call->requested()) return stopped(*call, "");
  }
  struct Turn {
    const FallbackVersion& self;
    ~Turn() {
      const std::lock_guard lock(self.mutex_);
      self.busy_ = false;
      self.ended_.notify_all();
    }
  } turn{*this};
  if (!log) log = Log::make();
  const auto start = std::chrono::steady_clock::now();
  Made made = make(call, log);
  say(log, made ? LogLevel::info : LogLevel::error, "fallback", [&] {
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    return program_->name + " for " + target_.name + ", a version that assumes less: " +
           (made ? "compiled in " + Stages::in_ms(time.count()) : made.error().to_text());
  });
  if (is_cancelled(made)) return made;
  const std::lock_guard lock(mutex_);
  made_ = made;
  return made;
}

FallbackVersion::Made FallbackVersion::make(const Cancellation* call, const std::shared_ptr<Log>& log) const {
  if (call && call->requested()) return stopped(*call, "");
  auto job = std::make_shared<Job>(Job{program_, target_, options_, std::nullopt});
  job->options.log = log;
  if (!call && options_.fallback_ms <= 0) {
    if (Checked ran = run_on_big_stack([&] { job->run(nullptr); }); !ran) return ran.error();
    return *std::move(job->done);
  }
  const Cancellation both([call] { return call && call->requested(); },
                          Cancellation::deadline_in(options_.fallback_ms));
  std::string stage;
  auto ended = run_until_cancelled([job](const Cancellation& left) { job->run(&left); }, both,
                                   [&](const std::string& place) {
                                     if (log) log->close();
                                     stage = place;
                                   });
  if (!ended) return ended.error();
  if (!*ended) return stopped(call && call->requested() ? *call : both, stage);
  return *std::move(job->done);
}

Error FallbackVersion::stopped(const Cancellation& why, const std::string& stage) const {
  return why.error(program_->name, "while a fallback version of '" + program_->name + "' was compiled" +
                                       (stage.empty() ? "" : ", in stage '" + stage + "'"));
}

}  // namespace tilegen::driver
