// A program as C source: the calls of tilelang.h that build it.
//
//   kernel rows grid (b: m) {          { /* kernel rows */
//     alloc x: shared f32[64]            tl_expr blocks0[1];
//     copy X[b :+ 1, 0 :+ 64] -> x  ->   const tl_scope scope0 = tl_begin_kernel(t, "rows", 1, ...);
//   }                                    const tl_expr b = blocks0[0];
//                                        const tl_buffer x = tl_alloc(t, "x", TL_SCOPE_SHARED, TL_F32, ...);
//                                        tl_copy(t, BOX(X, 2, EXPRS(b, INDEX(0)), ...), WHOLE(x));
//                                        tl_end(t, scope0);
//                                      }
//
// requires: a checked program, as parser and builder hand it out. ensures: C11 that compiles without
//   warnings, one call a line; the function that it has builds a program of the same canonical text. Names
//   are the program's, but for words of C. Long expressions are built in parts, which have names.
// why here: it reads the program alone, as printing does; nothing but the C interface asks for it.
// refuses: nothing. Places in a source are not kept: what is built names no file.
#pragma once

#include <string>

#include "ir/program.h"

namespace tilegen::emit {

std::string emit_c(const ir::Program& p);

}  // namespace tilegen::emit
