#include "measured_by_processes.h"

#include <cstdio>
#include <cstring>

#include "watched_process.h"

namespace tool {

MeasuringProcesses::MeasuringProcesses(const CommandLine& line, std::string target,
                                       std::vector<std::string> names, std::string text, double limit_seconds)
    : arguments_({"measure", line.file(), "--target=" + target}),
      names_(std::move(names)),
      text_(std::move(text)),
      limit_seconds_(limit_seconds) {
  for (const char* option : {"schedule", "sizes"})
    if (const auto value = line.get(option)) arguments_.push_back("--" + std::string(option) + "=" + *value);
  for (const std::string& folder : line.include_folders())
    arguments_.insert(arguments_.end(), {"-I", folder});
}

void MeasuringProcesses::measure(void* self, tl_measurement* measurement) {
  static_cast<MeasuringProcesses*>(self)->run(*measurement);
}

void MeasuringProcesses::run(tl_measurement& m) {
  std::vector<std::string> arguments = arguments_;
  std::string values;
  for (size_t i = 0; i < names_.size(); ++i) {
    const std::string value = std::to_string(m.values[i]);
    arguments.push_back("--param");
    arguments.push_back(names_[i] + "=" + value);
    values += (values.empty() ? "" : ", ") + names_[i] + " " + value;
  }
  bar_.show(static_cast<size_t>(m.step), static_cast<size_t>(m.steps), values);
  const EndedProcess ended = run_watched(arguments, text_, limit_seconds_);
  char text[80] = "";
  if (!ended.in_time)
    std::snprintf(text, sizeof text, "it did not end within %g seconds", limit_seconds_);
  else if (ended.signal != 0)
    std::snprintf(text, sizeof text, "its process ended by signal %d (%s)", ended.signal,
                  strsignal(ended.signal));
  else if (ended.status == 0 && std::sscanf(ended.output.c_str(), "%lf us", &m.microseconds) == 1)
    return;
  refusal_ = *text ? text : ended.errors;
  while (!refusal_.empty() && refusal_.back() == '\n') refusal_.pop_back();
  if (refusal_.empty()) refusal_ = "its process gave no time";
  m.refusal = refusal_.c_str();
}

}  // namespace tool
