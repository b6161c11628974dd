#include "builder/builder.h"
#include "check/check_program.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/op_kinds.h"
#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::builder {
namespace {

using ir::DType;
using ir::ExprId;

// Row-wise scale with a running maximum: every kind of scope and statement once.
void build_everything(Builder& b) {
  const ir::VarId n = b.dim("n");
  b.dim_fact(n, 1, 4096, 8);
  const ExprId alpha = b.var(b.scalar("alpha", DType::f32));
  const ExprId shape[] = {b.var(n), b.const_int(64, DType::i64)};
  const ir::BufferId A = b.tensor("A", DType::f32, shape, {}, {.read_only = true});
  const ir::BufferId C = b.tensor("C", DType::f32, shape, {}, {});
  const ExprId grid[] = {b.var(n)};
  ir::VarId block[1];
  const uint64_t kernel = b.begin_kernel("scale", grid, 64, block);
  const int64_t tile[] = {1, 64}, one[] = {1};
  const ir::BufferId x = b.alloc("x", ir::MemScope::fragment, DType::f32, tile);
  const ir::BufferId top = b.alloc("top", ir::MemScope::fragment, DType::f32, one);
  const ExprId zero = b.const_int(0, DType::i64);
  const ExprId at[] = {b.var(block[0]), zero};
  const ir::Region from[] = {*b.region(A, at, tile), *b.region(x, {}, {})};
  b.tile_op(ir::OpKind::copy, from, {}, {});
  const ir::Region rows[] = {*b.region(x, {}, {}), *b.region(top, {}, {})};
  const int64_t max_over_columns[] = {static_cast<int64_t>(ir::ReduceKind::max), 1, 0};
  b.tile_op(ir::OpKind::reduce, rows, max_over_columns, {});
  ir::VarId k, ij[2];
  const uint64_t loop = b.begin_loop(ir::LoopKind::serial, zero, b.const_int(2, DType::i64), 0, "k", &k);
  const std::string_view names[] = {"i", "j"};
  const uint64_t parallel = b.begin_parallel(tile, ij, names);
  const ExprId point[] = {b.var(ij[0]), b.var(ij[1])}, row[] = {b.var(ij[0])};
  const uint64_t branch = b.begin_if(b.binary(ir::ExprOp::lt, b.load(x, point), b.load(top, row)));
  b.store(x, point, b.binary(ir::ExprOp::mul, b.load(x, point), alpha));
  b.begin_else(branch);
  b.store(x, point, b.const_float(0, DType::f32));
  b.end(branch);
  b.end(parallel);
  b.end(loop);
  const ir::Region to[] = {*b.region(x, {}, {}), *b.region(C, at, tile)};
  b.tile_op(ir::OpKind::copy, to, {}, {});
  b.end(kernel);
}

TEST(Builder, MakesTheProgramThatItsTextSays) {
  Builder b("scaled", Limits());
  build_everything(b);
  const auto built = b.finish(check::check_program);
  ASSERT_TRUE(built) << built.error().to_text();
  const std::string expected =
      "tl 1 program scaled\n"
      "dim n >= 1 <= 4096 divisible 8\n"
      "scalar alpha: f32\n"
      "tensor A: f32[n, 64] readonly\n"
      "tensor C: f32[n, 64]\n"
      "kernel scale grid(bx: n) threads 64 {\n"
      "  alloc x: fragment f32[1, 64]\n"
      "  alloc top: fragment f32[1]\n"
      "  copy A[bx :+ 1, 0 :+ 64] -> x\n"
      "  reduce x -> top {kind = max, axis = 1}\n"
      "  serial k in 0 .. 2 {\n"
      "    parallel i, j in 1, 64 {\n"
      "      if x[i, j] < top[i] {\n"
      "        x[i, j] = x[i, j] * alpha\n"
      "      } else {\n"
      "        x[i, j] = 0.0f32\n"
      "      }\n"
      "    }\n"
      "  }\n"
      "  copy x -> C[bx :+ 1, 0 :+ 64]\n"
      "}\n";
  const auto parsed = ir::parse_program(expected, "expected.tl", Limits());
  ASSERT_TRUE(parsed) << parsed.error().to_text();
  EXPECT_EQ(ir::print_program(**built), ir::print_program(*parsed));
}

TEST(Builder, LoopsThatDoNotContainEachOtherMayShareAName) {
  Builder b("p", Limits());
  const ExprId one = b.const_int(1, DType::i64), four = b.const_int(4, DType::i64);
  const ExprId grid[] = {one};
  ir::VarId v;
  const uint64_t kernel = b.begin_kernel("k", grid, 0, {&v, 1});
  for (int round = 0; round < 2; ++round) b.end(b.begin_loop(ir::LoopKind::serial, one, four, 0, "i", &v));
  b.end(b.begin_loop(ir::LoopKind::serial, one, four, 0, "", &v));
  b.end(kernel);
  const auto built = b.finish(check::check_program);
  ASSERT_TRUE(built) << built.error().to_text();
  EXPECT_EQ((*built)->stmts.size(), 3u);
}

// As in a text: a kernel is named by no statement, so its name hides nothing and is hidden by nothing.
TEST(Builder, NamesInsideOfKernelsMayBeThoseOfKernels) {
  Builder b("names", Limits());
  const ExprId one[] = {b.const_int(1, DType::i64)};
  for (const char* name : {"k", "other"}) {
    ir::VarId block[1], loop_var;
    const std::string_view blocks[] = {name};
    const uint64_t kernel = b.begin_kernel(name, one, 0, block, blocks);
    const uint64_t loop = b.begin_loop(ir::LoopKind::serial, b.const_int(0, DType::i64), one[0], 0,
                                       name == std::string_view("k") ? "other" : "k", &loop_var);
    b.end(loop);
    b.end(kernel);
  }
  const auto built = b.finish(check::check_program);
  ASSERT_TRUE(built) << built.error().to_text();
  const auto parsed = ir::parse_program(
      "tl 1 program names\nkernel k grid(k: 1) {\n  serial other in 0 .. 1 {\n  }\n}\n"
      "kernel other grid(other: 1) {\n  serial k in 0 .. 1 {\n  }\n}\n",
      "t.tl", Limits());
  ASSERT_TRUE(parsed) << parsed.error().to_text();
  EXPECT_EQ(ir::print_program(**built), ir::print_program(*parsed));
}

TEST(Builder, OnlyTheFirstErrorIsACause) {
  Builder b("p", Limits());
  const ExprId grid[] = {b.const_int(1, DType::i64)};
  ir::VarId v;
  b.begin_kernel("k", grid, 0, {&v, 1});
  b.begin_loop(ir::LoopKind::serial, grid[0], grid[0], 0, "i", &v);
  const auto failed = b.finish(check::check_program);  // two scopes are open
  ASSERT_FALSE(failed);
  ASSERT_EQ(failed.error().diagnostics.size(), 2u);
  EXPECT_FALSE(failed.error().diagnostics[0].consequence);
  EXPECT_TRUE(failed.error().diagnostics[1].consequence);
  EXPECT_NE(failed.error().diagnostics[0].message.find("loop 'i'"), std::string::npos);
  EXPECT_NE(failed.error().diagnostics[1].message.find("kernel 'k'"), std::string::npos);
}

TEST(Builder, DiagnosticsAreCapped) {
  Limits limits;
  limits.diagnostics = 5;
  Builder b("p", limits);
  for (int i = 0; i < 100; ++i) b.fail(DiagCode::bad_name, "test", "again", "stop");
  const auto failed = b.finish(check::check_program);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().diagnostics.size(), 5u);
}

TEST(Builder, IdsOutOfRangeAreReported) {
  const auto refuses = [](auto&& call) {
    Builder b("p", Limits());
    const ExprId grid[] = {b.const_int(1, DType::i64)};
    ir::VarId v;
    b.begin_kernel("k", grid, 0, {&v, 1});
    call(b);
    ASSERT_TRUE(b.failed());
    EXPECT_EQ(b.diagnostics()[0].code, DiagCode::stale_handle) << b.diagnostics()[0].to_text();
  };
  for (uint32_t bad : {1000u, 0x7fffffffu, 0xffffffffu}) {
    const ExprId e{size_t{bad}};
    const ir::BufferId buffer{size_t{bad}};
    refuses([&](Builder& b) { b.unary(ir::ExprOp::neg, e); });
    refuses([&](Builder& b) { b.select(e, e, e); });
    refuses([&](Builder& b) { b.begin_if(e); });
    refuses([&](Builder& b) { b.var(ir::VarId(size_t{bad})); });
    refuses([&](Builder& b) { b.load(buffer, {}); });
    refuses([&](Builder& b) { b.region(buffer, {}, {}); });
    refuses([&](Builder& b) { b.store(buffer, {}, e); });
    refuses([&](Builder& b) {
      const ir::Region operands[] = {{buffer, {}, {}}, {buffer, {}, {}}};
      b.tile_op(ir::OpKind::copy, operands, {}, {});
    });
  }
}

}  // namespace
}  // namespace tilegen::builder
