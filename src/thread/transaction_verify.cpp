#include "thread/transaction_verify.h"

#include <algorithm>
#include <set>

#include "thread/launch_numbers.h"
#include "thread/role_walk.h"
#include "thread/sync_accesses.h"

namespace tilegen::thread {

namespace {

// Code may rely on what is known of the indices of a block: one that no launch has is not walked.
bool has_blocks(const ThreadProgram& p, const PointValues& launch) {
  return std::none_of(p.grid.begin(), p.grid.end(), [&](ir::ExprId extent) {
    return IndexProgram(p.exprs, extent).eval(launch).value_or(1) <= 0;
  });
}

}  // namespace

std::vector<std::string> verify_transactions(const ThreadProgram& p) {
  std::vector<std::string> hazards;
  const std::vector<bool> handed = handed_over_memories(p);
  if (!has_program_barriers(p) && std::none_of(handed.begin(), handed.end(), [](bool h) { return h; }))
    return hazards;
  const RoleProgram program(p);
  RoleWalk::Seen seen;
  std::set<std::vector<int64_t>> walked;
  // Points that are claimed go through slots, which are used again for the third.
  for (int64_t trips : {kManyTrips, int64_t{3}, int64_t{2}, int64_t{1}, int64_t{0}, int64_t{-1}})
    for (int64_t points : {4, 2, 1}) {
      if (points > 2 && !p.dynamic_tiles) continue;
      const PointValues launch = launch_numbers(program, trips, points);
      if (!has_blocks(p, launch) || !walked.insert(launch_dims(program, launch)).second) continue;
      RoleWalk(program, launch, hazards, seen).run();
    }
  return hazards;
}

}  // namespace tilegen::thread
