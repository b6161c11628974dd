// Transaction barriers of a program: phases that threads arrive at, and that others wait for.
//
//   alloc full: shared u64[3] {arrivals = 32}
//   mbarrier_arrive full[s] {first = 128, threads = 32}     each of the threads 128 .. 159 arrives once
//   mbarrier_wait full[s], parity {threads = 128}           threads 0 .. 127 go on when the phase is complete
//
// A tile that is annotated with arrivals is an array of such barriers. A phase is complete when that many
// threads have arrived; the next one begins then. Phases have parities in turn, the first 0, and the one in
// front of it counts as complete: who waits for parity 1 of a fresh barrier goes on at once. What arriving
// threads did before is there for those who have waited for the phase.
//
// Statements take effect in the order in which they stand, and every wait finds its phase complete there
// (check/barrier_check.cpp): done one behind the other arrivals and waits have nothing to do. A machine that
// has such barriers runs the threads side by side, ordered by nothing else.
//
// A tile that is annotated with participants is an array of barriers of the machine, which the program names:
//
//   alloc loaded: shared u64[1] {participants = 256}
//   barrier_arrive loaded {threads = 128}               threads 0 .. 127 count, and go on
//   barrier_sync loaded {first = 128, threads = 128}    128 .. 255 count, and go on when 256 have come
//
// They have phases as the others do and no parity: who meets waits for the phase that it arrives in.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace tilegen::ir {

constexpr std::string_view kArrivals = "arrivals";  // the annotation
constexpr std::string_view kParticipants = "participants";
constexpr int64_t kMaxArrivals = (int64_t{1} << 20) - 1;

// Of a tile that is an array of barriers: the arrivals of a phase.
std::optional<int64_t> barrier_arrivals(const Buffer& tile);
std::vector<BufferId> barriers_of(const Program& p, int kernel);
// Of one that is an array of named barriers: the threads that come by in a phase.
std::optional<int64_t> barrier_participants(const Buffer& tile);
std::vector<BufferId> named_barriers_of(const Program& p, int kernel);

// Of barriers of either kind.
bool is_barrier_op(OpKind kind);
bool is_named_barrier_op(OpKind kind);
// It orders what threads do to memory, and touches none itself: of barriers, and of groups of copies.
bool orders_threads(OpKind kind);

// Threads of the block that an operation on barriers is of.
struct ThreadRange {
  int64_t first = 0, count = 0;
  auto operator<=>(const ThreadRange&) const = default;
};
ThreadRange threads_of(const TileOp& op, const Kernel& kernel);

}  // namespace tilegen::ir
