// What a tile that is an array of barriers may be, and what an operation on one of them may be of
// (ir/transaction_barriers.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/transaction_barriers.h"
#include "support/diag_codes.h"

namespace tilegen::check {

constexpr int64_t kBarrierWarp = 32;  // threads that come by barriers together
// Of a kernel: the machine has 16 of those that are named, and one of these is the whole block's.
constexpr int64_t kMaxBarriers = 64, kMaxNamedBarriers = 15;

struct BarrierFault {
  DiagCode code;
  std::string why, hint;
};

// `before`: barriers of the same kind that arrays before it have.
std::optional<BarrierFault> array_fault(const ir::Program& p, ir::BufferId array, int64_t before);
// `declared`: its operand is an array of barriers.
std::optional<BarrierFault> use_fault(const ir::Program& p, const ir::Kernel& kernel, const ir::TileOp& op,
                                      bool declared, bool pipelined);

std::string threads_text(const ir::ThreadRange& t);

}  // namespace tilegen::check
