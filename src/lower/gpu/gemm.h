// Addresses of a matrix operand's elements in shared memory, for all threads at once and cheap to compute:
// one expression of the thread index, then constants, added or XORed, for the tiles and k steps of the
// unrolled code.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "analysis/gemm_shape.h"
#include "lower/gpu/work_beside.h"
#include "lower/lowering_context.h"

namespace tilegen::lower {

class OperandAddresses {
 public:
  // Where the operand lies: `row0`, `k0` is the first element of the region used (row: along m or n).
  struct Place {
    const layout::Layout* layout = nullptr;
    analysis::MatrixDims dims;
    int side = 0;
    ExprId row0, k0;
    int64_t rows = 0;      // of the region: rows beyond are replaced by the last
    int64_t together = 1;  // that are read at once, from the first of them on
  };
  // `row`, `k`: what a thread's place adds to the coordinates, expressions of the thread variable.
  OperandAddresses(LoweringContext& lowering, const Place& place, ExprId row, ExprId k);

  // Element (thread's row + row, thread's k + k + step * loop variable), as an index into the slot.
  ExprId at(int64_t row, int64_t k, ExprId loop = ExprId(), int64_t step = 0);
  // Every thread's element lies at a multiple of `elements`, and `elements` along the contiguous dimension
  // follow it.
  bool aligned(int64_t row, int64_t k, int64_t elements);

 private:
  struct Base {
    ExprId index;
    std::vector<int64_t> values;  // by thread
  };
  std::vector<int64_t> values(int64_t row, int64_t k) const;
  ExprId general(int64_t row, int64_t k, ExprId further_k);
  std::vector<ExprId> coordinates(ExprId row, ExprId k) const;

  LoweringContext& lowering_;
  Place place_;
  ExprId row_, k_;
  std::vector<int64_t> thread_row_, thread_k_;
  int64_t row_offset_ = 0, k_offset_ = 0;
  bool fixed_ = true;  // the region's place is a constant
  std::vector<Base> bases_;
};

class GemmLowering;

// A product in a loop whose operands' first k step is loaded ahead of the iteration that works on it
// (plan::LoopPlan::register_prefetch). What slots of the operands are meant is read from the lowering's state
// at every call.
class StagedGemm {
 public:
  StagedGemm(LoweringContext& lowering, const analysis::KernelOp& op, const ir::TileOp& tile_op);
  ~StagedGemm();
  void first_step(thread::Block& out);
  // All instructions; `next` is called before the last ones, when all of this iteration's tiles has been
  // read. `beside` stands between those in front of them.
  void steps(thread::Block& out, WorkBeside beside, const std::function<void()>& next);

 private:
  std::unique_ptr<GemmLowering> gemm_;
};

}  // namespace tilegen::lower
