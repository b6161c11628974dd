#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>

#include "command_line.h"
#include "commands.h"
#include "files.h"
#include "library.h"
#include "measured_by_processes.h"
#include "result_forms.h"

namespace tool {

namespace {

using Tuning = Handle<tl_tuning, tl_tuning_release>;

constexpr double kLimitSeconds = 60;  // of a process that measures

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

// Of the program, kept for the processes that measure where it can be read but once.
std::string read_once(const Context& context, const CommandLine& line) {
  return line.file() == "-" ? read_text(context, "-") : "";
}

Program parse(const Context& context, const CommandLine& line, const std::string& text) {
  if (line.file() != "-") return read_program(context, line);
  return program_of(context, text, Reading(context, line, "standard input").options());
}

Options tune_options(const Context& context, const CommandLine& line) {
  Options options = options_of(context, line);
  tl_error* error = nullptr;
  if (!line.has("measure")) {
    if (line.has("best") || line.has("records") || line.has("limit"))
      fail_usage("--best, --records and --limit go with --measure");
    return options;
  }
  if (line.has("best"))
    require(tl_options_set_i64(options.get(), "tune_count",
                               line.integer_or("best", 0, 1, std::numeric_limits<int>::max()), &error),
            error, "setting an option");
  return options;
}

Tuning tune(const Context& context, const Program& program, const Target& target, const CommandLine& line,
            const std::vector<std::string>& names, const std::string& text) {
  const Options options = tune_options(context, line);
  tl_tuning* made = nullptr;
  tl_error* error = nullptr;
  if (!line.has("measure")) {
    require(tl_tune(context.get(), program.get(), target.get(), options.get(), &made, &error), error,
            "tuning");
    return Tuning(made);
  }
  const double limit = line.non_negative("limit").value_or(kLimitSeconds);
  if (limit == 0 || limit > 1e6) fail_usage("--limit needs seconds above 0, a million at most");
  tl_status status = TL_OK;
  {
    MeasuringProcesses processes(line, tl_target_name(target.get()), names, text, limit);
    status = tl_tune_measured(context.get(), program.get(), target.get(), options.get(),
                              MeasuringProcesses::measure, &processes, &made, &error);
  }
  require(status, error, "tuning");
  return Tuning(made);
}

class Table {
 public:
  Table(const Tuning& tuning, const std::vector<std::string>& names, bool measured)
      : tuning_(tuning), names_(names), measured_(measured) {}

  void print_head() const {
    if (measured_) std::printf("%12s", "measured us");
    std::printf("%12s %8s", measured_ ? "model us" : "us", "of best");
    for (const std::string& name : names_) std::printf(" %*s", width(name), name.c_str());
    std::printf("\n");
  }

  void print_rows(size_t first, size_t last) const {
    const tl_configuration_info best = configuration(tuning_, 0);
    for (size_t i = first; i < last; ++i) {
      const tl_configuration_info info = configuration(tuning_, i);
      const auto number = [](double value) {
        value > 0 ? std::printf("%12.2f", value) : std::printf("%12s", "-");
      };
      if (measured_) number(info.measured_microseconds);
      number(info.microseconds);
      const double of_best = measured_ ? info.measured_microseconds / best.measured_microseconds
                                       : info.microseconds / best.microseconds;
      of_best > 0 ? std::printf(" %8.3f", of_best) : std::printf(" %8s", "-");
      print_values(info);
    }
  }

  void print_refused(size_t first, size_t last) const {
    for (size_t i = first; i < last; ++i) {
      const tl_configuration_info info = configuration(tuning_, i);
      std::printf("%*s", measured_ ? 33 : 21, "refused");
      print_values(info);
      std::printf("%s", info.refusal);
    }
  }

 private:
  static int width(const std::string& name) { return std::max(6, static_cast<int>(name.size())); }

  void print_values(const tl_configuration_info& info) const {
    for (size_t i = 0; i < names_.size(); ++i)
      std::printf(" %*lld", width(names_[i]), static_cast<long long>(info.values[i]));
    std::printf("\n");
  }

  const Tuning& tuning_;
  const std::vector<std::string>& names_;
  const bool measured_;
};

}  // namespace

int tune_command(int argc, char** argv) {
  const CommandLine line(argc, argv, {"refused", "measure"},
                         {"target", "schedule", "sizes", "count", "best", "records", "limit"});
  const size_t rows = static_cast<size_t>(line.integer_or("count", 16, 1, std::numeric_limits<int>::max()));
  const Context context = make_context();
  const std::string text = read_once(context, line);
  const Program program = parse(context, line, text);
  const Target target = find_target(context, line.get_or("target", ""));
  const std::vector<std::string> names = param_names(program);
  const Tuning tuning = tune(context, program, target, line, names, text);

  const size_t count = tl_tuning_count(tuning.get());
  size_t taken = 0, measured = 0;
  for (; taken < count && !configuration(tuning, taken).refusal; ++taken)
    measured += configuration(tuning, taken).measured_microseconds > 0;
  std::printf("%zu configurations of %s for %s %s", count, tl_program_name(program.get()),
              tl_target_name(target.get()), line.has("measure") ? "by time" : "by the cost model");
  if (line.has("measure")) std::printf(", %zu measured", measured);
  std::printf(", %zu refused\n", count - taken);
  const Table table(tuning, names, line.has("measure"));
  table.print_head();
  table.print_rows(0, std::min(rows, taken));
  if (line.has("refused")) table.print_refused(taken, count);
  return 0;
}

}  // namespace tool
