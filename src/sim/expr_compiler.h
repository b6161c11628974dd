// Expressions of a thread program to instructions: where each is evaluated, and whether once per warp or per
// lane.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sim/bytecode.h"

namespace tilegen::sim {

class ExprCompiler {
 public:
  ExprCompiler(const thread::ThreadProgram& program, Bytecode& out);

  // Loops around the statement being compiled; the segment runs at the start of each iteration.
  void enter_loop(ir::VarId var, uint32_t segment) { loops_.push_back({var, segment}); }
  void leave_loop() { loops_.pop_back(); }
  uint32_t add_segment();
  uint32_t add_loop_segment() { return lasting_segments_.push_back(add_segment()), lasting_segments_.back(); }

  // A statement begins: expressions with loads go to `segment`; inside a vectorized loop what depends on the
  // lane variable goes to `lane_segment`.
  void begin_statement(uint32_t stmt, uint32_t segment);
  void begin_lanes(ir::VarId var, uint32_t lane_segment, int64_t extent);
  // Gives the temporaries of the statement their places and replaces the value numbers that use() returned.
  void end_statement(std::span<Ref* const> operands);

  // A value as an operand of the statement, as a number until end_statement.
  Ref use(ir::ExprId id);
  uint32_t add_access(thread::MemoryId memory, const char* action, bool write, int64_t width);
  // True when `id` is the lane variable plus something that is the same for all lanes of the vectorized loop.
  bool runs_along_lanes(ir::ExprId id) const;
  bool depends_on_lanes(ir::ExprId id) const;

  // Gives the values of loops and of the prologue their places.
  void finish();

 private:
  struct LoopLevel {
    ir::VarId var;
    uint32_t segment;
  };
  struct NodeFacts {
    bool known = false;
    bool loads = false;         // reads memory
    bool uniform = false;       // the same for all lanes of a warp
    bool warp_aligned = false;  // a multiple of the warp plus the lane number
    std::vector<ir::VarId> vars;
  };
  const NodeFacts& facts(ir::ExprId id);
  void find_facts(ir::ExprId id, NodeFacts& f);
  bool is_multiple_of_warp(ir::ExprId id) const;
  uint32_t segment_of(const NodeFacts& f) const;
  // Makes sure that the value is computed where `user` can see it; returns its number.
  uint32_t value(ir::ExprId id, uint32_t user);
  uint32_t leaf(ir::ExprId id, const ir::ExprNode& n);
  uint32_t first_lane_value(ir::ExprId id, uint32_t user);
  Instr instruction(ir::ExprId id, const ir::ExprNode& n);
  void append(uint32_t segment, uint32_t value, Instr instr);
  void note_use(uint32_t value, uint32_t segment);
  uint32_t uniform_slot() {
    return out_.uniform.push_back({.i = 0}), static_cast<uint32_t>(out_.uniform.size() - 1);
  }
  // Temporaries from `used` on; returns the first that is free after.
  uint32_t number_segment(uint32_t segment, uint32_t used);
  Ref resolved(Ref value) const { return value.at == kNothing ? Ref{} : places_[value.at]; }

  const thread::ThreadProgram& p_;
  Bytecode& out_;
  std::vector<NodeFacts> facts_;
  std::vector<Ref> places_;  // by value number: expression ids, then the first-lane forms of expressions
  std::vector<std::unordered_set<uint32_t>> placed_;  // by segment: values it computes
  std::vector<std::vector<uint32_t>> lasting_;        // by segment: values a step reads after it
  std::vector<LoopLevel> loops_;
  std::vector<uint32_t> lasting_segments_;  // of loops and the prologue: numbered last
  uint32_t stmt_ = 0, segment_ = 0, lane_segment_ = 0;
  ir::VarId lane_var_;
  int64_t lane_extent_ = 0;
};

}  // namespace tilegen::sim
