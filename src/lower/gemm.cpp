// Gemms for a block of one thread: micro-kernels over the register tiles of C, or plain loops where no atom
// applies.
#include "analysis/gemm_shape.h"
#include "ir/op_kinds.h"
#include "lower/addressing.h"
#include "lower/iteration.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "support/diag_codes.h"
#include "target/micro_tile.h"

namespace tilegen::lower {

namespace {

int64_t offset_of(const plan::ValuePlan& v, std::vector<int64_t> index) {
  return v.memory ? v.memory->offset(index) : v.fragment->map().eval(index)[layout::kRegister];
}

}  // namespace

void OpLowering::contract(int a, int b, int c, bool clear) {
  if (k_.facts) return;
  if (k_.block_threads() && plan_.engine == plan::Engine::warpgroup_mma)
    contract_warpgroup(a, b, c, clear);
  else if (k_.block_threads())
    contract_warp_mma(a, b, c, clear);
  else if (plan_.engine == plan::Engine::micro_kernel)
    contract_micro_kernel(a, b, c, clear);
  else
    contract_loops(a, b, c, clear);
}

void OpLowering::contract_micro_kernel(int a, int b, int c, bool clear) {
  ir::ExprPool& e = k_.out.exprs;
  auto tile = target::micro_tile_from_name(k_.in.target, plan_.atom);
  if (!tile) {
    k_.fail(DiagCode::schedule_illegal, op_.path,
            "atom '" + plan_.atom + "' is not one of " + k_.in.target.name,
            "plan the program for this target");
    return;
  }
  const analysis::GemmShape s = analysis::gemm_shape(k_.in.program, *tile_op_);
  auto buffer = [&](int i) { return tile_op_->operands[static_cast<size_t>(i)].buffer; };
  auto matrix = [&](int i, bool transpose) {
    return analysis::matrix_dims(k_.in.program, tile_op_->operands[static_cast<size_t>(i)], transpose);
  };
  const analysis::MatrixDims va = matrix(a, tile_op_->flag(ir::gemm_attr::transpose_a)),
                             vb = matrix(b, tile_op_->flag(ir::gemm_attr::transpose_b)),
                             vc = matrix(c, false);
  const plan::ValuePlan &pa = value_plan(k_, buffer(a)), &pb = value_plan(k_, buffer(b)),
                        &pc = value_plan(k_, buffer(c));
  const int64_t pack = tile->atom->pack;
  const auto registers = target::matrix_tiles(*tile->atom, tile->mr, tile->nr, s.k);
  auto step = [&](const plan::ValuePlan& v, const analysis::MatrixDims& m, int64_t row, int64_t col) {
    return offset_of(v, m.at<int64_t>(row, col, 0)) - offset_of(v, m.at<int64_t>(0, 0, 0));
  };

  thread::HostMma mma;
  mma.mr = static_cast<int>(tile->mr);
  mma.nr = static_cast<int>(tile->nr);
  mma.k = s.k;
  mma.pack = static_cast<int>(pack);
  if (registers)
    mma.tile = {static_cast<int>(registers->rows), static_cast<int>(registers->columns),
                static_cast<int>(registers->k)};
  mma.a = memory_of(k_, buffer(a));
  mma.b = memory_of(k_, buffer(b));
  mma.c = memory_of(k_, buffer(c));
  mma.a_row = s.m > 1 ? step(pa, va, 1, 0) : 0;
  mma.a_k = s.k > mma.step() ? step(pa, va, 0, mma.step()) : mma.step();
  mma.b_k = s.k > pack ? step(pb, vb, pack, 0) : tile->nr * pack;
  mma.c_row = tile->mr > 1 ? step(pc, vc, 1, 0) : tile->nr;
  mma.clear = clear;

  auto mark = k_.ctx.mark();
  Nest nest;
  auto loop = [&](int64_t extent, int64_t scale) {
    if (extent == 1) return e.const_int(0);
    VarId var = k_.out.add_var("t" + std::to_string(k_.out.vars.size()), ir::VarKind::loop);
    k_.ctx.bind(var, 0, extent - 1);
    nest.loops.push_back({var, extent, thread::LoopForm::serial});
    return e.mul(e.var(var), scale);
  };
  // A panel of B stays in the nearest cache while the tiles of one column of C pass by.
  const ExprId column = loop(s.n / tile->nr, tile->nr), row = loop(s.m / tile->mr, tile->mr),
               zero = e.const_int(0);
  mma.a_index = memory_index(k_, buffer(a), va.at(row, zero, zero));
  mma.b_index = memory_index(k_, buffer(b), vb.at(zero, column, zero));
  mma.c_index = memory_index(k_, buffer(c), vc.at(row, column, zero));
  thread::Block body = {k_.out.add(mma, op_.path)};
  thread::Block loops = wrap(k_, nest, 0, nest.loops.size(), std::move(body), op_.path);
  out_.insert(out_.end(), loops.begin(), loops.end());
  k_.ctx.rollback(mark);
}

// for i, j: acc = C[i, j]; for k: acc += A[i, k] * B[k, j]; C[i, j] = acc
void OpLowering::contract_loops(int a, int b, int c, bool clear) {
  ir::ExprPool& e = k_.out.exprs;
  const analysis::GemmShape s = analysis::gemm_shape(k_.in.program, *tile_op_);
  // Narrow floats accumulate in f32 and are rounded once, as the micro-kernels and tensor cores do.
  const ir::DType acc_type = ir::is_float(s.c) && ir::dtype_bits(s.c) < 32 ? ir::DType::f32 : s.c;
  auto buffer = [&](int i) { return tile_op_->operands[static_cast<size_t>(i)].buffer; };
  auto matrix = [&](int i, bool transpose) {
    return analysis::matrix_dims(k_.in.program, tile_op_->operands[static_cast<size_t>(i)], transpose);
  };
  const analysis::MatrixDims va = matrix(a, tile_op_->flag(ir::gemm_attr::transpose_a)),
                             vb = matrix(b, tile_op_->flag(ir::gemm_attr::transpose_b)),
                             vc = matrix(c, false);
  thread::Memory m;
  m.name = "sum" + std::to_string(k_.out.memories.size());
  m.space = thread::Space::local;
  m.type = acc_type;
  m.elements = 1;
  m.alignment = ir::dtype_bytes(acc_type);
  m.in_registers = true;
  const MemoryId acc = k_.out.add_memory(std::move(m));
  auto mark = k_.ctx.mark();
  Nest nest;
  auto loop = [&](int64_t extent) {
    VarId var = k_.out.add_var("t" + std::to_string(k_.out.vars.size()), ir::VarKind::loop);
    k_.ctx.bind(var, 0, extent - 1);
    nest.loops.push_back({var, extent, thread::LoopForm::serial});
    return e.var(var);
  };
  const ExprId i = loop(s.m), j = loop(s.n), k = loop(s.k), zero = e.const_int(0);
  auto placed = [&](int operand, std::vector<ExprId> index) {
    const auto& offsets = tile_op_->operands[static_cast<size_t>(operand)].offsets;
    for (size_t d = 0; d < index.size(); ++d)
      index[d] = k_.simplified(e.add(lower_expr(k_, offsets[d]), index[d]));
    return index;
  };
  auto element = [&](int operand, std::vector<ExprId> index) {
    return e.cast(acc_type, load_element(k_, buffer(operand), placed(operand, std::move(index)), false));
  };
  auto store_acc = [&](ExprId v) {
    return k_.out.add(thread::Store{acc, zero, v, ExprId(), false, ExprId()}, op_.path);
  };
  const ExprId sum = e.load(acc, acc_type, std::vector<ExprId>{zero});
  thread::Block body = {store_acc(clear ? e.const_number(0, acc_type) : element(c, vc.at(i, j, zero)))};
  ExprId product = e.binary(ir::ExprOp::mul, element(a, va.at(i, k, zero)), element(b, vb.at(k, j, zero)));
  thread::Block inner = wrap(k_, nest, 2, 3, {store_acc(e.binary(ir::ExprOp::add, sum, product))}, op_.path);
  body.insert(body.end(), inner.begin(), inner.end());
  body.push_back(k_.out.add(
      thread::Store{memory_of(k_, buffer(c)), memory_index(k_, buffer(c), placed(c, vc.at(i, j, zero))),
                    e.cast(s.c, sum), ExprId(), false, ExprId()},
      op_.path));
  thread::Block loops = wrap(k_, nest, 0, 2, std::move(body), op_.path);
  out_.insert(out_.end(), loops.begin(), loops.end());
  k_.ctx.rollback(mark);
}

}  // namespace tilegen::lower
