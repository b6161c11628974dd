// What is printed reads back to the same program.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/text.h"
#include "text_samples.h"

namespace tilegen::ir {
namespace {

Program parsed(std::string_view text) {
  Expected<Program> p = parse_program(text, "test.tl", Limits());
  EXPECT_TRUE(p) << p.error().to_text() << "\n" << text;
  return p ? *p : Program();
}

// One kernel around the given statements, with a buffer of every kind to use in them.
std::string kernel_text(const std::string& body) {
  return "tl 1 program t\ndim n\ndim m\nscalar x: f32\nscalar c: i32\nscalar yes: bool\ntensor A: f32[n, "
         "64]\n"
         "tensor V: i32[n]\n\nkernel k grid (b: n) {\n  alloc S: shared f32[64, 64]\n  alloc R: fragment "
         "f32[64, 64]\n" +
         body + "}\n";
}

// The canonical text of one statement.
std::string canonical(const std::string& statement) {
  std::string text = print_program(parsed(kernel_text(statement + "\n")));
  std::string before = kernel_text("");
  before.resize(before.size() - 2);
  EXPECT_EQ(text.substr(0, before.size()), before);
  std::string body = text.substr(before.size());
  return body.substr(2, body.size() - 5);  // indent; newline and brace
}

TEST(TextRoundTrip, AnIndexAloneIsARangeOfOne) {
  EXPECT_EQ(canonical("  copy A[b, 0 :+ 64] -> S[b % 64, 0 :+ 64]"),
            canonical("  copy A[b :+ 1, 0 :+ 64] -> S[b % 64 :+ 1, 0 :+ 64]"));
  EXPECT_EQ(canonical("  fill R[3, 5], 0"), "fill R[3 :+ 1, 5 :+ 1], 0.0f32");
}

// The other side's ranges are the extents of a box that begins at indices alone.
TEST(TextRoundTrip, CopiesFromAPlaceOnTakeTheirExtentsFromTheOtherSide) {
  const auto statement = [](const std::string& text) {
    const auto p = parse_program(
        "tl 1 program p\ndim n\ntensor X: f32[n, n, n, n]\ntensor Y: f32[n, n]\ntensor Z: f32[8, 4]\n"
        "kernel k grid (b: n) {\n  alloc t: shared f32[8, 4]\n  alloc u: shared f32[2, 8, 3, 4]\n"
        "  alloc v: shared f32[1, 1, 4]\n  fill t, 1\n  fill u, 1\n  fill v, 1\n  " +
            text + "\n}\n",
        "test.tl", Limits{});
    if (!p) return std::string(p.error().diagnostics[0].message);
    const std::string printed = print_program(*p);
    const size_t last = printed.rfind("\n  ") + 3;
    return printed.substr(last, printed.find('\n', last) - last);
  };
  const std::pair<const char*, const char*> kCases[] = {
      {"copy Y[b * 8, b] -> t", "copy Y[b * 8 :+ 8, b :+ 4] -> t"},
      {"copy t -> Y[b * 8, b]", "copy t -> Y[b * 8 :+ 8, b :+ 4]"},
      {"copy X[1, b, b * 8, 0] -> t", "copy X[1 :+ 1, b :+ 1, b * 8 :+ 8, 0 :+ 4] -> t"},
      {"copy t -> X[1, b, b * 8, 0]", "copy t -> X[1 :+ 1, b :+ 1, b * 8 :+ 8, 0 :+ 4]"},
      {"copy Y[b, 0] -> t[2 :+ 6, 1 :+ 2]", "copy Y[b :+ 6, 0 :+ 2] -> t[2 :+ 6, 1 :+ 2]"},
      {"copy Y[b, 0] -> t[2, 0 :+ 4]", "copy Y[b :+ 1, 0 :+ 4] -> t[2 :+ 1, 0 :+ 4]"},
      {"copy Y[b, 0] -> u[1, 0 :+ 8, 2, 0 :+ 4]",
       "copy Y[b :+ 8, 0 :+ 4] -> u[1 :+ 1, 0 :+ 8, 2 :+ 1, 0 :+ 4]"},
      {"copy X[b, 0, 0, 0] -> u[1, 0 :+ 8, 2 :+ 1, 0 :+ 4]",
       "copy X[b :+ 1, 0 :+ 8, 0 :+ 1, 0 :+ 4] -> u[1 :+ 1, 0 :+ 8, 2 :+ 1, 0 :+ 4]"},
      {"copy v -> Y[b, 0]", "copy v -> Y[b :+ 1, 0 :+ 4]"},
      {"copy t[0, 0] -> Z", "copy t -> Z"},
      {"copy Y[b, 0] -> t[2, 3]", "copy Y[b :+ 1, 0 :+ 1] -> t[2 :+ 1, 3 :+ 1]"},
      {"copy Y[b, 0 :+ 4] -> t[2, 0 :+ 4]", "copy Y[b :+ 1, 0 :+ 4] -> t[2 :+ 1, 0 :+ 4]"},
      {"atomic t -> Y[b, 0] {kind = max}", "atomic t -> Y[b :+ 8, 0 :+ 4] {kind=max}"},
      {"label a: copy Y[b, 0] -> t {vector = 1}", "label a: copy Y[b :+ 8, 0 :+ 4] -> t {vector=1}"},
      {"copy Y[b, 0] -> u",
       "'Y' has 2 indices and no extents; those of the other side, 2 x 8 x 3 x 4, are 4"},
  };
  for (const auto& [text, expected] : kCases) EXPECT_EQ(statement(text), expected) << text;
}

// inf, nan and choices between literals are of the type that a plain literal would be of.
TEST(TextRoundTrip, LiteralsTakeTheTypeOfTheirPlace) {
  const auto same = [](const std::string& sparse, const std::string& full) {
    EXPECT_EQ(canonical("  parallel i, j in 64, 64 { " + sparse + " }"),
              canonical("  parallel i, j in 64, 64 { " + full + " }"));
  };
  same("R[i, j] = select(i < j, 1.0, 0.0)", "R[i, j] = select(i < j, 1f32, 0f32)");
  same("R[i, j] = S[i, j] * select(i < j, 1, select(i == j, -2.5, 0))",
       "R[i, j] = S[i, j] * select(i < j, 1f32, select(i == j, -2.5f32, 0f32))");
  same("R[i, j] = max(select(yes, -inf, 0), S[i, j])", "R[i, j] = max(select(yes, -inf:f32, 0f32), S[i, j])");
  same("R[i, j] = select(select(yes, c, 3) > 2, nan, inf)",
       "R[i, j] = select(select(yes, c, 3i32) > 2i32, nan:f32, inf:f32)");
  same("R[i, j] = cast(f32, cast(f16, select(yes, 1.5, -inf)))",
       "R[i, j] = cast(f32, cast(f16, select(yes, 1.5f16, -inf:f16)))");
  same("let k = select(yes, 1, 0) R[i, j] = cast(f32, k)",
       "let k = select(yes, 1i64, 0i64) R[i, j] = cast(f32, k)");
}

TEST(TextRoundTrip, EverySampleIsStableAndHashesAlike) {
  std::vector<TextSample> samples = text_samples();
  ASSERT_GE(samples.size(), 12u);
  for (const TextSample& s : samples) {
    SCOPED_TRACE(s.name);
    Program p = parsed(s.text);
    std::string text = print_program(p);
    Program again = parsed(text);
    EXPECT_EQ(print_program(again), text);
    EXPECT_EQ(program_hash(again), program_hash(p));
    EXPECT_EQ(program_hash(p).size(), 32u);
    EXPECT_EQ(again.stmts.size(), p.stmts.size());
    EXPECT_EQ(again.buffers.size(), p.buffers.size());
    EXPECT_EQ(again.vars.size(), p.vars.size());
    EXPECT_EQ(statement_paths(again), statement_paths(p));
    EXPECT_EQ(written_nodes(again), written_nodes(p));
  }
}

// A sample without sugar is its own canonical text, but for the comment on top.
TEST(TextRoundTrip, CanonicalSamplesPrintAsTheyStand) {
  for (const char* name : {"gemm", "softmax", "layernorm", "rmsnorm"}) {
    std::string text = text_sample(name);
    EXPECT_EQ(print_program(parsed(text)), text.substr(text.find("tl 1 "))) << name;
  }
}

TEST(TextRoundTrip, GemmHasTheStructureItsTextShows) {
  Program p = parsed(text_sample("gemm_bias_relu"));
  EXPECT_EQ(p.name, "gemm_bias_relu");
  ASSERT_EQ(p.params.size(), 7u);
  EXPECT_EQ(p.params[0].kind, Param::Kind::dim);
  EXPECT_EQ(p.params[3].kind, Param::Kind::tensor);
  EXPECT_TRUE(p.buffer(p.params[3].buffer).read_only);
  EXPECT_FALSE(p.buffer(p.params[6].buffer).read_only);
  ASSERT_EQ(p.kernels.size(), 1u);
  const Kernel& k = p.kernels[0];
  EXPECT_EQ(k.threads, 128);
  ASSERT_EQ(k.grid.size(), 2u);
  EXPECT_EQ(print_expr(p, k.grid[0]), "(m + 127) // 128");
  EXPECT_EQ(p.var(k.block_vars[1]).name, "bx");
  EXPECT_EQ(p.var(k.block_vars[1]).kind, VarKind::block_index);
  ASSERT_EQ(k.body.size(), 5u);
  const Loop* loop = p.as<Loop>(k.body[2]);
  ASSERT_NE(loop, nullptr);
  EXPECT_EQ(loop->kind, LoopKind::pipelined);
  EXPECT_EQ(loop->num_stages, 3);
  ASSERT_EQ(loop->body.size(), 3u);
  const TileOp* copy = p.as<TileOp>(loop->body[0]);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(print_region(p, copy->operands[0]), "A[by * 128 :+ 128, ko * 32 :+ 32]");
  EXPECT_EQ(print_region(p, copy->operands[1]), "As");
  EXPECT_EQ(copy->operands[1].extents, (std::vector<int64_t>{128, 32}));
  const Loop* epilogue = p.as<Loop>(k.body[3]);
  ASSERT_NE(epilogue, nullptr);
  EXPECT_EQ(epilogue->kind, LoopKind::parallel);
  ASSERT_EQ(epilogue->extents.size(), 2u);
  EXPECT_TRUE(p.exprs.is_const_int(epilogue->begin));
  const Store* store = p.as<Store>(epilogue->body[0]);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(print_expr(p, store->value), "max(acc[i, j] + bias_tile[j], 0.0f32)");
}

TEST(TextRoundTrip, StatementsKnowWhereTheyStand) {
  Program p = parsed(
      "tl 1 program t\ntensor A: f32[8]\nkernel k grid (b: 1) {\n  alloc S: shared f32[8]\n"
      "  copy A -> S\n  serial i in 0 .. 4 { fill S, 0.0f32\n    S[i] = 1.0f32 }\n}\n");
  ASSERT_EQ(p.stmts.size(), 4u);
  auto at = [&](size_t i) { return std::pair(p.stmts[i].location.line, p.stmts[i].location.column); };
  EXPECT_EQ(at(0), std::pair(5u, 3u));
  EXPECT_EQ(at(1), std::pair(6u, 3u));
  EXPECT_EQ(at(2), std::pair(6u, 24u));
  EXPECT_EQ(at(3), std::pair(7u, 5u));
  EXPECT_EQ(p.stmts[0].location.file, "test.tl");
  EXPECT_EQ(p.buffers[0].location.line, 2u);
  EXPECT_EQ(p.kernels[0].location.column, 8u);
}

TEST(TextRoundTrip, SugarReadsAsItsCanonicalForm) {
  EXPECT_EQ(canonical("copy A[0:+64,0:+64]->S"), "copy A[0 :+ 64, 0 :+ 64] -> S");
  EXPECT_EQ(canonical("copy S[0 :+ 64, 0 :+ 64] -> R"), "copy S -> R");
  EXPECT_EQ(canonical("gemm S, S -> R { clear , transpose_a=true, policy=square, transpose_b=false }"),
            "gemm S, S -> R {transpose_a, clear}");
}

TEST(TextRoundTrip, LoopBounds) {
  const std::pair<const char*, const char*> cases[] = {
      {"0 .. 8", "0 .. 8"},
      {"2 .. 10", "2 .. 10"},
      {"2 :+ 8", "2 .. 10"},
      {"0 :+ n", "0 .. n"},
      {"m .. n", "m .. n"},
      {"m :+ n", "m :+ n"},
      {"m :+ n - m", "m .. n"},
      {"1 .. n", "1 .. n"},
      {"1 :+ n", "1 :+ n"},
      {"m .. m + 4", "m .. m + 4"},
      {"-4 .. 4", "-4 .. 4"},
      {"n .. n", "n :+ 0"},
      {"1 :+ 9223372036854775807", "1 :+ 9223372036854775807"},
  };
  for (auto [given, wanted] : cases)
    EXPECT_EQ(canonical("serial i in " + std::string(given) + " {\n  }"),
              "serial i in " + std::string(wanted) + " {\n  }");
}

TEST(TextRoundTrip, Expressions) {
  const std::pair<const char*, const char*> cases[] = {
      {"c+c*c", "c + c * c"},
      {"(c+c)*c", "(c + c) * c"},
      {"c-(c-1i32)", "c - (c - 1i32)"},
      {"c-c*c-1i32", "c - c * c - 1i32"},
      {"c // (c * 2i32)", "c // (c * 2i32)"},
      {"c * 2i32 // c % 3i32", "c * 2i32 // c % 3i32"},
      {"-c", "neg(c)"},
      {"-c * c", "neg(c) * c"},
      {"-(c * c)", "neg(c * c)"},
      {"- 5i32 - -6i32 - c", "1i32 - c"},
      {"c - -5i32", "c - -5i32"},
      {"((((c))))", "c"},
      {"c << 1i32 + c", "c << 1i32 + c"},
      {"(c << 1i32) + c", "(c << 1i32) + c"},
      {"c & 3i32 | c", "c & 3i32 | c"},
      {"c & (3i32 | c)", "c & (3i32 | c)"},
      {"select(c > 3i32 and 5i32 >= c, c, min(c, 2i32))", "select(3i32 < c and c <= 5i32, c, min(c, 2i32))"},
      {"select((c < 1i32) == (c < 2i32), c, 0i32)", "select((c < 1i32) == (c < 2i32), c, 0i32)"},
      {"select(yes or yes and c == c, c, 0i32)", "select(yes, c, 0i32)"},
      {"select((yes or c < 1i32) and not(yes), c, 0i32)", "select((yes or c < 1i32) and not(yes), c, 0i32)"},
      {"select(not yes, c, 0i32)", "select(not(yes), c, 0i32)"},
      {"select(not c < 1i32 and yes, c, 0i32)", "select(not(c < 1i32) and yes, c, 0i32)"},
      {"select(not not yes, c, 0i32)", "select(yes, c, 0i32)"},
      {"select(yes == not c + 1i32 < 3i32, c, 0i32)", "select(yes == not(c + 1i32 < 3i32), c, 0i32)"},
      {"select(not (yes) == yes, c, 0i32)", "select(not(yes) == yes, c, 0i32)"},
      {"cast(i32, x)", "cast(i32, x)"},
      {"cast(i32, V[cast(i64, c)])", "V[cast(i64, c)]"},
      {"cast(i32, A[b, b - 1])", "cast(i32, A[b, b - 1])"},
      {"cast(i32, ceildiv(n, m))", "cast(i32, neg(neg(n) // m))"},
      {"bit_not(c) ^ abs(c)", "bit_not(c) ^ abs(c)"},
  };
  for (auto [given, wanted] : cases)
    EXPECT_EQ(canonical("V[b] = " + std::string(given)), "V[b] = " + std::string(wanted));
}

TEST(TextRoundTrip, Literals) {
  const std::pair<const char*, const char*> cases[] = {
      {"1.5f32", "1.5f32"},
      {"1f32", "1.0f32"},
      {"1e3f32", "1000.0f32"},
      {"1e30f32", "1e+30f32"},
      {"1e-5f32", "1e-05f32"},
      {"-0.0f32", "-0.0f32"},
      {"inf:f32", "inf:f32"},
      {"-inf:f32", "-inf:f32"},
      {"nan:f32", "nan:f32"},
      {"0.1f32", "0.1f32"},
      {"16777217f32", "16777216.0f32"},
      {"1.401298464324817e-45f32", "1e-45f32"},
      {"0x3f800000:f32", "1.0f32"},
      {"0x7fc00000:f32", "nan:f32"},
  };
  for (auto [given, wanted] : cases)
    EXPECT_EQ(canonical("fill R, " + std::string(given)), "fill R, " + std::string(wanted));
}

// As bits: decimal digits before "e4m3" would take its e for an exponent.
TEST(TextRoundTrip, EveryByteFloatIsExact) {
  for (DType t : {DType::e4m3, DType::e5m2})
    for (uint64_t code = 0; code < 256; ++code) {
      Program p;
      p.name = "t";
      const ExprId value = p.exprs.const_float(float_from_bits(t, code), t);
      const std::string text = print_expr(p, value);
      const Program back = parsed(std::string("tl 1 program t\ntensor A: ") + dtype_name(t) +
                                  "[1]\nkernel k grid (b: 1) {\nA[0] = " + text + "\n}\n");
      EXPECT_EQ(back.exprs[back.as<Store>(StmtId(size_t{0}))->value].imm, p.exprs[value].imm) << text;
    }
  EXPECT_EQ(canonical("fill R, cast(f32, 0x3c:e4m3)"), "fill R, 1.5f32");
  EXPECT_EQ(canonical("fill R, cast(f32, cast(e4m3, 1000.0f32))"), "fill R, 448.0f32");
  EXPECT_EQ(canonical("fill R, cast(f32, inf:e5m2)"), "fill R, inf:f32");
  EXPECT_EQ(canonical("fill R, cast(f32, cast(e5m2, inf:f32))"), "fill R, 57344.0f32");
}

// Every bit pattern of the 16-bit types, and edge values of the wide ones, survive printing and reading.
TEST(TextRoundTrip, EveryNarrowFloatIsExact) {
  for (DType t : {DType::f16, DType::bf16}) {
    Program p;
    p.name = "t";
    std::vector<ExprId> values;
    std::string text =
        std::string("tl 1 program t\ntensor A: ") + dtype_name(t) + "[1]\nkernel k grid (b: 1) {\n";
    for (uint64_t bits = 0; bits < 65536; bits += 7) {
      values.push_back(p.exprs.const_float(float_from_bits(t, bits), t));
      text += "A[0] = " + print_expr(p, values.back()) + "\n";
    }
    Program back = parsed(text + "}\n");
    ASSERT_EQ(back.stmts.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(back.exprs[back.as<Store>(StmtId(i))->value].imm, p.exprs[values[i]].imm) << i;
  }
}

TEST(TextRoundTrip, WideFloatsAreExact) {
  const double wide[] = {0.1, 1e308, std::numeric_limits<double>::denorm_min(),
                         std::numeric_limits<double>::max(), -1.0 / 3};
  const float narrow[] = {0.1f,
                          std::numeric_limits<float>::denorm_min(),
                          std::numeric_limits<float>::max(),
                          std::nextafterf(1.0f, 2.0f),
                          8388609.0f,
                          1.17549421e-38f,
                          -3.4e-41f};
  Program p;
  std::vector<ExprId> values;
  for (double v : wide) values.push_back(p.exprs.const_float(v, DType::f64));
  for (float v : narrow) values.push_back(p.exprs.const_float(v, DType::f32));
  std::string text = "tl 1 program t\ntensor A: f32[1]\nkernel k grid (b: 1) {\n";
  for (ExprId v : values) text += "A[0] = " + print_expr(p, v) + "\n";
  Program back = parsed(text + "}\n");
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(back.exprs[back.as<Store>(StmtId(i))->value].imm, p.exprs[values[i]].imm) << i;
}

TEST(TextRoundTrip, IntegerLimitsOfEveryType) {
  for (const std::string v :
       {"-128i8", "127i8", "0u8", "255u8", "-2147483648i32", "2147483647i32", "true", "false"})
    EXPECT_EQ(canonical("fill R, " + v), "fill R, " + v);
  for (const std::string v : {"-9223372036854775808", "9223372036854775807", "7i64"})
    EXPECT_EQ(canonical("fill R, cast(f32, n * " + v + ")"),
              "fill R, cast(f32, n * " + (v == "7i64" ? "7" : v) + ")");
}

// These hashes are part of every cache key: they may change only together with the version of the text form.
TEST(TextHash, IsTheSameEverywhere) {
  EXPECT_EQ(program_hash(parsed("tl 1 program t\nkernel k grid (b: 1) { }")),
            "847437ed5b0a8958c9f1abaf9758e434");
  EXPECT_EQ(program_hash(parsed(text_sample("gemm"))), "6a73bccd04e49c4b3e6e284d28ec415a");
}

TEST(TextHash, SeesMeaningAndNotSpelling) {
  std::string base = kernel_text("copy S -> R\n");
  std::string hash = program_hash(parsed(base));
  EXPECT_EQ(program_hash(parsed(kernel_text("  ; a remark\n\n copy  S[0:+64, 0:+64]->R"))), hash);
  for (const char* other : {"copy R -> S\n", "copy S[0 :+ 64, 0 :+ 32] -> R[0 :+ 64, 0 :+ 32]\n",
                            "copy S -> R\ncopy S -> R\n", ""})
    EXPECT_NE(program_hash(parsed(kernel_text(other))), hash) << other;
}

}  // namespace
}  // namespace tilegen::ir
