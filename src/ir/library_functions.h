// Functions that any program may call, with native text of the library's own (ir/native.h).
//
//   y[i] = fast_tanh(x[i])     ->     fn fast_tanh(x: f32) -> f32
//                                         asm ptx "tanh.approx.f32 $0, $1;"
//                                     { return tanh(x) }
//
// A fast form is one instruction, or a few, with a larger bound than the function has (docs/numerics.md);
// what it means is the function, which hosts, simulators and interpreter compute. A program holds those that
// it calls like functions of its own. A function of the program that has such a name takes its place.
//
// requires: nothing. ensures: the text of each is taken by ir/native_asm.h.
// why here: parser and builder find the same functions; the option that refuses native text asks whose it is.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/native.h"

namespace tilegen::ir {

struct LibraryFunction {
  std::string_view name;
  size_t parameters;
  DType type;  // of parameters and result
  ExprId (*meaning)(ExprPool&, std::span<const ExprId>);
  std::string_view ptx, gcn;
};

std::span<const LibraryFunction> library_functions();
// Nothing where there is none, or the program has an atom of that name.
const LibraryFunction* find_library_function(const Program& p, std::string_view name);

// A function of the library as one of the program: the last of its natives.
struct LibraryCall {
  std::vector<VarId> parameters;
  ExprId value;
  size_t native = 0;
};
LibraryCall add_library_function(Program& p, const LibraryFunction& f);

// Its text is the library's.
bool is_library_function(const NativeFunction& f);

}  // namespace tilegen::ir
