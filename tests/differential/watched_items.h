// Work on numbered items in child processes: one that dies or does not end is reported and the others go on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tilegen::differential {

struct WatchedItems {
  uint64_t first = 0, count = 0;
  double seconds = 20;          // of a processor that one item may take, a few times that of the clock
  uint64_t items_of_one = 100;  // child process; one that reports something is the last of its process
  // In the child. An empty text: nothing to report.
  std::function<std::string(uint64_t item)> work;
  // In this process, in the order of items. A child that ends gives "the process ends in SIGSEGV while ..."
  // or "the process takes too long while ...".
  std::function<void(uint64_t item, const std::string& report)> report;
};

// requires: no other thread of this process holds a lock that `work` needs.
void run_watched(const WatchedItems& items);

// Said in a child: what it does now. At most some hundred bytes are kept.
void watched_doing(const std::string& what);

}  // namespace tilegen::differential
