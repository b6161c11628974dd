// A lane that arrives at a transaction barrier for its warp: what all lanes did comes before.
//
//   one_thread { mbarrier.arrive full[s] }      ->   bar.warp.sync; elect.sync; mbarrier.arrive
#pragma once

#include "thread/thread_program.h"

namespace tilegen::thread {

// An arrival of the chosen lane itself that announces nothing. The warp meets in front of such a statement:
// an arrival releases what its own lane did, and what that lane has met.
inline const TransactionArrive* warp_arrival(const ThreadProgram& p, const OneThread& one) {
  for (StmtId s : one.body)
    if (const auto* a = std::get_if<TransactionArrive>(&p.stmts[s.value].node); a && a->bytes == 0) return a;
  return nullptr;
}

}  // namespace tilegen::thread
