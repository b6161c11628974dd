// What every stage of the pipeline runs through: cancel check, run, time, dump.
#pragma once

#include <algorithm>
#include <chrono>

#include "driver/compile.h"

namespace tilegen::driver {

class Stages {
 public:
  Stages(const CompileOptions& options, std::vector<StageTime>& times) : options_(options), times_(times) {}

  template <class Run>
  auto run(const char* name, Run&& body) -> decltype(body()) {
    if (options_.cancellation) {
      if (options_.cancellation->requested())
        return options_.cancellation->error(name, "before stage '" + std::string(name) + "'");
      options_.cancellation->enter(name);
    }
    auto start = std::chrono::steady_clock::now();
    auto result = body();
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    // A stage that runs again counts as one.
    const auto before =
        std::find_if(times_.begin(), times_.end(), [&](const StageTime& t) { return t.stage == name; });
    before == times_.end() ? times_.push_back({name, ms}) : void(before->ms += ms);
    if (!result)
      for (Diagnostic& d : result.error().diagnostics)
        if (d.stage.empty()) d.stage = name;
    return result;
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
