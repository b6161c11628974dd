// Who hears what, and what happens where there is no memory or nobody.
#include "support/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tilegen {
namespace {

struct Heard {
  std::vector<std::string> lines;
  Log::Listener listener() {
    return [this](LogLevel level, const char* stage, const char* message) {
      lines.push_back(std::to_string(static_cast<int>(level)) + " " + stage + ": " + message);
    };
  }
};

// What is written to standard error meanwhile.
template <class Work>
std::string on_standard_error(const Work& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, ThereIsNoneWhereNobodyListens) {
  Heard heard;
  EXPECT_EQ(Log::make(LogLevel::off, heard.listener(), LogLevel::off), nullptr);
  EXPECT_EQ(Log::make(LogLevel::info, {}, LogLevel::off), nullptr);
  int asked = 0;
  say(nullptr, LogLevel::error, "plan", [&] { return ++asked, std::string(); });
  EXPECT_EQ(asked, 0);
}

TEST(Log, TheListenerHearsItsLevelAndMoreSevereOnes) {
  Heard heard;
  const auto log = Log::make(LogLevel::info, heard.listener(), LogLevel::off);
  int asked = 0;
  const auto words = [&] { return ++asked, std::string("words {} %v"); };
  const std::string printed = on_standard_error([&] {
    for (LogLevel level :
         {LogLevel::trace, LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error})
      say(log, level, "plan", words);
  });
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(heard.lines,
            (std::vector<std::string>{"3 plan: words {} %v", "2 plan: words {} %v", "1 plan: words {} %v"}));
  EXPECT_EQ(printed, "");
}

TEST(Log, StandardErrorHasALevelOfItsOwn) {
  Heard heard;
  const auto log = Log::make(LogLevel::error, heard.listener(), LogLevel::debug);
  const std::string printed = on_standard_error([&] {
    say(log, LogLevel::debug, "lower", [] { return std::string("a note"); });
    say(log, LogLevel::trace, "lower", [] { return std::string("nobody"); });
  });
  EXPECT_TRUE(heard.lines.empty());
  EXPECT_NE(printed.find(" tilegen [debug] lower: a note\n"), std::string::npos) << printed;
  EXPECT_EQ(printed.find("nobody"), std::string::npos);
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 1) << printed;
}

TEST(Log, NothingComesBehindItsOwnersEnd) {
  Heard heard;
  const auto log = Log::make(LogLevel::trace, heard.listener(), LogLevel::off);
  say(log, LogLevel::info, "plan", [] { return std::string("one"); });
  log->close();
  say(log, LogLevel::info, "plan", [] { return std::string("two"); });
  EXPECT_EQ(heard.lines, std::vector<std::string>{"3 plan: one"});
}

TEST(Log, WordsThatFindNoMemoryAreLeftOut) {
  Heard heard;
  const auto log = Log::make(LogLevel::info, heard.listener(), LogLevel::error);
  const std::string printed = on_standard_error([&] {
    say(log, LogLevel::error, "plan", []() -> std::string { throw std::bad_alloc(); });
    const auto throwing = Log::make(
        LogLevel::info, [](LogLevel, const char*, const char*) { throw std::bad_alloc(); }, LogLevel::off);
    say(throwing, LogLevel::error, "plan", [] { return std::string("one"); });
    say(throwing, LogLevel::error, "plan", [] { return std::string("two"); });
  });
  EXPECT_TRUE(heard.lines.empty());
  EXPECT_EQ(printed, "");
}

TEST(Log, NoThreadsAreStarted) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  const auto before = threads();
  const auto log = Log::make(LogLevel::off, {}, LogLevel::trace);
  on_standard_error([&] { say(log, LogLevel::info, "plan", [] { return std::string("one"); }); });
  EXPECT_EQ(threads(), before);
}

TEST(Log, LevelsByName) {
  EXPECT_EQ(*log_level_named("debug"), LogLevel::debug);
  EXPECT_EQ(*log_level_named("warn"), LogLevel::warning);
  EXPECT_EQ(*log_level_named("off"), LogLevel::off);
  EXPECT_EQ(log_level_named("loud"), nullptr);
  EXPECT_EQ(log_level_named(""), nullptr);
}

}  // namespace
}  // namespace tilegen
