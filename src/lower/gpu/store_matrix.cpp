// Copies of matrix accumulators to shared tiles of 2-byte elements, eight rows of 16 bytes at a time
// (plan::OpPlan::matrix_stores).
#include "analysis/gemm_shape.h"
#include "lower/addressing.h"
#include "lower/gpu/gemm_state.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "target/operand_matrices.h"

namespace tilegen::lower {

using layout::Digit;

void OpLowering::store_matrices(int operand) {
  ir::ExprPool& e = k_.out.exprs;
  const ir::Region &from = tile_op_->operands[static_cast<size_t>(1 - operand)],
                   &to = tile_op_->operands[static_cast<size_t>(operand)];
  const ir::DType type = k_.in.program.buffer(to.buffer).type;
  const ValueId value = value_of(k_, to.buffer), source = value_of(k_, from.buffer);
  const FragmentView held = fragment_view(k_, source);
  const auto& memory = k_.plan_of_value(value).memory;
  constexpr int64_t kRun = target::kMatrixRowBytes / 2;  // elements
  const bool transpose = memory->contiguous_run(1) % kRun != 0;

  // Coordinates of the warp's first matrix; matrices follow by register.
  const ExprId tid = e.var(k_.out.thread_var),
               lane = k_.simplified(e.floormod(tid, e.const_int(k_.in.target.warp)));
  ExprId first[2] = {e.const_int(0), e.const_int(0)};
  for (const Digit& d : held.fragment->map().digits()) {
    if (d.output != layout::kThread || d.stride < k_.in.target.warp || d.dim == layout::kReplica) continue;
    const ExprId digit = e.floormod(e.floordiv(tid, e.const_int(d.stride)), e.const_int(d.extent));
    first[d.dim] = e.add(first[d.dim], e.mul(digit, d.weight));
  }
  const ExprId within = e.floormod(lane, e.const_int(kRun));
  first[transpose ? 1 : 0] = e.add(first[transpose ? 1 : 0], within);
  const RegisterPlaces places = register_places(*held.fragment);
  const int64_t matrices = held.fragment->registers() / 2;
  auto distance = [&](int64_t a, int64_t b) {
    return std::pair(places.first[static_cast<size_t>(2 * b)] - places.first[static_cast<size_t>(2 * a)],
                     places.second[static_cast<size_t>(2 * b)] - places.second[static_cast<size_t>(2 * a)]);
  };
  // Matrix i of a store lies where the binary digits of i, as distances, say.
  auto count_at = [&](int64_t m) {
    if (m + 4 <= matrices && distance(m, m + 1) == distance(m + 2, m + 3)) return 4;
    return m + 2 <= matrices ? 2 : 1;
  };
  auto addresses = [&](int64_t m, int count) {
    ExprId row = first[0], column = first[1];
    for (int bit = 1; bit < count; bit *= 2) {
      const auto [rows, columns] = distance(m, m + bit);
      const ExprId digit = e.floormod(e.floordiv(lane, e.const_int(kRun * bit)), e.const_int(2));
      row = e.add(row, e.mul(digit, rows));
      column = e.add(column, e.mul(digit, columns));
    }
    analysis::MatrixDims dims;
    dims.shape = held.fragment->shape();
    const OperandAddresses::Place place = {&*memory, dims, 0, e.const_int(0), e.const_int(0), dims.shape[0]};
    return OperandAddresses(k_, place, k_.simplified(row), k_.simplified(column));
  };
  struct Part {
    int64_t matrix;
    int count;
    OperandAddresses at;
  };
  std::vector<Part> parts;
  for (int64_t m = 0; m < matrices;) {
    const int count = count_at(m);
    parts.push_back({m, count, addresses(m, count)});
    m += count;
  }
  const MemoryId into = memory_of(k_, to.buffer);
  const ExprId slot = in_slot(k_, value, e.const_int(0));
  const ir::DType source_type = k_.out.memory(held.memory).type;
  // A warpgroup of its own may take a product's left operand from what it has stored.
  MemoryId all;
  if (k_.role.warpgroup && source_type != type) {
    all = add_registers(k_, "stored", type, held.fragment->registers());
    k_.role.stored[value] = {all, held.fragment};
  }
  for (Part& p : parts) {
    const ExprId index = e.add(p.at.at(places.first[static_cast<size_t>(2 * p.matrix)],
                                       places.second[static_cast<size_t>(2 * p.matrix)]),
                               slot);
    MemoryId packed = held.memory;
    int64_t packed_at = 2 * p.matrix;
    if (source_type != type) {
      packed = all.valid() ? all : add_registers(k_, "packed", type, 2 * p.count);
      packed_at = all.valid() ? 2 * p.matrix : 0;
      for (int64_t i = 0; i < 2 * p.count; ++i) {
        const ExprId element =
            e.load(held.memory, source_type, std::vector<ExprId>{e.const_int(2 * p.matrix + i)});
        out_.push_back(k_.out.add(thread::Store{packed, e.const_int(packed_at + i), e.cast(type, element),
                                                ExprId(), false, ExprId()},
                                  op_.path));
      }
    }
    out_.push_back(k_.out.add(
        thread::StoreMatrix{into, index, packed, e.const_int(packed_at), p.count, transpose}, op_.path));
  }
}

}  // namespace tilegen::lower
