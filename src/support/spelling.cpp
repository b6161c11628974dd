#include "support/spelling.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace tilegen {
namespace {

constexpr size_t kMaxCompared = 48;  // longer names are not compared: bounded work on hostile input

// Edits (insert, delete, replace, swap neighbours) that turn a into b.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<std::array<size_t, kMaxCompared + 1>, 3> rows;
  std::iota(rows[0].begin(), rows[0].end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& two_above = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

void NearestName::offer(std::string_view candidate) {
  if (wanted_.size() > kMaxCompared || candidate.size() > kMaxCompared) return;
  size_t longer = std::max(wanted_.size(), candidate.size());
  size_t shorter = std::min(wanted_.size(), candidate.size());
  size_t allowed = std::max<size_t>(1, longer / 3);
  if (longer - shorter > allowed) return;
  size_t d = edit_distance(wanted_, candidate);
  if (d > allowed || d >= longer || d >= distance_) return;
  distance_ = d;
  best_ = candidate;
}

std::string NearestName::hint(std::string_view otherwise) const {
  if (best_.empty()) return std::string(otherwise);
  return "did you mean '" + std::string(best_) + "'?";
}

}  // namespace tilegen
