// Operations that order what threads do: they touch no element, and done in the order of the statements they
// have nothing to do.
#pragma once

#include "ops/op.h"

namespace tilegen::ops {

inline void check_nothing(const ir::Program&, const ir::TileOp&, const std::string&, const SourceLocation&,
                          std::vector<Diagnostic>&) {}

// `check`: of its value, where it has one.
constexpr TileOpDef ordering_op(ir::OpKind kind, decltype(TileOpDef::check) check = check_nothing) {
  return {kind,
          check,
          [](const ir::TileOp&) -> std::vector<OperandAccess> { return {}; },
          [](const ir::TileOp&) -> LayoutRule { return {}; },
          [](const ir::TileOp&, LowerSink&) {},
          [](const ir::TileOp&, ReferenceSink&) {}};
}

}  // namespace tilegen::ops
