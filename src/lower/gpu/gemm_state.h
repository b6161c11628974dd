// What the ways of lowering a matrix product for warps share: where operands lie, which registers hold them,
// and the accumulators. Not used outside the gpu_gemm and gpu_fma files.
#pragma once

#include <utility>

#include "analysis/gemm_shape.h"
#include "ir/op_kinds.h"
#include "lower/gpu/gemm.h"
#include "lower/lowering_context.h"

namespace tilegen::lower {

// Where a fragment of an atom has what its registers hold in lane 0.
struct RegisterPlaces {
  std::vector<int64_t> first, second;  // coordinates, by register
};
RegisterPlaces register_places(const layout::Fragment& f);

class GemmState {
 protected:
  GemmState(LoweringContext& k, const analysis::KernelOp& op, const plan::OpPlan& plan,
            const ir::TileOp& tile_op, const target::MmaAtom& atom, thread::Block* out)
      : k_(k),
        e_(k.out.exprs),
        op_(op),
        plan_(plan),
        tile_op_(tile_op),
        atom_(atom),
        out_(out),
        shape_(analysis::gemm_shape(k.in.program, tile_op)) {}

  // The op is the one being lowered while this lives.
  struct Current {
    explicit Current(GemmState& g) : k(g.k_), before(std::exchange(g.k_.at.op, &g.op_)) {}
    ~Current() { k.at.op = before; }
    LoweringContext& k;
    const analysis::KernelOp* before;
  };

  // One of the two operands.
  struct Side {
    int operand = 0, index = 0;  // of the op; 0 = A, 1 = B
    analysis::MatrixDims dims;
    ExprId row0, k0;  // where the region begins
    int64_t tiles = 1;
    ExprId warp_row;  // first row of the warp
    const layout::Fragment* atom = nullptr;
    ir::DType type = ir::DType::none;
    bool shared = false;
    // shared
    OperandAddresses::Place place;
    MemoryId memory;
    ValueId value;
    ExprId slot;  // first element
    // in registers
    FragmentView held;
  };

  template <class Node>
  void emit(Node node) {
    out_->push_back(k_.out.add(std::move(node), op_.path));
  }
  void store(MemoryId m, ExprId index, ExprId value) {
    emit(thread::Store{m, index, value, ExprId(), false, ExprId()});
  }
  // `width` elements beside each other, as one access.
  void load_wide(MemoryId to, int64_t place, MemoryId from, ExprId index, int64_t width);
  ExprId load(MemoryId m, ExprId index) {
    return e_.load(m, k_.out.memory(m).type, std::vector<ExprId>{index});
  }

  void place_operands(int a, int b);
  void mean_current_slots();
  FragmentView operand_form(ValueId value, int index);
  Side side(int operand, int index, int64_t tiles, ExprId warp_row);

  // ---- registers of fragments
  // Register of the fragment that holds the warp's element (row, col) of a region that begins at (row0,
  // col0).
  ExprId register_at(const FragmentView& held, const analysis::MatrixDims& dims, ExprId row0, ExprId col0,
                     int64_t row, int64_t col);
  ExprId register_of(const Side& s, int64_t row, int64_t k);

  // ---- accumulators
  void begin_accumulators(int c, bool clear);
  void finish_accumulators();
  void add_to_accumulators();  // where the op promotes
  bool promotes_after(int64_t step) const {
    return promotes_ && ((step + 1) * atom_.k % ir::gemm_attr::kPromoted == 0 || step + 1 == steps_);
  }
  template <class Visit>
  void for_accumulators(Visit&& visit) {
    for (int64_t m = 0; m < tiles_m_; ++m)
      for (int64_t n = 0; n < tiles_n_; ++n)
        for (int64_t i = 0; i < c_registers_ && !k_.failed(); ++i)
          visit(e_.add(sum_tile(m, n), i), e_.add(c_tile(m, n), i));
  }
  ExprId c_tile(int64_t m, int64_t n);
  ExprId sum_tile(int64_t m, int64_t n);

  int64_t atom_rows(const Side& s) const { return s.index == 0 ? atom_.m : atom_.n; }
  int64_t atom_k(const Side& s) const { return s.index == 0 ? atom_.a_k() : atom_.k; }  // of its tile
  // Where the lanes of the atom's layout stand.
  OperandAddresses lane_addresses(const Side& s);

  LoweringContext& k_;
  ir::ExprPool& e_;
  const analysis::KernelOp& op_;
  const plan::OpPlan& plan_;
  const ir::TileOp& tile_op_;
  const target::MmaAtom& atom_;
  thread::Block* out_;
  const analysis::GemmShape shape_;
  ExprId lane_;
  int64_t tiles_m_ = 1, tiles_n_ = 1, steps_ = 1;  // atoms of a warp
  Side sides_[2];
  FragmentView c_held_;
  analysis::MatrixDims c_dims_;
  ExprId c_row0_, c_col0_;
  int64_t c_registers_ = 1;
  MemoryId sum_;           // where sums are kept: C's registers, or wider ones
  bool rounds_ = false;    // ... which C gets at the end
  bool promotes_ = false;  // ... or sums of few steps, which are added to C's
};

// The product as plain multiply-adds.
void lower_multiply_adds(LoweringContext& k, const analysis::KernelOp& op, const plan::OpPlan& plan,
                         const ir::TileOp& tile_op, const target::MmaAtom& atom, thread::Block& out);

}  // namespace tilegen::lower
