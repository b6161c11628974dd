// Functions of a program that have native text beside their meaning.
//
//   fn ex2(x: f32) -> f32
//     asm ptx "ex2.approx.ftz.f32 $0, $1;"
//     asm gcn "v_exp_f32 $0, $1"
//   { return exp2(x) }
//
// The meaning is an expression over the parameters. A call is a node of the expression pool that has the
// meaning for its arguments, the arguments themselves and the function's number (ExprPool::native_call): the
// interpreter, the host and the simulator evaluate the meaning, code for a target of which the function has
// a text is that text. The two must agree; nothing checks that.
//
// Text of instructions names its operands $0, $1, ...: the results, then the parameters. It is a function of
// these alone: it computes in registers, with instructions that read and write nothing else
// (ir/native_asm.h). Text of LLVM IR defines a function of the same name (codegen/llvm/native_functions.h).
//
// requires: nothing. ensures: what a program holds has passed native_refusal.
// why here: parser and builder make the same functions.
// refuses: types without a register of their own, text that could do more than compute its results.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "support/limits.h"

namespace tilegen::ir {

// In the order in which a target chooses among those that it takes, and in which they are printed.
enum class NativeForm : uint8_t { ptx, gcn, llvm_ptx, llvm_gcn, llvm_host, llvm };
constexpr size_t kNativeForms = 6;
struct NativeFormRow {
  std::string_view words;  // "asm ptx"
  std::string_view language, target;
};
const NativeFormRow& native_form_row(NativeForm form);
constexpr bool is_asm(NativeForm form) { return form == NativeForm::ptx || form == NativeForm::gcn; }

struct NativeText {
  NativeForm form{};
  std::string text;  // lines are separated by '\n'
};

// What makes a native function a matrix instruction (ir/matrix_atom.h).
struct MatrixAtom {
  int64_t m = 0, n = 0, k = 0;
  // Of A, B and C: the text of a fragment, or a function of the indices, "(i, k) -> ...", that gives
  // lane * registers + register.
  std::array<std::string, 3> layouts;
  int64_t cycles = 0;  // that it issues in; 0: nothing is said
};

struct NativeFunction {
  std::string name;
  std::vector<Var> parameters;  // by VarId of `exprs`
  ExprPool exprs;
  std::vector<ExprId> results;    // its meaning
  std::vector<NativeText> texts;  // by form, each once
  SourceLocation location;
  // Parameters are elements of A, B and C; the result, of a meaning that is not the plain one, is what C's
  // becomes. It is never called.
  std::optional<MatrixAtom> atom = std::nullopt;

  DType result_type(size_t i) const { return exprs.type(results[i]); }
  const NativeText* text(NativeForm form) const;
  std::string forms() const;  // "asm ptx, asm gcn"
};

constexpr size_t kMaxNativeText = size_t{1} << 16;
constexpr size_t kMaxNativeParameters = 16;

// Function `name` of the parameters, variables of `p`, and of results over them, expressions of `p`. What is
// wrong with it, without a place, or nothing: then it is the last of p.natives.
std::optional<Diagnostic> add_native_function(Program& p, std::string name, std::span<const VarId> parameters,
                                              std::span<const ExprId> results, std::vector<NativeText> texts,
                                              const SourceLocation& location);

// Result `result` of a function of `p` for arguments of its parameters' types.
ExprId call_native(Program& p, size_t function, std::span<const ExprId> args, size_t result);

// An expression that calls a function with native text.
bool calls_native(const ExprPool& pool, ExprId root);

}  // namespace tilegen::ir
