// Who wrote and read each unit of the arena last, and since which barrier: what verify_synchronization asks
// when it comes to the next access. A unit is as wide as the smallest element.
//
// Barriers are counted: those of all threads present, those of each warpgroup, and those of other sets of
// warps. An access is ordered after one of another thread where the count of a barrier that both meet at has
// grown in between. At transaction barriers that the program writes itself warps tell each other what they
// know: a clock of each warp says up to when it knows what the others did.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::thread {

class SyncHistory {
 public:
  static constexpr int64_t kNobody = -1, kMany = -2;
  static constexpr int32_t kOfNone = -1;
  static constexpr int64_t kProducts = -16;  // the products of warpgroup g are kProducts - g

  // What an access meets: the other one, and whose it is.
  struct Clash {
    enum class Kind : uint8_t { with_write, with_read, with_product } kind = Kind::with_write;
    StmtId other;
    int64_t who = kNobody;
  };
  // One statement's access; `who`: a thread, a warpgroup's products, or kMany of the warpgroup.
  struct Access {
    StmtId stmt;
    int64_t who = kNobody, thread = 0;  // the thread that executes it
    bool async = false;                 // done when the thread has waited for its group
    int32_t warpgroup = 0;              // the thread's: warpgroup_of(thread)
    // Of an atomic one: the execution of the operation that it is part of. In one they come in any order.
    int32_t operation = kOfNone;
  };

  SyncHistory(const ThreadProgram& p, int64_t units);
  int32_t warpgroup_of(int64_t thread) const {
    return static_cast<int32_t>(static_cast<uint32_t>(thread) / static_cast<uint32_t>(warpgroup_));
  }

  // An execution of a statement begins: what it does itself is not ordered by barriers.
  void begin() { ++instance_; }
  void meet();
  void meet_of(int64_t warpgroup) { ++met_[static_cast<size_t>(warpgroup)]; }
  void meet_of_threads(int64_t first, int64_t end);

  // Threads from `first` to `end` arrive at a transaction barrier, or wait for its newest phase.
  // `copies`: when their asynchronous copies are done.
  void arrive(int barriers, int64_t index, int64_t first, int64_t end, bool copies);
  void await(int barriers, int64_t index, int64_t first, int64_t end);

  // The same of the barrier of this number that the program names. Who waits arrives, too.
  void arrive_named(int number, int64_t first, int64_t end) {
    arrive(array_of(number), 0, first, end, false);
  }
  void await_named(int number, int64_t first, int64_t end) { await(array_of(number), 0, first, end); }

  // Groups of asynchronous copies.
  void commit(int64_t thread);
  void wait(int64_t thread, int64_t pending);

  // Products of a warpgroup, under way until it waits for them.
  void issue_product(int64_t warpgroup);  // what is accessed until end_product() is read by it
  void end_product() { product_ = kNobody; }
  bool issues_product() const { return product_ != kNobody; }
  void commit_products(int64_t warpgroup) { ++products_[static_cast<size_t>(warpgroup)].commits; }
  void wait_products(int64_t warpgroup, int64_t pending);

  std::vector<Clash> read(size_t unit, const Access& a);
  std::vector<Clash> write(size_t unit, const Access& a);

 private:
  // Of threads, groups, barriers and executions that a walk comes to. Units are many, and a cache line each.
  using Number = int32_t;
  static constexpr Number kSynchronous = -1;
  // The barriers that an access of a warpgroup's threads stands after; warpgroup -1: of several.
  struct Stamp {
    Number epoch = -1, warpgroup = -1, met = 0;
  };
  struct Unit {
    Number writer = kNobody, write_group = kSynchronous, write_instance = -1;
    Number reader = kNobody, read_instance = -1;
    Number product = kNobody;    // the newest that reads it
    Number operation = kOfNone;  // of the last write
    Stamp written, read;
    StmtId write_stmt, read_stmt;
  };
  // Of programs where sets of warps meet: when the threads that a unit's last accesses are of did them.
  struct Span {
    Number time = -1, first = 0, last = 0;
  };
  struct UnitSpans {
    Span written, read;
  };
  struct WarpSet {
    int64_t first = 0, end = 0;  // threads
    Number met = -1;             // when they did so last
  };
  using Clock = std::vector<Number>;  // by warp; then of what their copies have brought
  struct TransactionBarrier {
    int64_t wanted = 0, arrived = 0;
    Clock open, completed;  // what arrivals know: of the phase, and of those before it
  };
  struct CopyGroups {
    Number open = 0;              // number of the group being filled
    std::vector<Stamp> finished;  // of closed groups: the wait that saw them done
  };
  struct Products {
    int64_t commits = 0;
    std::vector<std::pair<int64_t, int64_t>> under_way;  // numbers and groups
  };

  // Of a warpgroup's threads.
  Stamp now(Number warpgroup) const;
  bool before(const Stamp& s, Number warpgroup) const;
  bool write_is_visible(size_t unit, const Access& a) const;
  bool warps_have_met(const Span& s, int64_t thread) const;
  void extend(Span& s, const Access& a, bool anew) const;
  int array_of(int number) const { return named_from_ + number - 1; }
  bool has_clocks() const { return !clocks_.empty(); }
  Number warp_of(int64_t thread) const { return static_cast<Number>(thread / warp_); }
  bool knows_write(size_t unit, const Access& a) const;
  bool knows_reads(size_t unit, const Access& a) const;
  static void join(Clock& to, const Clock& from);

  const int64_t warpgroup_;  // threads
  std::vector<Unit> units_;
  std::vector<CopyGroups> copies_;  // by thread
  std::vector<Products> products_;  // by warpgroup
  std::vector<Number> met_;         // by warpgroup
  std::vector<bool> finished_;      // products, by number
  std::vector<UnitSpans> spans_;    // by unit, where sets of warps meet
  std::vector<WarpSet> warp_sets_;
  const int64_t warp_;         // threads
  std::vector<Clock> clocks_;  // by warp; empty: the program has no transaction barriers of its own
  std::vector<std::vector<TransactionBarrier>> transactions_;  // by array, then by number of named ones
  int named_from_ = 0;                                         // the first of these
  std::vector<Number> reads_;  // by unit and warp: when it did so last since the last write
  Number time_ = 0;            // counts their meetings
  Number product_ = kNobody;   // being issued
  Number epoch_ = 0, instance_ = 0;
};

}  // namespace tilegen::thread
