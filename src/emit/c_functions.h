// Functions of a program with native text as calls of the builder:
//
//   fn ex2(x: f32) -> f32                      { /* fn ex2 */
//     asm ptx "ex2.approx.f32 $0, $1;"   ->      const char *const asm_ptx =
//   { return exp2(x) }                               "ex2.approx.f32 $0, $1;";
//                                                const tl_expr x = tl_operand(t, TL_F32, "x");
//                                                tl_function(t, "ex2", 1, EXPRS(x), 1, EXPRS(EXP2(x)), ...);
//                                              }
#pragma once

#include "emit/c_names.h"
#include "emit/c_source.h"
#include "ir/native.h"

namespace tilegen::emit {

void write_function(const ir::Program& p, const ir::NativeFunction& f, CNames& names, CSource& source);

}  // namespace tilegen::emit
