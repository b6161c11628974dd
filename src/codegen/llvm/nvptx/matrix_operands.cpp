#include "codegen/llvm/nvptx/matrix_operands.h"

#include <algorithm>

namespace tilegen::codegen {
namespace {

constexpr int64_t kRegisterBytes = 4;

MatrixWord word_of(ir::DType type) {
  switch (type) {
    case ir::DType::f16:
      return MatrixWord::half2;
    case ir::DType::f32:
      return MatrixWord::f32;
    case ir::DType::f64:
      return MatrixWord::f64;
    default:
      return MatrixWord::i32;
  }
}

int registers_of(const layout::Fragment& lanes, ir::DType type) {
  const int64_t bytes = ir::dtype_bytes(type);
  return static_cast<int>(lanes.registers() * bytes / std::max(bytes, kRegisterBytes));
}

}  // namespace

MatrixOperands matrix_operands(const target::MmaAtom& atom) {
  // Inline assembly takes registers of halves as words.
  const bool as_words = (atom.given || atom.sparse()) && atom.a == ir::DType::f16;
  return {atom.tf32  ? MatrixWord::tf32
          : as_words ? MatrixWord::i32
                     : word_of(atom.a),
          word_of(atom.c),
          registers_of(atom.a_layout, atom.a),
          registers_of(atom.b_layout, atom.b),
          registers_of(atom.c_layout, atom.c),
          atom.sparse()};
}

}  // namespace tilegen::codegen
