// What a launch asks of its arguments, compiled once per program: the usual launch is checked and bound
// without allocation and without text. Whatever the plan cannot settle, or finds wrong, is left to
// bind_arguments, which knows every case and every message.
#pragma once

#include <optional>
#include <vector>

#include "runtime/arguments.h"
#include "runtime/scalar_code.h"

namespace tilegen::runtime {

class ArgumentPlan {
 public:
  explicit ArgumentPlan(const ir::Program& program);

  static constexpr size_t kMaxParams = 64;  // of programs with more nothing is settled here
  size_t params() const { return params_.size(); }

  // Fills one slot per parameter as bind_arguments does, workspaces' with 0. False: not settled here, ask
  // bind_arguments; what it accepts and what this accepts give the same slots.
  bool bind(std::span<const Argument> arguments, const MemoryReach& device, std::span<uint64_t> slots) const;

 private:
  // An extent or a stride: scale * dim + offset, or a root of code_ that is compared once all dims are known.
  struct Extent {
    int dim = -1;   // parameter; -1: the constant `offset`
    int root = -1;  // of code_
    int64_t scale = 0, offset = 0;
  };
  struct Tensor {
    size_t param = 0;
    ir::DType type = ir::DType::f32;
    int64_t element = 4;    // bytes, a power of two
    uint64_t low_bits = 3;  // of an address, not set
    uint64_t least = 1;     // address: none is null where a kernel accesses the tensor
    size_t rank = 0;
    size_t extents = 0;  // first in extents_
    bool strided = false;
    bool optional = false;  // the next parameter is its presence
    size_t strides = 0;     // first in extents_

    bool takes(uint64_t address) const { return address >= least && (address & low_bits) == 0; }
  };
  struct Param {
    ir::Param::Kind kind = ir::Param::Kind::tensor;
    ir::DType type = ir::DType::i64;
    bool workspace = false;
    bool presence = false;
  };
  struct Dim {
    size_t param = 0;
    int64_t lower = 0, upper = 0;
    uint64_t low_bits = 0, odd = 1;  // the divisor is (low_bits + 1) * odd
    int64_t first_ordinary = 0, last_ordinary = -1;

    // not negative
    bool divides(uint64_t v) const { return (v & low_bits) == 0 && (odd == 1 || v % odd == 0); }
  };
  static constexpr size_t kMaxRoots = 64, kMaxRank = 16;
  static bool scalar_slot(ir::DType type, const Argument& a, uint64_t* slot);

  class Binding;
  void add_extents(const ir::Program& program, const std::vector<ir::ExprId>& list,
                   const std::vector<int>& slot_of, std::vector<ir::ExprId>& roots);

  void find_ordinary();
  bool bind_values(std::span<const Argument> arguments, uint64_t* slots) const;

  bool usable_ = false;
  bool any_strided_ = false;  // of tensors_
  size_t implied_ = 0;        // of params_, workspaces and presences: no argument gives them
  // Every extent is a positive multiple of one dim, plus something, or a positive constant; no strides. Where
  // all dims lie between their first and last ordinary value no tensor is empty and none has bytes that
  // overflow.
  bool ordinary_ = false;
  std::vector<Param> params_;
  std::vector<Dim> dims_;
  std::vector<Tensor> tensors_;  // that arguments give
  std::vector<Extent> extents_;
  std::optional<ScalarCode> code_;
};

}  // namespace tilegen::runtime
