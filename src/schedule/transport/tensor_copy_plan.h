// What the tiles that a producer loads ask of plans and layouts, the pipelines that hand tiles over, and
// what leaves by tensor copies.
//
// requires: loads (tensor_loads.h); after layouts: the held layouts. ensures: a pipeline holds the tiles
// that are filled in one place and used by the same ops, or copied to registers one after the other.
// refuses, with a note: products that cannot have their tiles or registers so, stores by threads.
#pragma once

#include "schedule/transport/tensor_loads.h"

namespace tilegen::schedule {

// Products whose loop has a product that warpgroups do not do (unless they are given to warpgroups, and a
// producer loads for the other, too), whose tiles lie as the instruction or the engine cannot have them, or
// whose registers are held otherwise. Empty: the products can be done as planned.
Refusals unfit_products(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                        const TensorLoads& loads, const std::map<analysis::OpId, plan::GemmPlan>& gemms,
                        const plan::KernelSchedule* given);
Refusals unfit_layouts(const ir::Program& p, const analysis::KernelOps& ops, const TensorLoads& loads,
                       const std::map<analysis::OpId, plan::GemmPlan>& gemms,
                       const infer::InferResult& layouts);

// The pipelines of what a producer loads, with one slot each. Given ones are taken where they hold what has
// to be held.
Expected<std::vector<plan::PipelinePlan>> plan_copy_pipelines(const ir::Program& p, int kernel,
                                                              const analysis::KernelOps& ops,
                                                              const TensorLoads& loads,
                                                              const plan::KernelSchedule* given);

// Why a copy to a tensor cannot be done by the engine; empty when it can. `values`, `conversions`: as
// planned.
std::string store_refusal(const ir::Program& p, const ir::Kernel& kernel, const analysis::KernelOps& ops,
                          analysis::OpId op, analysis::ValuePlans values,
                          const std::vector<plan::ConversionPlan>& conversions, const target::Target& t);

// How a tile that leaves by the copy should lie for the engine, and for the threads that write it from
// accumulators; nothing where it may stay as it is. `held`: as inference has it.
std::optional<layout::Layout> store_tile_layout(const ir::Program& p, const analysis::KernelOp& op,
                                                const plan::ValuePlan& held);

// What a schedule that was made with tensor copies says beyond them.
plan::KernelSchedule without_tensor_copies(const plan::KernelSchedule& given, const ir::Program& p,
                                           int kernel, const analysis::KernelOps& ops, TensorCopies allowed);

}  // namespace tilegen::schedule
