// What the copy engine's stores to a tensor would have to be ordered with. They are ordered with nothing: not
// among each other, and not with accesses of threads that come later. Reads before them are done when
// the computing threads meet (lower/gpu_store_stage.cpp).
//
// Atomic operations need no order among each other.
//
// requires: a checked program; a copy to a tensor, or an atomic operation, whose place is told by variables,
//   sizes and tensors that are only read.
// ensures: an empty answer is a proof that executions of the copy by one block have no element in common, and
// that what else the kernel does to the tensor is read before the copy. refuses (a reason): the rest.
#pragma once

#include <string>

#include "analysis/kernel_ops.h"

namespace tilegen::analysis {

std::string order_refusal(const ir::Program& p, const ir::Kernel& kernel, const KernelOps& ops, OpId op);

}  // namespace tilegen::analysis
