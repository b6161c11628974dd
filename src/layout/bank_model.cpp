#include "layout/bank_model.h"

#include <algorithm>
#include <vector>

#include "support/checked.h"

namespace tilegen::layout {

namespace {

struct PhaseCost {
  int64_t taken = 0, floor = 0;
};

// Words of `unit` bytes touched by the lanes, ascending and distinct.
std::vector<int64_t> distinct_units(std::span<const int64_t> addresses, int bytes, int64_t unit) {
  std::vector<int64_t> units;
  for (int64_t a : addresses)
    for (int64_t u = floor_div(a, unit); u <= floor_div(a + bytes - 1, unit); ++u) units.push_back(u);
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

PhaseCost phase_cost(std::span<const int64_t> addresses, int bytes, const BankModel& model) {
  std::vector<int64_t> words_of_bank(model.banks, 0);
  PhaseCost cost;
  for (int64_t word : distinct_units(addresses, bytes, model.bank_bytes))
    cost.taken = std::max(cost.taken, ++words_of_bank[floor_mod(word, model.banks)]);
  const int64_t touched = static_cast<int64_t>(distinct_units(addresses, bytes, 1).size());
  cost.floor = ceil_div(touched, int64_t{model.banks} * model.bank_bytes);
  return cost;
}

PhaseCost access_cost(std::span<const int64_t> addresses, int bytes, const BankModel& model) {
  PhaseCost sum;
  if (bytes <= 0) return sum;
  // As many lanes per phase as the banks can serve at once: all 32 up to 4 bytes, 16 at 8, 8 at 16.
  const size_t lanes = std::max(1, model.banks * model.bank_bytes / std::max(bytes, model.bank_bytes));
  for (size_t first = 0; first < addresses.size(); first += lanes) {
    const PhaseCost phase =
        phase_cost(addresses.subspan(first, std::min(lanes, addresses.size() - first)), bytes, model);
    sum.taken += phase.taken;
    sum.floor += phase.floor;
  }
  return sum;
}

}  // namespace

int64_t wavefronts(std::span<const int64_t> byte_addresses, int bytes, const BankModel& model) {
  return access_cost(byte_addresses, bytes, model).taken;
}

int64_t bank_conflicts(std::span<const int64_t> byte_addresses, int bytes, const BankModel& model) {
  const PhaseCost cost = access_cost(byte_addresses, bytes, model);
  return cost.taken - cost.floor;
}

}  // namespace tilegen::layout
