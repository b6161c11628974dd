// How one accumulation step of a matrix atom multiplies, by element types, pack and what the processor has:
//   f64, f32                       one fma
//   f16, bf16, e4m3, e5m2 -> f32   widened to f32, one fma per k (bf16 pairs: one dot product where the
//                                  machine has it)
//   bytes -> i32                   pack 4: dot product of bytes where the machine has it (of one sign through
//                                  an offset)
//   other integers -> i32          widened to i32, multiply and add
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/llvm_setup.h"
#include "ir/dtype.h"

namespace tilegen::codegen {

struct MmaTypes {
  ir::DType a, b, c;
};

// Why no step exists for these types, if none does.
std::optional<std::string> mma_refusal(const MmaTypes& t);

class MmaSteps {
 public:
  // The k elements of one step: one value per k (widened), or one value for all of them (dot product form).
  using Operand = std::vector<llvm::Value*>;

  MmaSteps(llvm::IRBuilder<>& b, const MachineFeatures& f, MmaTypes types, int64_t lanes, int pack);

  llvm::Value* zero();
  // From what was loaded: lanes * pack elements of B; pack elements of A, spread over the lanes.
  Operand column(llvm::Value* loaded);
  Operand row(llvm::Value* loaded);
  llvm::Value* multiply_add(const Operand& row, const Operand& column, llvm::Value* acc);

  // The instruction takes bytes of both signs. Where A and B have one, 128 is added to every B, modulo 256,
  // which makes its sign the other. What that adds to a row of C, 128 times the sum of the row of A, is taken
  // off before the loop, which keeps the loop free of further accumulators. A sum is one of vectors of
  // `words` (4, 8, 16) words of A.
  bool biased() const { return offset_; }
  llvm::Value* no_bias(int64_t words);
  llvm::Value* add_bias(llvm::Value* sum, llvm::Value* loaded);
  llvm::Value* bias(llvm::Value* sum);  // what to add to each element of the row

 private:
  enum class Form { widened, bf16_dot, byte_dot };
  llvm::Value* widen(llvm::Value* v, ir::DType t);
  llvm::Value* spread(llvm::Value* scalar);
  Operand widened(llvm::Value* loaded, ir::DType t, int64_t count);
  llvm::Value* dot_bytes(llvm::Value* acc, llvm::Value* unsigned_bytes, llvm::Value* signed_bytes);

  llvm::IRBuilder<>& b_;
  MachineFeatures features_;
  MmaTypes types_;
  int64_t lanes_;
  int pack_;
  Form form_ = Form::widened;
  bool swap_ = false;    // byte_dot: B is the unsigned operand
  bool offset_ = false;  // byte_dot of one sign on both sides
};

}  // namespace tilegen::codegen
