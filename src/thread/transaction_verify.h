// Whether the transaction barriers of a finished program, and the waits for its engines, order who fills
// memory that is handed over and who reads it. The companion of verify_synchronization, for what that leaves
// out.
//
// Every role, of each block of a cluster, is walked as a few processes, one for the threads that take the
// same branches, with concrete
// numbers: loops of 0, 1, 2, 3 and 7 trips, where these leave the grid a block, and one or two points a
// block, four where blocks claim them. Memory is judged by ranges, not by elements: what threads write beside
// each other is left to the simulator.
//
// requires: a program that verify_thread_program accepts. Costs about a millisecond.
#pragma once

#include <string>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::thread {

// Hazards, each naming its operations, empty when there are none:
//  - nobody waits for ever: for a phase that lacks arrivals or bytes, or at a barrier that others do not
//  reach
//  - the bytes that are announced to a phase are those that its copies bring, and its arrivals are those it
//  counts
//  - a place is filled only when all who read what it held have released it, and read only after the wait
//  for what fills it
//  - a place is released only when the products that read it are finished, as far as WarpgroupWait says
//  - what threads write for products is fenced, and ordered across warpgroups, before a product reads it, and
//    written again only when the products that read it are finished
//  - a stage is written only when the copy engine has read it, and fenced and ordered before the engine reads
//  it
//  - the block does not end while copies are under way, or while other blocks of its cluster may still arrive
//    at its barriers
std::vector<std::string> verify_transactions(const ThreadProgram& p);

}  // namespace tilegen::thread
