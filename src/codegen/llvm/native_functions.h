// Functions of a program with native text: instructions as inline assembly; LLVM IR, which is read, judged,
// and made part of a module.
//
// Text of LLVM IR is a module of its own, which defines the function by its name and may define others that
// it calls. It computes of its arguments alone: no memory, no globals, no inline assembly, no calls but of
// functions of the text and of LLVM's intrinsics that are functions of their operands, no recursion. What it
// has is made internal to the module and is inlined.
#pragma once

#include <string>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/llvm_setup.h"
#include "ir/native.h"

namespace tilegen::codegen {

// The function in `into`, from the text the first time; null: `why` says what is wrong with it.
llvm::Function* native_function(llvm::Module& into, const ir::NativeFunction& f, const ir::NativeText& text,
                                std::string& why);

// Text of instructions as inline assembly that computes of its arguments alone; 16-bit floats are their bits.
// `after_products`: arguments may be results of matrix instructions. `unused`: it stays where nothing uses
// what it gives.
llvm::CallInst* call_instructions(llvm::IRBuilder<>& b, const ir::NativeFunction& f,
                                  const ir::NativeText& text, const std::vector<llvm::Value*>& args,
                                  bool after_products, bool unused = false);

// The sum of an atom's text of GCN (ir/matrix_atom.h) of words of A, of B and of C.
llvm::CallInst* call_matrix_instruction(llvm::IRBuilder<>& b, const ir::NativeFunction& atom, llvm::Value* a,
                                        llvm::Value* with, llvm::Value* c, bool unused = false);
llvm::Type* matrix_words(llvm::IRBuilder<>& b, int64_t words);

// Puts the bodies of native functions in the place of their calls; none of the functions is left.
void inline_native_functions(llvm::Module& m);

}  // namespace tilegen::codegen
