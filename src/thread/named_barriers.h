// Named barriers of a block, by use; number 0 is that of all threads. Machine::named_barriers says how many
// there are.
#pragma once

namespace tilegen::thread {

constexpr int kFirstWarpgroupBarrier = 1;  // one for each warpgroup of computing threads
constexpr int kRoleBarrier = 8;            // all threads of a role
constexpr int kOperandBarrier = 9;         // operands that the computing threads have rewritten for a product
constexpr int kFirstOrderBarrier = 10;     // order of the warpgroups' products (ping-pong), one for each
constexpr int kMaxOrderBarriers = 6;

}  // namespace tilegen::thread
