// Planning: program + target (+ what the caller fixed) -> Schedule, in this order: engine and atom per op;
// threads; layouts (infer/); stages and slots of pipelined loops; raster order. Read it in plan_program.cpp
// top to bottom.
//
// requires: a checked program.
// ensures: every op, on-chip value and pipelined loop of every kernel has a plan; what was given is taken as
// it is. refuses: no_atom, schedule_illegal, schedule_mismatch, conversion_refused, limit_memory,
// target_unsupported.
#pragma once

#include <memory>
#include <set>

#include "analysis/kernel_ops.h"
#include "ir/program.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// What the copy engine may do: what it demands of tensors (aligned bases and strides) holds for some launches
// only, so a program may be planned again with less. product_loads: of tiles that products read; others cost
// no product its engine.
enum class TensorCopies : uint8_t { loads_and_stores, loads, product_loads, none };

// What code may rely on beyond what the program promises: all that makes accesses wide; only what the copy
// engine demands; nothing.
enum class Assumptions : uint8_t { all, copy_engine, none };

// How much of what planning knows and the target has a plan uses, most first: each form does without all that
// the ones after `full` and before it do without. For a kernel whose code is rejected in the form
// before.
enum class PlanForm : uint8_t {
  full,
  in_order,          // ops run in program order, sums are joined in each iteration, blocks have one point
  no_tensor_stores,  // TensorCopies::loads
  product_loads,     // TensorCopies::product_loads
  no_tensor_copies,  // TensorCopies::none, and nothing of warpgroups and roles
  no_async_copies,
  multiply_adds,  // no matrix instructions where multiply-adds can do the product
};
// As in "the kernel is planned without ..".
const char* plan_form_text(PlanForm form);
// The form leaves out something that the target has.
bool is_form_of(PlanForm form, const target::Target& target);

struct PlanOptions {
  const plan::Schedule* given = nullptr;
  bool conversions = true;
  TensorCopies tensor_copies = TensorCopies::loads_and_stores;
  Assumptions assumptions = Assumptions::all;
  // no_tensor_stores to no_tensor_copies allow no more than `tensor_copies` does
  PlanForm form = PlanForm::full;
  // The grid is known to have no more blocks than the machine has multiprocessors.
  bool single_wave = false;
  // Of loops that ask for none: as many at most; 0: any.
  int64_t most_stages = 0;
  // Tiles come by asynchronous copies where the target could load them to registers, too.
  bool direct_copies = false;
  // Of the form that is planned; null: none of its tiles overlap.
  const plan::OverlapPlan* overlap = nullptr;
  // Of the program, once for all kernels; plan_program finds it itself.
  const std::set<ir::BufferId>* read = nullptr;
  // Of the kernel that is planned, where they have been collected; else null.
  std::shared_ptr<const analysis::KernelOps> ops = nullptr;
};

// What some kernel of the program reads; `ops` of all its kernels where they have been collected.
std::set<ir::BufferId> buffers_read(const ir::Program& p);
std::set<ir::BufferId> buffers_read(std::span<const std::shared_ptr<const analysis::KernelOps>> ops);

Expected<plan::Schedule> plan_program(const ir::Program& p, const target::Target& target,
                                      const PlanOptions& options);

}  // namespace tilegen::schedule
