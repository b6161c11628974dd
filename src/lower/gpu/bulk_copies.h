// Boxes that warps copy by asynchronous copies (ir/bulk_copy.h), brought by the copy engine.
//
//   serial i { if 128 <= t { cp.async .. } }    if 128 <= t and t < 160 { one_thread {
//   if 128 <= t { arrive full[s] copies }   ->    tensor_load ring[..] = X.map(..) to full[s], announced } }
//                                               if 128 <= t { arrive full[s] }
//   if t < 128 { arrive empty[s] }                if t < 128 { proxy_fence; arrive empty[s] }
//
// The copies stay where the engine cannot: orders of the program are proven of them (sync/plant_barriers.h),
// and whoever waits for the phase that their arrival is in finds what the engine brings, since its bytes are
// part of that phase: they are announced by a warp that arrives in it later.
//
// requires (note): a lowered loop with the annotation, a target with a copy engine.
// ensures (take): all of the program's boxes are the engine's, or the program is as it was. why here: behind
//   the planting of barriers, which knows asynchronous copies. refuses (a reason): places that are not known
//   to be multiples of 16 bytes along the tensor's dense dimension, tiles that are not dense, tensors that
//   the kernel may write, copies that other waits than those for such arrivals await.
#pragma once

#include <string>

#include "lower/lowering_parts.h"

namespace tilegen::lower {

void note_bulk_copy(LoweringContext& k, ir::StmtId loop, thread::StmtId lowered);
// Empty: done.
std::string take_bulk_copies(thread::ThreadProgram& p);

}  // namespace tilegen::lower
