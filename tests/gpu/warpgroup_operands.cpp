#include "warpgroup_operands.h"

#include <cstring>

namespace tilegen::gpu {

namespace {

constexpr int64_t kThreads = 128, kCore = 128;  // bytes of a core matrix: 8 rows of 16

}  // namespace

double Matrix::value(int64_t row, int64_t column) const {
  const uint64_t b = at(row, column);
  return ir::is_float(type) ? ir::float_from_bits(type, b)
                            : static_cast<double>(ir::wrap_to(type, static_cast<int64_t>(b)));
}

std::string OperandForm::name() const {
  if (in_registers) return "registers";
  const std::string text =
      std::string(k_major ? "k-major" : "mn-major") + " swizzle " + std::to_string(swizzle);
  return swizzle != 0 ? text : text + (along_k_first ? " along k" : " along rows");
}

std::vector<OperandForm> operand_forms(bool of_a, bool mn_major, int64_t k_bytes) {
  std::vector<OperandForm> list;
  for (bool k_major : {true, false}) {
    if (!k_major && !mn_major) continue;
    for (int swizzle : {128, 64, 32})
      if (!k_major || swizzle >= k_bytes) list.push_back({false, swizzle, k_major, true});
    for (bool along_k : {true, false}) list.push_back({false, 0, k_major, along_k});
  }
  if (of_a) list.push_back({true, 0, true, true});
  return list;
}

OperandImage::OperandImage(const OperandForm& form, DType type, int64_t rows, int64_t k, int64_t step)
    : form_(form), type_(type), element_(ir::dtype_bytes(type)), rows_(rows), k_(k), step_(step) {
  int64_t padded_rows = rows, padded_k = k;  // rows of a swizzle are whole
  if (!form.in_registers && form.swizzle != 0) {
    const int64_t unit = form.swizzle / element_;
    int64_t& fast = form.k_major ? padded_k : padded_rows;
    fast = (fast + unit - 1) / unit * unit;
  }
  bytes_ = padded_rows * padded_k * element_;
}

// Before the swizzle.
int64_t OperandImage::straight(int64_t row, int64_t byte_of_row, int64_t k) const {
  const int64_t w = form_.swizzle;
  if (form_.in_registers) {
    // Registers of 32 bits, 4 to an instruction: row g, row g + 8, then both again 16 bytes further along k.
    const int64_t within = byte_of_row % (step_ * element_),
                  thread = row / 16 * 32 + row % 8 * 4 + within / 4 % 4;
    const int64_t word = byte_of_row / (step_ * element_) * 4 + within / 16 * 2 + row / 8 % 2;
    return thread * (k_ * element_ / 2) + word * 4 + within % 4;
  }
  if (w != 0 && form_.k_major)  // panels of w bytes along k, all rows deep
    return byte_of_row / w * (rows_ * w) + row * w + byte_of_row % w;
  if (w != 0) {  // panels of w bytes along the rows, all k deep
    const int64_t byte = row * element_;
    return byte / w * (k_ * w) + k * w + byte % w;
  }
  // Core matrices: 8 rows of 16 bytes along k, or 8 k of 16 bytes along the rows.
  const int64_t unit = 16 / element_;
  const int64_t by_k = form_.k_major ? byte_of_row / 16 : k / 8,
                by_row = form_.k_major ? row / 8 : row / unit;
  const int64_t all_k = form_.k_major ? k_ * element_ / 16 : k_ / 8;
  const int64_t all_rows = form_.k_major ? rows_ / 8 : rows_ / unit;
  const int64_t core = form_.along_k_first ? by_row * all_k + by_k : by_k * all_rows + by_row;
  return core * kCore +
         (form_.k_major ? row % 8 * 16 + byte_of_row % 16 : k % 8 * 16 + row % unit * element_);
}

int64_t OperandImage::place(int64_t row, int64_t k) const {
  return swizzled_byte(form_.in_registers ? 0 : form_.swizzle, straight(row, k * element_, k));
}

std::vector<std::byte> OperandImage::make(const Matrix& m) const {
  std::vector<std::byte> image(static_cast<size_t>(bytes_), std::byte{0});
  for (int64_t row = 0; row < rows_; ++row)
    for (int64_t k = 0; k < k_; ++k) {
      const uint64_t bits = m.at(row, k);
      std::memcpy(&image[static_cast<size_t>(place(row, k))], &bits, static_cast<size_t>(element_));
    }
  return image;
}

std::vector<int64_t> OperandImage::steps() const {
  std::vector<int64_t> list;
  for (int64_t k = 0; k < k_; k += step_) list.push_back(straight(0, k * element_, k) / element_);
  return list;
}

thread::MatrixForm OperandImage::matrix_form() const {
  thread::MatrixForm f;
  if (form_.in_registers) return f;
  f.swizzle = form_.swizzle, f.k_major = form_.k_major;
  if (form_.swizzle != 0) {
    f.stride_bytes = 8 * form_.swizzle;
    f.leading_bytes = form_.k_major ? 0 : k_ * form_.swizzle;
    return f;
  }
  const int64_t unit = 16 / element_;
  const int64_t next_row = straight(form_.k_major ? 8 : unit, 0, 0),
                next_k = form_.k_major ? straight(0, 16, unit) : straight(0, 8 * element_, 8);
  // The stride is the distance along the rows of core matrices, the leading one that along k, whichever is
  // the fast dimension.
  f.stride_bytes = next_row, f.leading_bytes = next_k;
  return f;
}

Place accumulator_place(int64_t thread, int64_t r) {
  const int64_t lane = thread % 32;
  return {thread / 32 * 16 + lane / 4 + r / 2 % 2 * 8, r / 4 * 8 + lane % 4 * 2 + r % 2};
}

}  // namespace tilegen::gpu
