// Who wrote and read each element of the tensors that a kernel writes. Shared by the threads that run blocks.
//
// Nothing but ordered atomic operations orders two blocks of one launch (sim/block_order.h): else an element
// written by one and touched by another is a race. Within a block barriers order as for shared memory.
// Tensors that overlap in memory share one history; bytes that no parameter may write have none.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "sim/block_order.h"
#include "sim/shared_history.h"

namespace tilegen::sim {

class GlobalHistory {
 public:
  struct Range {
    uint64_t begin = 0, end = 0;
    int element = 1;
    bool written = false;
  };
  // The ranges of all tensor parameters.
  explicit GlobalHistory(std::vector<Range> ranges);

  struct Actor : SharedHistory::Actor {
    int64_t block = 0;
  };
  struct Found {
    Trouble trouble;
    int64_t other_block = -1;
    uint64_t at = 0;
  };
  // True when the kernel writes there, so that accesses matter.
  bool watches(uint64_t address) const { return region_of(address) >= 0; }
  Found read(const Actor& by, uint64_t address, int64_t bytes) { return touch(by, address, bytes, false); }
  Found write(const Actor& by, uint64_t address, int64_t bytes) { return touch(by, address, bytes, true); }
  // Does not race with others of its kind.
  Found update(const Actor& by, uint64_t address, int64_t bytes) {
    return touch(by, address, bytes, true, true);
  }

  // Of ordered atomic operations.
  BlockOrder& order() { return order_; }

 private:
  static constexpr int64_t kPageCells = 1024;
  struct Reader {
    uint32_t epoch = 0, access = 0;
    uint16_t thread = 0, several = 0;
  };
  struct Cell {
    int32_t writer_block = -1, reader_block = -1;  // the readers below are of reader_block
    bool atomic = false;                           // the writer's access was an atomic operation
    uint32_t epoch = 0, access = 0;
    uint16_t thread = 0;
    // A reader of another block than reader_block. Of one block's readers the two newest warps are kept, so
    // that a write racing with a third only may be missed.
    uint16_t early_thread = 0;
    int32_t early_block = -1;
    uint32_t early_access = 0, early_epoch = 0;
    Reader readers[2];
  };
  struct Region {
    uint64_t begin = 0, end = 0;
    int granule = 1, granule_bits = 0;  // a power of two, as elements are
    std::vector<std::unique_ptr<Cell[]>> pages;
  };

  int region_of(uint64_t address) const;
  Found touch(const Actor& by, uint64_t address, int64_t bytes, bool write, bool atomic = false);
  void touch_cell(Cell& c, const Actor& by, bool write, bool atomic, Found& found) const;
  void note_reader(Cell& c, const Actor& by) const;
  bool find_conflict(const Cell& c, const Actor& by, bool write, bool atomic, Found& found) const;

  std::vector<Region> regions_;
  BlockOrder order_;
  static constexpr size_t kLocks = 256;
  std::unique_ptr<std::atomic_flag[]> locks_;
};

}  // namespace tilegen::sim
