// What every stage of the pipeline runs through: cancel check, run, time, log, dump.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "driver/compile.h"

namespace tilegen::driver {

class Stages {
 public:
  Stages(const CompileOptions& options, std::vector<StageTime>& times) : options_(options), times_(times) {}

  // `words`, asked where somebody listens, tells what a stage that ended well decided.
  template <class Run, class Words>
  auto run(const char* name, Run&& body, const Words& words) -> decltype(body()) {
    if (options_.cancellation) {
      if (options_.cancellation->requested())
        return options_.cancellation->error(name, "before stage '" + std::string(name) + "'");
      options_.cancellation->enter(name);
    }
    say(options_.log, LogLevel::trace, name, [] { return std::string("begins"); });
    auto start = std::chrono::steady_clock::now();
    auto result = body();
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    // A stage that runs again counts as one.
    const auto before =
        std::find_if(times_.begin(), times_.end(), [&](const StageTime& t) { return t.stage == name; });
    before == times_.end() ? times_.push_back({name, ms}) : void(before->ms += ms);
    if (result) say(options_.log, LogLevel::info, name, [&] { return in_ms(ms) + ": " + words(result); });
    if (!result)
      for (Diagnostic& d : result.error().diagnostics)
        if (d.stage.empty()) d.stage = name;
    return result;
  }

  static std::string in_ms(double ms) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f ms", ms);
    return text;
  }

  template <class Text>
  void dump(const char* name, Text&& text) const {
    if (options_.dump) options_.dump(name, text());
  }

 private:
  const CompileOptions& options_;
  std::vector<StageTime>& times_;
};

}  // namespace tilegen::driver
