// Runs a .tl text through the interpreter on tensors given by value.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "check/check_program.h"
#include "interp/interpreter.h"
#include "ir/text.h"

namespace tilegen::interp {

// A tensor in memory, read and written as doubles.
class Tensor {
 public:
  Tensor(ir::DType type, size_t elements, double value = 0)
      : type_(type), bytes_(elements * ir::dtype_bytes(type)) {
    for (size_t i = 0; i < elements; ++i) set(i, value);
  }
  size_t size() const { return bytes_.size() / ir::dtype_bytes(type_); }
  ir::DType type() const { return type_; }
  void set(size_t i, double v) {
    const uint64_t bits = ir::is_float(type_) ? ir::float_to_bits(type_, ir::round_to(type_, v))
                                              : static_cast<uint64_t>(static_cast<int64_t>(v));
    std::memcpy(&bytes_[i * ir::dtype_bytes(type_)], &bits, ir::dtype_bytes(type_));
  }
  double at(size_t i) const {
    uint64_t bits = 0;
    std::memcpy(&bits, &bytes_[i * ir::dtype_bytes(type_)], ir::dtype_bytes(type_));
    if (ir::is_float(type_)) return ir::float_from_bits(type_, bits);
    return static_cast<double>(ir::wrap_to(type_, static_cast<int64_t>(bits)));
  }
  std::vector<double> values() const {
    std::vector<double> v(size());
    for (size_t i = 0; i < v.size(); ++i) v[i] = at(i);
    return v;
  }
  uint64_t slot() { return std::bit_cast<uint64_t>(bytes_.data()); }

 private:
  ir::DType type_;
  std::vector<std::byte> bytes_;
};

// The text must parse and pass check_program.
inline ir::Program checked_program(const std::string& text) {
  Limits limits;
  auto program = ir::parse_program(text, "test.tl", limits);
  EXPECT_TRUE(program) << program.error().to_text();
  if (!program) return {};
  for (const Diagnostic& d : check::check_program(*program, limits)) ADD_FAILURE() << d.to_text();
  return std::move(*program);
}

inline void run_text(const std::string& text, std::vector<uint64_t> slots) {
  const ir::Program program = checked_program(text);
  if (testing::Test::HasFailure()) return;
  const Checked outcome = interpret(program, slots);
  EXPECT_TRUE(outcome) << outcome.error().to_text();
}

// The error's text, or "ran".
inline std::string fault_of(const std::string& text, std::vector<uint64_t> slots) {
  const ir::Program program = checked_program(text);
  if (testing::Test::HasFailure()) return "";
  const Checked outcome = interpret(program, slots);
  return outcome ? "ran" : outcome.error().to_text();
}

}  // namespace tilegen::interp
