#include "sim/block_order.h"

#include <algorithm>

namespace tilegen::sim {

bool BlockOrder::before(const Acquisition& a, const SharedHistory::Actor& by) {
  if (by.is_async()) return false;  // no operation orders what the copy engine does
  return a.thread == by.thread ? a.epoch <= by.epoch : a.epoch <= by.seen[by.party_of(a.thread)];
}

void BlockOrder::add(Releases& to, const Releases& more) {
  to.insert(to.end(), more.begin(), more.end());
  std::sort(to.begin(), to.end());
  to.erase(std::unique(to.begin(), to.end()), to.end());
}

void BlockOrder::release(const SharedHistory::Actor& by, int64_t block, int parties, uint64_t element) {
  auto own = std::make_shared<Release>();
  own->block = block;
  own->thread = by.thread;
  own->epoch = by.epoch;
  own->seen.assign(by.seen, by.seen + parties);
  const std::lock_guard lock(mutex_);
  Releases& there = released_[element];
  const auto acquired = acquired_.find(block);
  if (acquired != acquired_.end())
    for (const Acquisition& a : acquired->second)
      if (before(a, by)) add(there, a.known);
  add(there, {std::move(own)});
}

void BlockOrder::acquire(const SharedHistory::Actor& by, int64_t block, uint64_t element) {
  const std::lock_guard lock(mutex_);
  const auto there = released_.find(element);
  if (there == released_.end()) return;
  acquired_[block].push_back({by.thread, by.epoch, there->second});
  any_ = true;
}

bool BlockOrder::ordered(int64_t other_block, int thread, uint32_t epoch, const SharedHistory::Actor& by,
                         int64_t block) const {
  if (!any_) return false;
  const std::lock_guard lock(mutex_);
  const auto acquired = acquired_.find(block);
  if (acquired == acquired_.end()) return false;
  const auto party = static_cast<size_t>(by.party_of(thread));
  for (const Acquisition& a : acquired->second) {
    if (!before(a, by)) continue;
    for (const auto& r : a.known)
      if (r->block == other_block &&
          (r->thread == thread ? epoch <= r->epoch : party < r->seen.size() && epoch <= r->seen[party]))
        return true;
  }
  return false;
}

}  // namespace tilegen::sim
