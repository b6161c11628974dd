// What the library tells of its work while it works: to a function of the caller's, and to standard error
// where the variable TILEGEN_LOG names a level. The library spdlog does it; only log.cpp includes it.
//
// ensures: nothing is written, and no words are made, where nobody listens; a message that finds no memory is
// left out; nothing is thrown; no thread is started, and no lock is held while the caller's function runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "support/callback_gate.h"

namespace tilegen {

// warning: a plan was rejected, another took its place. info: one line a stage, its time and what it decided.
// debug: parts of stages, and notes of schedules. trace: a stage begins.
enum class LogLevel : uint8_t { off, error, warning, info, debug, trace };

class Log {
 public:
  using Listener = std::function<void(LogLevel level, const char* stage, const char* message)>;

  // Null where nobody listens: `level` is off, and TILEGEN_LOG as well.
  static std::shared_ptr<Log> make(LogLevel level = LogLevel::off, Listener listener = {});
  // The same with the level of TILEGEN_LOG given. For tests.
  static std::shared_ptr<Log> make(LogLevel level, Listener listener, LogLevel of_environment);
  ~Log();

  bool wants(LogLevel level) const noexcept { return level <= most_; }

  // `words` makes the message; called where somebody wants it. From one thread at a time.
  template <class Words>
  void say(LogLevel level, const char* stage, const Words& words) noexcept {
    if (!wants(level)) return;
    try {
      write(level, stage, words());
    } catch (...) {  // no memory
    }
  }

  // The listener hears nothing any more: its owner leaves.
  void close() { gate_.close(); }

 private:
  class Logger;
  Log();
  void write(LogLevel level, const char* stage, std::string_view message);

  LogLevel most_ = LogLevel::off;
  CallbackGate gate_;
  std::unique_ptr<Logger> logger_;
};

// For a log that may be null.
template <class Words>
void say(const std::shared_ptr<Log>& log, LogLevel level, const char* stage, const Words& words) noexcept {
  if (log) log->say(level, stage, words);
}

// Of a word such as "debug"; null for others.
const LogLevel* log_level_named(std::string_view word);

}  // namespace tilegen
