// The form in which a program is planned.
#include "schedule/form/canonical_form.h"

#include <set>

#include "ir/statement_paths.h"
#include "plan_support.h"

namespace tilegen::schedule {
namespace {

ir::Program parsed(const std::string& text) {
  auto p = ir::parse_program(text, "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  if (!p) return {};
  for (const Diagnostic& d : check::check_program(*p, Limits{})) ADD_FAILURE() << d.to_text();
  return std::move(*p);
}

std::optional<ir::Program> on_gpu(const ir::Program& p) { return canonical_form(p, target_named("sm_80")); }

// Tiles x, y, z and S have elements; t has none yet, and x is used in the end.
ir::Program with_body(const std::string& body) {
  return parsed(
      "tl 1 program p\ndim n\nscalar c: f32\ntensor A: f32[n, 64] readonly\ntensor B: f32[n, 64] readonly\n"
      "tensor C: f32[n, 64]\ntensor D: f32[n, 64]\nkernel k grid (b: ceildiv(n, 64)) threads 128 {\n"
      "  alloc S: shared f32[64]\n  alloc x: fragment f32[64]\n  alloc y: fragment f32[64]\n"
      "  alloc z: fragment f32[64]\n  alloc t: fragment f32[64]\n  alloc u: fragment f32[64]\n"
      "  alloc w: fragment f32[64, 64]\n  alloc h: local f32[1]\n  fill w, 0.0f32\n"
      "  fill S, 0.0f32\n  fill x, 0.0f32\n  fill y, 0.0f32\n  fill z, 0.0f32\n" +
      body + "  copy x -> C[b :+ 1, 0 :+ 64]\n}\n");
}

// The element-wise statements of the form, loops by their paths.
std::string form_of(const std::string& body) {
  const ir::Program p = with_body(body);
  const auto form = on_gpu(p);
  const ir::Program& of = form ? *form : p;
  EXPECT_EQ(ir::program_hash(of), ir::program_hash(p));
  if (form) {
    EXPECT_FALSE(on_gpu(*form)) << "it is the form's form";
  }
  const std::vector<std::string> paths = ir::statement_paths(of);
  std::string text;
  std::set<std::string> unique;
  ir::for_each_statement(of, of.kernels[0].body, [&](ir::StmtId s, int) {
    EXPECT_TRUE(unique.insert(paths[s.value]).second) << paths[s.value];
    EXPECT_EQ(ir::KernelPaths(of, 0)[s.value], paths[s.value]);
    if (const auto* loop = of.as<ir::Loop>(s); loop && loop->kind == ir::LoopKind::parallel)
      text += paths[s.value] + ":";
    if (const auto* store = of.as<ir::Store>(s))
      text += " " + of.buffer(store->buffer).name + " = " + ir::print_expr(of, store->value) + ";";
  });
  return text;
}

// What would be forwarded, joined and cut stays where the program says which thread runs which point.
TEST(CanonicalForm, LoopsWithFixedThreadsStayAsWritten) {
  const auto body = [](const std::string& with) {
    return "  parallel i in 64" + with + "{\n    t[i] = y[i]\n    z[i] = 1.0f32\n  }\n  parallel i in 64" +
           with + "{\n    x[i] = t[i]\n  }\n";
  };
  EXPECT_EQ(form_of(body(" ")), "k/i: z = 1.0f32;k/i#1: x = y[i];");
  EXPECT_EQ(
      form_of(body(" with {iteration = \"threads 128 : (64) -> [0: d0/1%64*1; 1: 0; r: o0/1%2*64]\"} ")),
      "k/i: t = y[i]; z = 1.0f32;k/i#1: x = t[i];");
}

TEST(CanonicalForm, StoresToRegistersAreLoopsOfTheirOwn) {
  EXPECT_EQ(form_of("  parallel i in 64 {\n    x[i] = y[i]\n  }\n"), "k/i: x = y[i];");
  EXPECT_EQ(
      form_of("  parallel i in 64 {\n    x[i] = y[i]\n    y[i] = x[i] * z[i]\n    z[i] = 1.0f32\n  }\n"),
      "k/i/store#0: x = y[i];k/i/store#1: y = x[i] * z[i];k/i/store#2: z = 1.0f32;")
      << "each sees what the one before stores at its point";
  EXPECT_EQ(form_of("  parallel i in 64 {\n    x[i] = A[b, i]\n    y[i] = B[b, i]\n  }\n"),
            "k/i/store#0: x = A[b, i];k/i/store#1: y = B[b, i];");
  EXPECT_EQ(form_of("  parallel i in 64 {\n    if i < n {\n      x[i] = y[i]\n      y[i] = z[i]\n    }\n"
                    "    z[i] = x[i]\n  }\n"),
            "k/i/if#0: x = y[i]; y = z[i];k/i/store#0: z = x[i];")
      << "a branch is whole";
}

TEST(CanonicalForm, WhatIsLoadedOnceIsOneLoop) {
  const std::string both = " x = A[b, i]; y = A[b, i] * 2.0f32;";
  EXPECT_EQ(form_of("  parallel i in 64 {\n    x[i] = A[b, i]\n    y[i] = A[b, i] * 2.0f32\n  }\n"),
            "k/i:" + both);
  EXPECT_EQ(
      form_of("  parallel i in 64 {\n    x[i] = A[b, i]\n  }\n  parallel j in 64 {\n    y[j] = A[b, j] * "
              "2.0f32\n  }\n"),
      "k/i:" + both);
  EXPECT_EQ(form_of("  parallel i in 64 {\n    x[i] = S[i]\n    y[i] = B[b, i]\n    z[i] = S[i]\n  }\n"),
            "k/i: x = S[i]; y = B[b, i]; z = S[i];")
      << "and what stands between";
  EXPECT_EQ(
      form_of("  parallel i in 64 {\n    x[i] = S[i]\n  }\n  parallel i in 64 {\n    y[i] = B[b, i]\n  }\n"
              "  parallel j in 64 {\n    z[j] = S[j]\n  }\n"),
      "k/i: x = S[i]; y = B[b, i]; z = S[i];")
      << "written as loops, too";
  EXPECT_EQ(form_of("  parallel i in 64 {\n    x[i] = S[i]\n    y[i] = S[i]\n    z[i] = B[b, i]\n  }\n"),
            "k/i/store#0: x = S[i]; y = S[i];k/i/store#2: z = B[b, i];");
  EXPECT_EQ(
      form_of(
          "  parallel i in 64 {\n    x[i] = S[i]\n    z[i] = B[b, i]\n  }\n  parallel i in 64 {\n    y[i] "
          "= B[b, i]\n  }\n"),
      "k/i/store#0: x = S[i];k/i/store#1: z = B[b, i]; y = B[b, i];");
  EXPECT_EQ(
      form_of("  parallel i in 64 {\n    S[i] = x[i]\n  }\n  parallel i in 64 {\n    y[i] = S[i]\n  }\n"),
      "k/i: S = x[i]; y = S[i];")
      << "stored and loaded by one thread";
}

TEST(CanonicalForm, OtherLoopsAreNotJoined) {
  EXPECT_EQ(
      form_of(
          "  parallel i in 64 {\n    S[i] = x[i]\n  }\n  parallel i in 64 {\n    y[i] = S[63 - i]\n  }\n"),
      "k/i: S = x[i];k/i#1: y = S[63 - i];")
      << "of other points";
  EXPECT_EQ(
      form_of(
          "  parallel i in 64 {\n    x[i] = S[i]\n  }\n  parallel i in 64 {\n    y[i] = S[i] + x[63 - i]\n"
          "  }\n"),
      "k/i: x = S[i];k/i#1: y = S[i] + x[63 - i];");
  EXPECT_EQ(
      form_of(
          "  parallel i in 64 {\n    x[i] = A[b, i]\n  }\n  parallel i in 32 {\n    y[i] = A[b, i]\n  }\n"),
      "k/i: x = A[b, i];k/i#1: y = A[b, i];");
  EXPECT_EQ(
      form_of(
          "  parallel i in 64 {\n    x[i] = A[b, i]\n  }\n  fill z, 1.0f32\n  parallel i in 64 {\n    y[i] "
          "= A[b, i]\n  }\n"),
      "k/i: x = A[b, i];k/i#1: y = A[b, i];");
  EXPECT_EQ(
      form_of("  parallel i in 64 {\n    x[i] = S[i]\n  }\n  parallel i in 64 {\n    y[i] = x[63 - i]\n  }\n"
              "  parallel i in 64 {\n    z[i] = S[i]\n  }\n"),
      "k/i: x = S[i];k/i#1: y = x[63 - i];k/i#2: z = S[i];")
      << "over one that reads other points";
}

TEST(CanonicalForm, TemporariesAreForwarded) {
  const std::string want = "x = exp(y[i] * 2.0f32 + z[i]);";
  EXPECT_EQ(
      form_of(
          "  parallel i in 64 {\n    t[i] = y[i] * 2.0f32\n  }\n  parallel k in 64 {\n    x[k] = exp(t[k] "
          "+ z[k])\n  }\n"),
      "k/k: x = exp(y[k] * 2.0f32 + z[k]);");
  EXPECT_EQ(form_of("  parallel i in 64 {\n    t[i] = y[i] * 2.0f32\n    x[i] = exp(t[i] + z[i])\n  }\n"),
            "k/i: " + want);
  EXPECT_EQ(
      form_of(
          "  parallel i in 64 {\n    t[i] = y[i] * 2.0f32\n    u[i] = t[i] + z[i]\n  }\n  fill S, 1.0f32\n"
          "  parallel i in 64 {\n    x[i] = exp(u[i])\n  }\n"),
      "k/i#1: " + want)
      << "a chain, past what does not concern it";
  EXPECT_EQ(
      form_of("  parallel i in 64 {\n    t[i] = x[i] * 2.0f32\n  }\n  parallel i in 64 {\n    x[i] = t[i] - "
              "1.0f32\n  }\n"),
      "k/i#1: x = x[i] * 2.0f32 - 1.0f32;")
      << "in place";
}

TEST(CanonicalForm, ValuesOfSeveralUsesOrPointsStay) {
  const auto stays = [](const std::string& body) { EXPECT_FALSE(on_gpu(with_body(body))) << body; };
  const std::string t = "  parallel i in 64 {\n    t[i] = y[i] * 2.0f32\n  }\n";
  stays(t + "  parallel i in 64 {\n    x[i] = t[i]\n  }\n  parallel i in 64 {\n    z[i] = t[i]\n  }\n");
  stays(t + "  parallel i, j in 64, 64 {\n    w[i, j] = w[i, j] * t[i]\n  }\n");
  stays(t + "  parallel i in 64 {\n    x[i] = t[63 - i]\n  }\n");
  stays(t + "  parallel i in 32 {\n    x[i] = t[i]\n  }\n");
  stays(t + "  copy t -> x\n");
  stays(t + "  fill y, 1.0f32\n  parallel i in 64 {\n    x[i] = t[i]\n  }\n");
  stays(t + "  if n < 5 {\n    parallel i in 64 {\n      x[i] = t[i]\n    }\n  }\n");
  stays(
      "  parallel i in 64 {\n    t[i] = A[b, i] * 2.0f32\n  }\n  copy B[b :+ 1, 0 :+ 64] -> S\n"
      "  parallel i in 64 {\n    x[i] = t[i]\n  }\n");
  stays("  parallel i in 64 {\n    t[i] = x[63 - i]\n  }\n  parallel i in 64 {\n    x[i] = t[i]\n  }\n");
  stays(
      "  fill t, 0.0f32\n  serial s in 0 .. 3 {\n    parallel i in 64 {\n      x[i] = t[i]\n    }\n    "
      "parallel i in "
      "64 {\n      t[i] = y[i]\n    }\n  }\n");
}

TEST(CanonicalForm, ScalarsAreComputedWhereTheyAreUsed) {
  EXPECT_EQ(
      form_of(
          "  h[0] = c * 2.0f32\n  parallel i in 64 {\n    x[i] = y[i] * h[0]\n  }\n  serial s in 0 .. 3 {\n"
          "    parallel i in 64 {\n      z[i] = h[0]\n    }\n  }\n"),
      "k/i: x = y[i] * (c * 2.0f32);k/s/i: z = c * 2.0f32;");
  EXPECT_FALSE(
      on_gpu(with_body("  h[0] = 1.0f32\n  serial s in 0 .. 3 {\n    parallel i in 64 {\n      x[i] "
                       "= h[0]\n    }\n    h[0] = 2.0f32\n  }\n")));
}

TEST(CanonicalForm, ExpressionsStaySmall) {
  std::string body = "  parallel i in 64 {\n    x[i] = y[i] * 2.0f32\n  }\n", allocs;
  ir::Program p = with_body(body);
  ASSERT_FALSE(on_gpu(p));
  std::string text = "tl 1 program p\ntensor C: f32[64]\nkernel k grid (b: 1) threads 128 {\n";
  for (int i = 0; i < 60; ++i) text += "  alloc t" + std::to_string(i) + ": fragment f32[64]\n";
  text += "  fill t0, 1.5f32\n";
  for (int i = 1; i < 60; ++i) {
    const std::string a = "t" + std::to_string(i - 1) + "[i]";
    text +=
        "  parallel i in 64 {\n    t" + std::to_string(i) + "[i] = " + a + " * " + a + " + " + a + "\n  }\n";
  }
  const ir::Program chain = parsed(text + "  copy t59 -> C\n}\n");
  const auto form = on_gpu(chain);
  ASSERT_TRUE(form);
  EXPECT_LE(ir::written_nodes(*form), 60u * 256u);
}

TEST(CanonicalForm, HostsTakeLoopsAsTheyAre) {
  const ir::Program p = with_body("  parallel i in 64 {\n    x[i] = y[i]\n    y[i] = z[i]\n  }\n");
  EXPECT_TRUE(on_gpu(p));
  EXPECT_FALSE(canonical_form(p, target_named("x86-64-v4")));
}

TEST(CanonicalForm, PathsStayWhatTheyAre) {
  const ir::Program p = with_body(
      "  parallel i in 64 {\n    x[i] = y[i]\n    y[i] = z[i]\n  }\n  parallel i in 64 {\n    t[i] = y[i] + "
      "1.0f32\n  "
      "}\n  parallel i in 64 {\n    x[i] = t[i]\n  }\n");
  const auto form = on_gpu(p);
  ASSERT_TRUE(form);
  plan::Schedule given;
  given.program_hash = ir::program_hash(p);
  given.kernels.resize(1);
  given.kernels[0].kernel = "k";
  given.kernels[0].ops.resize(2);
  given.kernels[0].ops[0].op = "k/i/store#1";
  given.kernels[0].ops[1].op = "k/i#2";
  EXPECT_TRUE(plan_for(*form, "sm_80", &given));
  given.kernels[0].ops.resize(1);
  given.kernels[0].ops[0].op = "k/i";
  EXPECT_FALSE(plan_for(*form, "sm_80", &given));
}

// The statements of a loop's body in the form, for a target with asynchronous products.
std::string loop_form(const std::string& body, const char* target = "sm_90a") {
  const ir::Program p = parsed(
      "tl 1 program p\ndim n\ntensor A: f16[n, 64] readonly\ntensor B: f16[n, 64] readonly\n"
      "tensor R: f32[n] readonly\ntensor W: f32[n]\ntensor C: f32[64, 64]\n"
      "kernel k grid (b: 1) threads 128 {\n  alloc a: shared f16[64, 64]\n  alloc w: shared f16[64, 64]\n"
      "  alloc r: shared f32[64]\n  alloc part: fragment f32[64, 64]\n  alloc acc: fragment f32[64, 64]\n"
      "  alloc top: fragment f32[64]\n  fill acc, 0.0f32\n  fill top, 1.0f32\n"
      "  pipelined ko in 0 .. n // 64 stages 3 {\n    copy A[ko * 64 :+ 64, 0 :+ 64] -> a\n"
      "    copy B[ko * 64 :+ 64, 0 :+ 64] -> w\n    copy R[ko * 64 :+ 64] -> r\n" +
      body + "  }\n  copy acc -> C[0 :+ 64, 0 :+ 64]\n}\n");
  const auto form = canonical_form(p, target_named(target));
  const ir::Program& of = form ? *form : p;
  if (form) {
    EXPECT_FALSE(canonical_form(*form, target_named(target))) << "it is the form's form";
  }
  const std::vector<std::string> paths = ir::statement_paths(of);
  std::string text;
  std::set<std::string> unique;
  ir::for_each_statement(of, of.kernels[0].body, [&](ir::StmtId s, int depth) {
    EXPECT_TRUE(unique.insert(paths[s.value]).second) << paths[s.value];
    if (depth == 1) text += paths[s.value].substr(paths[s.value].find("ko/") + 3) + ";";
    if (const auto* store = of.as<ir::Store>(s))
      text += " " + of.buffer(store->buffer).name + " = " + ir::print_expr(of, store->value) + "; ";
  });
  return text.substr(text.find("gemm#0"));
}

const char kGemm[] = "    gemm a, w -> part {transpose_b, clear}\n";

TEST(CanonicalForm, WhatSumsAreScaledByIsReadBesideTheProduct) {
  const auto scaled = [](const std::string& by) {
    return std::string(kGemm) + "    parallel i, j in 64, 64 {\n      acc[i, j] = acc[i, j] + part[i, j] * " +
           by + "\n    }\n";
  };
  EXPECT_EQ(
      loop_form(scaled("(r[i] * W[ko])")),
      "gemm#0;i.j/preload#0; preload#0 = r[i] * W[ko]; i.j; acc = acc[i, j] + part[i, j] * preload#0[i]; ");
  EXPECT_EQ(
      loop_form(scaled("r[i] * W[ko]")),
      "gemm#0;i.j/preload#0; preload#0 = r[i]; i.j/preload#1; preload#1 = W[ko]; i.j; acc = acc[i, j] + "
      "part[i, j] * preload#0[i] * preload#1[i]; ")
      << "what is the same for all elements is so for a row's";
  EXPECT_EQ(loop_form(scaled("(r[i] * W[ko])"), "sm_80"),
            "gemm#0;i.j; acc = acc[i, j] + part[i, j] * (r[i] * W[ko]); ")
      << "products that nothing runs beside";
}

TEST(CanonicalForm, OtherReadsStayWhereTheyAre) {
  const auto unchanged = [](const std::string& value, const std::string& before = "") {
    EXPECT_EQ(
        loop_form(kGemm + before + "    parallel i, j in 64, 64 {\n      acc[i, j] = " + value + "\n    }\n")
            .find("preload"),
        std::string::npos)
        << value;
  };
  unchanged("acc[i, j] + part[i, j] * r[j]");
  unchanged("acc[i, j] + part[i, j] * top[i]");
  unchanged("acc[i, j] + part[i, j] * r[i]", "    fill r, 2.0f32\n");
  unchanged("acc[i, j] + r[i]");
  unchanged("select(W[ko] < 1.0f32, part[i, j], 0.0f32)");
  unchanged("select(i < ko, part[i, j] * r[i], 0.0f32)");
}

TEST(CanonicalForm, ReadsAreBesideTheFirstProductAfterWhatTheyReadIsThere) {
  const std::string work =
      "    parallel i, j in 64, 64 {\n      acc[i, j] = acc[i, j] + part[i, j] * r[i]\n    }\n";
  const std::string again = "    gemm a, w -> part {transpose_b}\n";
  EXPECT_EQ(loop_form(kGemm + again + work).substr(0, 27), "gemm#0;i.j/preload#0; prelo");
  EXPECT_EQ(loop_form(kGemm + std::string("    fill r, 2.0f32\n") + again + work).substr(0, 33),
            "gemm#0;fill#0;gemm#1;i.j/preload#");
}

// Copies by their paths, with where they go.
TEST(CanonicalForm, CopiesOfPartsAreWrittenOut) {
  const auto copies_of = [](const std::string& loops) {
    const ir::Program p = parsed(
        "tl 1 program p\ndim n\ntensor A: f32[n, 64] readonly\ntensor B: f32[n, 64]\n"
        "kernel k grid (b: ceildiv(n, 64)) threads 128 {\n  alloc S: shared f32[64, 64]\n" +
        loops + "  copy S -> B[b * 64 :+ 64, 0 :+ 64]\n}\n");
    const auto form = on_gpu(p);
    const ir::Program& of = form ? *form : p;
    EXPECT_EQ(ir::program_hash(of), ir::program_hash(p));
    if (form) {
      EXPECT_FALSE(on_gpu(*form)) << "it is the form's form";
    }
    const std::vector<std::string> paths = ir::statement_paths(of);
    std::string text;
    ir::for_each_statement(of, of.kernels[0].body, [&](ir::StmtId s, int) {
      const auto* op = of.as<ir::TileOp>(s);
      if (!op || op->operands[1].buffer == ir::BufferId(1)) return;
      text += paths[s.value] + ":";
      for (ir::ExprId offset : op->operands[1].offsets) text += " " + ir::print_expr(of, offset);
      text += "; ";
    });
    return text;
  };
  EXPECT_EQ(copies_of("  unroll h in 0 .. 2 {\n    copy A[b * 64 + h * 32 :+ 32, 0 :+ 64] -> S[h * 32 :+ 32, "
                      "0 :+ 64]\n  }\n"),
            "k/h/copy#0: 0 0; k/h/copy#0/h#1: 32 0; ");
  EXPECT_EQ(
      copies_of("  serial h in 0 .. 2 {\n    serial c in 0 .. 2 {\n      copy A[b * 64 + h * 32 :+ 32, "
                "c * 32 :+ 32] -> "
                "S[h * 32 :+ 32, c * 32 :+ 32]\n    }\n  }\n"),
      "k/h/c/copy#0: 0 0; k/h/c/copy#0/c#1: 0 32; k/h/c/copy#0/h#1: 32 0; k/h/c/copy#0/c#1/h#1: 32 32; ");
  // Nothing says which part of the tile: the same place again, more trips than parts, other work between.
  const char* const same = "  serial h in 0 .. 2 {\n    copy A[b * 64 + h :+ 64, 0 :+ 64] -> S\n  }\n";
  EXPECT_EQ(copies_of(same), "k/h/copy#0: 0 0; ");
  const char* const many =
      "  serial h in 0 .. 32 {\n    copy A[b * 64 + h * 2 :+ 2, 0 :+ 64] -> S[h * 2 :+ 2, 0 :+ 64]\n  }\n";
  EXPECT_EQ(copies_of(many), "k/h/copy#0: h * 2 0; ");
}

}  // namespace
}  // namespace tilegen::schedule
