#include <algorithm>

#include "arith/prove.h"
#include "lower/addressing.h"
#include "lower/gpu/gemm.h"
#include "lower/lowering_context.h"
#include "thread/index_program.h"

namespace tilegen::lower {

namespace {

std::vector<int64_t> by_thread(const thread::ThreadProgram& p, ExprId e) {
  const thread::IndexProgram program(p.exprs, e);
  thread::PointValues at(p.vars.size());
  std::vector<int64_t> values;
  for (int64_t t = 0; t < p.threads; ++t) {
    if (p.thread_var.valid()) at.set(p.thread_var, t);
    values.push_back(program.eval(at).value_or(0));
  }
  return values;
}

}  // namespace

OperandAddresses::OperandAddresses(LoweringContext& lowering, const Place& place, ExprId row, ExprId k)
    : lowering_(lowering),
      place_(place),
      row_(row),
      k_(k),
      thread_row_(by_thread(lowering.out, row)),
      thread_k_(by_thread(lowering.out, k)) {
  fixed_ = lowering.out.exprs.is_const_int(place.row0, &row_offset_) &&
           lowering.out.exprs.is_const_int(place.k0, &k_offset_);
}

std::vector<int64_t> OperandAddresses::values(int64_t row, int64_t k) const {
  std::vector<int64_t> result;
  for (size_t t = 0; t < thread_row_.size(); ++t) {
    const int64_t r = row_offset_ + std::min(thread_row_[t] + row, place_.rows - place_.together),
                  c = k_offset_ + thread_k_[t] + k;
    result.push_back(place_.layout->offset(place_.side == 0 ? place_.dims.at<int64_t>(r, c, 0)
                                                            : place_.dims.at<int64_t>(c, r, 0)));
  }
  return result;
}

std::vector<ExprId> OperandAddresses::coordinates(ExprId row, ExprId k) const {
  const ExprId zero = lowering_.out.exprs.const_int(0);
  return place_.side == 0 ? place_.dims.at<ExprId>(row, k, zero) : place_.dims.at<ExprId>(k, row, zero);
}

ExprId OperandAddresses::general(int64_t row, int64_t k, ExprId further_k) {
  ir::ExprPool& e = lowering_.out.exprs;
  ExprId r = e.add(row_, row), c = e.add(k_, k);
  const int64_t last = *std::max_element(thread_row_.begin(), thread_row_.end()) + row;
  if (last > place_.rows - place_.together)
    r = e.binary(ir::ExprOp::min, r, e.const_int(place_.rows - place_.together));
  r = lowering_.simplified(e.add(place_.row0, r));
  c = e.add(place_.k0, c);
  if (further_k) c = e.add(c, further_k);
  const auto at = coordinates(r, lowering_.simplified(c));
  return swizzled(lowering_, *place_.layout, layout_index(lowering_, *place_.layout, 0, at));
}

ExprId OperandAddresses::at(int64_t row, int64_t k, ExprId loop, int64_t step) {
  ir::ExprPool& e = lowering_.out.exprs;
  if (loop) return general(row, k, e.mul(loop, step));
  if (!fixed_) return general(row, k, ExprId());
  std::vector<int64_t> want = values(row, k);
  for (const Base& b : bases_) {
    const int64_t distance = want[0] - b.values[0];
    bool same = true;
    for (size_t t = 0; t < want.size() && same; ++t) same = want[t] - b.values[t] == distance;
    if (same) return e.add(b.index, distance);
  }
  ExprId index;
  for (const Base& b : bases_) {
    const int64_t flips = want[0] ^ b.values[0];
    bool same = true;
    for (size_t t = 0; t < want.size() && same; ++t) same = (want[t] ^ b.values[t]) == flips;
    if (!same) continue;
    index = e.binary(ir::ExprOp::bit_xor, b.index, e.const_int(flips));
    break;
  }
  if (!index) index = general(row, k, ExprId());
  bases_.push_back({index, std::move(want)});
  return index;
}

bool OperandAddresses::aligned(int64_t row, int64_t k, int64_t elements) {
  if (elements == 1) return true;
  const auto contiguous = [&](int dim) { return place_.layout->contiguous_run(dim) % elements == 0; };
  const int k_dim = place_.side == 0 ? place_.dims.col : place_.dims.row;
  const int row_dim = place_.side == 0 ? place_.dims.row : place_.dims.col;
  if (!contiguous(k_dim) && !contiguous(row_dim)) return false;
  if (!fixed_) {
    const ExprId along = contiguous(k_dim) ? place_.k0 : place_.row0;
    if (arith::divisor_of(lowering_.ctx, along) % elements != 0) return false;
  }
  const std::vector<int64_t> want = values(row, k);
  return std::all_of(want.begin(), want.end(), [&](int64_t v) { return v % elements == 0; });
}

}  // namespace tilegen::lower
