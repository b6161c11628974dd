// Registers of asynchronous matrix products (WarpgroupMma) while they are in flight.
//
// requires: a program whose statements are well formed. ensures: what it reports is a statement that touches
// registers a product may still read or write, a product whose registers no WarpgroupFence orders after
// their last use, or a use of results that no WarpgroupWait handed over; nothing else makes the values of C
// right on the device. Loops are walked twice, both sides of a branch once; registers are told apart by
// memory.
#pragma once

#include <string>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::thread {

std::vector<std::string> verify_warpgroups(const ThreadProgram& p);

}  // namespace tilegen::thread
