// Who filled, wrote and read each range of the arena last, and whether what comes next is ordered after: the
// state of a walk over a program's roles. Parties are processes and the engines that work for them; epochs
// number what each did.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::thread {

// What a process knows to be over, by party; and, of writes by threads and by their asynchronous copies, to
// be fenced.
struct PlaceClock {
  std::vector<uint32_t> seen, fenced;
  void join(const PlaceClock& from);
};

struct PlaceAccess {
  int party = -1;
  uint32_t epoch = 0;
  StmtId stmt;
};

class PlaceHistory {
 public:
  enum class Kind : uint8_t { fill, engine_read, write, read };
  // `text` says what is wrong, of statement `id` with regard to `other`.
  using Report = std::function<void(StmtId id, StmtId other, const std::string& text)>;

  PlaceHistory(const ThreadProgram& p, int processes, Report report)
      : p_(p), processes_(processes), report_(std::move(report)) {}

  // `by` (a process, or an engine that `process` asked) touches bytes [begin, end) of the arena, in `memory`;
  // the arenas of a cluster's blocks follow each other.
  // `knows`: what the process knows, its own fence included.
  void touch(Kind kind, const PlaceAccess& by, int process, const PlaceClock& knows, MemoryId memory,
             int64_t begin, int64_t end);
  // Processes, or blocks of the cluster, hand each other the memory by plain accesses, which are judged as
  // well: others of them are left to the simulator.
  void hand(MemoryId memory) { handed_.insert(memory); }
  // A condition kept something from writing the memory: the program may read what nothing filled.
  void leave_out(MemoryId memory) { left_out_.insert(memory); }
  // How a party that only reads is called.
  void name_reader(int party, std::string name);

 private:
  struct Range {
    int64_t begin = 0, end = 0;
    PlaceAccess filled;  // by the copy engine; epoch 0: not, or written over
    std::vector<PlaceAccess> writes, reads;
    bool empty() const { return filled.epoch == 0 && writes.empty(); }
  };

  // What is touched, as reports name it.
  struct Place {
    const ThreadProgram& p;
    MemoryId memory;
    int64_t begin = 0;
    std::string text() const;
  };
  size_t split(int64_t at);
  void check_writers(const Range& r, const PlaceAccess& by, int process, const PlaceClock& knows, Kind kind,
                     bool handed, const Place& place);
  void check_readers(const Range& r, const PlaceAccess& by, int process, const PlaceClock& knows,
                     const char* verb, bool threads_too, const Place& place);
  static void note(std::vector<PlaceAccess>& list, const PlaceAccess& by);

  const ThreadProgram& p_;
  const int processes_;
  Report report_;
  std::vector<Range> ranges_;  // ascending, apart
  std::set<MemoryId> handed_, left_out_;
  std::vector<std::string> readers_;
};

}  // namespace tilegen::thread
