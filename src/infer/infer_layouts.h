// Layout inference: constraints of the ops -> a layout per value, an iteration layout per op, and the
// conversions that make them meet (paper section 4.2).
//
// requires: collected ops; the gemms' plans (atoms and operand layouts); the block's computing threads; given
// layouts that are possible (schedule/check_schedule.h).
// ensures: every on-chip value has a layout over the threads; every element-wise op and reduction has an
//   iteration layout; wherever an op needs a value otherwise than it is held, a ConversionPlan stands between
//   them.
// why here: after engines, atoms and threads, which constrain it; before stages and slots, which need its
//   bytes.
// refuses: conversion_refused when conversions are switched off; schedule_illegal for accumulators that a
//   schedule places in memory; target_unsupported for operands of matrix atoms that another access keeps out
//   of registers; limit_memory for values of too many registers.
//
// Levels, in order: given (the caller's Schedule) and strict (matrix atoms, thread-private buffers) pin
// values; common propagates from pinned values through the ops that touch them; free tries roots for what is
// left and keeps the cheapest by memory transactions and registers.
//
// A fragment or local buffer that some access makes impossible to hold in registers (an index that cannot be
// followed to the thread that holds the element, or a choice among too many registers) is held in shared
// memory instead, with a note. What such an access is depends on the layouts, so inference is repeated with
// the value in memory. So are values of which one thread would have too many registers: what is done with
// registers is written out one by one, so their number is the size of the code.
#pragma once

#include <map>
#include <vector>

#include "analysis/kernel_ops.h"
#include "plan/gemm_plan.h"
#include "plan/register_choices.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::infer {

using analysis::OpId;
using analysis::ValueId;

struct InferInput {
  const ir::Program& program;
  const analysis::KernelOps& ops;
  const target::Target& target;
  int64_t threads = 1;
  const std::map<OpId, plan::GemmPlan>& gemms;
  const plan::KernelSchedule* given = nullptr;
  bool conversions = true;
  bool keep_in_registers = false;  // however many they take: shared memory does not hold them
};

struct InferResult {
  IdVector<ValueId, plan::ValuePlan> values;
  IdVector<OpId, plan::OpPlan> ops;  // gemms hold their engine and atom
  std::vector<plan::ConversionPlan> conversions;
  std::vector<plan::Note> notes;
};

using plan::kMaxRegisterChoices;
// Registers of a value in one thread beyond which it is held in shared memory: when every thread would have a
// copy of all of it, and when it is spread over the threads, which is what all the registers of a thread come
// to.
inline constexpr int64_t kMaxCopiedRegisters = 64, kMaxPartitionedRegisters = 256;
// Where shared memory does not hold it either it stays in registers, and spills; but not with more than
// these.
inline constexpr int64_t kMaxRegisters = 1024;

Expected<InferResult> infer_layouts(const InferInput& input);

// How often infer_layouts had a layout to find in this process; lets a test assert that a full Schedule
// replays without. Ops and conversions follow from layouts.
int64_t infer_layouts_calls();

}  // namespace tilegen::infer
