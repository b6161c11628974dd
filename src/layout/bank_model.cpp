#include "layout/bank_model.h"

#include <algorithm>
#include <vector>

#include "support/checked.h"

namespace tilegen::layout {

namespace {

// Words of `unit` bytes touched by the lanes, ascending and distinct.
std::vector<int64_t> distinct_units(std::span<const int64_t> addresses, int bytes, int64_t unit) {
  std::vector<int64_t> units;
  for (int64_t a : addresses)
    for (int64_t u = floor_div(a, unit); u <= floor_div(a + bytes - 1, unit); ++u) units.push_back(u);
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

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
  return sum_of_phases(byte_addresses, bytes, model, [&](std::span<const int64_t> lanes) {
    std::vector<int64_t> words_of_bank(model.banks, 0);
    int64_t most = 0;
    for (int64_t word : distinct_units(lanes, bytes, model.bank_bytes))
      most = std::max(most, ++words_of_bank[floor_mod(word, model.banks)]);
    return most;
  });
}

int64_t bank_conflicts(std::span<const int64_t> byte_addresses, int bytes, const BankModel& model) {
  const int64_t least = sum_of_phases(byte_addresses, bytes, model, [&](std::span<const int64_t> lanes) {
    const auto touched = static_cast<int64_t>(distinct_units(lanes, bytes, 1).size());
    return ceil_div(touched, int64_t{model.banks} * model.bank_bytes);
  });
  return wavefronts(byte_addresses, bytes, model) - least;
}

}  // namespace tilegen::layout
