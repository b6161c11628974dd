// spdlog's own registry, its loggers by name and its threads stay unused: a Log has a logger and sinks of its
// own. A failure inside is reported nowhere.
#include "support/log.h"

#define FMT_HEADER_ONLY 1
#define SPDLOG_HEADER_ONLY 1
#define SPDLOG_NO_THREAD_ID 1
#define SPDLOG_NO_TLS 1
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <string>

namespace tilegen {
namespace {

using spdlog::details::log_msg;

struct LevelName {
  std::string_view word;
  LogLevel level;
};
constexpr LevelName kNames[] = {{"off", LogLevel::off},      {"error", LogLevel::error},
                                {"warn", LogLevel::warning}, {"warning", LogLevel::warning},
                                {"info", LogLevel::info},    {"debug", LogLevel::debug},
                                {"trace", LogLevel::trace}};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::off,   spdlog::level::err,
                                                   spdlog::level::warn,  spdlog::level::info,
                                                   spdlog::level::debug, spdlog::level::trace};
  return kLevels[static_cast<size_t>(level)];
}
LogLevel from_spdlog(spdlog::level::level_enum level) {
  for (const LevelName& n : kNames)
    if (to_spdlog(n.level) == level) return n.level;
  return LogLevel::off;
}

class Sink : public spdlog::sinks::sink {
 public:
  explicit Sink(LogLevel level) { set_level(to_spdlog(level)); }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

// Lines are whole: each is one write. A formatter remembers the last second, so each line has its own.
class StandardErrorSink final : public Sink {
 public:
  using Sink::Sink;
  void log(const log_msg& message) override {
    spdlog::pattern_formatter formatter("%Y-%m-%d %H:%M:%S.%e tilegen [%l] %n: %v");
    spdlog::memory_buf_t line;
    formatter.format(message, line);
    size_t at = 0;
    while (at < line.size()) {
      const ssize_t wrote = write(STDERR_FILENO, line.data() + at, line.size() - at);
      if (wrote < 0 && errno != EINTR) return;
      at += wrote > 0 ? static_cast<size_t>(wrote) : 0;
    }
  }
};

class ListenerSink final : public Sink {
 public:
  ListenerSink(LogLevel level, Log::Listener listener, CallbackGate& gate)
      : Sink(level), listener_(std::move(listener)), gate_(gate) {}
  void log(const log_msg& message) override {
    const std::string stage(message.logger_name.data(), message.logger_name.size()),
        text(message.payload.data(), message.payload.size());
    gate_.pass([&] { listener_(from_spdlog(message.level), stage.c_str(), text.c_str()); });
  }

 private:
  const Log::Listener listener_;
  CallbackGate& gate_;
};

// Read once: what a process sets later is not seen, and not read while it is set.
LogLevel environment_level() {
  static std::atomic<int> known{-1};
  if (const int level = known.load(std::memory_order_relaxed); level >= 0)
    return static_cast<LogLevel>(level);
  const char* word = secure_getenv("TILEGEN_LOG");
  const LogLevel* level = word ? log_level_named(word) : nullptr;
  // A word that is no level asks for something: the least.
  const LogLevel found = level ? *level : word && *word ? LogLevel::error : LogLevel::off;
  known.store(static_cast<int>(found), std::memory_order_relaxed);
  return found;
}

}  // namespace

// The name of a message's logger is its stage.
class Log::Logger final : public spdlog::logger {
 public:
  Logger() : spdlog::logger("tilegen") {
    set_level(spdlog::level::trace);
    set_error_handler([](const std::string&) {});
  }
  void add(std::shared_ptr<Sink> sink) { sinks().push_back(std::move(sink)); }
  void write(LogLevel level, const char* stage, std::string_view message) {
    log_it_(log_msg({}, stage, to_spdlog(level), {message.data(), message.size()}), true, false);
  }
};

Log::Log() : logger_(std::make_unique<Logger>()) {}
Log::~Log() = default;

std::shared_ptr<Log> Log::make(LogLevel level, Listener listener) {
  return make(level, std::move(listener), environment_level());
}

std::shared_ptr<Log> Log::make(LogLevel level, Listener listener, LogLevel of_environment) {
  if (!listener) level = LogLevel::off;
  if (std::max(level, of_environment) == LogLevel::off) return nullptr;
  std::shared_ptr<Log> log(new Log);
  log->most_ = std::max(level, of_environment);
  if (level != LogLevel::off)
    log->logger_->add(std::make_shared<ListenerSink>(level, std::move(listener), log->gate_));
  if (of_environment != LogLevel::off) log->logger_->add(std::make_shared<StandardErrorSink>(of_environment));
  return log;
}

void Log::write(LogLevel level, const char* stage, std::string_view message) {
  logger_->write(level, stage, message);
}

const LogLevel* log_level_named(std::string_view word) {
  const auto* at =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const LevelName& n) { return n.word == word; });
  return at == std::end(kNames) ? nullptr : &at->level;
}

}  // namespace tilegen
