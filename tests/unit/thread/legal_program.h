// A legal thread program to break.
#pragma once

#include <gtest/gtest.h>

#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::thread {

struct ThreadVerifyTest : ::testing::Test {
  ThreadProgram p;
  ir::VarId n, alpha, bx, i, lane, u;
  MemoryId in, out, tile, acc;
  StmtId outer, simd, unrolled;

  ir::ExprId c(int64_t v) { return p.exprs.const_int(v); }
  ir::ExprId use(ir::VarId v, ir::DType t = ir::DType::i64) { return p.exprs.var(v, t); }
  ir::ExprId load(MemoryId m, ir::ExprId index) {
    const ir::ExprId indices[] = {index};
    return p.exprs.load(m, p.memory(m).type, indices);
  }
  ir::ExprId load_if(MemoryId m, ir::ExprId index, ir::ExprId predicate) {
    const ir::ExprId indices[] = {index, predicate};
    return p.exprs.load(m, p.memory(m).type, indices);
  }
  Memory global(const char* name, int param, bool read_only) {
    Memory m;
    m.name = name, m.alignment = 4, m.param = param, m.read_only = read_only;
    return m;
  }
  template <class T>
  T& node(StmtId id) {
    return std::get<T>(p.stmts[id.value].node);
  }

  void SetUp() override {
    p.machine = *target::find_target("sm_90a");
    p.name = "axpy";
    n = p.add_var("n", ir::VarKind::dim);
    alpha = p.add_var("alpha", ir::VarKind::scalar);
    p.vars[alpha.value].type = ir::DType::f32;
    bx = p.add_var("bx", ir::VarKind::block_index);
    i = p.add_var("i", ir::VarKind::loop);
    lane = p.add_var("v", ir::VarKind::loop);
    u = p.add_var("u", ir::VarKind::loop);
    in = p.add_memory(global("X", 2, true));
    out = p.add_memory(global("Y", 3, false));
    Memory m;
    m.name = "T", m.space = Space::shared, m.elements = 64, m.alignment = 64, m.arena_offset = 128;
    tile = p.add_memory(m);
    m.name = "acc", m.space = Space::local, m.elements = 8, m.arena_offset = -1, m.in_registers = true;
    acc = p.add_memory(m);
    p.params = {{Param::Kind::dim, "n", ir::DType::i64, n, {}},
                {Param::Kind::scalar, "alpha", ir::DType::f32, alpha, {}},
                {Param::Kind::tensor, "X", ir::DType::f32, {}, in},
                {Param::Kind::tensor, "Y", ir::DType::f32, {}, out}};
    p.grid = {p.exprs.ceildiv(use(n), c(64))};
    p.block_vars = {bx};
    p.arena_bytes = 128 + 64 * 4;

    const ir::ExprId at = p.exprs.add(p.exprs.mul(use(i), 8), use(lane));
    const ir::ExprId global_at = p.exprs.add(p.exprs.mul(use(bx), 64), at);
    const ir::ExprId inside = p.exprs.lt(global_at, use(n));
    const ir::ExprId scaled =
        p.exprs.binary(ir::ExprOp::mul, use(alpha, ir::DType::f32), load_if(in, global_at, inside));
    simd =
        p.add(Loop{lane, c(8), LoopForm::vectorized, {p.add(Store{tile, at, scaled, inside}, "axpy/copy#0")}},
              "axpy/copy#0");
    unrolled = p.add(Loop{u,
                          c(8),
                          LoopForm::unrolled,
                          {p.add(Store{acc, use(u), load(tile, p.exprs.add(use(i), use(u))), {}}, "axpy/s")}},
                     "axpy/s");
    const StmtId guarded = p.add(Store{out, p.exprs.add(use(bx), use(i)), load(acc, c(0)), {}}, "axpy/s");
    const StmtId branch = p.add(Branch{p.exprs.lt(use(i), use(n)), {guarded}, {}}, "axpy/if#0");
    outer = p.add(Loop{i, c(8), LoopForm::serial, {simd, unrolled, branch}}, "axpy/i");
    const StmtId fetch = p.add(Prefetch{in, c(1000), 3}, "axpy/i");
    p.body = {fetch, outer, p.add(Barrier{}, "axpy/i")};
  }

  // Exactly one report, with this text in it.
  void expect_problem(const std::string& text) {
    const auto problems = verify_thread_program(p);
    ASSERT_EQ(problems.size(), 1u) << ::testing::PrintToString(problems);
    EXPECT_NE(problems[0].find(text), std::string::npos) << problems[0];
  }
  void append(decltype(Stmt::node) node) { p.body.push_back(p.add(std::move(node), "extra")); }
};

}  // namespace tilegen::thread
