// Tiles that come by tensor copies, the products that use them, and what leaves by tensor copies.
//
// requires: collected ops. Behind layouts: the held layouts.
// ensures: a product that is fed stands in a pipelined loop and reads tiles that are each filled by one copy that the engine
// can do, in the loop, where the copy may run ahead, or once in front of it, and that are read by such products only; or tiles
// that threads write. All products of that loop are fed, one of them by a copy in the loop. A channel holds the tiles that are filled in one place and used by the same products.
// why here: in front of engines and atoms, since warpgroup products need it; and again behind layouts, which may
// be given.
// refuses, with a note: products that are not fed.
#pragma once

#include <map>
#include <set>

#include "infer/infer_layouts.h"
#include "plan/schedule.h"
#include "schedule/plan_program.h"

namespace tilegen::schedule {

// Why an op cannot be done by the copy engine or by warpgroups, by index into KernelOps::ops.
using Refusals = std::map<size_t, std::string>;

struct TensorFeed {
  ir::StmtId loop;             // of the product
  std::vector<size_t> copies;  // ops that fill its tiles, in the loop or in front of it
};
struct TensorFeeds {
  std::map<size_t, TensorFeed> fed;  // by the product
  Refusals refused;                  // every other product of the kernel
};
// `given` may keep copies from the engine.
TensorFeeds find_tensor_feeds(const ir::Program& p, int kernel, const infer::KernelOps& ops, const target::Target& t,
                              const plan::KernelSchedule* given, TensorCopies allowed);

// Fed products whose loop has a product that warpgroups do not do, whose tiles lie as the instruction or the engine
// cannot have them, or whose registers are held otherwise. Empty: the products can be done as planned.
Refusals unfit_products(const ir::Program& p, const infer::KernelOps& ops, const target::Target& t,
                        const TensorFeeds& feeds, const std::map<size_t, ops::GemmPlan>& gemms);
Refusals unfit_layouts(const ir::Program& p, const infer::KernelOps& ops, const TensorFeeds& feeds,
                       const std::map<size_t, ops::GemmPlan>& gemms, const infer::InferResult& layouts);

// The channels of fed products, with one slot each. Given ones are taken where they hold what has to be held.
Expected<std::vector<plan::ChannelPlan>> plan_channels(const ir::Program& p, int kernel, const infer::KernelOps& ops,
                                                       const TensorFeeds& feeds, const plan::KernelSchedule* given);

// Why a copy to a tensor cannot be done by the engine; empty when it can. `values`, `conversions`: as planned.
std::string store_refusal(const ir::Program& p, const infer::KernelOps& ops, size_t op,
                          const std::vector<plan::ValuePlan>& values,
                          const std::vector<plan::ConversionPlan>& conversions);

// How a tile that leaves by the copy should lie for the engine, and for the threads that write it from accumulators; nothing
// where it may stay as it is. `held`: as inference has it.
std::optional<layout::Layout> store_tile_layout(const ir::Program& p, const infer::KernelOp& op, const plan::ValuePlan& held);

// What a schedule that was made with tensor copies says beyond them.
plan::KernelSchedule without_tensor_copies(const plan::KernelSchedule& given, const ir::Program& p,
                                           const infer::KernelOps& ops, TensorCopies allowed);

}  // namespace tilegen::schedule
