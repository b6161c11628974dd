// Operands of warpgroup products as the PTX ISA draws them: images of shared memory in every form, and
// fragments in registers.
#pragma once

#include <string>
#include <vector>

#include "engine_program.h"

namespace tilegen::gpu {

// Matrices of bits, row-major [rows x k].
struct Matrix {
  DType type = DType::f16;
  int64_t rows = 0, k = 0;
  std::vector<uint64_t> bits;

  Matrix(DType t, int64_t r, int64_t depth)
      : type(t), rows(r), k(depth), bits(static_cast<size_t>(r * depth)) {}
  uint64_t& at(int64_t row, int64_t column) { return bits[static_cast<size_t>(row * k + column)]; }
  uint64_t at(int64_t row, int64_t column) const { return bits[static_cast<size_t>(row * k + column)]; }
  double value(int64_t row, int64_t column) const;
};

// One way to lay an operand. Core matrices, without a swizzle, follow one another along k or along the rows.
struct OperandForm {
  bool in_registers = false;
  int swizzle = 128;
  bool k_major = true;
  bool along_k_first = true;  // swizzle 0

  std::string name() const;
};
// `k_bytes`: of an instruction along k; a swizzled row along k has them all.
std::vector<OperandForm> operand_forms(bool of_a, bool mn_major, int64_t k_bytes = 32);

// An operand of `rows` rows (of A; columns of B) and `k` elements in all, of which an instruction takes
// `step`.
class OperandImage {
 public:
  OperandImage(const OperandForm& form, DType type, int64_t rows, int64_t k, int64_t step);

  // Elements of its memory: shared, or in registers of all 128 threads.
  int64_t elements() const { return bytes_ / element_; }
  std::vector<std::byte> make(const Matrix& m) const;
  std::vector<int64_t> steps() const;  // elements
  thread::MatrixForm matrix_form() const;
  const OperandForm& form() const { return form_; }

 private:
  int64_t place(int64_t row, int64_t k) const;  // byte
  int64_t straight(int64_t row, int64_t byte_of_row, int64_t k) const;
  OperandForm form_;
  DType type_;
  int64_t element_, rows_, k_, step_, bytes_ = 0;
};

// Where the accumulator of thread t has its element r.
struct Place {
  int64_t row = 0, column = 0;
};
Place accumulator_place(int64_t thread, int64_t r);

}  // namespace tilegen::gpu
