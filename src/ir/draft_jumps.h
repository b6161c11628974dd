// break, continue, return and conditions of loops, as statements that every stage has.
//
//   while t[0] > 1 {                       go[0] = t[0] > 1
//     if t[0] % 2 == 0 {                   serial trip in 0 .. 2147483647 while go[0] {
//       t[0] = t[0] // 2                     if t[0] % 2 == 0 {
//       continue                               t[0] = t[0] // 2
//     }                              ->      } else {
//     t[0] = 3 * t[0] + 1                      t[0] = 3 * t[0] + 1
//   }                                        }
//                                            go[0] = t[0] > 1
//                                          }
//
// What follows an if that jumps on one side goes to its other side; what follows one that may jump further
// inside is put under a flag. A loop that is left goes on while its flag holds. Flags are local tiles, inside
// parallel loops names of the draft, of each point.
//
// requires: a draft with its jumps; each stands last in its block, in loops that can be left. ensures: no
//   jumps; conditions of loops read local tiles alone.
// why here: before names get their values, which flags of parallel loops are.
#pragma once

#include <span>
#include <string>

#include "ir/draft.h"

namespace tilegen::ir {

// A condition that a loop can ask as it is: over dims, scalars, block and loop variables and local tiles.
bool is_plain_condition(const Program& p, const Draft& draft, ExprId condition);

// Why a jump cannot stand inside these loops and ifs, outermost first; "" where it can.
std::string jump_refusal(const Program& p, std::span<const StmtId> around, Draft::Jump kind);
const char* jump_hint(Draft::Jump kind);

// The draft without jumps.
Draft resolve_jumps(Program& p, Draft draft);

}  // namespace tilegen::ir
