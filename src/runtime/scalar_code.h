// Integer expressions over parameter values, compiled once to a list of steps, so that a launch evaluates them
// without allocation and without walking a tree.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/expr.h"

namespace tilegen::runtime {

class ScalarCode {
 public:
  static constexpr size_t kMaxSteps = 192;  // more are left to the slow evaluators

  // `slot_of` names the parameter slot of a variable, -1 where it has none. None for expressions that are not
  // made of constants, integer parameters and operations on i64 and bool, or that are too long.
  static std::optional<ScalarCode> compile(const ir::ExprPool& pool, std::span<const ir::ExprId> roots,
                                           const std::function<int(ir::VarId)>& slot_of);

  // out[i] = value of root i. `slots` hold integers in the low bytes of their type. False where an addition, subtraction or
  // multiplication overflowed; the values wrapped then.
  bool run(std::span<const int64_t> slots, std::span<int64_t> out) const;
  size_t roots() const { return roots_.size(); }

 private:
  struct Step {
    ir::ExprOp op = ir::ExprOp::const_int;
    ir::DType type = ir::DType::i64;
    int8_t shift = -1;             // of a division by a power of two
    bool immediate = false;        // the second operand is imm
    uint16_t a = 0, b = 0, c = 0;  // steps
    int64_t imm = 0;               // literal, or parameter slot
  };
  static int64_t other(const Step& step, int64_t a, int64_t b);
  static bool plain(const Step& step, int64_t a, int64_t b, int64_t* out, bool* exact);

  std::vector<Step> steps_;
  std::vector<uint16_t> roots_;
};

}  // namespace tilegen::runtime
