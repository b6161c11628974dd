// Parameters and memory of one launch of a program: what a test runs on and compares.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "executors.h"
#include "guarded_memory.h"
#include "runtime/dim_solver.h"
#include "runtime/reports.h"

namespace tilegen::differential {

// Distance from 1 to the next number of the type.
double epsilon(ir::DType t);
// That of the smallest normal number at least.
double unit_in_last_place(ir::DType t, double x);

struct Tensor {
  ir::BufferId buffer;
  std::string name;
  ir::DType type = ir::DType::none;
  std::vector<int64_t> shape, strides;
  std::vector<std::byte> initial;
  int64_t elements = 1;
  bool workspace = false;
  bool report = false;  // a workspace of what the launch tells, 0 at first
  bool dense = false;   // rows after one another
  bool absent = false;  // optional, and the launch passes null

  int64_t offset(int64_t linear) const {
    if (dense) return linear;
    int64_t at = 0;
    for (size_t d = shape.size(); d-- > 0; linear /= shape[d]) at += linear % shape[d] * strides[d];
    return at;
  }
  uint64_t element(std::span<const std::byte> memory, int64_t at) const {
    uint64_t bits = 0;
    std::memcpy(&bits, &memory[static_cast<size_t>(at * ir::dtype_bytes(type))],
                static_cast<size_t>(ir::dtype_bytes(type)));
    return bits;
  }
  std::string element_name(int64_t linear) const {
    std::string index;
    for (size_t d = shape.size(); d-- > 0; linear /= shape[d])
      index = std::to_string(linear % shape[d]) + (index.empty() ? "" : ", ") + index;
    return name + "[" + index + "]";
  }
};

// Parameter slots and tensors of one launch.
class LaunchMemory {
 public:
  // An error text, or empty.
  std::string bind(const ir::Program& p, const Launch& launch);
  // The same in two steps, as filling takes long and not all memory is launched on.
  // An optional tensor X is null where dims has 0 for "present(X)", and by the seed in one of three.
  std::string place(const ir::Program& p, const Launch& launch);
  void fill(const Launch& launch);
  // Every other element of each tensor becomes 0.
  void add_zeros();
  std::vector<GuardedMemory> fresh(bool at_end) const;
  std::vector<uint64_t> slots(const std::vector<GuardedMemory>& memory) const;
  // What a launch that left this memory tells: lines that are printed, then assertions that do not hold.
  std::string told(const std::vector<GuardedMemory>& memory) const;
  // The difference of such lines, or empty; -0 and 0 are one.
  std::string compare_told(const std::vector<GuardedMemory>& expected, const std::string& lines) const;
  // First difference, or empty, of results. `bounds`: of tensors that have another one.
  std::string compare(const std::vector<GuardedMemory>& expected, const std::vector<GuardedMemory>& got,
                      const Bound& bound, const std::map<std::string, Bound>& bounds = {}) const;

  // By parameter: the tensor's number in the order above; -1: not a tensor.
  const std::vector<int>& tensor_of() const { return tensor_of_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::string place_tensor(const ir::Program& p, size_t param, const Launch& launch,
                           const runtime::DimSolver& dims);
  const ir::Program* program_ = nullptr;
  std::vector<uint64_t> slots_;
  std::vector<Tensor> tensors_;
  std::vector<int> tensor_of_;  // by parameter; -1: not a tensor
};

// Adds them, each with its end.
runtime::LineSink lines_to(std::string& lines);

}  // namespace tilegen::differential
