// The configurations of a program: a value of its domain for every compile-time parameter.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "support/diagnostic.h"

namespace tilegen::tune {

constexpr size_t kMaxConfigurations = 1024;

struct Configuration {
  std::vector<ir::ParamBinding> values;        // of all parameters, in the order of declaration
  std::shared_ptr<const ir::Program> program;  // null where `refused`
  double microseconds = 0;                     // estimated, of one launch; 0 where there are no estimates
  double measured = 0;                         // microseconds of one launch; 0 where it was not measured
  std::optional<Error> refused;
};

// The checked program of a configuration; several threads call it at once.
using Bind =
    std::function<Expected<std::shared_ptr<const ir::Program>>(const std::vector<ir::ParamBinding>&)>;

// How many there are. Refuses: more than kMaxConfigurations.
Expected<size_t> count_configurations(const ir::Program& program);

// Of number `index`, the last parameter fastest.
std::vector<ir::ParamBinding> values_of(const ir::Program& program, size_t index);

// "BM 64, BN 128"
std::string values_text(const std::vector<ir::ParamBinding>& values);

// Why the model cannot choose for a target without threads.
Error no_estimates(const ir::Program& program, const std::string& target);

// Why none of `all`, which are all refused, "can be planned": the reasons of the first.
Error all_refused(const ir::Program& program, const std::string& target, const char* cannot_be,
                  const std::vector<Configuration>& all);

}  // namespace tilegen::tune
