// Whether the barriers and waits of a finished program order what its threads do: the program is walked with
// concrete numbers, statement by statement for all threads, for every loop length from none to more than the
// slots of a pipelined loop. Every element remembers who wrote and read it since which barrier.
//
// Nothing is shared with the planting of barriers but which statement touches which memory. Values are not
// computed: a condition that depends on loaded data is taken both ways. Atomic accesses of one execution of
// an operation come in any order, as iterations that draw tickets do. Roles are walked one after the other,
// each with its own threads. What the copy engine does, and what roles hand each other, is left to
// verify_transactions.
#pragma once

#include <string>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::thread {

// Hazards, each naming the two operations, the memory, an element and the threads; empty when there are none.
std::vector<std::string> verify_synchronization(const ThreadProgram& p);

}  // namespace tilegen::thread
