// What a reduction starts from and how it combines, as expressions.
#pragma once

#include "ir/expr.h"
#include "ir/tile_op.h"

namespace tilegen::lower {

ir::ExprId reduction_identity(ir::ExprPool& e, ir::ReduceKind kind, ir::DType type);
ir::ExprId reduction_combine(ir::ExprPool& e, ir::ReduceKind kind, ir::ExprId a, ir::ExprId b);
// Of a scan: combined with an element it is that element, a zero's sign included.
ir::ExprId scan_identity(ir::ExprPool& e, ir::ReduceKind kind, ir::DType type);
// What is combined of an element: its magnitude for absmax.
ir::ExprId reduction_term(ir::ExprPool& e, ir::ReduceKind kind, ir::ExprId element);

}  // namespace tilegen::lower
