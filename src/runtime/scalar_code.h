// Integer expressions over parameter values, compiled once to a list of steps, so that a launch evaluates
// them without allocation and without walking a tree.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/expr.h"
#include "support/checked.h"

namespace tilegen::runtime {

class ScalarCode {
 public:
  static constexpr size_t kMaxSteps = 192;  // more are left to the slow evaluators

  // `slot_of` names the parameter slot of a variable, -1 where it has none. None for expressions that are not
  // made of constants, integer parameters and operations on i64 and bool, or that are too long.
  static std::optional<ScalarCode> compile(const ir::ExprPool& pool, std::span<const ir::ExprId> roots,
                                           const std::function<int(ir::VarId)>& slot_of);

  // out[i] = value of root i. `slots` hold integers in the low bytes of their type. False where an addition,
  // subtraction or multiplication overflowed; the values wrapped then.
  bool run(std::span<const int64_t> slots, std::span<int64_t> out) const {
    if (!steps_.empty()) return run_steps(slots, out);
    bool exact = true;
    for (size_t i = 0; i < ratios_.size(); ++i) out[i] = value(ratios_[i], slots, &exact);
    return exact;
  }
  size_t roots() const { return steps_.empty() ? ratios_.size() : roots_.size(); }

 private:
  // (slot * scale + offset) / divisor, rounded down: what most grids, extents and strides are.
  struct Ratio {
    uint32_t slot = 0;
    int32_t shift = 0;  // of a division by a power of two, else -1
    int64_t scale = 1, offset = 0, divisor = 1;  // scale 0: the slot is not looked at
  };
  struct Step {
    ir::ExprOp op = ir::ExprOp::const_int;
    ir::DType type = ir::DType::i64;
    int8_t shift = -1;             // of a division by a power of two
    bool immediate = false;        // the second operand is imm
    bool ratio = false;            // the value is that of ratios_[imm]
    uint16_t a = 0, b = 0, c = 0;  // steps
    int64_t imm = 0;               // literal, or parameter slot
  };
  template <class SlotOf>
  static std::optional<Ratio> as_ratio(const ir::ExprPool& pool, ir::ExprId id, const SlotOf& slot_of);
  static int64_t other(const Step& step, int64_t a, int64_t b);
  static bool plain(const Step& step, int64_t a, int64_t b, int64_t* out, bool* exact);
  bool run_steps(std::span<const int64_t> slots, std::span<int64_t> out) const;

  static int64_t value(const Ratio& r, std::span<const int64_t> slots, bool* exact) {
    int64_t v = r.scale == 0 ? 0 : slots[r.slot];
    if (r.scale != 1) *exact &= !__builtin_mul_overflow(v, r.scale, &v);
    *exact &= !__builtin_add_overflow(v, r.offset, &v);
    return r.shift >= 0 ? v >> r.shift : floor_div(v, r.divisor);
  }

  std::vector<Ratio> ratios_;
  std::vector<Step> steps_;  // none: the roots are the ratios
  std::vector<uint16_t> roots_;
};

}  // namespace tilegen::runtime
