// What a block of a scheduled program has on chip: of every value a tile for each slot, and how far the
// hand-over of each pipeline's slots has come.
#pragma once

#include <vector>

#include "expand/scheduled_kernel.h"
#include "interp/storage.h"

namespace tilegen::interp {

using analysis::ValueId;

// A use of a pipeline. Asynchronous copies begin to count anew in every run of their loop.
struct Use {
  int pipeline = -1;  // none: the value is in no pipeline here
  int64_t run = 0;
  int64_t number = 0;
  bool operator==(const Use&) const = default;
};

struct Tile {
  Storage storage;
  Use use;          // whose elements lie here, or are on their way
  int filling = 0;  // copies issued whose elements are not here
  int readers = 0;  // products issued that have yet to read it
};

// A slot of a pipeline between roles.
struct HandOver {
  enum class State : uint8_t { free, acquired, committed, awaited };
  State state = State::free;
  int64_t use = -1;
};

class BlockTiles {
 public:
  BlockTiles(const ir::Program& p, const expand::ScheduledKernel& k);

  // Of a pipeline's slots the use's.
  Tile& tile(ValueId value, int64_t use, int64_t slots) {
    return tiles_[value][slot_of(use, static_cast<size_t>(slots))];
  }
  HandOver& slot(int pipeline, int64_t use) {
    std::vector<HandOver>& ring = slots_[static_cast<size_t>(pipeline)];
    return ring[slot_of(use, ring.size())];
  }
  const std::vector<std::vector<HandOver>>& slots() const { return slots_; }
  // Another tile of the grid begins: no element is written but those a producer brings ahead.
  void begin_tile();

 private:
  // Also of an iteration that a faulty program puts before the first one.
  static size_t slot_of(int64_t use, size_t slots) { return static_cast<uint64_t>(use) % slots; }

  IdVector<ValueId, std::vector<Tile>> tiles_;  // by slot
  IdVector<ValueId, bool> handed_;              // a producer brings it
  std::vector<std::vector<HandOver>> slots_;    // by pipeline, slot
};

}  // namespace tilegen::interp
