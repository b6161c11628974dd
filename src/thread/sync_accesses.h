// Which statement touches which memory that threads of a block share: all that the planter of barriers and
// their verifier have in common.
#pragma once

#include <optional>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::thread {

struct SyncAccess {
  MemoryId memory;
  ir::ExprId index;      // first element
  int64_t count = 1;     // consecutive elements
  int64_t offset = 0;    // from the index to the first of them
  ir::ExprId predicate;  // optional
  ir::VarId lane;        // of a wide store, with its extent: index and predicate depend on it
  int64_t lanes = 1;
  bool write = false;
  std::optional<ir::AtomicKind> atomic;              // a write
  bool fetches = false;                              // an atomic one whose old value goes somewhere
  ir::AtomicOrder order = ir::AtomicOrder::relaxed;  // of an atomic one, to a tensor
  bool async = false;                                // happens some time before the AsyncWait that covers it
  bool collective = false;                           // of the warp: what a lane addresses reaches other lanes
  int64_t row_lanes = 0;  // collective: lanes from 0 on that address something; 0 = all
  bool engine = false;    // of the asynchronous proxy: by the copy engine, or by a product of the warpgroup
};

// Operations of the kind leave the same in any order.
constexpr bool leaves_the_same(ir::AtomicKind kind) {
  return kind != ir::AtomicKind::exchange && kind != ir::AtomicKind::compare_exchange;
}
// Atomic operations that leave the same in any order, and say nothing of it.
inline bool any_order(const SyncAccess& a, const SyncAccess& b) {
  return a.atomic && a.atomic == b.atomic && !a.fetches && !b.fetches && leaves_the_same(*a.atomic);
}

// Accesses to shared memory and to tensors that the program may write. `id` is no serial or unrolled loop; of
// a branch only the condition counts. What the copy engine does to tensors is left out: waits for it order
// that.
std::vector<SyncAccess> sync_accesses(const ThreadProgram& p, StmtId id);
// The extent of a loop.
std::vector<SyncAccess> sync_accesses(const ThreadProgram& p, const Loop& loop);

// Elements of an operand of a WarpgroupMma in shared memory, as distances from its index: rows of a swizzle
// in groups of eight, those that follow each other as one.
struct OperandRange {
  int64_t first = 0, count = 0;
};
std::vector<OperandRange> operand_ranges(const ThreadProgram& p, const WarpgroupMma& m, bool of_a);

// Shared memory that the copy engine or products touch, or several roles, by memory: transaction barriers and
// awaits order accesses to it.
std::vector<bool> handed_over_memories(const ThreadProgram& p);

// Shared memory that threads write and products read, by memory: plain accesses and those of the asynchronous
// proxy meet there.
std::vector<bool> written_operands(const ThreadProgram& p);

// Whether elements of the two may share bytes. Tensors of one launch do not overlap.
bool may_overlap(const ThreadProgram& p, MemoryId a, MemoryId b);

// Hardware barriers at which some threads only arrive, as bits: those that wait there are not all that it
// counts.
uint32_t split_barriers(const ThreadProgram& p);

// A barrier of the machine that the program names.
bool is_of_program(const ThreadProgram& p, const Barrier& b);
// The program writes arrivals and waits itself, at transaction barriers or at some that it names.
bool has_program_barriers(const ThreadProgram& p);

// All threads of the block wait for each other. `split`: split_barriers(p).
inline bool is_block_barrier(const ThreadProgram& p, const Barrier& b, uint32_t split) {
  return !b.arrive_only && (split >> b.id & 1) == 0 && (b.threads == 0 || b.threads == p.threads);
}

}  // namespace tilegen::thread
