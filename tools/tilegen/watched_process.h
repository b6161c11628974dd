// A process that is waited for until a limit, and ended then.
#pragma once

#include <string>
#include <vector>

namespace tool {

struct EndedProcess {
  bool in_time = true;
  int status = 0;              // as exit gave it; -1 where a signal ended it
  int signal = 0;              // that signal
  std::string output, errors;  // what it printed, kMaxPrinted bytes of each
};

constexpr size_t kMaxPrinted = 1 << 16;

// This program again with other arguments. `input`: text for its standard input. A program that cannot be
// started ends this one.
EndedProcess run_watched(const std::vector<std::string>& arguments, const std::string& input,
                         double limit_seconds);

}  // namespace tool
