// Registers of the places of A's values that a sparse instruction takes, gathered from the tile of words that
// the product names, of any size.
//
//   places[m] = P[row] >> 16 * (lane % 2) & 0xffff | (P[row + 8] >> 16 * (lane % 2) & 0xffff) << 16
//
// Instructions take no two equal places of a group. They stand in front of two zeros, as words beyond the
// edge of a tensor are: the second becomes its neighbour.
#pragma once

#include "lower/gpu/gemm.h"
#include "lower/lowering_context.h"

namespace tilegen::lower {

class SparsePlaces {
 public:
  // The tile of words; invalid, and reported, where it is none in memory.
  static ValueId words_of(LoweringContext& k, const ir::TileOp& op);
  // `places`: of an instruction, over `lane`; `first_row`: of the thread's warp or warpgroup.
  SparsePlaces(LoweringContext& k, const ir::TileOp& op, const layout::Fragment& places, ValueId words,
               ExprId first_row, ExprId lane);
  void mean_current_slot();
  // The lane's register of the instruction whose A begins at (row, k).
  ExprId word(int64_t row, int64_t k);

 private:
  // Neighbouring groups of a row, in neighbouring bits of the register.
  struct Run {
    int64_t row = 0, group = 0, first = 0, groups = 0;
  };
  ExprId bits_of(const Run& run, int64_t row, int64_t k);
  OperandAddresses addresses(const ir::TileOp& op, ExprId first_row, ExprId lane);

  LoweringContext& k_;
  ir::ExprPool& e_;
  const layout::Fragment& places_;
  ValueId value_;
  MemoryId memory_;
  ir::DType type_ = ir::DType::none;
  int64_t word_bits_ = 0;
  std::vector<Run> runs_;
  ExprId in_word_;  // bits in front of the lane's groups
  ExprId slot_;
  OperandAddresses addresses_;
};

}  // namespace tilegen::lower
