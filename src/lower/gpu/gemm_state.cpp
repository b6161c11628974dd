#include "lower/gpu/gemm_state.h"

#include <algorithm>

#include "analysis/gemm_shape.h"
#include "analysis/warp_partition.h"
#include "ir/op_kinds.h"
#include "lower/addressing.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "support/checked.h"
#include "support/diag_codes.h"
#include "target/operand_matrices.h"

namespace tilegen::lower {

RegisterPlaces register_places(const layout::Fragment& f) {
  RegisterPlaces places;
  places.first.assign(static_cast<size_t>(f.registers()), 0);
  places.second = places.first;
  for (int64_t i = 0; i < f.shape()[0]; ++i)
    for (int64_t j = 0; j < f.shape()[1]; ++j) {
      const std::vector<int64_t> index = {i, j}, at = f.map().eval(index);
      if (at[layout::kThread] != 0) continue;
      places.first[static_cast<size_t>(at[layout::kRegister])] = i;
      places.second[static_cast<size_t>(at[layout::kRegister])] = j;
    }
  return places;
}

// A value that is both operands may stand in a form for each.
FragmentView GemmState::operand_form(ValueId value, int index) {
  int forms = 0;
  for (const auto& c : k_.forms.conversions) forms += c.value == value;
  const auto same = [&](const analysis::OpAccess& a) { return a.value == value; };
  if (forms == 0 || std::count_if(op_.accesses.begin(), op_.accesses.end(), same) < 2)
    return fragment_view(k_, value);
  const int64_t warps = *k_.in.schedule.threads / k_.in.target.warp;
  const analysis::WarpGrid grid{plan_.warps_m, plan_.warps_n, warps / (plan_.warps_m * plan_.warps_n)};
  const layout::Fragment form =
      analysis::operand_fragment(k_.in.program, tile_op_, atom_, grid, index, k_.in.target.warp);
  for (const auto& c : k_.forms.conversions)
    if (c.value == value && c.form.fragment->equivalent(form)) return c.form;
  // As it is held: no conversion was made for this side.
  return {k_.names.values[value], &*k_.in.schedule.values[value.index()].fragment};
}

void GemmState::load_wide(MemoryId to, int64_t place, MemoryId from, ExprId index, int64_t width) {
  if (width == 1) return store(to, e_.const_int(place), load(from, index));
  const VarId lane = k_.out.add_var("lane" + std::to_string(k_.out.vars.size()), ir::VarKind::loop);
  k_.walk.fixed_vars.insert(lane);
  const thread::StmtId element =
      k_.out.add(thread::Store{to, e_.add(e_.var(lane), place), load(from, e_.add(index, e_.var(lane))),
                               ExprId(), false, ExprId()},
                 op_.path);
  emit(thread::Loop{lane, e_.const_int(width), thread::LoopForm::vectorized, {element}});
}

void GemmState::place_operands(int a, int b) {
  const ExprId tid = k_.out.thread_var.valid() ? e_.var(k_.out.thread_var) : e_.const_int(0);
  lane_ = k_.simplified(e_.floormod(tid, e_.const_int(k_.in.target.warp)));
  const ExprId warp = e_.floordiv(tid, e_.const_int(k_.in.target.warp));
  tiles_m_ = ceil_div(shape_.m, plan_.warps_m * atom_.m);
  tiles_n_ = ceil_div(shape_.n, plan_.warps_n * atom_.n);
  steps_ = shape_.k / atom_.k;
  const ExprId warp_m =
      e_.floormod(e_.floordiv(warp, e_.const_int(plan_.warps_n)), e_.const_int(plan_.warps_m));
  const ExprId warp_n = e_.floormod(warp, e_.const_int(plan_.warps_n));
  sides_[0] = side(a, 0, tiles_m_, k_.simplified(e_.mul(warp_m, tiles_m_ * atom_.m)));
  sides_[1] = side(b, 1, tiles_n_, k_.simplified(e_.mul(warp_n, tiles_n_ * atom_.n)));
}

void GemmState::mean_current_slots() {
  for (Side& s : sides_) s.slot = in_slot(k_, s.value, e_.const_int(0));
}

GemmState::Side GemmState::side(int operand, int index, int64_t tiles, ExprId warp_row) {
  const ir::Region& r = tile_op_.operands[static_cast<size_t>(operand)];
  Side s;
  s.operand = operand;
  s.index = index;
  s.dims = analysis::matrix_dims(
      k_.in.program, r, tile_op_.flag(index == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b));
  const int row_dim = index == 0 ? s.dims.row : s.dims.col, k_dim = index == 0 ? s.dims.col : s.dims.row;
  s.row0 = k_.simplified(lower_expr(k_, r.offsets[static_cast<size_t>(row_dim)]));
  s.k0 = k_.simplified(lower_expr(k_, r.offsets[static_cast<size_t>(k_dim)]));
  s.tiles = tiles;
  s.warp_row = warp_row;
  s.atom = index == 0 ? &atom_.a_layout : &atom_.b_layout;
  s.type = k_.in.program.buffer(r.buffer).type;
  const ValueId value = value_of(k_, r.buffer);
  if (!value.valid()) return s;  // reported
  const plan::ValuePlan& plan = k_.in.schedule.values[value.index()];
  s.shared = plan.memory.has_value();
  if (s.shared) {
    s.place = {&*plan.memory, s.dims, index, s.row0, s.k0, index == 0 ? shape_.m : shape_.n};
    s.memory = k_.names.values[value];
    s.value = value;
    s.slot = in_slot(k_, value, e_.const_int(0));
  } else {
    s.held = operand_form(value, index);
  }
  return s;
}

ExprId GemmState::register_at(const FragmentView& held, const analysis::MatrixDims& dims, ExprId row0,
                              ExprId col0, int64_t row, int64_t col) {
  const std::vector<ExprId> at =
      dims.at<ExprId>(k_.simplified(e_.add(row0, row)), k_.simplified(e_.add(col0, col)), e_.const_int(0));
  const ExprId index = layout_index(k_, held.fragment->map(), layout::kRegister, at);
  if (!fixed_index(k_, index))
    k_.fail(DiagCode::target_unsupported, op_.path,
            "which part of fragment '" + k_.out.memory(held.memory).name +
                "' the product works on is known at run time only",
            "unroll the loop, or keep each part in a buffer of its own");
  return index;
}

ExprId GemmState::register_of(const Side& s, int64_t row, int64_t k) {
  return s.index == 0 ? register_at(s.held, s.dims, s.row0, s.k0, row, k)
                      : register_at(s.held, s.dims, s.k0, s.row0, k, row);
}

void GemmState::begin_accumulators(int c, bool clear) {
  const ir::Region& r = tile_op_.operands[static_cast<size_t>(c)];
  const ValueId value = value_of(k_, r.buffer);
  if (!value.valid()) return;
  c_held_ = fragment_view(k_, value);
  c_dims_ = analysis::matrix_dims(k_.in.program, r, false);
  c_row0_ = k_.simplified(lower_expr(k_, r.offsets[static_cast<size_t>(c_dims_.row)]));
  c_col0_ = k_.simplified(lower_expr(k_, r.offsets[static_cast<size_t>(c_dims_.col)]));
  c_registers_ = atom_.c_layout.registers();
  rounds_ = shape_.c != atom_.c;
  promotes_ = shape_.promote && !target::is_multiply_add(atom_);
  const bool own_sums = rounds_ || promotes_;
  sum_ = own_sums ? add_registers(k_, "sum", atom_.c, tiles_m_ * tiles_n_ * c_registers_) : c_held_.memory;
  for_accumulators([&](ExprId sum, ExprId own) {
    if (promotes_) {
      store(sum_, sum, e_.const_number(0, atom_.c));
      if (clear) store(c_held_.memory, own, e_.const_number(0, atom_.c));
    } else if (clear)
      store(sum_, sum, e_.const_number(0, atom_.c));
    else if (rounds_)
      store(sum_, sum, e_.cast(atom_.c, load(c_held_.memory, own)));
  });
}

void GemmState::finish_accumulators() {
  if (!rounds_) return;
  for_accumulators(
      [&](ExprId sum, ExprId own) { store(c_held_.memory, own, e_.cast(shape_.c, load(sum_, sum))); });
}

void GemmState::add_to_accumulators() {
  for_accumulators([&](ExprId sum, ExprId own) {
    store(c_held_.memory, own, e_.binary(ir::ExprOp::add, load(c_held_.memory, own), load(sum_, sum)));
    store(sum_, sum, e_.const_number(0, atom_.c));
  });
}

ExprId GemmState::c_tile(int64_t m, int64_t n) {
  return register_at(c_held_, c_dims_, c_row0_, c_col0_, m * atom_.m, n * atom_.n);
}

ExprId GemmState::sum_tile(int64_t m, int64_t n) {
  return rounds_ || promotes_ ? e_.const_int((m * tiles_n_ + n) * c_registers_) : c_tile(m, n);
}

OperandAddresses GemmState::lane_addresses(const Side& s) {
  ExprId at[2] = {e_.const_int(0), e_.const_int(0)};
  for (const layout::Digit& d : s.atom->map().digits()) {
    if (d.output != layout::kThread || d.dim == layout::kReplica) continue;
    const ExprId digit = e_.floormod(e_.floordiv(lane_, e_.const_int(d.stride)), e_.const_int(d.extent));
    at[d.dim] = e_.add(at[d.dim], e_.mul(digit, d.weight));
  }
  const ExprId row = e_.add(s.warp_row, at[s.index]), k = at[1 - s.index];
  return {k_, s.place, k_.simplified(row), k_.simplified(k)};
}

}  // namespace tilegen::lower
