// What is said of an arrival or a wait whose phases do not fit (check/barrier_phases.h), and the way out.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "check/barrier_phases.h"

namespace tilegen::check {

// Out of line: sums of strings are large code.
std::string words(std::initializer_list<std::string_view> parts);

struct FaultPlace {
  std::string who;        // threads
  std::string place, at;  // the barrier; in which iteration
  int64_t parity = 0, arrived = 0, arrivals = 0;
  bool named = false;
};
struct FaultWords {
  std::string why, hint;
};
FaultWords fault_words(PhaseFault fault, const FaultPlace& f);

}  // namespace tilegen::check
