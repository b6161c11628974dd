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
  meets_too_few,      // who meets at a named barrier would wait for others that come later
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
    std::vector<bool> named = {};   // of the machine: who waits does so from its arrival on
    bool is_named(size_t barrier) const { return barrier < named.size() && named[barrier]; }
  };
  struct Parties {
    size_t begin = 0, end = 0;
  };
  explicit BarrierPhases(const Shape& shape);

  // Nothing: done. `party`: the one that is named beside the fault. Of `each` threads one arrives, for all of
  // these.
  std::optional<PhaseFault> arrive(const Shape& shape, size_t barrier, Parties who, int64_t each,
                                   size_t* party);
  std::optional<PhaseFault> wait(size_t barrier, int64_t parity, Parties who, size_t* party);
  // At a named barrier: they arrive, and complete the phase.
  std::optional<PhaseFault> sync(const Shape& shape, size_t barrier, Parties who, size_t* party);
  int64_t arrived(size_t barrier) const { return arrived_[barrier]; }

  auto operator<=>(const BarrierPhases&) const = default;

 private:
  enum Completed : char { kNone, kEven, kOdd };  // the newest phase: it has parity 0, 1

  // A row is what a party knows, what a barrier's open phase brings, or what those before it have brought: of
  // each barrier that its newest phase is complete, and that the one before it is, of each barrier and party
  // that its wait for the newest phase is over.
  char& newest(size_t row, size_t barrier) { return facts_[rows_ + row * width_ + barrier]; }
  char& before(size_t row, size_t barrier) { return newest(row, barriers_ + barrier); }
  char& over(size_t row, size_t barrier, size_t party) {
    return newest(row, 2 * barriers_ + barrier * parties_ + party);
  }
  char& completed(size_t barrier) { return facts_[barrier]; }
  // The party has waited for the newest phase.
  char& waited(size_t barrier, size_t party) { return facts_[barriers_ + barrier * parties_ + party]; }
  size_t open(size_t barrier) const { return parties_ + barrier; }
  size_t brought(size_t barrier) const { return parties_ + barriers_ + barrier; }
  size_t rows() const { return parties_ + 2 * barriers_; }
  void join(size_t to, size_t from);
  std::optional<PhaseFault> complete(const Shape& shape, size_t barrier, size_t* party);

  size_t barriers_, parties_, rows_, width_;
  std::vector<int64_t> arrived_;  // in the phase that is open
  std::string facts_;
};

}  // namespace tilegen::check
