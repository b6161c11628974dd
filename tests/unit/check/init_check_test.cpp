// Reads that nothing can have written before.
#include <gtest/gtest.h>

#include "diagnose.h"

namespace tilegen::check {
namespace {

TEST(InitCheck, Accepts) {
  for (const char* body :
       {"fill As, 0.0f16 fill Bs, 0.0f16 gemm As, Bs -> Cf {clear} }",
        "if N < 5 { fill S, 0.0f32 } copy S -> C[0 :+ 1, 0 :+ 64] }",
        "serial i in 0 .. 4 { if i > 0 { copy S -> C[0 :+ 1, 0 :+ 64] } fill S, 0.0f32 } }",
        "serial i in 0 .. 4 { serial j in 0 .. i { L[1] = L[0] } L[0] = i } }",
        "serial i in 0 .. 4 { L[1] = select(i > 0, L[0], 0) L[0] = i } }"})
    EXPECT_EQ(diagnose(body), "") << body;
}

TEST(InitCheck, UninitCopy) {
  EXPECT_EQ(diagnose("copy S -> C[0 :+ 1, 0 :+ 64] }"),
            "t.tl:6:2: error [uninitialised_read] k/copy#0: S (shared) is read before anything wrote it"
            " (fill it or copy into it first)");
}

TEST(InitCheck, UninitGemm) {
  EXPECT_EQ(diagnose("fill As, 0.0f16 fill Bs, 0.0f16 gemm As, Bs -> Cf }"),
            "t.tl:6:34: error [uninitialised_read] k/gemm#0: Cf (fragment) is read before anything wrote it"
            " (fill it with 0 first, or set clear)");
}

TEST(InitCheck, UninitGemmLoop) {
  EXPECT_EQ(diagnose("fill As, 0.0f16 fill Bs, 0.0f16 pipelined ko in 0 .. N { gemm As, Bs -> Cf } }"),
            "t.tl:6:59: error [uninitialised_read] k/ko/gemm#0: Cf (fragment) is read before anything wrote"
            " it (fill it with 0 first, or set clear)");
}

TEST(InitCheck, UninitReduce) {
  EXPECT_EQ(diagnose("reduce S[0 :+ 64] -> V[0 :+ 1] }"),
            "t.tl:6:2: error [uninitialised_read] k/reduce#0: S (shared) is read before anything wrote it"
            " (fill it or copy into it first)");
}

TEST(InitCheck, UninitReduceAcc) {
  EXPECT_EQ(diagnose("fill Cf, 1.0f32 reduce Cf -> V {axis=1, accumulate} }"),
            "t.tl:6:18: error [uninitialised_read] k/reduce#0: V (fragment) is read before anything wrote it"
            " (fill it first, or drop accumulate)");
}

TEST(InitCheck, UninitLoad) {
  EXPECT_EQ(diagnose("parallel i in 64 { V[i] = S[i] } }"),
            "t.tl:6:21: error [uninitialised_read] k/i/store#0: S (shared) is read before anything wrote it"
            " (fill it or copy into it first)");
}

TEST(InitCheck, UninitSelf) {
  EXPECT_EQ(diagnose("parallel i in 64 { V[i] = V[i] + 1.0f32 } }"),
            "t.tl:6:21: error [uninitialised_read] k/i/store#0: V (fragment) is read before anything wrote"
            " it (fill it or copy into it first: +=, and a store to a part of an element through a view, "
            "keep some of "
            "what is there)");
  EXPECT_NE(diagnose("view parts = reinterpret(S, u8) parallel i in 64 { parts[4 * i] = 1 } }")
                .find("S (shared) is read before anything wrote it (fill it or copy into it first: +="),
            std::string::npos);
}

TEST(InitCheck, UninitLater) {
  EXPECT_EQ(diagnose("serial i in 0 .. 4 { copy S -> C[0 :+ 1, 0 :+ 64] fill S, 0.0f32 } }"),
            "t.tl:6:23: error [uninitialised_read] k/i/copy#0: S (shared) is read before anything wrote it"
            " (fill it or copy into it first)");
}

TEST(InitCheck, UninitElse) {
  EXPECT_EQ(diagnose("if x == 0 { fill S, 0.0f32 } else { copy S -> C[0 :+ 1, 0 :+ 64] } }"),
            "t.tl:6:38: error [uninitialised_read] k/if#0.else/copy#0: S (shared) is read before anything"
            " wrote it (fill it or copy into it first)");
}

TEST(InitCheck, UninitOnce) {
  EXPECT_EQ(diagnose("copy S -> C[0 :+ 1, 0 :+ 64] copy S -> C[1 :+ 1, 0 :+ 64] }"),
            "t.tl:6:2: error [uninitialised_read] k/copy#0: S (shared) is read before anything wrote it"
            " (fill it or copy into it first)");
}

TEST(InitCheck, UninitGuard) {
  EXPECT_EQ(
      diagnose("serial i in 0 .. 4 { if x == 0 { serial j in 0 .. 2 { copy S -> C[0 :+ 1, 0 :+ 64] } } } }"),
      "t.tl:6:56: error [uninitialised_read] k/i/if#0/j/copy#0: S (shared) is read before anything"
      " wrote it (fill it or copy into it first)");
}

TEST(InitCheck, UninitGuardedInner) {
  EXPECT_EQ(diagnose("if x == 0 { serial j in 0 .. 2 { copy S -> C[0 :+ 1, 0 :+ 64] fill S, 0.0f32 } } }"),
            "t.tl:6:35: error [uninitialised_read] k/if#0/j/copy#0: S (shared) is read before anything wrote"
            " it (fill it or copy into it first)");
}

TEST(InitCheck, UninitSingleTrip) {
  EXPECT_EQ(diagnose("serial i in 0 .. 1 { if x == 0 { copy S -> C[0 :+ 1, 0 :+ 64] } fill S, 0.0f32 } }"),
            "t.tl:6:35: error [uninitialised_read] k/i/if#0/copy#0: S (shared) is read before anything wrote"
            " it (fill it or copy into it first)");
}

}  // namespace
}  // namespace tilegen::check
