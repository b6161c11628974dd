// Configurations measured by `tilegen measure` in a process each, so that one that faults or hangs is refused
// and the others go on.
#pragma once

#include <string>
#include <vector>

#include "command_line.h"
#include "library.h"
#include "progress_bar.h"

namespace tool {

class MeasuringProcesses {
 public:
  // `text`: of the program, where it came from standard input.
  MeasuringProcesses(const CommandLine& line, std::string target, std::vector<std::string> names,
                     std::string text, double limit_seconds);

  static void measure(void* self, tl_measurement* measurement);  // a tl_measure_fn

 private:
  void run(tl_measurement& m);

  std::vector<std::string> arguments_;  // without the values
  std::vector<std::string> names_;      // of the compile-time parameters
  std::string text_, refusal_;
  double limit_seconds_;
  ProgressBar bar_;
};

}  // namespace tool
