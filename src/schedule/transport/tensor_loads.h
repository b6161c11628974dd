// Tiles that a producer has the copy engine load, and who reads them: products of warpgroups, or threads, who
// do other products.
//
// requires: collected ops. ensures: a product of `products` reads tiles that are each filled by one copy that
// the engine can do, and that are read, by threads too, only after the copy in its block or inside of what
// stands there; or tiles that threads write, as what they cast, and what the engine cannot copy where that is
// filled before the loop of the other tiles, or the product is given to warpgroups. A copy in a loop may run
// ahead; elsewhere it fills its tile once whenever its block runs. What the producer follows to the copies,
// bounds and conditions, is the same for all threads and not written by the kernel. A loop without such
// products has all of its tiles from the producer, where the schedule asks for it, or none.
// why here: before engines and atoms, since warpgroup products need it; layouts, which may be given, are
// seen to afterwards. refuses, with a note: products that are not loaded for; copies of such a loop that are
// left to threads.
#pragma once

#include <map>
#include <set>

#include "analysis/dependence.h"
#include "infer/infer_layouts.h"
#include "plan/gemm_plan.h"
#include "plan/schedule.h"
#include "schedule/plan_program.h"

namespace tilegen::schedule {

// Why an op cannot be done by the copy engine or by warpgroups, by index into KernelOps::ops.
using Refusals = std::map<analysis::OpId, std::string>;

// The loads of a product's tiles.
struct ProductLoads {
  // The innermost loop around the product with a copy of a tile of it in its body; invalid: there is none.
  ir::StmtId loop;
  bool direct = false;                 // the product stands in the loop's body itself
  std::vector<analysis::OpId> copies;  // ops that fill its tiles
};
// The load of a tile that only threads read.
struct TileLoad {
  ir::StmtId loop;
  std::set<analysis::OpId> readers;
  bool alone = false;  // no product of the loop has its tiles from the producer
};
struct TensorLoads {
  std::map<analysis::OpId, ProductLoads> products;  // by the product
  std::map<analysis::OpId, TileLoad> tiles;         // by the copy
  Refusals refused;                                 // every other product of the kernel
  Refusals by_threads;                              // every other copy of the loops concerned
};
// `given` may keep copies from the engine, or ask for it.
TensorLoads find_product_loads(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                               analysis::LoopDependences& dependences, const target::Target& t,
                               const plan::KernelSchedule* given, TensorCopies allowed);

// The other copies from tensors: of loops with products that are loaded for; and where `given` asks for the
// engine, of loops without any and outside of loops.
void find_tile_loads(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                     analysis::LoopDependences& dependences, const target::Target& t,
                     const plan::KernelSchedule* given, TensorCopies allowed, TensorLoads& loads);

// Tiles of loops whose products are loaded for no more go, and those of a loop without products of which
// another tile is not loaded; products of which no tile comes by the engine, or none in a loop whose tiles
// could be copied ahead, are returned.
Refusals settle(const ir::Program& p, int kernel, const analysis::KernelOps& ops, TensorLoads& loads);

// Tiles of products that warps do lie as the engine fills boxes, where the layout that was chosen for the
// instruction is no such form: rows of the widest swizzle that divides them.
void box_operands(const ir::Program& p, const analysis::KernelOps& ops, const TensorLoads& loads,
                  std::map<analysis::OpId, plan::GemmPlan>& gemms);

// Tiles that only threads read lie as the engine can have them, where nobody asked for another form; copies
// of others are returned.
Refusals fit_thread_tiles(const ir::Program& p, const analysis::KernelOps& ops, const TensorLoads& loads,
                          IdVector<analysis::ValueId, plan::ValuePlan>& values);

}  // namespace tilegen::schedule
