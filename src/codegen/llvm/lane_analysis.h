// What is known of an index expression without running it: how it changes from lane to lane, what divides it,
// whether it can be negative. Structural and linear in the expression; "unknown" is always a legal answer.
//
// requires: index arithmetic does not wrap (the language's rule for i64 indices); loop and block variables,
// and dims, start at 0 or more.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "thread/thread_program.h"

namespace tilegen::codegen {

// value(lane) = value(0) + stride * lane when `affine`; stride 0 means uniform.
struct LaneForm {
  bool affine = true;
  int64_t stride = 0;
  bool of_lane = false;  // the lane variable occurs in it (a uniform value may still be one: lane // 64)
  bool uniform() const { return affine && stride == 0; }
};

class LaneAnalysis {
 public:
  explicit LaneAnalysis(const thread::ThreadProgram& program) : program_(&program), exprs_(&program.exprs) {}

  // Begins a loop of `width` lanes over `lane_var`; forgets the previous one. The variable's value at lane 0
  // is a multiple of `base_divisor` (0: it is 0).
  void enter(ir::VarId lane_var, int64_t width, int64_t base_divisor = 0);
  void leave() { enter(ir::VarId(), 1); }

  LaneForm form(ir::ExprId e);
  // Largest known divisor of value(lane 0); 0 means the value is 0.
  int64_t divisor(ir::ExprId e);
  bool non_negative(ir::ExprId e);

 private:
  LaneForm compute_form(ir::ExprId e);
  bool mentions_lane(ir::ExprId e);
  std::optional<LaneForm> divided_form(const ir::ExprNode& n);
  int64_t compute_divisor(ir::ExprId e);
  bool compute_non_negative(ir::ExprId e);
  // Splits e into lane part + constant + rest and returns whether floor(e / d) is the same for every lane.
  bool quotient_uniform(ir::ExprId e, int64_t d);
  bool split(ir::ExprId e, int64_t sign, int64_t d, int64_t& constant);

  const thread::ThreadProgram* program_;
  const ir::ExprPool* exprs_;
  ir::VarId lane_;
  int64_t width_ = 1, base_divisor_ = 0;
  std::unordered_map<ir::ExprId, LaneForm> forms_;
  std::unordered_map<ir::ExprId, int64_t> divisors_;
  std::unordered_map<ir::ExprId, bool> non_negative_;
};

}  // namespace tilegen::codegen
