// What is found of a factor by which a loop scales its sums, in whatever words it is written.
#include "analysis/iteration_values.h"

#include <gtest/gtest.h>

#include "check/check_program.h"
#include "ir/text.h"

namespace tilegen::analysis {
namespace {

// The body of a loop over columns of S; `o` is scaled in its last statement, by `f`.
std::string loop_text(const std::string& body, const std::string& scaled) {
  return "tl 1 program p\nscalar c: f32\ntensor S: f32[n, 64] readonly\ntensor T: f32[n, 64]\ntensor O: "
         "f32[n, "
         "64]\n"
         "kernel k grid (b: ceildiv(n, 16)) threads 128 {\n"
         "alloc s: fragment f32[16, 64]\nalloc o: fragment f32[16, 64]\nalloc top: fragment f32[16]\n"
         "alloc old: fragment f32[16]\nalloc new: fragment f32[16]\nalloc f: fragment f32[16]\n"
         "alloc g: fragment f32[16]\nalloc h: fragment f16[16]\nalloc w: fragment f32[16, 1]\n"
         "fill o, 0.0f32\nfill top, -inf:f32\nfill old, -inf:f32\nfill w, 0.0f32\nserial i in 0 .. 4 {\n"
         "copy S[b * 16 :+ 16, 0 :+ 64] -> s\n" +
         body + "\n" + scaled + "\n}\ncopy o -> O[b * 16 :+ 16, 0 :+ 64]\n}\n";
}

bool is_one(const std::string& body,
            const std::string& scaled = "parallel r, q in 16, 64 { o[r, q] = o[r, q] * f[r] }") {
  std::string text = loop_text(body, scaled);
  text.insert(text.find("scalar"), "dim n\n");
  auto p = ir::parse_program(text, "test.tl", Limits{});
  if (!p) {
    ADD_FAILURE() << p.error().to_text();
    return false;
  }
  for (const Diagnostic& d : check::check_program(*p, Limits{})) ADD_FAILURE() << d.to_text();
  ir::StmtId loop, at;
  ir::BufferId f;
  for (size_t b = 0; b < p->buffers.size(); ++b)
    if (p->buffers[b].name == "f") f = ir::BufferId(b);
  ir::for_each_statement(*p, p->kernels[0].body, [&](ir::StmtId s, int) {
    const auto* l = p->as<ir::Loop>(s);
    if (l && !loop) loop = s;
    if (l && l->kind == ir::LoopKind::parallel && p->var(l->vars[0]).name == "r") at = s;
  });
  return IterationValues(*p, loop, at).is_one_where_unchanged(f);
}

const std::string kTop = "copy top -> old\nreduce s -> top {kind=max, axis=1, accumulate}\n";

TEST(IterationValues, AFactorIsOneWhereTheMaximumStays) {
  EXPECT_TRUE(is_one(kTop + "parallel i2 in 16 { f[i2] = exp(old[i2] - top[i2]) }"));
  EXPECT_TRUE(is_one(kTop + "parallel i2 in 16 { f[i2] = exp2((old[i2] - top[i2]) * c) }"));
  EXPECT_TRUE(is_one(kTop + "parallel i2 in 16 { f[i2] = exp2(c * old[i2] - top[i2] * c) }"));
  EXPECT_TRUE(is_one(kTop + "parallel i2 in 16 { f[i2] = exp(old[i2] + -1.0f32 * 0.0f32 - top[i2]) }"));
  EXPECT_TRUE(is_one(kTop + "parallel i2 in 16 { f[i2] = exp(old[i2] + neg(top[i2])) }"));
  EXPECT_TRUE(is_one(kTop + "parallel i2 in 16 { f[i2] = 1.0f32 / exp(top[i2] - old[i2]) }")) << "a quotient";
  EXPECT_TRUE(
      is_one("copy top -> f\nreduce s -> top {kind=min, axis=1, accumulate}\n"
             "parallel i2 in 16 { f[i2] = exp(f[i2] - top[i2]) }"))
      << "in place";
}

TEST(IterationValues, TemporariesAreLookedThrough) {
  EXPECT_TRUE(is_one(kTop + "parallel i2 in 16 { g[i2] = old[i2] - top[i2] }\ncopy g -> new\n"
                            "parallel i2 in 16 { f[i2] = exp(new[i2] * c) }"));
  EXPECT_TRUE(is_one(kTop + "parallel i2 in 16 { new[i2] = top[i2] * c\ng[i2] = old[i2] * c\n"
                            "f[i2] = exp2(g[i2] - new[i2]) }"));
  EXPECT_TRUE(
      is_one("reduce s -> new {kind=max, axis=1}\ncopy top -> old\n"
             "parallel i2 in 16 { top[i2] = max(top[i2], new[i2]) }\n"
             "parallel i2 in 16 { f[i2] = exp(old[i2] - top[i2]) }"))
      << "the maximum of the columns in a buffer of its own";
  EXPECT_TRUE(
      is_one("reduce s -> w {kind=max, axis=1}\n"
             "parallel i2 in 16 { new[i2] = max(w[i2, 0], top[i2])\nf[i2] = exp(top[i2] - new[i2])\n"
             "top[i2] = new[i2] }"))
      << "of another rank, and carried on after the factor";
  EXPECT_TRUE(
      is_one("reduce s -> new {kind=max, axis=1}\n"
             "parallel i2 in 16 { f[i2] = exp(top[i2] - max(top[i2], new[i2])) }",
             "parallel r, q in 16, 64 { o[r, q] = o[r, q] * f[r] }\n"
             "parallel i2 in 16 { top[i2] = max(top[i2], new[i2]) }"))
      << "carried on after the product";
}

TEST(IterationValues, AMaximumIsAlsoAChoice) {
  const std::string row = "reduce s -> new {kind=max, axis=1}\ncopy top -> old\n";
  const std::string factor = "\nparallel i2 in 16 { f[i2] = exp(old[i2] - top[i2]) }";
  for (const char* larger :
       {"select(top[i2] < new[i2], new[i2], top[i2])", "select(new[i2] <= top[i2], top[i2], new[i2])",
        "select(not(top[i2] < new[i2]), top[i2], new[i2])", "max(new[i2], top[i2])",
        "select(c < new[i2], new[i2], top[i2])"})
    EXPECT_TRUE(is_one(row + "parallel i2 in 16 { top[i2] = " + larger + " }" + factor)) << larger;
  EXPECT_TRUE(is_one(row + "parallel i2 in 16 { if top[i2] < new[i2] { top[i2] = new[i2] } }" + factor));
  EXPECT_TRUE(is_one(kTop + "parallel i2 in 16 { f[i2] = exp(old[i2] - select(top[i2] == -inf:f32, 0.0f32, "
                            "top[i2])) }"))
      << "rows that nothing is seen of";
}

TEST(IterationValues, OthersAreNot) {
  EXPECT_FALSE(
      is_one("copy top -> old\nreduce s -> top {kind=max, axis=1}\n"
             "parallel i2 in 16 { f[i2] = exp(old[i2] - top[i2]) }"))
      << "not the largest so far";
  EXPECT_FALSE(
      is_one("copy top -> old\nreduce s -> top {kind=sum, axis=1, accumulate}\n"
             "parallel i2 in 16 { f[i2] = exp(old[i2] - top[i2]) }"))
      << "a sum goes on";
  EXPECT_FALSE(is_one(kTop + "parallel i2 in 16 { f[i2] = exp(top[i2]) }"));
  EXPECT_FALSE(is_one(kTop + "parallel i2 in 16 { f[i2] = old[i2] - top[i2] }"));
  EXPECT_FALSE(is_one(kTop + "parallel i2 in 16 { f[i2] = exp(old[15 - i2] - top[i2]) }"))
      << "of another row";
  EXPECT_FALSE(is_one(kTop + "parallel i2 in 16 { h[i2] = cast(f16, old[i2]) }\n"
                             "parallel i2 in 16 { f[i2] = exp(cast(f32, h[i2]) - top[i2]) }"))
      << "rounded";
  EXPECT_FALSE(
      is_one("reduce s -> new {kind=max, axis=1}\n"
             "parallel i2 in 16 { f[i2] = exp(top[i2] - max(top[i2], new[i2])) }"))
      << "the maximum is not carried on";
  EXPECT_FALSE(is_one(kTop + "parallel i2 in 8 { f[i2] = exp(old[i2] - top[i2]) }")) << "some of the rows";
  EXPECT_FALSE(is_one("fill f, 1.0f32")) << "nothing is carried";
  EXPECT_FALSE(is_one(kTop + "serial j in 0 .. 3 { parallel i2 in 16 { f[i2] = exp(old[i2] - top[i2]) } }"))
      << "of an inner loop";
  EXPECT_FALSE(is_one(kTop + "parallel i2 in 16 { f[i2] = exp(old[i2] - top[i2]) }\n"
                             "copy T[b * 16 :+ 16, 0 :+ 1] -> f"))
      << "of a tensor";
}

TEST(IterationValues, AStatementMayStandInABranchOrAnInnerLoop) {
  const std::string factor = kTop + "parallel i2 in 16 { f[i2] = exp(old[i2] - top[i2]) }\n";
  const std::string scaled = "parallel r, q in 16, 64 { o[r, q] = o[r, q] * f[r] }";
  EXPECT_TRUE(is_one(factor, "if i < 3 {\n" + scaled + "\n}"));
  EXPECT_TRUE(is_one(factor, "serial j in 0 .. 3 {\n" + scaled + "\n}"));
  EXPECT_FALSE(is_one(
      factor, "serial j in 0 .. 3 {\n" + scaled + "\nparallel i2 in 16 { f[i2] = f[i2] * 0.5f32 }\n}"));
}

// Work in proportion to what is written, however often an expression uses its parts.
TEST(IterationValues, SharedPartsAreLookedAtOnce) {
  std::string body = kTop + "parallel i2 in 16 { f[i2] = old[i2] - top[i2] }\n";
  for (int i = 0; i < 300; ++i) body += "parallel i2 in 16 { f[i2] = f[i2] * f[i2] + f[i2] }\n";
  EXPECT_FALSE(is_one(body + "parallel i2 in 16 { f[i2] = exp(f[i2]) }"));
}

}  // namespace
}  // namespace tilegen::analysis
