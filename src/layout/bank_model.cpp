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
  constexpr int64_t kMaxBitmapWords = int64_t{1} << 16;  // words between the first and the last: a bit each
  SmallVector<int32_t, 64> banks;
  SmallVector<uint64_t, 128> seen;
  for (int bank = 0; bank < model.banks; ++bank) banks.push_back(0);
  int32_t* const words_of_bank = banks.data();
  const bool masked = is_power_of_two(model.banks), shifted = is_power_of_two(model.bank_bytes);
  const int shift = shifted ? std::countr_zero(static_cast<uint64_t>(model.bank_bytes)) : 0;
  const auto word_of = [&](int64_t a) { return shifted ? a >> shift : floor_div(a, model.bank_bytes); };
  return sum_of_phases(byte_addresses, bytes, model, [&](std::span<const int64_t> lanes) {
    std::fill_n(words_of_bank, model.banks, 0);
    int32_t most = 0;
    const auto take = [&](int64_t word) {
      const int64_t bank = masked ? word & (model.banks - 1) : floor_mod(word, model.banks);
      most = std::max(most, ++words_of_bank[bank]);
    };
    int64_t low = lanes.front(), high = low;
    for (const int64_t a : lanes) low = std::min(low, a), high = std::max(high, a);
    const int64_t base = word_of(low), range = word_of(high + bytes - 1) - base + 1;
    if (range > kMaxBitmapWords) {
      SortedLanes(lanes).for_each_run(bytes, model.bank_bytes, [&](int64_t first, int64_t last) {
        for (int64_t word = first; word <= last; ++word) take(word);
      });
      return int64_t{most};
    }
    const auto parts = static_cast<size_t>(range + 63) / 64;
    while (seen.size() < parts) seen.push_back(0);
    uint64_t* const bits_of = seen.data();
    std::fill_n(bits_of, parts, 0);
    for (const int64_t address : lanes)
      for (int64_t word = word_of(address), last = word_of(address + bytes - 1); word <= last; ++word) {
        const auto at = static_cast<uint64_t>(word - base);
        const uint64_t bit = uint64_t{1} << at % 64;
        if (bits_of[at / 64] & bit) continue;
        bits_of[at / 64] |= bit;
        take(word);
      }
    return int64_t{most};
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
