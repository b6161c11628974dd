// Independence of the iterations of parallel loops.
#include <gtest/gtest.h>

#include "diagnose.h"

namespace tilegen::check {
namespace {

TEST(RaceCheck, Accepts) {
  for (const char* body :
       {"fill S, 0.0f32 parallel i in 32 { S[i] = S[i + 32] } }",
        "parallel i, j in 64, 64 { if j == 3 { S[i] = 0.0f32 } } }",
        "parallel i in 32 { if x == 0 { S[i] = 0.0f32 } else { S[i + 1] = 1.0f32 } } }",
        "parallel i in 4096 { C[i // 64, i % 64] = 0.0f32 } }",
        "parallel i, j in 8, 8 { S[i + j * 8] = 0.0f32 } }",
        "fill V, 0.0f32 parallel i in 64 { V[i] = V[i] + 1.0f32 } }",
        "parallel i in 64 { S[cast(i64, R[i]) % 64] = 0.0f32 } }",
        "parallel i, j in 64, 64 { C[63 - j, i] = 0.0f32 } }",
        "parallel i in 32 { As[0, i] = 0.0f16 As[1, i] = 0.0f16 } }",
        "parallel i in 64 { S[63 - i] = 0.0f32 } }", "parallel i, j in 8, 8 { C[0, i * N + j] = 0.0f32 } }",
        "fill As, 0 parallel i in 64 { As[i, 5] = As[i, N % 64] } }",
        "parallel i in 64 { if i < N { S[0] = 0.0f32 } } }"})
    EXPECT_EQ(diagnose(body), "") << body;
}

TEST(RaceCheck, Race1) {
  EXPECT_EQ(diagnose("parallel i, j in 4, 8 { S[i] = 0.0f32 } }"),
            "t.tl:6:26: error [parallel_race] k/i.j/store#0: iterations (i=0, j=0) and (i=0, j=1) both write"
            " S[0] (use every loop variable in the index, or reduce with a reduce op)");
}

TEST(RaceCheck, Race2) {
  EXPECT_EQ(diagnose("parallel i in 64 { S[i // 2] = 0.0f32 } }"),
            "t.tl:6:21: error [parallel_race] k/i/store#0: iterations (i=0) and (i=1) both write S[0] (use"
            " every loop variable in the index, or reduce with a reduce op)");
}

TEST(RaceCheck, Race3) {
  EXPECT_EQ(diagnose("parallel i, j in 8, 8 { S[i * 4 + j] = 0.0f32 } }"),
            "t.tl:6:26: error [parallel_race] k/i.j/store#0: iterations (i=0, j=4) and (i=1, j=0) both write"
            " S[4] (use every loop variable in the index, or reduce with a reduce op)");
}

TEST(RaceCheck, RaceLoad) {
  EXPECT_EQ(diagnose("fill S, 0.0f32 parallel i in 32 { S[i] = S[i + 1] } }"),
            "t.tl:6:36: error [parallel_race] k/i/store#0: iteration (i=1) writes S[1] and iteration (i=0)"
            " reads it (read S at the index that is written, or split the loop in two)");
}

TEST(RaceCheck, RaceGlobal) {
  EXPECT_EQ(diagnose("parallel i, j in 64, 64 { C[x * 64 + i, 0] = 0.0f32 } }"),
            "t.tl:6:28: error [parallel_race] k/i.j/store#0: iterations (i=0, j=0) and (i=0, j=1) both write"
            " the same element of C (use every loop variable in the index, or reduce with a reduce op)");
}

TEST(RaceCheck, RaceLoadUndecided) {
  EXPECT_EQ(diagnose("parallel i in 64 { C[i, x] = C[i, x + N] } }"),
            "t.tl:6:21: error [parallel_race] k/i/store#0: C is written at one index and read at another"
            " inside one parallel loop (read C at the index that is written, or split the loop in two)");
}

// The column that is read may be the one that is written, in another row.
TEST(RaceCheck, RaceLoadOfAnotherRow) {
  EXPECT_NE(diagnose("fill As, 0 parallel i in 63 { As[i, 5] = As[i + 1, N % 64] } }").find("parallel_race"),
            std::string::npos);
}

TEST(RaceCheck, RaceLarge) {
  EXPECT_EQ(diagnose("parallel i, j, l in 64, 64, 64 { C[i, j] = 0.0f32 } }"),
            "t.tl:6:35: error [parallel_race] k/i.j.l/store#0: the index of C does not use l: iterations"
            " that differ only there write the same element (use every loop variable in the index, or reduce"
            " with a reduce op)");
}

TEST(RaceCheck, RaceTwoStores) {
  EXPECT_EQ(diagnose("parallel i in 32 { S[i] = 0.0f32 S[i + 1] = 1.0f32 } }"),
            "t.tl:6:35: error [parallel_race] k/i/store#1: iterations (i=1) and (i=0) both write S[1] (use"
            " every loop variable in the index, or reduce with a reduce op)");
}

TEST(RaceCheck, RaceUniformGuard) {
  EXPECT_EQ(diagnose("parallel i in 64 { if x == 0 { S[0] = 0.0f32 } } }"),
            "t.tl:6:33: error [parallel_race] k/i/if#0/store#0: iterations (i=0) and (i=1) both write S[0]"
            " (use every loop variable in the index, or reduce with a reduce op)");
}

}  // namespace
}  // namespace tilegen::check
