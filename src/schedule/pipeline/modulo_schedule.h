// The order of a loop's operations when products run beside the threads' work: of every operation the stage,
// in iterations behind the newest, and its place among those that are issued in one iteration.
//
// requires: operations in program order with the cycles that they keep the matrix units or the threads busy;
//   dependences with distances; places (values) that iterations may have in slots of their own.
// ensures: dependences hold: with stage s and place k of an operation, one that depends on another of d
//   iterations before is issued later: s' + d > s, or s' + d = s and k' > k. Writing a value with n slots
//   again counts n - 1 iterations later. A producer's tiles have slots for all iterations under way. Of the
//   legal orders that were looked at, that do not wait for tiles longer than the program's and under which no
//   more values are live at once than threads have registers for, or than under the program's, the one of
//   the fewest cycles an iteration; of equals that of the fewest slots and stages. Nothing lags where a
//   producer's tile has one slot.
// why here: engines and layouts say what runs where and for how long; slots follow from the order.
// refuses: nothing; the order of the program is always there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tilegen::schedule {

struct LoopOp {
  bool product = false;  // of the matrix units, asynchronous; else of the threads
  double cycles = 0;     // of a group of warps that is alone
};

struct LoopEdge {
  size_t from = 0, to = 0;
  int64_t distance = 0;  // iterations from `from` to `to`
  bool flow = false;     // `to` reads what `from` writes
  bool queued = false;   // of products that add to one sum: the matrix units keep the order of issue
  int place = -1;        // of LoopGraph::places; -1: one that has no slots
};

// Tiles that a producer hands over, and takes back, together: an iteration has a slot from the first
// operation that uses them to the last.
struct LoopTiles {
  std::vector<size_t> users;
  int64_t slots = 1;
  double load_cycles = 0;  // that the copy engine needs for their bytes
};

// A value in registers from the first operation that uses it to the last, of one iteration.
struct LoopValue {
  std::vector<size_t> users;
  int64_t words = 0;  // of a thread, 4 bytes each
};

struct LoopGraph {
  std::vector<LoopOp> ops;  // in program order
  std::vector<LoopEdge> edges;
  std::vector<LoopTiles> tiles;
  double load_latency = 0;  // cycles from the last byte's request until it can be used
  int64_t places = 0;       // that may have several slots
  std::vector<LoopValue> values;
  int64_t missing_words = 0;  // of a thread, if all values of the kernel were live at once; 0: none
  double busy_matrix = 0;   // cycles of an iteration that the matrix units have work, of all groups of warps
  double busy_threads = 0;  // and the threads' lanes
};

struct LoopOrder {
  std::vector<int64_t> lag;    // by operation: iterations behind the newest
  std::vector<size_t> order;   // of issue
  std::vector<int64_t> slots;  // by place
  double cycles = 0;           // of an iteration
  int64_t most_lag() const;
  bool operator==(const LoopOrder&) const = default;
};

// As the program has it.
LoopOrder program_order(const LoopGraph& g);

// No iteration waits for a slot that another, under way, gives back after it.
bool slots_suffice(const LoopGraph& g, const LoopOrder& o);

// The dependences that the order breaks: of each, the edge.
std::vector<LoopEdge> broken_edges(const LoopGraph& g, const LoopOrder& o);

// Cycles of an iteration when it repeats, of a group of warps that is alone: products run in the order of
// issue; the threads wait for one where something needs its results, or its operand's place, and at the end
// of an iteration for what they touch.
double cycles_alone(const LoopGraph& g, const LoopOrder& o);
// With the producer: it fills the tiles of one iteration after the other, each when its slot has been given
// back, and what uses a tile waits until it is there.
double cycles_produced(const LoopGraph& g, const LoopOrder& o);
// Of all groups: no less than matrix units and lanes are busy.
double cycles_of(const LoopGraph& g, const LoopOrder& o);

// Words of the values that are live at once, at most.
int64_t live_words(const LoopGraph& g, const LoopOrder& o);

// Whether threads have the registers for all values at once, of the places that many slots.
using SlotsFit = std::function<bool(const std::vector<int64_t>& slots)>;

LoopOrder modulo_schedule(const LoopGraph& g, const SlotsFit& fits);

}  // namespace tilegen::schedule
