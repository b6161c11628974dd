#include <algorithm>
#include <cstdio>
#include <limits>

#include "command_line.h"
#include "commands.h"
#include "library.h"
#include "result_forms.h"

namespace tool {

namespace {

using Tuning = Handle<tl_tuning, tl_tuning_release>;

std::vector<std::string> param_names(const Program& program) {
  std::vector<std::string> names(tl_program_compile_param_count(program.get()));
  for (size_t i = 0; i < names.size(); ++i) {
    tl_compile_param_info info{};
    info.struct_size = sizeof info;
    require(tl_program_compile_param(program.get(), i, &info), nullptr, "reading a parameter");
    names[i] = info.name;
  }
  return names;
}

tl_configuration_info configuration(const Tuning& tuning, size_t index) {
  tl_configuration_info info{};
  info.struct_size = sizeof info;
  require(tl_tuning_configuration(tuning.get(), index, &info), nullptr, "reading a configuration");
  return info;
}

}  // namespace

int tune_command(int argc, char** argv) {
  const CommandLine line(argc, argv, {"refused"}, {"target", "schedule", "sizes", "count"});
  const size_t rows = static_cast<size_t>(line.integer_or("count", 16, 1, std::numeric_limits<int>::max()));
  const Context context = make_context();
  const Program program = read_program(context, line.file(), line.params());
  const Target target = find_target(context, line.get_or("target", ""));
  const Options options = options_of(context, line);
  tl_tuning* made = nullptr;
  tl_error* error = nullptr;
  require(tl_tune(context.get(), program.get(), target.get(), options.get(), &made, &error), error, "tuning");
  const Tuning tuning(made);

  const std::vector<std::string> names = param_names(program);
  const size_t count = tl_tuning_count(tuning.get());
  size_t taken = 0;
  while (taken < count && !configuration(tuning, taken).refusal) ++taken;
  std::printf("%zu configurations of %s for %s by the cost model, %zu refused\n", count,
              tl_program_name(program.get()), tl_target_name(target.get()), count - taken);
  std::printf("%12s %8s", "us", "of best");
  for (const std::string& name : names)
    std::printf(" %*s", std::max(6, static_cast<int>(name.size())), name.c_str());
  std::printf("\n");
  const double best = configuration(tuning, 0).microseconds;
  const auto print_values = [&](const tl_configuration_info& info) {
    for (size_t i = 0; i < names.size(); ++i)
      std::printf(" %*lld", std::max(6, static_cast<int>(names[i].size())),
                  static_cast<long long>(info.values[i]));
    std::printf("\n");
  };
  for (size_t i = 0; i < std::min(rows, taken); ++i) {
    const tl_configuration_info info = configuration(tuning, i);
    std::printf("%12.2f %8.3f", info.microseconds, info.microseconds / best);
    print_values(info);
  }
  for (size_t i = taken; line.has("refused") && i < count; ++i) {
    const tl_configuration_info info = configuration(tuning, i);
    std::printf("%21s", "refused");
    print_values(info);
    std::printf("%s", info.refusal);
  }
  return 0;
}

}  // namespace tool
