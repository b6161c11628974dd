// A warp-specialised, persistent f16 matrix product as a thread program, the shape a planned one has: C[m,n]
// = A[m,k] B, B being [n,k] or [k,n]; tiles of 128 x 256 x 64 by default, two warpgroups that multiply, one
// that feeds them.
#pragma once

#include "gpu_kernel_builder.h"

namespace tilegen::codegen::test {

struct HopperGemmShape {
  int64_t bn = 256, bk = 64, slots = 4;
  bool k_major_b = true;       // B is [n, k]
  bool producer_warp = false;  // one warp, no register budgets
  bool clear = false;          // zeros are stored before the first product, which then accumulates
  DType type = DType::f16, accumulator = DType::f32;
};

class HopperGemm {
 public:
  explicit HopperGemm(const HopperGemmShape& s)
      : s_(s), kb_(s.producer_warp ? 288 : 384, "hopper_gemm"), e_(kb_.p.exprs) {
    m_ = dim("m"), n_ = dim("n"), k_ = dim("k");
    declare_memories();
    declare_maps();
    full_ = barriers("full", 1), empty_ = barriers("empty", 2);
    kb_.p.arena_bytes += 16 * s_.slots;
    tiles_n_ = e_.ceildiv(n_, i(s_.bn));
    kb_.p.grid = {e_.mul(e_.ceildiv(m_, i(128)), tiles_n_)};
    kb_.p.launched_var = kb_.p.add_var("launched", ir::VarKind::block_index);
    build();
  }
  thread::ThreadProgram& program() { return kb_.p; }

 private:
  using Block = thread::Block;
  ExprId i(int64_t v) { return kb_.i(v); }
  ExprId dim(const char* name) {
    ExprId v = kb_.scalar(name, DType::i64, true);
    ir::Var& var = kb_.p.vars[e_[v].var().value];
    var.lower = 1, var.upper = 1 << 24;
    return v;
  }

  void declare_memories() {
    a_ = kb_.tensor("a", s_.type), b_ = kb_.tensor("b", s_.type), c_ = kb_.tensor("c", s_.type);
    for (MemoryId t : {a_, b_, c_}) kb_.align(t, 16);
    a_tile_ = kb_.shared("a_tile", s_.type, s_.slots * 128 * s_.bk, s_.slots);
    b_tile_ = kb_.shared("b_tile", s_.type, s_.slots * s_.bn * s_.bk, s_.slots);
    stage_ = kb_.shared("stage", s_.type, 2 * 64 * 128);
    acc_ = kb_.registers("acc", s_.accumulator, s_.bn / 2);
    out_ = kb_.registers("out", s_.type, 8);
  }

  void declare_maps() {
    auto add = [&](const char* name, MemoryId tensor, ExprId inner, ExprId outer, int64_t box0,
                   int64_t box1) {
      kb_.p.tensor_maps.push_back({name, tensor, {inner, outer}, {e_.mul(inner, 2)}, {box0, box1}, 128});
    };
    add("a_map", a_, k_, m_, 64, 128);
    s_.k_major_b ? add("b_map", b_, k_, n_, 64, s_.bn) : add("b_map", b_, n_, k_, 64, 64);
    add("c_map", c_, n_, m_, 64, 64);
  }

  int barriers(const char* name, int64_t arrivals) {
    kb_.p.barriers.push_back(
        {name, s_.slots, arrivals, kb_.p.arena_bytes + (arrivals == 1 ? 0 : 8 * s_.slots)});
    return static_cast<int>(kb_.p.barriers.size()) - 1;
  }

  template <class Node>
  thread::StmtId add(Node node) {
    return kb_.add(std::move(node), "main/gemm#0");
  }
  thread::StmtId branch(ExprId condition, Block body, Block other = {}) {
    return add(thread::Branch{condition, std::move(body), std::move(other)});
  }

  // The loops over tiles and k blocks of both roles.
  struct Loops {
    ir::VarId tile, ko;
    ExprId m0, n0, step, count, slot, parity;
    int64_t slots;
  };
  Loops loops(const char* tile, const char* ko) {
    Loops l;
    l.tile = kb_.loop_var(tile), l.ko = kb_.loop_var(ko);
    ExprId block = e_.add(kb_.block(), e_.mul(kb_.var(l.tile), kb_.var(kb_.p.launched_var)));
    l.m0 = e_.mul(e_.floordiv(block, tiles_n_), 128), l.n0 = e_.mul(e_.floormod(block, tiles_n_), s_.bn);
    l.step = kb_.var(l.ko);
    l.count = e_.add(e_.mul(kb_.var(l.tile), steps()), l.step);
    l.slot = e_.floormod(l.count, i(s_.slots));
    l.parity = e_.floormod(e_.floordiv(l.count, i(s_.slots)), i(2));
    return l;
  }
  ExprId steps() { return e_.ceildiv(k_, i(s_.bk)); }
  thread::StmtId loop(ir::VarId v, ExprId extent, Block body) {
    return kb_.loop(thread::LoopForm::serial, v, extent, std::move(body));
  }
  ExprId rounds() { return e_.ceildiv(e_.sub(kb_.p.grid[0], kb_.block()), kb_.var(kb_.p.launched_var)); }

  thread::WarpgroupMma product(const Loops& l) {
    thread::WarpgroupMma mma;
    const std::string types = std::string(ir::dtype_name(s_.accumulator)) + "." + ir::dtype_name(s_.type) +
                              "." + ir::dtype_name(s_.type);
    mma.atom = "wgmma.m64n" + std::to_string(s_.bn) + "k16." + types;
    mma.a = a_tile_, mma.b = b_tile_, mma.c = acc_;
    ExprId warpgroup = e_.floordiv(kb_.tid(), i(128));
    mma.a_index = e_.add(e_.mul(l.slot, 128 * s_.bk), e_.mul(warpgroup, 64 * s_.bk));
    mma.b_index = e_.mul(l.slot, s_.bn * s_.bk);
    mma.c_index = i(0);
    for (int64_t s = 0; s < s_.bk / 16; ++s) {
      mma.a_steps.push_back(16 * s);
      mma.b_steps.push_back(s_.k_major_b ? 16 * s : 16 * 64 * s);
    }
    mma.a_form = {128, true, 0, 1024};
    mma.b_form = s_.k_major_b ? thread::MatrixForm{128, true, 0, 1024}
                              : thread::MatrixForm{128, false, 64 * 128, 1024};
    if (!s_.clear) mma.accumulate = e_.lt(i(0), l.step);
    return mma;
  }

  ExprId elected() { return e_.binary(ExprOp::eq, e_.floormod(kb_.tid(), i(128)), i(0)); }

  Block multiply(const Loops& l) {
    ExprId last = e_.add(l.count, i(-1));
    Block release{branch(e_.logical_and(e_.lt(i(0), l.step), elected()),
                         {add(thread::TransactionArrive{empty_, e_.floormod(last, i(s_.slots)), 0})})};
    Block body{add(thread::TransactionWait{full_, l.slot, l.parity}),
               add(thread::WarpgroupFence{}),
               add(product(l)),
               add(thread::WarpgroupCommit{}),
               add(thread::WarpgroupWait{1, {}}),
               release[0]};
    ExprId end = e_.add(e_.mul(e_.add(kb_.var(l.tile), 1), steps()), i(-1));
    Block out{loop(l.ko, steps(), body), add(thread::WarpgroupWait{0, {acc_}}),
              branch(elected(), {add(thread::TransactionArrive{empty_, e_.floormod(end, i(s_.slots)), 0})})};
    if (!s_.clear) return out;
    ir::VarId z = kb_.loop_var("z");
    out.insert(out.begin(), kb_.loop(thread::LoopForm::unrolled, z, i(s_.bn / 2),
                                     {kb_.store(acc_, kb_.var(z), e_.const_float(0, s_.accumulator))}));
    return out;
  }

  thread::StmtId meet() {
    return branch(e_.lt(kb_.tid(), i(128)), {add(thread::Barrier{1, 128})}, {add(thread::Barrier{2, 128})});
  }

  // 128 columns of the warpgroup through its stage, 64 to a swizzled part.
  Block pass(const Loops& l, int64_t first) {
    ExprId warpgroup = e_.floordiv(kb_.tid(), i(128)), lane = e_.floormod(kb_.tid(), i(32));
    ExprId warp = e_.floormod(e_.floordiv(kb_.tid(), i(32)), i(4));
    ExprId row = e_.add(e_.mul(warp, 16), e_.floormod(lane, i(16)));
    ExprId base = e_.mul(warpgroup, 64 * 128);
    ir::VarId part = kb_.loop_var("part"), j = kb_.loop_var("j"), v = kb_.loop_var("v");
    ExprId chunk = e_.add(e_.mul(kb_.var(j), 2), e_.floordiv(lane, i(16)));
    ExprId swizzled = e_.binary(ExprOp::bit_xor, chunk, e_.floormod(row, i(8)));
    ExprId at =
        e_.add(e_.add(base, e_.mul(kb_.var(part), 64 * 64)), e_.add(e_.mul(row, 64), e_.mul(swizzled, 8)));
    ExprId from =
        e_.add(e_.add(e_.mul(kb_.var(part), 32), e_.mul(kb_.var(j), 8)), e_.add(kb_.var(v), i(first / 2)));
    using enum thread::LoopForm;
    Block inner{
        kb_.loop(unrolled, v, i(8), {kb_.store(out_, kb_.var(v), e_.cast(s_.type, kb_.load(acc_, from)))}),
        add(thread::StoreMatrix{stage_, at, out_, i(0), 4, false})};
    Block stores;
    for (int64_t p = 0; p < 2; ++p)
      stores.push_back(
          add(thread::TensorStore{2,
                                  {e_.add(l.n0, i(first + 64 * p)), e_.add(l.m0, e_.mul(warpgroup, 64))},
                                  stage_,
                                  e_.add(base, i(64 * 64 * p))}));
    stores.push_back(add(thread::BulkCommit{}));
    return {branch(elected(), {add(thread::BulkWait{0, true})}),
            meet(),
            kb_.loop(unrolled, part, i(2), {kb_.loop(unrolled, j, i(4), inner)}),
            add(thread::ProxyFence{}),
            meet(),
            branch(elected(), stores)};
  }

  Block consume() {
    Loops l = loops("tile", "ko");
    Block tile = multiply(l);
    for (int64_t first = 0; first < s_.bn; first += 128)
      for (thread::StmtId s : pass(l, first)) tile.push_back(s);
    return {loop(l.tile, rounds(), tile), branch(elected(), {add(thread::BulkWait{0, false})})};
  }

  Block feed() {
    Loops l = loops("ptile", "pko");
    ExprId k0 = e_.mul(l.step, s_.bk);
    Block body{add(thread::TransactionWait{empty_, l.slot, e_.binary(ExprOp::bit_xor, l.parity, i(1))}),
               add(thread::TransactionArrive{full_, l.slot, (128 + s_.bn) * s_.bk * 2}),
               add(thread::TensorLoad{0, {k0, l.m0}, a_tile_, e_.mul(l.slot, 128 * s_.bk), full_, l.slot})};
    ExprId to = e_.mul(l.slot, s_.bn * s_.bk);
    if (s_.k_major_b) {
      body.push_back(add(thread::TensorLoad{1, {k0, l.n0}, b_tile_, to, full_, l.slot}));
    } else {
      for (int64_t c = 0; c < s_.bn; c += 64)
        body.push_back(add(thread::TensorLoad{
            1, {e_.add(l.n0, i(c)), k0}, b_tile_, e_.add(to, i(c * s_.bk)), full_, l.slot}));
    }
    Block one{add(thread::OneThread{{loop(l.tile, rounds(), {loop(l.ko, steps(), body)})}})};
    if (s_.producer_warp) return one;
    return {branch(e_.lt(kb_.tid(), i(256 + 32)), one)};
  }

  void build() {
    const bool budgets = !s_.producer_warp;
    thread::Roles roles;
    roles.roles.push_back({"consumer", 0, 256, budgets ? 232 : 0, consume()});
    roles.roles.push_back({"producer", 256, kb_.p.threads - 256, budgets ? 40 : 0, feed()});
    kb_.p.body = {add(std::move(roles))};
  }

  HopperGemmShape s_;
  GpuBuilder kb_;
  ir::ExprPool& e_;
  ExprId m_, n_, k_, tiles_n_;
  MemoryId a_, b_, c_, a_tile_, b_tile_, stage_, acc_, out_;
  int full_ = -1, empty_ = -1;
};

}  // namespace tilegen::codegen::test
