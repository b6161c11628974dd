// What scans along an axis have in common: cumsum and scan.
#pragma once

#include "ops/describe.h"
#include "ops/op.h"

namespace tilegen::ops {

// Shapes, types, scopes and axis of `op`, whose operands are src and dst.
void check_scan(const ir::Program& p, const ir::TileOp& op, const Scan& scan, const Reporter& report);

// Each element is cast to dst's type; what they come to is made in that type, one element after the other.
void scan_reference(const Scan& scan, ReferenceSink& sink);

}  // namespace tilegen::ops
