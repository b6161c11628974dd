#include "sync/footprint.h"

#include <algorithm>
#include <tuple>

namespace tilegen::sync {

namespace {

// Who touches an element, of several threads.
constexpr int32_t kMany = -1;
constexpr int32_t kWarps = -16;              // lanes of warp w: kWarps - w
constexpr int32_t kWarpgroups = -(1 << 16);  // threads of warpgroup g: kWarpgroups - g

constexpr int64_t kMaxMarkedElements = 1 << 16;

}  // namespace

void Footprint::add_of_warp(int64_t first, int64_t last, int64_t thread) {
  runs_.push_back({first, last, kWarps - static_cast<int32_t>(thread / machine_.warp)});
}

// The warpgroup that all of `who` are of, or -1.
int32_t Footprint::warpgroup_of(int32_t who) const {
  const auto size = static_cast<int32_t>(machine_.warpgroup);
  if (size == 0 || who == kMany) return -1;
  if (who >= 0) return who / size;
  return who <= kWarpgroups ? kWarpgroups - who
                            : (kWarps - who) / (size / static_cast<int32_t>(machine_.warp));
}

// Sorts the runs and joins those that overlap; where they belong to different threads the whole belongs to
// several.
void Footprint::close() {
  std::sort(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) {
    return std::tie(a.first, a.last, a.who) < std::tie(b.first, b.last, b.who);
  });
  std::vector<Run> out;
  for (const Run& r : runs_) {
    const bool overlaps = !out.empty() && r.first <= out.back().last;
    const bool continues = !out.empty() && r.first == out.back().last + 1 && r.who == out.back().who;
    if (!overlaps && !continues) {
      out.push_back(r);
      continue;
    }
    out.back().last = std::max(out.back().last, r.last);
    if (int32_t& who = out.back().who; who != r.who) {
      const int32_t group = warpgroup_of(who);
      who = group >= 0 && group == warpgroup_of(r.who) ? kWarpgroups - group : kMany;
    }
  }
  runs_ = std::move(out);
  mark();
}

void Footprint::mark() {
  if (empty() || first() < 0 || last() >= kMaxMarkedElements) return;
  bits_.resize(static_cast<size_t>(last() / 64 + 1));
  for (const Run& r : runs_)
    for (int64_t e = r.first; e <= r.last; ++e) bits_[static_cast<size_t>(e / 64)] |= uint64_t{1} << (e % 64);
}

bool Footprint::apart(const Footprint& a, const Footprint& b) {
  const size_t words = std::min(a.bits_.size(), b.bits_.size());
  for (size_t i = 0; i < words; ++i)
    if (a.bits_[i] & b.bits_[i]) return false;
  return words > 0;
}

Meeting Footprint::meet(const Footprint& a, int64_t a_shift, const Footprint& b, int64_t b_shift) {
  if (a_shift == b_shift && apart(a, b)) return Meeting::disjoint;
  Meeting result = Meeting::disjoint;
  const std::vector<Run>&x = a.runs_, &y = b.runs_;
  for (size_t i = 0, k = 0; i < x.size() && k < y.size();) {
    if (x[i].last + a_shift < y[k].first + b_shift) {
      ++i;
    } else if (y[k].last + b_shift < x[i].first + a_shift) {
      ++k;
    } else {
      const bool one = x[i].who == y[k].who && x[i].who >= 0;
      const int32_t group = a.warpgroup_of(x[i].who);
      if (!one && (group < 0 || group != b.warpgroup_of(y[k].who))) return Meeting::clash;
      result = std::max(result, one ? Meeting::same_thread : Meeting::same_warpgroup);
      x[i].last + a_shift < y[k].last + b_shift ? ++i : ++k;
    }
  }
  return result;
}

}  // namespace tilegen::sync
