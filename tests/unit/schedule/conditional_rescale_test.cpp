// Which element-wise products are left out where a warp's factors are 1.
#include "schedule/reductions/conditional_rescale.h"

#include "plan_support.h"

namespace tilegen::schedule {
namespace {

struct Parts {
  std::string top = " reduce s -> top {kind=max, axis=1, accumulate}\n";
  std::string factor = " parallel i in 64 { before[i] = exp2((before[i] - top[i]) * 0.5f32) }\n";
  std::string scaled = " parallel i, j in 64, 64 { o[i, j] = o[i, j] * before[i] }\n";
  int64_t columns = 64;               // of o
  std::string scales = "a/kb/i.j#1";  // the op that does
};

// Attention in small: o is scaled by how far the largest score of its row has moved.
std::string text_of(const Parts& t) {
  std::string d = std::to_string(t.columns), scaled = t.scaled;
  for (size_t at = scaled.find("64, 64"); at != std::string::npos; at = scaled.find("64, 64", at + 1))
    scaled.replace(at, 6, "64, " + d);
  return "tl 1 program p\ndim n divisible 8\ntensor Q: f16[n, 64] readonly\ntensor K: f16[n, 64] "
         "readonly\ntensor V: f16[n, " +
         d + "] readonly\ntensor O: f16[n, " + d +
         "]\nkernel a grid (by: ceildiv(n, 64)) threads 128 {\n alloc Qs: shared f16[64, 64]\n"
         " alloc Ks: shared f16[64, 64]\n alloc Vs: shared f16[64, " +
         d +
         "]\n alloc s: fragment f32[64, 64]\n"
         " alloc w: fragment f16[64, 64]\n alloc o: fragment f32[64, " +
         d +
         "]\n alloc top: fragment f32[64]\n alloc before: fragment f32[64]\n alloc f: fragment f32[64]\n"
         " alloc top_of_block: fragment f32[64]\n alloc m: shared f32[64]\n"
         " copy Q[by * 64 :+ 64, 0 :+ 64] -> Qs\n fill o, 0.0f32\n fill top, -1e30f32\n"
         " pipelined kb in 0 .. ceildiv(n, 64) stages 2 {\n copy K[kb * 64 :+ 64, 0 :+ 64] -> Ks\n"
         " gemm Qs, Ks -> s {policy=full_row, transpose_b, clear}\n copy top -> before\n" +
         t.top + " parallel i, j in 64, 64 { s[i, j] = exp2(s[i, j] - top[i]) }\n" + t.factor +
         " copy s -> w\n" + scaled + " copy V[kb * 64 :+ 64, 0 :+ " + d +
         "] -> Vs\n gemm w, Vs -> o {policy=full_row}\n }\n copy o -> O[by * 64 :+ 64, 0 :+ " + d + "]\n}\n";
}

Expected<plan::Schedule> plan_of(const Parts& t, const char* target, const plan::Schedule* given = nullptr) {
  auto p = program_from(text_of(t));
  EXPECT_TRUE(p);
  return plan_for(*p, target, given);
}

// Of the op that scales; every other computes.
std::string factors(const Parts& t, const char* target = "sm_90a") {
  auto s = plan_of(t, target);
  EXPECT_TRUE(s) << s.error().to_text();
  std::string found;
  for (const plan::OpPlan& op : s->kernels[0].ops) found += op.skip_if_identity.value_or("");
  const plan::OpPlan* scales = plan::find_op(s->kernels[0], t.scales);
  EXPECT_TRUE(scales);
  if (scales) {
    EXPECT_EQ(scales->skip_if_identity.value_or(""), found);
  }
  return found;
}

TEST(RowFactors, TellHowFarAnExtremeHasMoved) {
  EXPECT_EQ(factors({}), "a:before");
  EXPECT_EQ(factors({.top = " reduce s -> top {kind=min, axis=1, accumulate}\n"}), "a:before");
  EXPECT_EQ(factors({.scaled = " parallel i, j in 64, 64 { o[i, j] = before[i] * o[i, j] }\n"}), "a:before");
}

TEST(RowFactors, AreWhatTheyAreInAnyWords) {
  const std::string into_f = " parallel i in 64 { f[i] = exp2((before[i] - top[i]) * 0.5f32) }\n";
  const std::string by_f = " parallel i, j in 64, 64 { o[i, j] = o[i, j] * f[i] }\n";
  EXPECT_EQ(factors({.factor = into_f, .scaled = by_f}), "a:f") << "a buffer of its own";
  EXPECT_EQ(factors({.factor = " parallel i in 64 { f[i] = exp2(before[i] * 0.5f32 - 0.5f32 * top[i]) }\n",
                     .scaled = by_f}),
            "a:f")
      << "scaled after the maximum, or before";
  EXPECT_EQ(factors({.top = " reduce s -> top_of_block {kind=max, axis=1}\n parallel i in 64 { top[i] = "
                            "select(before[i] < top_of_block[i], top_of_block[i], before[i]) }\n"}),
            "a:before")
      << "the maximum in steps";
  EXPECT_EQ(factors({.scaled = " parallel i, j in 64, 64 { if by < n { o[i, j] = o[i, j] * before[i] } }\n"}),
            "a:before")
      << "under a condition";
  EXPECT_EQ(factors({.factor = " parallel i in 64 { before[i] = exp2(top[i] - before[i]) }\n",
                     .scaled = " parallel i, j in 64, 64 { o[i, j] = o[i, j] / before[i] }\n"}),
            "a:before")
      << "a divisor";
  EXPECT_EQ(factors({}, "sm_80"), "a:before") << "whichever instructions sum";
}

std::string notes_of(const Parts& t) {
  auto s = plan_of(t, "sm_90a");
  EXPECT_TRUE(s) << s.error().to_text();
  std::string text;
  for (const plan::Note& n : s->kernels[0].notes)
    if (n.path == t.scales) text += n.text;
  return text;
}

TEST(RowFactors, ThatAreNotWorthTheQuestionAreNoted) {
  EXPECT_EQ(notes_of({}), "");
  EXPECT_EQ(notes_of({.columns = 16}),
            "computed also where its factor is 1: a thread has 4 elements for each of 'a:before', and 16 are "
            "worth the "
            "question");
  EXPECT_EQ(
      notes_of({.scaled = " copy before -> m\n parallel i, j in 64, 64 { o[i, j] = o[i, j] * m[i] }\n"}),
      "computed also where its factor is 1: 'a:m' or what it scales is not held in registers");
}

TEST(RowFactors, OthersAreMultipliedBy) {
  EXPECT_EQ(factors({}, "x86-64-v4"), "") << "no lanes that vote";
  EXPECT_EQ(factors({.top = " reduce s -> top {kind=max, axis=1}\n"}), "") << "not the largest so far";
  EXPECT_EQ(factors({.factor = " parallel i in 64 { before[i] = before[i] - top[i] }\n"}), "")
      << "no exponential";
  EXPECT_EQ(factors({.factor = " parallel i in 64 { before[i] = exp2(top[i]) }\n"}), "")
      << "not of a difference";
  EXPECT_EQ(factors({.scaled = " parallel i, j in 64, 64 { o[i, j] = o[i, j] * before[i] + 1.0f32 }\n"}), "")
      << "more than a product";
  EXPECT_EQ(factors({.columns = 16}), "") << "few elements for each factor";
}

TEST(RowFactors, TheGivenOnesAreTaken) {
  auto planned = plan_of({}, "sm_90a");
  ASSERT_TRUE(planned);
  plan::Schedule given = *planned;
  const auto set = [&](const std::string& op, const std::string& to) {
    for (plan::OpPlan& o : given.kernels[0].ops)
      if (o.op == op) o.skip_if_identity = to;
  };
  set("a/kb/i.j#1", "");
  auto taken = plan_of({}, "sm_90a", &given);
  ASSERT_TRUE(taken) << taken.error().to_text();
  EXPECT_EQ(plan::find_op(taken->kernels[0], "a/kb/i.j#1")->skip_if_identity, "");
  plan::Schedule open;
  open.kernels.resize(1);
  open.kernels[0].kernel = "a";
  open.kernels[0].ops = {*plan::find_op(planned->kernels[0], "a/kb/i.j#1")};
  open.kernels[0].ops[0].skip_if_identity.reset();
  auto filled = plan_of({}, "sm_90a", &open);
  ASSERT_TRUE(filled) << filled.error().to_text();
  EXPECT_EQ(plan::find_op(filled->kernels[0], "a/kb/i.j#1")->skip_if_identity, "a:before")
      << "left open, it is planned";
  for (const auto& [op, factor] :
       {std::pair("a/kb/i.j#1", "a:top"), {"a/kb/i.j", "a:before"}, {"a/kb/gemm#1", "a:before"}}) {
    given = *planned;
    set(op, factor);
    auto refused = plan_of({}, "sm_90a", &given);
    ASSERT_FALSE(refused) << op;
    EXPECT_NE(refused.error().to_text().find(std::string(op) + ": the given schedule leaves it out where '" +
                                             factor + "' is 1"),
              std::string::npos)
        << refused.error().to_text();
  }
}

}  // namespace
}  // namespace tilegen::schedule
