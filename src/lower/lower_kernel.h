// Scheduled program -> thread program: loops bound to registers and vector lanes, predicates, addresses,
// atoms.
//
// requires: a checked program; its expansion by a complete KernelSchedule for this target.
// ensures: a thread program that verify_thread_program accepts and that does what the schedule says.
// why here: last stage before code generation; the only one that knows addresses.
// refuses: target_unsupported for what this target's lowering cannot express; limit_unroll.
#pragma once

#include "expand/scheduled_kernel.h"
#include "ir/program.h"
#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::lower {

// GPU targets only.
struct LowerOptions {
  // Rely on facts the program does not promise (16-byte aligned tensors, row pitches that are multiples of a
  // vector), recorded as guards of the result. Without: no guards, element accesses, small code.
  bool assume_aligned = true;
  // ... but only as far as the copy engine demands it.
  bool for_copy_engine_only = false;
  std::vector<plan::Note>* notes = nullptr;  // gets the forms that were left out because of their size
};

Expected<thread::ThreadProgram> lower_kernel(const ir::Program& p, const expand::ScheduledKernel& scheduled,
                                             const target::Target& target, const LowerOptions& options = {});

}  // namespace tilegen::lower
