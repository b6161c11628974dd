// The .tl text form.
//
// print_program(parse_program(t)) is stable, and parse_program(print_program(p)) gives a program equal to p: same
// canonical text and same hash. The canonical form renames nothing the user named but fixes spacing, number and
// operator spelling; source locations are not part of it.
//
// Grammar (comments run from ';' to the end of the line):
//   program   := "tl" "1" "program" NAME decl* kernel+
//   decl      := "dim" NAME fact*                          fact := ">=" INT | "<=" INT | "divisible" INT
//              | "scalar" NAME ":" DTYPE
//              | "tensor" NAME ":" DTYPE "[" expr,* "]" ["strides" "[" expr,* "]"] ["readonly"]
//   kernel    := "kernel" NAME "grid" "(" (NAME ":" expr),* ")" ["threads" INT] "{" item* "}"
//   item      := "alloc" NAME ":" SCOPE DTYPE "[" INT,* "]" | stmt          (allocs stand at the top of a kernel)
//   stmt      := LOOPKIND NAME "in" expr ".." expr ["stages" INT] "{" stmt* "}"      serial unroll vectorized pipelined
//              | "parallel" NAME,* "in" INT,* "{" stmt* "}"
//              | "if" expr "{" stmt* "}" ["else" "{" stmt* "}"]
//              | NAME "[" expr,* "]" "=" expr
//              | OP region ("," region)* ["," expr] ["->" region,*] ["{" attr,* "}"]
//   region    := NAME [ "[" range,* "]" ]        range := expr ":+" INT          a bare NAME is the whole buffer
//   attr      := NAME | NAME "=" (INT | NAME)
// In `a .. b` b is exclusive. Read operands stand before "->", written and updated ones behind it; fill prints as
// `fill C, 0.0f32` with its destination first.
// Literals carry their type unless it is i64 or bool: 1.5f32, 7i32, 0x7e00:f16 (exact bits, used for NaN), true.
// inf and nan are spelled inf:f32, nan:f32. Infix precedence, loosest first: or, and, compare, | ^ &, << >>, + -,
// * / // %; unary minus is neg(x); calls: exp(x), max(a,b), select(c,a,b), cast(f32, x).
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "ir/program.h"

namespace tilegen::ir {

std::string print_program(const Program& p);
std::string print_expr(const Program& p, ExprId id);
std::string print_region(const Program& p, const Region& r);

// Bounded in bytes, nodes and nesting; uses no recursion. Only syntax and names are checked here; the caller runs
// check_program. `file` names the source in locations.
Expected<Program> parse_program(std::string_view text, std::string_view file, const Limits& limits);

// 128-bit hash of the canonical text, as 32 hex digits. Stable across processes, machines and library versions that
// share the text version.
std::string program_hash(const Program& p);

}  // namespace tilegen::ir
