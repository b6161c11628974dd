// A whole f16 matrix product as a thread program, the shape a planned one has: C[m,n] = A[m,k] B[k,n],
// swizzled tiles in a ring of slots filled by asynchronous copies, matrix loads, m16n8k16 instructions,
// predicates at the edges.
#pragma once

#include "gpu_kernel_builder.h"

namespace tilegen::codegen::test {

struct GemmShape {
  int64_t bm = 128, bn = 128, bk = 32, stages = 3;
  int64_t warps_m = 2, warps_n = 2;
  bool edges = true;  // predicates in m, n and k
};

class GemmProgram {
 public:
  explicit GemmProgram(const GemmShape& s) : s_(s), kb_(s.warps_m * s.warps_n * 32, "gemm"), e_(kb_.p.exprs) {
    m_ = kb_.scalar("m", DType::i64, true);
    n_ = kb_.scalar("n", DType::i64, true);
    k_ = kb_.scalar("k", DType::i64, true);
    for (thread::Param& p : kb_.p.params)
      kb_.p.vars[p.var.value].divisor = 8, kb_.p.vars[p.var.value].lower = 1;
    a_ = kb_.tensor("a", DType::f16);
    b_ = kb_.tensor("b", DType::f16);
    c_ = kb_.tensor("c", DType::f16);
    for (MemoryId t : {a_, b_, c_}) kb_.align(t, 16);
    a_tile_ = kb_.shared("a_tile", DType::f16, s.stages * s.bm * s.bk, s.stages);
    b_tile_ = kb_.shared("b_tile", DType::f16, s.stages * s.bk * s.bn, s.stages);
    mt_ = s.bm / s.warps_m / 16;
    nt_ = s.bn / s.warps_n / 8;
    acc_ = kb_.registers("acc", DType::f32, mt_ * nt_ * 4);
    a_frag_ = kb_.registers("a_frag", DType::f16, mt_ * 8);
    b_frag_ = kb_.registers("b_frag", DType::f16, nt_ * 4);
    ExprId tiles_n = e_.ceildiv(n_, i(s.bn));
    kb_.p.grid = {e_.mul(e_.ceildiv(m_, i(s.bm)), tiles_n)};
    m0_ = e_.mul(e_.floordiv(kb_.block(), tiles_n), s.bm);
    n0_ = e_.mul(e_.floormod(kb_.block(), tiles_n), s.bn);
    build();
  }
  const thread::ThreadProgram& program() const { return kb_.p; }
  int64_t mmas() const { return mt_ * nt_ * s_.bk / 16; }

 private:
  ExprId i(int64_t v) { return kb_.i(v); }
  ExprId add(ExprId a, ExprId b) { return e_.add(a, b); }
  // Element index with its 16-byte chunk swizzled by `row`, which repeats every 8 chunk rows.
  ExprId swizzled(ExprId at, int64_t divisor, int64_t mask) {
    ExprId row = e_.binary(ExprOp::bit_and, e_.floordiv(at, i(divisor)), i(mask));
    return e_.binary(ExprOp::bit_xor, at, e_.mul(row, 8));
  }
  ExprId a_place(ExprId row, ExprId k) {
    return swizzled(add(e_.mul(row, s_.bk), k), 64, s_.bk == 32 ? 3 : 7);
  }
  ExprId b_place(ExprId k, ExprId n) { return swizzled(add(e_.mul(k, s_.bn), n), s_.bn, 7); }
  ExprId both(ExprId a, ExprId b) { return e_.logical_and(a, b); }

  thread::Block copies(ExprId step, ExprId slot) {
    const int64_t threads = kb_.p.threads;
    ExprId k0 = e_.mul(step, s_.bk);
    auto copy = [&](const char* name, int64_t rows, int64_t row_length, auto make) {
      ir::VarId v = kb_.loop_var(name);
      ExprId at = add(e_.mul(kb_.var(v), threads), kb_.tid());
      ExprId row = e_.floordiv(at, i(row_length / 8)), column = e_.mul(e_.floormod(at, i(row_length / 8)), 8);
      thread::AsyncCopy c = make(row, column);
      return kb_.loop(thread::LoopForm::unrolled, v, i(rows * row_length / 8 / threads),
                      {kb_.add(c, "main/copy#0")});
    };
    auto a = copy("ca", s_.bm, s_.bk, [&](ExprId row, ExprId column) {
      thread::AsyncCopy c{a_tile_, add(e_.mul(slot, s_.bm * s_.bk), a_place(row, column)),
                          a_,      add(e_.mul(add(m0_, row), k_), add(k0, column)),
                          16,      {}};
      c.predicate = s_.edges ? both(e_.lt(add(m0_, row), m_), e_.lt(add(k0, column), k_)) : e_.lt(k0, k_);
      return c;
    });
    auto b = copy("cb", s_.bk, s_.bn, [&](ExprId row, ExprId column) {
      thread::AsyncCopy c{b_tile_, add(e_.mul(slot, s_.bk * s_.bn), b_place(row, column)),
                          b_,      add(e_.mul(add(k0, row), n_), add(n0_, column)),
                          16,      {}};
      c.predicate = s_.edges ? both(e_.lt(add(k0, row), k_), e_.lt(add(n0_, column), n_)) : e_.lt(k0, k_);
      return c;
    });
    return {a, b, kb_.add(thread::AsyncCommit{})};
  }

  thread::StmtId multiply(ExprId slot) {
    ExprId lane = e_.floormod(kb_.tid(), i(32)), warp = e_.floordiv(kb_.tid(), i(32));
    ExprId wm = e_.mul(e_.floordiv(warp, i(s_.warps_n)), mt_ * 16),
           wn = e_.mul(e_.floormod(warp, i(s_.warps_n)), nt_ * 8);
    ExprId low = e_.floormod(lane, i(16)), high = e_.mul(e_.floordiv(lane, i(16)), 8);
    ir::VarId kk = kb_.loop_var("kk"), ia = kb_.loop_var("ia"), ib = kb_.loop_var("ib"),
              im = kb_.loop_var("im"), in = kb_.loop_var("in");
    ExprId k = e_.mul(kb_.var(kk), 16);
    thread::LoadMatrix la{
        a_frag_,
        e_.mul(kb_.var(ia), 8),
        a_tile_,
        add(e_.mul(slot, s_.bm * s_.bk), a_place(add(add(wm, e_.mul(kb_.var(ia), 16)), low), add(k, high))),
        4,
        false};
    thread::LoadMatrix lb{
        b_frag_,
        e_.mul(kb_.var(ib), 8),
        b_tile_,
        add(e_.mul(slot, s_.bk * s_.bn), b_place(add(k, low), add(add(wn, e_.mul(kb_.var(ib), 16)), high))),
        4,
        true};
    thread::WarpMma mma{"mma.m16n8k16.f32.f16",
                        a_frag_,
                        b_frag_,
                        acc_,
                        e_.mul(kb_.var(im), 8),
                        e_.mul(kb_.var(in), 4),
                        e_.mul(add(e_.mul(kb_.var(im), nt_), kb_.var(in)), 4),
                        8,
                        4,
                        4};
    using enum thread::LoopForm;
    return kb_.loop(
        unrolled, kk, i(s_.bk / 16),
        {kb_.loop(unrolled, ia, i(mt_), {kb_.add(la)}), kb_.loop(unrolled, ib, i(nt_ / 2), {kb_.add(lb)}),
         kb_.loop(unrolled, im, i(mt_), {kb_.loop(unrolled, in, i(nt_), {kb_.add(mma)})})});
  }

  thread::StmtId epilogue() {
    ExprId lane = e_.floormod(kb_.tid(), i(32)), warp = e_.floordiv(kb_.tid(), i(32));
    ExprId wm = e_.mul(e_.floordiv(warp, i(s_.warps_n)), mt_ * 16),
           wn = e_.mul(e_.floormod(warp, i(s_.warps_n)), nt_ * 8);
    ir::VarId im = kb_.loop_var("om"), in = kb_.loop_var("on"), half = kb_.loop_var("half"),
              v = kb_.loop_var("pair");
    ExprId row = add(add(m0_, wm),
                     add(e_.mul(kb_.var(im), 16), add(e_.mul(kb_.var(half), 8), e_.floordiv(lane, i(4)))));
    ExprId column =
        add(add(n0_, wn), add(e_.mul(kb_.var(in), 8), add(e_.mul(e_.floormod(lane, i(4)), 2), kb_.var(v))));
    ExprId from =
        add(e_.mul(add(e_.mul(kb_.var(im), nt_), kb_.var(in)), 4), add(e_.mul(kb_.var(half), 2), kb_.var(v)));
    ExprId inside = s_.edges ? both(e_.lt(row, m_), e_.lt(column, n_)) : ExprId();
    auto store =
        kb_.store(c_, add(e_.mul(row, n_), column), e_.cast(DType::f16, kb_.load(acc_, from)), inside);
    using enum thread::LoopForm;
    auto pair = kb_.loop(vectorized, v, i(2), {store});
    return kb_.loop(unrolled, im, i(mt_),
                    {kb_.loop(unrolled, half, i(2), {kb_.loop(unrolled, in, i(nt_), {pair})})});
  }

  void build() {
    using enum thread::LoopForm;
    ir::VarId z = kb_.loop_var("z"), s = kb_.loop_var("s"), step = kb_.loop_var("step");
    thread::Block& body = kb_.p.body;
    body.push_back(kb_.loop(unrolled, z, i(mt_ * nt_ * 4),
                            {kb_.store(acc_, kb_.var(z), e_.const_float(0, DType::f32))}));
    body.push_back(kb_.loop(unrolled, s, i(s_.stages - 1), copies(kb_.var(s), kb_.var(s))));
    ExprId next = add(kb_.var(step), i(s_.stages - 1));
    thread::Block loop{kb_.add(thread::AsyncWait{s_.stages - 2}), kb_.add(thread::Barrier{})};
    for (thread::StmtId id : copies(next, e_.floormod(next, i(s_.stages)))) loop.push_back(id);
    loop.push_back(multiply(e_.floormod(kb_.var(step), i(s_.stages))));
    body.push_back(kb_.loop(serial, step, e_.ceildiv(k_, i(s_.bk)), loop));
    body.push_back(epilogue());
  }

  GemmShape s_;
  GpuBuilder kb_;
  ir::ExprPool& e_;
  ExprId m_, n_, k_, m0_, n0_;
  MemoryId a_, b_, c_, a_tile_, b_tile_, acc_, a_frag_, b_frag_;
  int64_t mt_ = 0, nt_ = 0;
};

}  // namespace tilegen::codegen::test
