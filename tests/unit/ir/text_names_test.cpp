// Programs made without the parser, whose names the text form cannot take as they are.
#include <gtest/gtest.h>

#include "ir/text.h"

namespace tilegen::ir {
namespace {

Program parsed(std::string_view text) {
  Expected<Program> p = parse_program(text, "test.tl", Limits());
  EXPECT_TRUE(p) << p.error().to_text() << "\n" << text;
  return p ? *p : Program();
}

struct MadeProgram : ::testing::Test {
  Program p;

  BufferId buffer(std::string name, int kernel) {
    Buffer b;
    b.name = std::move(name);
    b.kernel = kernel;
    b.scope = kernel < 0 ? MemScope::global : MemScope::fragment;
    b.shape = {p.exprs.const_int(8)};
    p.buffers.push_back(b);
    BufferId id(p.buffers.size() - 1);
    if (kernel < 0) p.params.push_back({Param::Kind::tensor, {}, id});
    return id;
  }
  VarId var(std::string name, VarKind kind) {
    Var v;
    v.name = std::move(name);
    v.kind = kind;
    p.vars.push_back(v);
    return VarId(p.vars.size() - 1);
  }
  StmtId add(std::variant<Loop, Branch, Store, TileOp> node) {
    p.stmts.push_back({std::move(node), {}});
    return StmtId(p.stmts.size() - 1);
  }
  StmtId loop(VarId v, Block body) {
    Loop l;
    l.vars = {v};
    l.begin = p.exprs.const_int(0);
    l.extents = {p.exprs.const_int(8)};
    l.body = std::move(body);
    return add(std::move(l));
  }
  StmtId store(BufferId b, VarId index) {
    return add(Store{b, {p.exprs.var(index)}, p.exprs.const_float(1, DType::f32)});
  }
  Kernel& kernel(std::string name, VarId block) {
    Kernel k;
    k.name = std::move(name);
    k.grid = {p.exprs.const_int(1)};
    k.block_vars = {block};
    p.kernels.push_back(std::move(k));
    return p.kernels.back();
  }
};

TEST_F(MadeProgram, CollidingNamesGetSuffixesAndReadBack) {
  p.name = "2 fast";
  BufferId a = buffer("A", -1), a2 = buffer("A", -1), taken = buffer("A_1", -1), word = buffer("copy", -1);
  VarId b = var("A", VarKind::block_index), i = var("i", VarKind::loop), inner = var("i", VarKind::loop);
  VarId sibling = var("i", VarKind::loop), odd = var("x-y", VarKind::loop);
  Kernel& k = kernel("A", b);
  BufferId tile = buffer("i", 0);
  StmtId deep = loop(inner, {store(a2, i), store(tile, inner)});
  k.body = {loop(i, {deep}), loop(sibling, {store(word, sibling)}),
            loop(odd, {store(taken, odd), store(a, odd)})};
  kernel("A", var("b", VarKind::block_index));

  std::string text = print_program(p);
  EXPECT_EQ(text,
            "tl 1 program _2_fast\n"
            "tensor A: f32[8]\n"
            "tensor A_2: f32[8]\n"
            "tensor A_1: f32[8]\n"
            "tensor copy_1: f32[8]\n"
            "\n"
            "kernel A_3 grid (A_3: 1) {\n"
            "  alloc i: fragment f32[8]\n"
            "  serial i_1 in 0 .. 8 {\n"
            "    serial i_2 in 0 .. 8 {\n"
            "      A_2[i_1] = 1.0f32\n"
            "      i[i_2] = 1.0f32\n"
            "    }\n"
            "  }\n"
            "  serial i_1 in 0 .. 8 {\n"
            "    copy_1[i_1] = 1.0f32\n"
            "  }\n"
            "  serial x_y in 0 .. 8 {\n"
            "    A_1[x_y] = 1.0f32\n"
            "    A[x_y] = 1.0f32\n"
            "  }\n"
            "}\n"
            "\n"
            "kernel A_4 grid (b: 1) {\n"
            "}\n");
  Program back = parsed(text);
  EXPECT_EQ(print_program(back), text);
  EXPECT_EQ(program_hash(back), program_hash(p));
}

TEST_F(MadeProgram, LongAndEmptyNamesReadBack) {
  p.name = "";
  BufferId a = buffer(std::string(500, 'a'), -1), b = buffer(std::string(500, 'a') + "b", -1),
           c = buffer("", -1);
  VarId block = var("\xff\n", VarKind::block_index);
  kernel("if", block).body = {store(a, block), store(b, block), store(c, block)};
  std::string text = print_program(p);
  EXPECT_EQ(print_program(parsed(text)), text);
  EXPECT_EQ(parsed(text).kernels[0].name, "if");
}

TEST_F(MadeProgram, MessagesShowNamesAsGiven) {
  BufferId a = buffer("A", -1);
  VarId v = var("i", VarKind::loop);
  ExprId index[] = {p.exprs.add(p.exprs.var(v), 1)};
  EXPECT_EQ(print_expr(p, p.exprs.load(a, DType::f32, index)), "A[i + 1]");
  EXPECT_EQ(print_region(p, {a, {p.exprs.const_int(0)}, {8}}), "A");
  EXPECT_EQ(print_region(p, {a, {index[0]}, {4}}), "A[i + 1 :+ 4]");
  EXPECT_EQ(print_expr(p, ExprId()), "?");
}

// Shared nodes are written once per use: the text of a doubling chain is exponential, and says so before it
// is printed.
TEST_F(MadeProgram, SharedExpressionsAreCountedAndCut) {
  ExprId e = p.exprs.var(var("x", VarKind::dim));
  for (int i = 0; i < 60; ++i) e = p.exprs.mul(e, e);
  BufferId a = buffer("A", -1);
  EXPECT_LE(written_nodes(p), 1u);
  add(Store{a, {e}, p.exprs.const_float(1, DType::f32)});
  EXPECT_GT(written_nodes(p), uint64_t{1} << 40);
  std::string text = print_expr(p, e);
  EXPECT_LT(text.size(), 8192u);
  EXPECT_EQ(text.substr(text.size() - 3), "...");
}

TEST_F(MadeProgram, DeepExpressionsPrintWithoutRecursion) {
  ExprId e = p.exprs.var(var("x", VarKind::dim));
  for (int i = 0; i < 400; ++i) e = p.exprs.binary(ExprOp::sub, p.exprs.const_int(i + 2), e);
  std::string text = print_expr(p, e);
  EXPECT_EQ(text.substr(0, 20), "401 - (400 - (399 - ");
}

}  // namespace
}  // namespace tilegen::ir
