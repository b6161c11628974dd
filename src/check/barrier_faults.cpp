#include "check/barrier_faults.h"

namespace tilegen::check {

std::string words(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (std::string_view part : parts) all += part;
  return all;
}

FaultWords fault_words(PhaseFault fault, const FaultPlace& f) {
  const std::string waits =
      words({f.who, " wait for parity ", std::to_string(f.parity), " of ", f.place, f.at});
  const std::string counted = words({std::to_string(f.arrived), " of ", std::to_string(f.arrivals),
                                     f.named ? " participants" : " arrivals"});
  switch (fault) {
    case PhaseFault::too_many_arrivals:
      return {words({f.who, " arrive at ", f.place, f.at, ", of whose phase ", counted, " are there"}),
              f.named ? "let participants be the number of threads that come by, those that meet among them"
                      : "let arrivals be the number of threads that arrive in a phase"};
    case PhaseFault::meets_too_few:
      return {
          words({f.who, " meet at ", f.place, f.at, ", where ", counted,
                 " have come by what stands before, themselves among them"}),
          "put what others do at it in front, in the order in which it takes effect, and let participants "
          "be the number of threads that come by"};
    case PhaseFault::phase_unknown:
      return {words({f.who, " arrive at ", f.place, f.at, " and may come before its last phase is complete"}),
              f.named
                  ? "let them meet at it, or wait for threads that have met there, before they come by again"
                  : "let them wait for that phase, or for one that threads arrive at behind it"};
    case PhaseFault::wait_overtaken:
      return {words({"it completes a phase of ", f.place, f.at, " while ", f.who,
                     " may still wait for the one before, and would wait for ever"}),
              "let these arrive at another barrier behind their wait, and wait for that one in front of it"};
    case PhaseFault::never_complete:
      return {
          words({waits, ", and nothing that stands before completes that phase: ", counted, " are there"}),
          "put the arrivals in front of the wait, in the order in which they take effect, and count phases "
          "from parity 0 on; parity 1 of a barrier without arrivals is complete"};
    case PhaseFault::phase_begun:
      return {words({waits, " while ", counted, " of the phase behind it are there"}),
              "put all arrivals of that phase behind the wait, in the order in which they take effect"};
    case PhaseFault::wait_too_early:
      return {words({waits, ", and may be two phases behind, where that parity is complete already"}),
              "let them wait for each phase of a barrier, one behind the other"};
  }
  return {};
}

}  // namespace tilegen::check
