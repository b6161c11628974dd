// The configurations of a program in the order of what they take: the best few by the model are measured, or
// what a record remembers is taken.
//
// requires: `bind` gives the checked program of a configuration.
// ensures: every configuration that was looked at once: the measured ones, the shortest time first; then, for
// targets that have estimates, the others, the shortest estimate first; then those that are refused. A time
// comes from medians of runs in shuffled order (measure_in_turn.h) on random data (random_inputs.h).
// why here: it joins the model, the devices and the records.
// refuses: more than kMaxConfigurations; what a device sampler refuses; programs of which no configuration
// can be measured; cancellation. A record that cannot be written is a warning in the log.
#pragma once

#include "driver/compile.h"
#include "tune/measure_in_turn.h"
#include "tune/record.h"

namespace tilegen::tune {

constexpr size_t kMeasured = 8, kRounds = 7;

struct MeasureOptions {
  // Measured: so many of the best by the model. 0: kMeasured; where there are no estimates, all. For a number
  // below that, those are taken at equal distances.
  size_t count = 0;
  std::string records;        // a folder; "" for none
  std::string library;        // version
  std::string schedule_json;  // as it was given
  size_t rounds = kRounds;
  // Microseconds of one run; null: on the device of this process that runs the target's code.
  std::function<Expected<double>(const Configuration&, size_t step, size_t steps)> sample;
};

// "" where no device of this machine runs code of the target.
std::string device_name(const target::Target& target);

// The record that there is, where it holds as many configurations as are to be measured. Null: none.
Expected<std::optional<Record>> find_record(const ir::Program& program, const Bind& bind,
                                            const target::Target& target,
                                            const driver::CompileOptions& options, const MeasureOptions& how);

// All of them; a record's times take the place of measuring.
Expected<std::vector<Configuration>> tune_by_measuring(const ir::Program& program, const Bind& bind,
                                                       const target::Target& target,
                                                       const driver::CompileOptions& options,
                                                       const MeasureOptions& how);

// The fastest alone: of a record where there is one, without a look at the others.
Expected<Configuration> fastest(const ir::Program& program, const Bind& bind, const target::Target& target,
                                const driver::CompileOptions& options, const MeasureOptions& how);

// Microseconds of one launch of a program as it is, on the device of this process that runs the target's
// code.
Expected<double> measure_program(const std::shared_ptr<const ir::Program>& program,
                                 const target::Target& target, const driver::CompileOptions& options);

}  // namespace tilegen::tune
