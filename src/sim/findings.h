// Findings while blocks run: collapsed by where they happen, merged over the threads that run blocks.
#pragma once

#include <map>
#include <tuple>

#include "sim/bytecode.h"
#include "sim/simulator.h"

namespace tilegen::sim {

// One event, still as numbers.
struct Event {
  FindingKind kind = FindingKind::data_race;
  uint32_t access = kNothing, other_access = kNothing;  // or, where no memory is concerned:
  uint32_t stmt = kNothing, other_stmt = kNothing;
  int64_t block = 0, thread = 0;
  int64_t other_block = -1, other_thread = -1;
  int64_t element = -1;
  std::string detail;  // text of the message beyond what the numbers say
};

class FindingSink {
 public:
  void report(Event event);
  void merge(const FindingSink& other);
  // The first `limit` of them in the order of the program, as the caller sees them.
  std::vector<Finding> finish(const Bytecode& code, const SimOptions& options, int64_t* dropped) const;
  bool empty() const { return events_.empty(); }

 private:
  struct Counted {
    Event first;  // of the lowest block and thread, so that the order of execution does not show
    int64_t count = 0;
  };
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, FindingKind>;
  static Finding finding_of(const Event& event, const Bytecode& code, const SimOptions& options);
  void add(const Key& key, const Event& event, int64_t count);
  std::map<Key, Counted> events_;
};

}  // namespace tilegen::sim
