// What is known of an index expression without running it: how it changes from lane to lane, what divides it,
// whether it can be negative. Structural and linear in the expression; "unknown" is always a legal answer.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "codegen/llvm/index_facts.h"
#include "thread/thread_program.h"

namespace tilegen::codegen {

// value(lane) = value(0) + stride * lane, modulo 2^64, when `affine`; stride 0 means uniform.
struct LaneForm {
  bool affine = true;
  int64_t stride = 0;
  bool of_lane = false;  // the lane variable occurs in it (a uniform value may still be one: lane // 64)
  bool uniform() const { return affine && stride == 0; }
};

class LaneAnalysis {
 public:
  LaneAnalysis(const thread::ThreadProgram& program, IndexFacts& facts)
      : program_(&program), exprs_(&program.exprs), facts_(&facts) {}

  // Begins a loop of `width` lanes over `lane_var`; forgets the previous one. The variable's value at lane 0
  // is a multiple of `base_divisor` (0: it is 0).
  void enter(ir::VarId lane_var, int64_t width, int64_t base_divisor = 0);
  void leave() { enter(ir::VarId(), 1); }

  LaneForm form(ir::ExprId e);
  // Largest known divisor of value(lane 0); 0 means the value is 0.
  int64_t divisor(ir::ExprId e);
  bool non_negative(ir::ExprId e) { return facts_->range(e).lo >= 0; }
  // An affine value is so over the integers too: it does not wrap on its way from lane to lane.
  bool exact(ir::ExprId e) { return facts_->range(e).within({-(int64_t{1} << 62), int64_t{1} << 62}); }

 private:
  LaneForm compute_form(ir::ExprId e);
  bool mentions_lane(ir::ExprId e);
  std::optional<LaneForm> divided_form(const ir::ExprNode& n);
  int64_t compute_divisor(ir::ExprId e);
  // Splits e into lane part + constant + rest and returns whether floor(e / d) is the same for every lane.
  bool quotient_uniform(ir::ExprId e, int64_t d);
  bool split(ir::ExprId e, int64_t sign, int64_t d, int64_t& constant);

  const thread::ThreadProgram* program_;
  const ir::ExprPool* exprs_;
  IndexFacts* facts_;
  ir::VarId lane_;
  int64_t width_ = 1, base_divisor_ = 0;
  std::unordered_map<ir::ExprId, LaneForm> forms_;
  std::unordered_map<ir::ExprId, int64_t> divisors_;
};

}  // namespace tilegen::codegen
