#include "lower/lowering_context.h"

#include <utility>

#include "lower/gpu/tile_scheduler.h"

namespace tilegen::lower {

LoweringInputs::LoweringInputs(const ir::Program& p, const expand::ScheduledKernel& s,
                               const target::Target& t)
    : program(p),
      scheduled(s),
      kernel(p.kernels[static_cast<size_t>(s.kernel)]),
      schedule(*s.schedule),
      target(t),
      ops(*s.ops),
      paths(p, s.kernel),
      tree(p, kernel) {
  for (const analysis::KernelOp& op : ops.ops) op_of[op.stmt] = &op;
}

LoweringContext::LoweringContext(const ir::Program& p, const expand::ScheduledKernel& scheduled,
                                 const target::Target& t)
    : in(p, scheduled, t), ctx(out.exprs) {}

LoweringContext::~LoweringContext() = default;

void LoweringContext::fail(DiagCode code, const std::string& op, std::string message, std::string hint) {
  if (!failed())
    error =
        Error(code, op, std::move(message), std::move(hint), at.op ? at.op->location : in.kernel.location);
}

}  // namespace tilegen::lower
