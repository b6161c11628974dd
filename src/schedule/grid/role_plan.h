// Who does what in a block: producers beside the computing threads, registers of all, and blocks that walk
// over tiles.
//
// requires: the copies that producers can make; registers a computing thread needs; the arena.
// ensures: plans with their reasons; every such copy is in the list of one producer; registers, times
// threads, are no more than a block is launched with.
// refuses (schedule_illegal): given roles that a multiprocessor cannot have, or that have nothing to do;
// lists that share a pipeline, or hold another operation than a producer's copies.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// 32-bit registers in which a thread holds one slot of a fragment.
int64_t fragment_words(const ir::Program& p, const analysis::Value& value, const plan::ValuePlan& plan);

// Of all fragments at once.
int64_t fragment_words(const ir::Program& p, const analysis::KernelOps& ops, analysis::ValuePlans values);

// 32-bit registers a computing thread needs for the fragments it holds and what goes with them.
int64_t registers_needed(const ir::Program& p, const analysis::KernelOps& ops, analysis::ValuePlans values);

// `produced`: the copies that fill each pipeline, in program order.
Expected<std::vector<plan::RolePlan>> plan_roles(const ir::Kernel& kernel, const target::Target& t,
                                                 int64_t threads, int64_t registers,
                                                 const std::vector<std::vector<std::string>>& produced,
                                                 const plan::KernelSchedule* given);

// Persistent where one block fills a multiprocessor: the next tile's loads then run beside the epilogue of
// this one. Where blocks have different amounts of work they claim their points, and pass over those at which
// there is nothing to store.
Expected<plan::PersistencePlan> plan_persistence(const ir::Program& p, const ir::Kernel& kernel,
                                                 const analysis::KernelOps& ops, const target::Target& t,
                                                 int64_t registers, const std::vector<plan::RolePlan>& roles,
                                                 int64_t arena_bytes, const plan::KernelSchedule* given);

}  // namespace tilegen::schedule
