// The .tl text form.
//
// print_program(parse_program(t)) is stable, and parse_program(print_program(p)) gives a program equal to p:
// same canonical text and same hash. The canonical form renames nothing the user named but fixes spacing,
// number and operator spelling; source locations are not part of it.
//
// Grammar. White space separates and means nothing else; a comment runs from ';' to the end of the line.
//   program   := "tl" "1" "program" NAME decl* kernel+
//   decl      := "include" STRING                     what that text declares (ir/text_include.h)
//              | "dim" NAME fact*                fact := (">=" | "<=" | "divisible") const
//              | "scalar" NAME ":" DTYPE | let
//              | "atom" NAME "(" operands ")" ["cycles" INT] native ["{" let* "return" expr "}"]
//              | "fn" NAME params ["->" DTYPEs] native* "{" let* "return" exprs "}"
//              | "tensor" NAME ":" DTYPE "[" exprs "]" ["strides" "[" exprs "]"]
//                ["readonly" | "constant" | "workspace"]
//              | "param" NAME ["=" int] "in" "{" int ("," int)* "}"
//   operands  := of A, B, C: NAME ":" DTYPE "[" INT "," INT "]" "at" (STRING | index function)
//   native    := ("asm" ("ptx" | "gcn") | "llvm" ["ptx" | "gcn" | "host"]) STRING+      lines (native.h)
//   kernel    := "kernel" NAME "grid" "(" block ("," block)* ")" ["threads" const] [with]
//                "{" alloc* stmt* "}"
//   block     := NAME ":" expr                   at most three
//   alloc     := "alloc" NAME ":" ("shared" | "fragment" | "local") DTYPE "[" consts "]" [braces]
//   with      := "with" braces                   braces := "{" annotations "}", rows of annotations.def
//   stmt      := LOOP NAME "in" expr (".." | ":+") expr ["step" const] ["while" expr] ["stages" const]
//                [with] body
//              | "while" expr body | "break" | "continue" | "return"           body := "{" stmt* "}"
//              | "parallel" NAME ("," NAME)* "in" const ("," const)* [with] "{" stmt* "}"
//              | "label" NAME ":" stmt                  of an OP, a loop, an if or a store
//              | "if" expr "{" stmt* "}" ["else" ("{" stmt* "}" | if)]
//              | "switch" expr "{" ("case" consts body)+ ["else" body] "}"
//              | NAME "[" exprs "]" ASSIGN expr         ASSIGN := = += -= *= /=
//              | "let" NAME ("," NAME)+ "=" NAME "(" exprs ")"       of a function of several results
//              | ("let" | "var") NAME [":" DTYPE] "=" expr | NAME ASSIGN expr
//              | argmax, sort, topk, compress, as an OP
//              | OP regions "->" regions "by" NAME ["from" exprs | "carry" regions] ["{" attr... "}"]
//              | "scan" region "->" region "carry" region ["{" attr ("," attr)* "}"]
//              | "assert" expr "," STRING                STRING: "printable ASCII", at most 200 characters
//              | "print" STRING (("," expr)* | "of" region)
//              | OP regions ["," expr] ["->" regions] ["{" attr ("," attr)* "}"]
//   region    := NAME [ "[" range ("," range)* "]" ]      range := expr ":+" const
//   attr      := NAME | NAME "=" (int | NAME)             a bare NAME sets a boolean attribute
// LOOP is serial, unroll, vectorized or pipelined; OP the text of a row of ops.def. exprs, consts and
// regions are comma-separated lists (exprs and consts may be empty); int := ["-"] DIGITS; const is an expr of
// + - * // % and calls whose value is an integer constant.
//
// Compile-time parameters: a name of `param` stands for its value, an i64 constant, wherever an expression or
// a const may stand after its declaration. The value is the one bound when the text is read, else that after
// "=", else the domain's first. The program holds the value folded in; canonical text declares it first.
//
// Loops: `a .. b` runs from a to b, b excluded; `a :+ n` runs n times from a. Canonical is `..` when both
// ends are constants, when a is 0, or when the extent is literally b - a; else `:+`.
// Loops inside parallel ones and named values are read, not printed (draft.h).
// Ops: read operands stand before "->", written and updated ones after it. An op that reads nothing has no
// "->" and lists what it writes first: `fill C, 0.0f32`. Attributes at their default are not printed.
// Regions: a bare NAME is the whole buffer; its shape must then be constant.
//
// Expressions, loosest first: or, and, not, compare (no chains), | ^ &, << >>, + -, * / // %, unary minus.
// All infix operators associate to the left. `a > b` is read as `b < a`, `a >= b` as `b <= a`, -x as neg(x).
//   primary   := LITERAL | NAME | NAME "[" exprs "]" | "(" expr ")"
//              | NAME [":" DIGITS] "(" exprs ")"                     of fn: which of several results
//              | FUNCTION "(" expr ("," expr)* ")" | ("cast" | "bitcast") "(" DTYPE "," expr ")"
// FUNCTION is the text of a row of expr_ops.def that is a word: neg(x), exp(x), max(a, b), select(c, a, b),
// ...; ceildiv(a, b) is read as the expression ExprPool::ceildiv makes.
// Literals without a type take that of the values they are combined with or of what they are stored to, else
// i64. Printed ones carry it unless it is i64 or bool: 7, -7, 7i32, 1.5f32, 2.0f16, true. Special floats:
// inf:f32, -inf:f32, nan:f32, and 0x7e01:f16 for exact bits (printed of NaNs that are not the usual one).
//
// Names: [A-Za-z_][A-Za-z0-9_]*, at most kMaxNameLength long. Dims, scalars, tensors, compile-time parameters
// and kernels share one name space per program. Inside a kernel, buffers, block variables and loop variables
// may shadow nothing in scope; loops that do not contain each other may reuse a name. Words that start a
// statement or stand as an operand (if, else, alloc, kernel, assert, print, while, break, continue, return,
// switch, case, loop kinds, the op names, and, or, not, true, false, inf, nan) cannot name a variable or
// buffer. A program made elsewhere may break these rules; it is printed with "_" for bad characters and the
// first free of "_1", "_2", ... appended.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/program.h"
#include "ir/text_include.h"
#include "support/cancellation.h"

namespace tilegen::ir {

constexpr size_t kMaxNameLength = 128;

// Requires written_nodes(p) to be moderate; an expression is cut with "..." after 16 MiB of text.
std::string print_program(const Program& p);
// One expression or region with the names as given, for messages. Cut with "..." after 4 KiB.
std::string print_expr(const Program& p, ExprId id);
std::string print_region(const Program& p, const Region& r);

// Expression nodes the text of `p` writes. Text is a tree while the pool shares nodes, so this can be
// exponential in the pool's size; whoever makes programs must hold it to Limits::expr_nodes. Saturates.
uint64_t written_nodes(const Program& p);

// Bounded in bytes, nodes and nesting; uses no recursion. Checks syntax, names, ranks of accesses and the
// types inside expressions, so that every id of the result is valid and every expression well typed; the
// caller runs check_program. Reports up to Limits::diagnostics errors, resuming at the next line after a
// syntax error, and stops at the first limit_* error. `file` names the source in locations; lines and columns
// count from 1, columns in bytes. `bindings` choose the values of compile-time parameters; the others take
// the text's. One that names no parameter, or another value than the domain's, is an error. `include`: of the
// texts that it includes; without one, they are refused.
Expected<Program> parse_program(std::string_view text, std::string_view file, const Limits& limits,
                                const Cancellation* cancellation = nullptr,
                                std::span<const ParamBinding> bindings = {}, const IncludeText& include = {});
// The same of a text that others include: it has no header, and no kernel need stand there.
Checked check_part(std::string_view text, std::string_view file, const Limits& limits,
                   const Cancellation* cancellation = nullptr, std::span<const ParamBinding> bindings = {},
                   const IncludeText& include = {});
// Whether a text is such a one.
bool is_part(std::string_view text);

// 128-bit hash of the canonical text, as 32 hex digits. Stable across processes, machines and library
// versions that share the text version.
std::string program_hash(const Program& p);

}  // namespace tilegen::ir
