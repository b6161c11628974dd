// Matrix products of whole warpgroups (wgmma): the operands are read where they lie in shared memory, the
// sums stay in registers, and the instructions run beside what follows until somebody waits for them.
#include <algorithm>
#include <utility>

#include "analysis/gemm_shape.h"
#include "analysis/warpgroup_operand.h"
#include "ir/op_kinds.h"
#include "lower/addressing.h"
#include "lower/gpu/operand_transpose.h"
#include "lower/gpu/registers.h"
#include "lower/gpu/sparse_places.h"
#include "lower/gpu/warpgroups.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

namespace {

class WarpgroupGemm {
 public:
  WarpgroupGemm(LoweringContext& k, const analysis::KernelOp& op, const plan::OpPlan& plan,
                const ir::TileOp& tile_op, target::WarpgroupInstruction instruction, thread::Block& out)
      : k_(k),
        e_(k.out.exprs),
        op_(op),
        plan_(plan),
        tile_op_(tile_op),
        n_(instruction.n),
        atom_(instruction.atom),
        k_step_(instruction.atom->k),
        shape_(analysis::gemm_shape(k.in.program, tile_op)),
        swapped_(analysis::swaps_operands(shape_, k.in.target)),
        out_(out) {}

  void run(int a, int b, int c, bool clear) {
    const int64_t groups_m = (swapped_ ? plan_.warps_n : plan_.warps_m) / k_.in.target.warpgroup_warps(),
                  groups_n = swapped_ ? plan_.warps_m : plan_.warps_n;
    parts_m_ = (swapped_ ? shape_.n : shape_.m) / (groups_m * atom_->m);
    parts_n_ = (swapped_ ? shape_.m : shape_.n) / (groups_n * n_);
    const ExprId group = e_.floordiv(e_.var(k_.out.thread_var), e_.const_int(k_.in.target.warpgroup));
    // Further warpgroups have copies.
    group_m_ = k_.simplified(e_.floormod(e_.floordiv(group, e_.const_int(groups_n)), e_.const_int(groups_m)));
    group_n_ = k_.simplified(e_.floormod(group, e_.const_int(groups_n)));
    transpose_operands();
    if (k_.failed()) return;
    const Operand left = swapped_ ? operand(b, 0) : operand(a, 0),
                  right = swapped_ ? operand(a, 1) : operand(b, 1);
    if (k_.failed()) return;
    const ir::Region& sum = tile_op_.operands[static_cast<size_t>(c)];
    const ValueId value = value_of(k_, sum.buffer);
    if (!value.valid()) return;
    sum_ = fragment_view(k_, value);
    clear = clear || k_.role.products_overwrite;
    take_part(swapped_ ? 0 : 1);
    clear = clear && steps_.first == 0;  // the first part has cleared them
    gather_places();
    if (k_.failed()) return;
    if (shape_.promote) return promoted(left, right, clear);
    emit(thread::WarpgroupFence{});
    for (int64_t m = 0; m < parts_m_; ++m)
      for (int64_t n = 0; n < parts_n_; ++n) emit(product(left, right, m, n, clear));
    emit(thread::WarpgroupCommit{});
    if (!k_.role.product_in_flight) emit(thread::WarpgroupWait{0, {sum_.memory}});
  }

 private:
  struct Operand {
    MemoryId memory;
    bool shared = true;
    ExprId first;  // element of the warpgroup's first part, or register
    analysis::WarpgroupOperand form;
    FragmentView held;
  };

  template <class Node>
  void emit(Node node) {
    out_.push_back(k_.out.add(std::move(node), op_.path));
  }

  // Of the right operand, which comes in parts of its columns: these are k, or the warpgroup's part of n.
  void take_part(int index) {
    if (k_.role.part == expand::Issue::kWhole) return;
    const ir::Region& r = tile_op_.operands[static_cast<size_t>(index)];
    const ValueId value = value_of(k_, r.buffer);
    const auto line = std::find_if(
        k_.role.pipelines.begin(), k_.role.pipelines.end(),
        [&](const PipelineBarriers& b) { return b.pipeline->parts > 1 && b.pipeline->values.count(value); });
    const int64_t steps = shape_.k / k_step_;
    if (line == k_.role.pipelines.end() || swapped_ || shape_.promote || atom_->sparse())
      return refuse_part("its right operand has no parts");
    const int64_t parts = line->pipeline->parts;
    const bool transpose = tile_op_.flag(ir::gemm_attr::transpose_b);
    const analysis::MatrixDims dims = analysis::matrix_dims(k_.in.program, r, transpose);
    int64_t group = 0;
    if (analysis::k_is_contiguous(dims, 1)) {
      if (steps % parts != 0) return refuse_part(std::to_string(steps) + " steps along k do not divide");
      steps_ = {k_.role.part * (steps / parts), steps / parts};
    } else if (plan_.warps_n != parts || !e_.is_const_int(group_n_, &group) || group != k_.role.part) {
      refuse_part("the warpgroup's columns are others");
    }
  }
  void refuse_part(const std::string& why) {
    k_.fail(DiagCode::schedule_illegal, op_.path,
            "the product reads part " + std::to_string(k_.role.part) + " of a tile, but " + why,
            "leave `parts` of the pipeline out of the schedule to have them planned");
  }

  // Operand `side` of the instructions is operand `index` of the op.
  Operand operand(int index, int side) {
    const ir::Region& r = tile_op_.operands[static_cast<size_t>(index)];
    const bool transpose =
        tile_op_.flag(index == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b);
    Operand o;
    const ValueId value = value_of(k_, r.buffer);
    if (!value.valid()) return o;
    const plan::ValuePlan& plan = k_.in.schedule.values[value.index()];
    o.memory = k_.names.values[value];
    o.shared = plan.memory.has_value();
    if (const auto stored = k_.role.stored.find(value); side == 0 && k_.role.own_left) {
      if (stored == k_.role.stored.end()) {
        k_.fail(DiagCode::schedule_illegal, op_.path,
                "the schedule has its left operand in registers (left_in_registers), but '" +
                    k_.in.program.buffer(r.buffer).name + "' is not stored from registers of its elements",
                "leave `left_in_registers` out to have it planned");
        return o;
      }
      o.shared = false;
      o.held = stored->second;
      o.memory = o.held.memory;
      return o;
    }
    if (!o.shared) {
      o.held = fragment_view(k_, value);
      return o;
    }
    const TransposedOperand& transposed = transposed_[index];
    const analysis::MatrixDims dims =
        transposed.copy ? transposed.copy->dims : analysis::matrix_dims(k_.in.program, r, transpose);
    const layout::Layout& lies = transposed.copy ? transposed.copy->layout : *plan.memory;
    const auto form = analysis::warpgroup_operand_form(
        lies, dims, index, ir::dtype_bytes(k_.in.program.buffer(r.buffer).type), side == 0 ? atom_->m : n_,
        side == 0 ? atom_->a_k() : k_step_);
    if (!form) {
      k_.fail(DiagCode::schedule_illegal, op_.path,
              "'" + k_.in.program.buffer(r.buffer).name + "' lies as " + lies.to_text() + ", which " +
                  plan_.atom + " does not read",
              "leave the value's layout out of the schedule to have it planned");
      return o;
    }
    o.form = *form;
    const ExprId group = side == 0 ? group_m_ : group_n_;
    const int64_t parts = side == 0 ? parts_m_ : parts_n_;
    o.first = k_.simplified(e_.mul(group, parts * o.form.row_stride));
    if (transposed.copy) {
      o.memory = transposed.memory;
      o.first = k_.simplified(e_.add(o.first, transposed.begin));
    } else {
      o.first = in_slot(k_, value, o.first);
    }
    return o;
  }

  // Copies of operands that the instructions do not read as they lie. The instructions of the iteration
  // before run meanwhile on the other copy; after the barrier all warpgroups' are done.
  void transpose_operands() {
    bool any = false;
    for (int index = 0; index < 2 && !k_.failed(); ++index) {
      transposed_[index] =
          transpose_operand(k_, op_, tile_op_, index, *atom_, swapped_ == (index == 1) ? atom_->m : n_, out_);
      any = any || transposed_[index].copy;
    }
    if (!any) return;
    emit(thread::WarpgroupWait{0, {}});
    emit(thread::ProxyFence{});
    role_barrier(k_, out_, op_.path);
  }

  // Of all of the statement's instructions. Registers of the iteration before are read until its products are
  // done; other warpgroups' run meanwhile.
  void gather_places() {
    if (!atom_->sparse()) return;
    const ValueId words = SparsePlaces::words_of(k_, tile_op_);
    if (!words.valid()) return;  // reported
    if (k_.role.product_in_flight) emit(thread::WarpgroupWait{0, {}});
    const ExprId lane = e_.floormod(e_.var(k_.out.thread_var), e_.const_int(k_.in.target.warpgroup)),
                 first_row = k_.simplified(e_.mul(group_m_, parts_m_ * atom_->m));
    SparsePlaces gathered(k_, tile_op_, *atom_->places, words, first_row, lane);
    const int64_t steps = shape_.k / k_step_;
    places_ = add_registers(k_, "places", ir::DType::u32, parts_m_ * steps);
    for (int64_t m = 0; m < parts_m_; ++m)
      for (int64_t step = 0; step < steps; ++step)
        emit(thread::Store{places_, e_.const_int(m * steps + step),
                           gathered.word(m * atom_->m, step * k_step_), ExprId(), false, ExprId()});
    // One thread of the warpgroup gives the words' slot back to the copy engine, after the product.
    emit(thread::ProxyFence{});
    warpgroup_barrier(k_, out_, op_.path);
  }

  // Sums of at most kPromoted products in registers of their own, added to the warpgroup's.
  void promoted(const Operand& left, const Operand& right, bool clear) {
    const int64_t registers = n_ / 2;
    const MemoryId partial = add_registers(k_, "partial", shape_.c, registers);
    const int64_t steps = std::max<int64_t>(1, ir::gemm_attr::kPromoted / k_step_), all = shape_.k / k_step_;
    for (int64_t begin = 0; begin < all; begin += steps)
      for (int64_t m = 0; m < parts_m_; ++m)
        for (int64_t n = 0; n < parts_n_; ++n) {
          thread::WarpgroupMma mma = product(left, right, m, n, true);
          const ExprId sum = std::exchange(mma.c_index, e_.const_int(0));
          mma.c = partial;
          for (std::vector<int64_t>* at : {&mma.a_steps, &mma.b_steps})
            *at = {at->begin() + begin, at->begin() + std::min(begin + steps, all)};
          emit(thread::WarpgroupFence{});
          emit(std::move(mma));
          emit(thread::WarpgroupCommit{});
          emit(thread::WarpgroupWait{0, {partial}});
          add(sum, partial, registers, clear && begin == 0);
        }
  }

  void add(ExprId sum, MemoryId partial, int64_t registers, bool overwrite) {
    const VarId var = k_.out.add_var("r", ir::VarKind::loop);
    k_.walk.fixed_vars.insert(var);
    const ExprId at = e_.add(sum, e_.var(var));
    ExprId value = e_.load(partial, shape_.c, std::vector<ExprId>{e_.var(var)});
    if (!overwrite)
      value = e_.binary(ir::ExprOp::add, e_.load(sum_.memory, shape_.c, std::vector<ExprId>{at}), value);
    thread::Loop loop{var, e_.const_int(registers), thread::LoopForm::unrolled, {}};
    loop.body = {k_.out.add(thread::Store{sum_.memory, at, value, ExprId(), false, ExprId()}, op_.path)};
    emit(std::move(loop));
  }

  // One 64 x n part of the warpgroup's sum.
  thread::WarpgroupMma product(const Operand& left, const Operand& right, int64_t m, int64_t n,
                               bool overwrite) {
    thread::WarpgroupMma mma;
    mma.atom = plan_.atom;
    mma.a = left.memory;
    mma.b = right.memory;
    mma.c = sum_.memory;
    if (left.shared) {
      mma.a_index = k_.simplified(e_.add(left.first, m * left.form.row_stride));
      mma.a_steps = left.form.steps;
      mma.a_form = left.form.form;
    } else {
      const auto held_at = [&](int64_t at) {
        return swapped_ ? register_at(left.held, 1, at, m * atom_->m)
                        : register_at(left.held, 0, m * atom_->m, at);
      };
      mma.a_index = held_at(0);
      int64_t first = 0, step = 0;
      e_.is_const_int(mma.a_index, &first);
      for (int64_t at = 0; at < shape_.a_k(); at += atom_->a_k()) {
        e_.is_const_int(held_at(at), &step);
        mma.a_steps.push_back(step - first);
      }
    }
    mma.b_index = k_.simplified(e_.add(right.first, n * right.form.row_stride));
    mma.b_steps = right.form.steps;
    mma.b_form = right.form.form;
    mma.c_index =
        swapped_ ? register_at(sum_, 2, n * n_, m * atom_->m) : register_at(sum_, 2, m * atom_->m, n * n_);
    if (overwrite) mma.accumulate = e_.const_int(0, ir::DType::boolean);
    for (std::vector<int64_t>* at : {&mma.a_steps, &mma.b_steps})
      if (steps_.second > 0) *at = {at->begin() + steps_.first, at->begin() + steps_.first + steps_.second};
    if (places_.valid()) {
      mma.places = places_;
      mma.places_index = e_.const_int(m * (shape_.k / k_step_));
    }
    return mma;
  }

  ExprId register_at(const FragmentView& h, int operand, int64_t row, int64_t col) {
    const bool transposed =
        operand < 2 && tile_op_.flag(operand == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b);
    const analysis::MatrixDims dims =
        analysis::matrix_dims(k_.in.program, tile_op_.operands[static_cast<size_t>(operand)], transposed);
    return e_.const_int(first_register(h, dims.row, dims.col, row, col));
  }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const analysis::KernelOp& op_;
  const plan::OpPlan& plan_;
  const ir::TileOp& tile_op_;
  const int64_t n_;
  const target::WarpgroupAtom* atom_;
  const int64_t k_step_;
  const analysis::GemmShape shape_;
  const bool swapped_;
  thread::Block& out_;
  TransposedOperand transposed_[2];
  int64_t parts_m_ = 1, parts_n_ = 1;
  ExprId group_m_, group_n_;
  FragmentView sum_;
  MemoryId places_;                          // of a sparse product, by part and step
  std::pair<int64_t, int64_t> steps_{0, 0};  // along k: the first of so many; none: all
};

}  // namespace

void OpLowering::contract_warpgroup(int a, int b, int c, bool clear) {
  const auto instruction = target::find_warpgroup_atom(k_.in.target, plan_.atom);
  if (!instruction || instruction->atom->sparse() != (tile_op_->kind == ir::OpKind::gemm_sparse))
    return k_.fail(DiagCode::schedule_illegal, op_.path,
                   "atom '" + plan_.atom + "' is not one of " + k_.in.target.name,
                   "plan the program for this target");
  WarpgroupGemm(k_, op_, plan_, *tile_op_, *instruction, out_).run(a, b, c, clear);
}

}  // namespace tilegen::lower
