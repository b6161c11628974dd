// Plans the configurations of a program and puts them in the order of the cost model.
//
// A configuration is a value of its domain for every compile-time parameter. (Paper section 4.4: tuning.)
// requires: `bind` gives the checked program of a configuration; several threads call it at once.
// ensures: every configuration once: those that are planned, the shortest estimate first, equal ones in the
// order of counting (the last parameter fastest); then those that are refused, in that order, each with its
// reasons. The same for any number of threads.
// why here: nothing is lowered or run, so that a hundred configurations take tens of milliseconds.
// refuses: targets without threads, which have no estimates; more than kMaxConfigurations; programs of which
// every configuration is refused; cancellation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/compile.h"

namespace tilegen::tune {

constexpr size_t kMaxConfigurations = 1024;
constexpr unsigned kMaxThreads = 8;

struct Configuration {
  std::vector<ir::ParamBinding> values;        // of all parameters, in the order of declaration
  std::shared_ptr<const ir::Program> program;  // null where `refused`
  double microseconds = 0;                     // estimated, of one launch
  std::optional<Error> refused;
};

using Bind =
    std::function<Expected<std::shared_ptr<const ir::Program>>(const std::vector<ir::ParamBinding>&)>;

// Of `options` what decides a plan counts, the sizes, and the cancellation. `threads`: 0 for the cores.
Expected<std::vector<Configuration>> rank(const ir::Program& program, const Bind& bind,
                                          const target::Target& target, const driver::CompileOptions& options,
                                          unsigned threads = 0);

// "BM 64, BN 128"
std::string values_text(const std::vector<ir::ParamBinding>& values);

}  // namespace tilegen::tune
