// Plans the configurations of a program and puts them in the order of the cost model.
//
// (Paper section 4.4: tuning.)
// requires: `bind` gives the checked program of a configuration.
// ensures: every configuration once: those that are planned, the shortest estimate first, equal ones in the
// order of counting (the last parameter fastest); then those that are refused, in that order, each with its
// reasons. The same for any number of threads.
// why here: nothing is lowered or run, so that a hundred configurations take tens of milliseconds.
// refuses: targets without threads, which have no estimates; more than kMaxConfigurations; programs of which
// every configuration is refused; cancellation.
#pragma once

#include "driver/compile.h"
#include "tune/configuration.h"

namespace tilegen::tune {

// To plan one of many: nothing of it is lowered, shown or told.
driver::CompileOptions planning_options(const driver::CompileOptions& options);

// Of `options` what decides a plan counts, the sizes, and the cancellation. `threads`: 0 for the cores.
Expected<std::vector<Configuration>> rank(const ir::Program& program, const Bind& bind,
                                          const target::Target& target, const driver::CompileOptions& options,
                                          unsigned threads = 0);

}  // namespace tilegen::tune
