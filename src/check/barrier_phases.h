// Phases of transaction barriers where a kernel's statements take effect one behind the other, and what each
// party of its threads knows of them where the parties run side by side.
//
// A phase means the same in both when every wait is for one phase, whatever comes first: the phase before it
// is known to be complete, or the wait could end at that one; the next one is not complete before the wait is
// over, which its arrivals know of; and nobody arrives who may still be in the phase before. What a party
// knows goes with its arrivals to those who wait for them. Memory is not looked at.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tilegen::check {

// What is wrong with an arrival or a wait.
enum class PhaseFault : uint8_t {
  too_many_arrivals,  // more threads than the phase takes
  phase_unknown,      // who arrives may still be in the phase before
  wait_overtaken,     // it completes the phase while a party may wait for the one before
  never_complete,     // the phase that is waited for lacks arrivals
  phase_begun,        // threads have arrived in the phase behind the one that is waited for
  wait_too_early,     // the one before it may not be complete, and has its parity's opposite
};

class BarrierPhases {
 public:
  struct Shape {
    std::vector<int64_t> arrivals;  // of a phase, by barrier
    std::vector<int64_t> threads;   // by party
  };
  struct Parties {
    size_t begin = 0, end = 0;
  };
  explicit BarrierPhases(const Shape& shape);

  // Nothing: done. `party`: the one that is named beside the fault.
  std::optional<PhaseFault> arrive(const Shape& shape, size_t barrier, Parties who, size_t* party);
  std::optional<PhaseFault> wait(const Shape& shape, size_t barrier, int64_t parity, Parties who,
                                 size_t* party);
  int64_t arrived(size_t barrier) const { return arrived_[barrier]; }

  auto operator<=>(const BarrierPhases&) const = default;

 private:
  // Of a party, or of what arrivals bring: that the newest phase of each barrier is complete, that the one
  // before it is; that a party's wait for it is over.
  struct Knowledge {
    std::vector<bool> newest, before, waits;
    auto operator<=>(const Knowledge&) const = default;
  };
  enum class Completed : uint8_t { none, even, odd };  // the newest: it has parity 0, 1

  static void join(Knowledge& to, const Knowledge& from);
  std::vector<Knowledge*> all();
  std::optional<PhaseFault> complete(const Shape& shape, size_t barrier, size_t* party);

  std::vector<Completed> completed_;
  std::vector<int64_t> arrived_;  // in the phase that is open
  std::vector<bool> waiting_;     // a party has waited for the newest phase, by barrier and party
  std::vector<Knowledge> parties_, open_, brought_;  // open_, brought_: by the phase, by those before it
};

}  // namespace tilegen::check
