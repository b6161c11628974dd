// How the sums of blocks that share a loop meet in global memory (split_form.h): for targets without
// clusters, and for more blocks than a cluster has.
//
//   copy acc -> sums[point * parts + part]      each block leaves its sums in a workspace
//   ticket = atomic_add(count[point], 1)        acq_rel: all that was left before is found behind it
//   if ticket is the last {                     whoever comes last, whenever that is: nobody waits
//     acc = sums[point * parts + 0] + sums[point * parts + 1] + ..
//     what follows the loop
//   }
//
// A counter needs no memory that is 0 before a launch: it rests at a number of 64 bits, to which the last
// block of a point sets it back. One that holds neither that nor one of the few after it was never used: the
// blocks that find it so set it to rest by compare_exchange, and count again once they have seen it there.
// Memory that holds such a number by chance (one in 2^58) would be taken for a counter.
//
// requires: a form in which blocks share the loop (split_form.h).
// ensures: the same meaning, sums in the order of the parts; two workspaces more, the last parameters; paths
//   of the statements begin with that of the loop.
// why here: it is said in statements of the program, so all targets have it, and every check judges it.
// refuses: nothing; split_refusal says what has no such form.
#pragma once

#include "ir/program.h"

namespace tilegen::expand {

void meet_in_workspace(ir::Program& form, int kernel, ir::StmtId loop, ir::VarId part, int64_t parts);

}  // namespace tilegen::expand
