// Scheduled program -> thread program: loops bound to registers and vector lanes, predicates, addresses,
// atoms.
//
// requires: a checked program; its expansion by a complete KernelSchedule for this target.
// ensures: a thread program that verify_thread_program accepts and that does what the schedule says.
// why here: last stage before code generation; the only one that knows addresses.
// refuses: target_unsupported for what this target's lowering cannot express; limit_unroll; schedule_illegal,
//   vectors that may be unaligned.
#pragma once

#include "expand/scheduled_kernel.h"
#include "ir/program.h"
#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::lower {

Expected<thread::ThreadProgram> lower_kernel(const ir::Program& p, const expand::ScheduledKernel& scheduled,
                                             const target::Target& target);

}  // namespace tilegen::lower
