// What the search for the cheapest root of one value has seen.
#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "infer/fragment_table.h"
#include "plan/schedule.h"

namespace tilegen::infer {

using analysis::ValueId;

// What a root leads to: layouts, and what all ops cost of which these tell something.
struct RootResult {
  struct Pin {
    ValueId value;
    FormId form;
    plan::Origin origin;
    std::string reason, by;
  };
  std::vector<Pin> pins;
  double cost = INFINITY;
  std::string root;
};

struct RootSearch {
  using Seed = std::pair<ValueId, FormId>;  // a value and its form, which a root pins itself
  explicit RootSearch(ValueId v) : value(v) {}

  static std::vector<Seed> seeds(const std::vector<ValueId>& pinned, size_t mark,
                                 const IdVector<ValueId, FormId>& form) {
    std::vector<Seed> list;
    for (size_t i = mark; i < pinned.size(); ++i) list.push_back({pinned[i], form[pinned[i]]});
    std::sort(list.begin(), list.end());
    return list;
  }

  // A root with these seeds leads to a layout that was judged before: by equal seeds, or because they are
  // part of a layout that each of them propagates to.
  bool known(const std::vector<Seed>& seeds) {
    for (const IdVector<ValueId, FormId>& layout : layouts)
      if (std::all_of(seeds.begin(), seeds.end(), [&](const Seed& s) { return layout[s.first] == s.second; }))
        return true;
    return !tried.insert(seeds).second;
  }

  const ValueId value;
  RootResult best;     // the cheapest
  RootResult fullest;  // the cheapest of those that pin most values
  std::set<std::vector<Seed>> tried;
  static constexpr size_t kLayouts = 64;           // remembered at most
  std::vector<IdVector<ValueId, FormId>> layouts;  // none for values that do not spread to all of it
};

}  // namespace tilegen::infer
