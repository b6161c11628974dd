#include "sim/access_costs.h"

#include <algorithm>
#include <array>
#include <bit>

#include "sim/bytecode.h"

namespace tilegen::sim {

namespace {

constexpr int kMaxUnits = kMaxLanes * 16;

// Lanes of `lanes` from `first` to before `last`.
LaneMask among(LaneMask lanes, int first, int last) {
  const LaneMask below = last == kMaxLanes ? ~LaneMask{0} : (LaneMask{1} << last) - 1;
  return lanes & below & ~((LaneMask{1} << first) - 1);
}

// The distinct units of 2^`unit_bits` bytes that the lanes touch.
struct Units {
  std::array<int64_t, kMaxUnits> at;
  int count = 0;

  // Lanes mostly ascend, so that sorting is rarely needed.
  void collect(const int64_t* addresses, LaneMask lanes, int first, int last, int bytes, int unit_bits) {
    count = 0;
    bool ascending = true;
    for (LaneMask rest = among(lanes, first, last); rest != 0; rest &= rest - 1) {
      const int l = std::countr_zero(rest);
      for (int64_t u = addresses[l] >> unit_bits; u <= (addresses[l] + bytes - 1) >> unit_bits; ++u) {
        if (count > 0 && at[count - 1] == u) continue;
        ascending = ascending && (count == 0 || at[count - 1] < u);
        at[count++] = u;
      }
    }
    if (ascending) return;
    std::sort(at.begin(), at.begin() + count);
    count = static_cast<int>(std::unique(at.begin(), at.begin() + count) - at.begin());
  }
};

int64_t distinct_bytes(const int64_t* addresses, LaneMask lanes, int first, int last, int bytes) {
  std::array<int64_t, kMaxLanes> starts;
  int count = 0;
  for (LaneMask rest = among(lanes, first, last); rest != 0; rest &= rest - 1)
    starts[count++] = addresses[std::countr_zero(rest)];
  if (!std::is_sorted(starts.begin(), starts.begin() + count))
    std::sort(starts.begin(), starts.begin() + count);
  int64_t total = 0, end = INT64_MIN;
  for (int i = 0; i < count; ++i) {
    const int64_t from = std::max(starts[i], end);
    end = std::max(end, starts[i] + bytes);
    total += std::max<int64_t>(0, end - from);
  }
  return total;
}

int64_t ceil_to(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

AccessCost shared_cost(const int64_t* offsets, LaneMask lanes, int bytes) {
  AccessCost cost;
  const int phase = std::max(1, kBankRowBytes / std::max(bytes, kBankBytes));
  Units words;
  for (int first = 0; first < kMaxLanes && lanes >> first != 0; first += phase) {
    const int last = std::min(kMaxLanes, first + phase);
    words.collect(offsets, lanes, first, last, bytes, kBankBits);
    std::array<uint16_t, kBanks> of_bank{};
    int64_t taken = 0;
    for (int i = 0; i < words.count; ++i) {
      uint16_t& n = of_bank[static_cast<size_t>(words.at[i] % kBanks)];
      taken = std::max<int64_t>(taken, ++n);
    }
    cost.taken += taken;
    cost.least += ceil_to(distinct_bytes(offsets, lanes, first, last, bytes), kBankRowBytes);
  }
  return cost;
}

AccessCost global_cost(const int64_t* addresses, LaneMask lanes, int bytes) {
  Units sectors;
  sectors.collect(addresses, lanes, 0, kMaxLanes, bytes, kSectorBits);
  return {sectors.count, ceil_to(distinct_bytes(addresses, lanes, 0, kMaxLanes, bytes), kSectorBytes)};
}

}  // namespace tilegen::sim
