#include "analysis/index_links.h"

#include <algorithm>

#include "support/checked.h"

namespace tilegen::analysis {

bool IndexLinks::keeps_order() const {
  return names_each_once() &&
         std::none_of(list.begin(), list.end(), [](const IndexLink& l) { return l.permuted; });
}

bool IndexLinks::walks(int iteration_dim) const {
  return std::any_of(list.begin(), list.end(),
                     [&](const IndexLink& l) { return l.iteration == iteration_dim; });
}

bool IndexLinks::walks_buffer(int dim) const {
  return std::any_of(list.begin(), list.end(), [&](const IndexLink& l) { return l.buffer == dim; });
}

namespace {

// Of one side's dimension, by ascending weight there.
std::vector<IndexLink> links_at(const std::vector<IndexLink>& list, int IndexLink::*side,
                                int64_t IndexLink::*at, int dim) {
  std::vector<IndexLink> own;
  for (const IndexLink& l : list)
    if (l.*side == dim) own.push_back(l);
  std::sort(own.begin(), own.end(), [&](const IndexLink& a, const IndexLink& b) { return a.*at < b.*at; });
  return own;
}

// What of [1, all) lies between the runs [at, at * extent): as `found(from, extent)`. False where runs
// overlap or do not divide.
template <class Found>
bool find_between(const std::vector<IndexLink>& own, int64_t IndexLink::*at, int64_t all, Found found) {
  int64_t next = 1;
  for (const IndexLink& l : own) {
    if (l.*at % next != 0) return false;
    if (l.*at > next) found(next, l.*at / next);
    next = l.*at * l.extent;
  }
  if (all % next != 0) return false;
  if (all > next) found(next, all / next);
  return true;
}

bool find_gaps(IndexLinks& links, int dim, int64_t shape, int64_t constant) {
  const auto own = links_at(links.list, &IndexLink::buffer, &IndexLink::weight, dim);
  int64_t left = constant;
  const bool divides = find_between(own, &IndexLink::weight, shape, [&](int64_t weight, int64_t extent) {
    const int64_t value = constant / weight % extent;
    links.gaps.push_back({dim, weight, extent, value});
    left -= value * weight;
  });
  return divides && constant >= 0 && left == 0;
}

}  // namespace

std::optional<IndexLinks> index_links(const ops::ElementAccess& access, std::span<const int64_t> extents,
                                      std::span<const int64_t> shape) {
  IndexLinks links;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int k = access.dim_of[d], dim = static_cast<int>(d);
    if (k == ops::kUniformIndex && shape[d] == 1) continue;
    if (access.is_unknown(d) || access.offset[d] == ops::ElementAccess::kUnknownOffset) return std::nullopt;
    if (k >= 0) links.list.push_back({k, dim, 1, extents[static_cast<size_t>(k)], 1, false});
    if (k == ops::kIrregularIndex)
      for (const ops::IndexTerm& t : access.terms[d]) {
        const int64_t left = ceil_div(extents[static_cast<size_t>(t.dim)], t.divisor);
        const int64_t extent = t.modulus > 0 ? std::min(t.modulus, left) : left;
        if (t.is_permuted() && extent != t.modulus) return std::nullopt;
        links.list.push_back({t.dim, dim, t.divisor, extent, t.weight, t.is_permuted()});
      }
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (access.dim_of[d] == ops::kUniformIndex && shape[d] == 1) continue;
    if (!find_gaps(links, static_cast<int>(d), shape[d], access.offset[d])) return std::nullopt;
  }
  for (size_t k = 0; k < extents.size(); ++k) {
    const int dim = static_cast<int>(k);
    const auto own = links_at(links.list, &IndexLink::iteration, &IndexLink::divisor, dim);
    if (own.empty()) continue;
    if (!find_between(own, &IndexLink::divisor, extents[k], [&](int64_t divisor, int64_t extent) {
          links.idle.push_back({dim, divisor, extent});
        }))
      return std::nullopt;
  }
  int64_t beside = 1;
  for (const IndexLinks::Gap& g : links.gaps)
    if ((beside *= std::min(g.extent, kMaxGapElements + 1)) > kMaxGapElements) return std::nullopt;
  // Of a region threads walk the part that they hold; of elements that several points write one is kept.
  if (access.of_region && !links.gaps.empty()) return std::nullopt;
  if ((access.write || access.of_region) && !links.idle.empty()) return std::nullopt;
  return links;
}

}  // namespace tilegen::analysis
