#include "sim/global_history.h"

#include <algorithm>
#include <bit>

namespace tilegen::sim {

namespace {

class SpinLock {
 public:
  explicit SpinLock(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~SpinLock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& flag_;
};

}  // namespace

GlobalHistory::GlobalHistory(std::vector<Range> ranges) : locks_(new std::atomic_flag[kLocks]) {
  for (size_t i = 0; i < kLocks; ++i) locks_[i].clear();
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 0; i < ranges.size();) {
    Range all = ranges[i];
    size_t next = i + 1;
    for (; next < ranges.size() && ranges[next].begin < all.end; ++next) {
      all.end = std::max(all.end, ranges[next].end);
      all.element = std::min(all.element, ranges[next].element);
      all.written |= ranges[next].written;
    }
    i = next;
    if (!all.written || all.end <= all.begin) continue;
    Region r;
    r.begin = all.begin, r.end = all.end, r.granule = all.element;
    r.granule_bits = std::countr_zero(static_cast<unsigned>(all.element));
    const uint64_t cells = (r.end - r.begin + r.granule - 1) / r.granule;
    r.pages.resize((cells + kPageCells - 1) / kPageCells);
    regions_.push_back(std::move(r));
  }
}

int GlobalHistory::region_of(uint64_t address) const {
  for (size_t i = 0; i < regions_.size(); ++i)
    if (address >= regions_[i].begin && address < regions_[i].end) return static_cast<int>(i);
  return -1;
}

GlobalHistory::Found GlobalHistory::touch(const Actor& by, uint64_t address, int64_t bytes, bool write,
                                          bool atomic) {
  Found found;
  const int index = region_of(address);
  if (index < 0) return found;
  Region& region = regions_[static_cast<size_t>(index)];
  const uint64_t first = (address - region.begin) >> region.granule_bits;
  const uint64_t last = (address + static_cast<uint64_t>(bytes) - 1 - region.begin) >> region.granule_bits;
  for (uint64_t cell = first; cell <= last;) {
    const uint64_t page = cell / kPageCells, stop = std::min(last + 1, (page + 1) * kPageCells);
    const SpinLock lock(locks_[(page + static_cast<uint64_t>(index) * 37) % kLocks]);
    auto& cells = region.pages[page];
    if (!cells) cells = std::make_unique<Cell[]>(kPageCells);
    for (; cell < stop; ++cell) {
      const bool clean = found.trouble.conflict == Conflict::none;
      touch_cell(cells[cell % kPageCells], by, write, atomic, found);
      if (clean && found.trouble.conflict != Conflict::none) found.at = region.begin + cell * region.granule;
    }
  }
  return found;
}

bool GlobalHistory::find_conflict(const Cell& c, const Actor& by, bool write, bool atomic,
                                  Found& found) const {
  const auto block = static_cast<int32_t>(by.block);
  const auto race = [&](uint32_t access, int thread, int64_t other_block) {
    found = {{Conflict::race, access, thread}, other_block, 0};
    return true;
  };
  const auto ordered = [&](int64_t other, int thread, uint32_t epoch) {
    return order_.ordered(other, thread, epoch, by, by.block);
  };
  // Of two blocks either may come first, as nothing orders them.
  const bool meet = atomic && c.atomic && (c.writer_block != block || by.meets(c.access));
  if (c.writer_block >= 0 && !meet) {
    if (c.writer_block != block) {
      if (!ordered(c.writer_block, c.thread, c.epoch)) return race(c.access, c.thread, c.writer_block);
    } else if ((c.thread != by.thread || by.is_async()) && c.epoch > by.seen[by.party_of(c.thread)]) {
      return race(c.access, c.thread, block);
    }
  }
  if (!write) return false;
  if (c.early_block >= 0 && c.early_block != block && !ordered(c.early_block, c.early_thread, c.early_epoch))
    return race(c.early_access, c.early_thread, c.early_block);
  if (c.reader_block < 0) return false;
  for (const Reader& r : c.readers) {
    if (r.epoch == 0) continue;
    if (c.reader_block != block) {
      if (ordered(c.reader_block, r.thread, r.epoch)) continue;
      return race(r.access, r.thread, c.reader_block);
    }
    const bool other_lane = r.several != 0 || r.thread != by.thread;
    if (other_lane && r.epoch > by.seen[by.party_of(r.thread)])
      return race(r.access, r.thread != by.thread ? r.thread : r.thread ^ 1, block);
  }
  return false;
}

void GlobalHistory::note_reader(Cell& c, const Actor& by) const {
  const auto block = static_cast<int32_t>(by.block);
  if (c.reader_block != block) {
    if (c.reader_block >= 0) {
      c.early_block = c.reader_block;
      c.early_access = c.readers[0].access;
      c.early_epoch = c.readers[0].epoch;
      c.early_thread = c.readers[0].thread;
    }
    c.reader_block = block;
    c.readers[0] = c.readers[1] = {};
  }
  const Reader fresh{by.epoch, by.access, static_cast<uint16_t>(by.thread), 0};
  for (Reader& r : c.readers) {
    if (r.epoch == 0 || by.party_of(r.thread) != by.party()) continue;
    const bool unordered = r.epoch > by.seen[by.party()];
    const bool several = unordered && (r.several != 0 || r.thread != by.thread);
    r = fresh;
    r.several = several;
    return;
  }
  Reader& older = c.readers[0].epoch <= c.readers[1].epoch ? c.readers[0] : c.readers[1];
  older = fresh;
}

void GlobalHistory::touch_cell(Cell& c, const Actor& by, bool write, bool atomic, Found& found) const {
  if (found.trouble.conflict == Conflict::none) find_conflict(c, by, write, atomic, found);
  if (!write) return note_reader(c, by);
  c.atomic = atomic;
  c.writer_block = static_cast<int32_t>(by.block);
  c.epoch = by.epoch;
  c.access = by.access;
  c.thread = static_cast<uint16_t>(by.thread);
  c.reader_block = -1;
  c.readers[0] = c.readers[1] = {};
}

}  // namespace tilegen::sim
