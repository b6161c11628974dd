// Element types in LLVM: as stored in memory and as held in registers.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/llvm_setup.h"
#include "ir/dtype.h"

namespace tilegen::codegen {

// In memory: f16 half, bf16 its bits as i16, bool i8, e4m3 and e5m2 their bits as i8.
llvm::Type* storage_type(llvm::LLVMContext& c, ir::DType t);
// In registers: f16, bf16 and f32 as float, bool as i1, e4m3 and e5m2 as in memory.
llvm::Type* held_type(llvm::LLVMContext& c, ir::DType t);

inline int64_t lane_count(const llvm::Value* v) {
  auto* t = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return t ? t->getNumElements() : 1;
}
// `element` or <lanes x element> like `like`.
inline llvm::Type* shaped_like(const llvm::Value* like, llvm::Type* element) {
  auto* t = llvm::dyn_cast<llvm::VectorType>(like->getType());
  return t ? llvm::VectorType::get(element, t->getElementCount()) : element;
}

// Storage form <-> held form, scalar or vector. to_storage expects a value already rounded to `t`.
llvm::Value* from_storage(llvm::IRBuilder<>& b, ir::DType t, llvm::Value* v);
llvm::Value* to_storage(llvm::IRBuilder<>& b, ir::DType t, llvm::Value* v);

// The bits of a held value of `from` as a held one of `to`; neither is bool.
llvm::Value* bitcast_held(llvm::IRBuilder<>& b, ir::DType from, ir::DType to, llvm::Value* v);

// A float (f16, bf16) or double/float (f32) rounded to `t`, nearest even, still held. Identity for f32 and
// f64 held in their own width.
llvm::Value* round_held(llvm::IRBuilder<>& b, const MachineFeatures& f, ir::DType t, llvm::Value* v);

// min and max of the language: a NaN operand is ignored. One instruction where the machine has it, else
// compares and selects, because the LLVM intrinsics may turn into library calls.
llvm::Value* float_min(llvm::IRBuilder<>& b, const MachineFeatures& f, llvm::Value* x, llvm::Value* y);
llvm::Value* float_max(llvm::IRBuilder<>& b, const MachineFeatures& f, llvm::Value* x, llvm::Value* y);

// dtype.h's contract of a cast between held values.
llvm::Value* cast_held(llvm::IRBuilder<>& b, const MachineFeatures& f, ir::DType from, ir::DType to,
                       llvm::Value* v);

}  // namespace tilegen::codegen
