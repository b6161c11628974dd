#include "layout/bank_model.h"

#include <algorithm>
#include <bit>

#include "support/checked.h"
#include "support/small_vector.h"

namespace tilegen::layout {

namespace {

// Divisions by one are shifts and masks.
bool is_power_of_two(int64_t n) { return n > 0 && std::has_single_bit(static_cast<uint64_t>(n)); }

// Start addresses of a phase, ascending.
class SortedLanes {
 public:
  explicit SortedLanes(std::span<const int64_t> addresses) {
    lanes_.reserve(addresses.size());
    for (int64_t a : addresses) lanes_.push_back(a);
    if (!std::is_sorted(lanes_.begin(), lanes_.end())) std::sort(lanes_.begin(), lanes_.end());
  }

  // Calls `visit(first, last)` for runs of units of `unit` bytes that the lanes touch, each unit once.
  template <class Visit>
  void for_each_run(int bytes, int64_t unit, Visit&& visit) const {
    const int shift = is_power_of_two(unit) ? std::countr_zero(static_cast<uint64_t>(unit)) : -1;
    const auto unit_of = [&](int64_t a) { return shift >= 0 ? a >> shift : floor_div(a, unit); };
    int64_t next = INT64_MIN;  // unit after those visited
    for (int64_t a : lanes_) {
      const int64_t first = std::max(next, unit_of(a)), last = unit_of(a + bytes - 1);
      if (first > last) continue;
      visit(first, last);
      next = last + 1;
    }
  }

 private:
  SmallVector<int64_t, 64> lanes_;
};

// The sum of `cost` over the phases of an access.
template <class Cost>
int64_t sum_of_phases(std::span<const int64_t> addresses, int bytes, const BankModel& model, Cost&& cost) {
  if (bytes <= 0) return 0;
  // As many lanes per phase as the banks serve at once: of 32 banks of 4 bytes 32 up to 4 bytes, 16 at 8.
  const size_t lanes = std::max(1, model.banks * model.bank_bytes / std::max(bytes, model.bank_bytes));
  int64_t sum = 0;
  for (size_t first = 0; first < addresses.size(); first += lanes)
    sum += cost(addresses.subspan(first, std::min(lanes, addresses.size() - first)));
  return sum;
}

}  // namespace

int64_t wavefronts(std::span<const int64_t> byte_addresses, int bytes, const BankModel& model) {
  SmallVector<int64_t, 64> words_of_bank;
  const bool masked = is_power_of_two(model.banks);
  const auto bank_of = [&](int64_t word) {
    return static_cast<size_t>(masked ? word & (model.banks - 1) : floor_mod(word, model.banks));
  };
  return sum_of_phases(byte_addresses, bytes, model, [&](std::span<const int64_t> lanes) {
    words_of_bank.clear();
    for (int bank = 0; bank < model.banks; ++bank) words_of_bank.push_back(0);
    int64_t most = 0;
    SortedLanes(lanes).for_each_run(bytes, model.bank_bytes, [&](int64_t first, int64_t last) {
      for (int64_t word = first; word <= last; ++word) most = std::max(most, ++words_of_bank[bank_of(word)]);
    });
    return most;
  });
}

int64_t least_wavefronts(std::span<const int64_t> byte_addresses, int bytes, const BankModel& model) {
  return sum_of_phases(byte_addresses, bytes, model, [&](std::span<const int64_t> lanes) {
    int64_t touched = 0;
    SortedLanes(lanes).for_each_run(bytes, 1,
                                    [&](int64_t first, int64_t last) { touched += last - first + 1; });
    return ceil_div(touched, int64_t{model.banks} * model.bank_bytes);
  });
}

int64_t bank_conflicts(std::span<const int64_t> byte_addresses, int bytes, const BankModel& model) {
  return wavefronts(byte_addresses, bytes, model) - least_wavefronts(byte_addresses, bytes, model);
}

}  // namespace tilegen::layout
