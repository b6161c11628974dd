// Who last wrote and read each granule of a block's shared memory, and what is on its way there.
//
// A granule is as large as the smallest element of the arena's memories, so that every access covers whole
// granules. Of the readers since the last write one per warp is kept, and none that a later reader is ordered
// after: a write that is ordered after the later one is ordered after both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/bytecode.h"
#include "sim/ordering.h"

namespace tilegen::sim {

// unfenced: a plain write and an access of the asynchronous proxy are ordered, but no proxy fence stands
//   between them. unfenced_read: a plain read, and a write of the asynchronous proxy after it.
enum class Conflict : uint8_t { none, race, unwritten, foreign, in_flight, unfenced, unfenced_read };

struct Trouble {
  Conflict conflict = Conflict::none;
  uint32_t other_access = 0xffffffffu;
  int64_t other_thread = -1;
};

class SharedHistory {
 public:
  SharedHistory(int64_t bytes, int granule);

  int granule() const { return granule_; }
  void begin_block(const Ordering& order) { first_epoch_ = order.first_epoch(); }

  // Who touches: a lane of a warp, or an engine, whose thread number is that of a lane 0 of a warp of its own
  //   number.
  struct Actor {
    int thread = 0;
    uint32_t access = 0;
    uint32_t memory = 0;
    uint32_t epoch = 0;
    const uint32_t* seen = nullptr;   // by party
    int warp_bits = 5;                // of a thread's number: of its lane
    bool atomic = false;              // of a write
    const AtomicUse* uses = nullptr;  // by access; none: atomic operations meet in any order
    bool meets(uint32_t other) const { return uses == nullptr || uses[other].meets(uses[access]); }
    bool whole_warp = false;  // all lanes take part; `thread` is one of them
    // Of the asynchronous proxy: plain accesses that are fenced, by warp; the thread that asked for the
    // access, or -1, and what of its own is fenced.
    const uint32_t* fenced = nullptr;
    int warps = 0;
    int issuer = -1;
    uint32_t own_fence = 0;
    bool is_async() const { return fenced != nullptr; }
    int party() const { return party_of(thread); }
    int party_of(int number) const { return number >> warp_bits; }
    int lanes() const { return 1 << warp_bits; }
    int lane() const { return thread & (lanes() - 1); }
  };
  // One thread touches [offset, offset + bytes). The first trouble found is returned, with its byte offset in
  // `at`.
  Trouble read(const Actor& by, int64_t offset, int64_t bytes, int64_t* at);
  Trouble write(const Actor& by, int64_t offset, int64_t bytes, int64_t* at);
  // An async copy writes there from now on; `copy` (not 0) names it until landed().
  Trouble launch(const Actor& by, int64_t offset, int64_t bytes, uint32_t copy, int64_t* at);
  void land(const Actor& by, int64_t offset, int64_t bytes, uint32_t copy);
  // The copies named here never land: the block is over.
  void forget(int64_t offset, int64_t bytes);
  uint32_t copy_at(int64_t offset) const { return cells_[at(offset)].copy; }

 private:
  static constexpr uint8_t kSeveral = 255;         // lanes
  static constexpr uint16_t kWholeWarp = 1 << 15;  // beside a thread number
  struct Reader {
    uint32_t epoch = 0, access = 0;
    uint16_t party = 0;
    uint8_t lane = 0;
  };
  struct Cell {
    uint32_t epoch = 0, access = 0, memory = 0;  // of the last write; epoch 0: none
    uint16_t thread = 0;                         // with kWholeWarp
    uint8_t has_more = 0;
    uint8_t atomic = 0;  // the write was an atomic operation
    Reader readers[2];
    uint32_t more = 0;  // into more_
    uint32_t copy = 0;  // in flight to here
  };

  size_t at(int64_t offset) const { return static_cast<size_t>(offset >> granule_bits_); }
  bool alive(uint32_t epoch) const { return epoch >= first_epoch_; }
  static uint16_t writer(const Actor& by) {
    return static_cast<uint16_t>(by.thread | (by.whole_warp ? kWholeWarp : 0));
  }
  // Most accesses are these: the last write is ordered before a plain access, and nothing was read since.
  bool after_write(const Cell& c, const Actor& by) const {
    return !by.is_async() && c.epoch <= by.seen[by.party_of(c.thread & ~kWholeWarp)];
  }
  bool unread(const Cell& c) const {
    return c.has_more == 0 && !alive(c.readers[0].epoch) && !alive(c.readers[1].epoch);
  }
  Trouble check_writer(const Cell& c, const Actor& by) const;
  Trouble check_readers(const Cell& c, const Actor& by) const;
  bool unordered_reader(const Reader& r, const Actor& by) const;
  bool unfenced_reader(const Reader& r, const Actor& by) const;
  void add_reader(Cell& c, const Actor& by);
  bool place_reader(Reader& r, const Actor& by) const;
  void clear_readers(Cell& c);

  int granule_, granule_bits_;  // a power of two, as elements are
  uint32_t first_epoch_ = 1;
  std::vector<Cell> cells_;
  std::vector<std::vector<Reader>> more_;
  std::vector<uint32_t> free_more_;
};

}  // namespace tilegen::sim
