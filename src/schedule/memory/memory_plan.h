// Where the on-chip values of a kernel lie: offsets in the block's arena (host: every value; GPU: the shared
// ones).
#pragma once

#include <set>

#include "analysis/liveness.h"
#include "plan/schedule.h"
#include "schedule/memory/scratch_plan.h"
#include "target/target.h"

namespace tilegen::schedule {

// Bytes of one slot of every value; 0 for values that live in registers.
IdVector<analysis::ValueId, int64_t> value_bytes(const ir::Program& p, const analysis::KernelOps& ops,
                                                 analysis::ValuePlans values, const target::Target& target);

// What the copy engine works on while threads do something else: it shares its place with nothing, but for
// staged tiles where there is too little room, and behind a loop that blocks share.
struct Reservation {
  plan::Storage storage = plan::Storage::barriers;
  std::string owner;
  int64_t bytes = 0, align = 16;
};
struct SharedReservations {
  std::set<analysis::ValueId> values;  // tiles that tensor copies fill or empty: aligned for every swizzle
  std::vector<Reservation> reserved;   // barriers, staged tiles
  // Staged tiles take turns in one place, which may be that of an operand that threads have written and no
  // product reads any more.
  bool stages_share = false;
  std::set<analysis::ValueId> written;  // such operands
  // The loop whose iterations blocks share: a block passes it once, so the tiles that nothing behind it
  // touches leave their places to what the blocks exchange then.
  std::string split_loop;
};
// Bytes to which a value's place is aligned; thread::Memory::alignment of a tile may say so.
int64_t value_alignment(const plan::ValuePlan& v, const target::Target& target);

// Scratch slices share the bytes after the values: a slice is used by one statement at a time.
// Offsets of all values and scratch slices. On GPUs what is not alive at the same time may lie in the same
// place.
std::vector<plan::MemoryPlan> place_values(const ir::Program& p, const analysis::KernelOps& ops,
                                           const analysis::Liveness& liveness, analysis::ValuePlans values,
                                           const std::vector<Scratch>& scratch, const target::Target& target,
                                           const SharedReservations& engine = {});
int64_t arena_bytes(const std::vector<plan::MemoryPlan>& plan);

// The same; refuses limit_memory when the target's shared memory is exceeded, naming the largest tile.
Expected<std::vector<plan::MemoryPlan>> plan_memory(
    const ir::Program& p, int kernel, const analysis::KernelOps& ops, const analysis::Liveness& liveness,
    analysis::ValuePlans values, const std::vector<Scratch>& scratch, const target::Target& target,
    const SharedReservations& engine = {});

}  // namespace tilegen::schedule
