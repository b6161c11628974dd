// Layout inference by levels: what matrix atoms demand, what follows from it, what is chosen, and what is
// given.
#include <algorithm>

#include "inferred.h"
#include "support/diag_codes.h"

namespace tilegen::infer {
namespace {

using layout::Fragment;
using plan::Origin;

const std::string kGemm = R"(tl 1 program p
tensor A: f16[64, 64] readonly
tensor B: f16[64, 64] readonly
tensor bias: f32[64] readonly
tensor D: f32[64, 64]
tensor E: f32[64]

kernel k grid (b: 1) threads 128 {
  alloc As: shared f16[64, 64]
  alloc Bs: shared f16[64, 64]
  alloc acc: fragment f32[64, 64]
  alloc copied: fragment f32[64, 64]
  alloc columns: fragment f32[64]
  alloc rows: fragment f32[64]
  alloc alone: fragment f32[64, 64]
  copy A -> As
  copy B -> Bs
  copy bias -> columns
  gemm As, Bs -> acc {clear, policy=full_row}
  parallel i, j in 64, 64 {
    acc[i, j] = acc[i, j] + columns[j]
  }
  reduce acc -> rows {kind=max, axis=1}
  parallel i, j in 64, 64 {
    copied[i, j] = acc[i, j] - rows[i]
  }
  copy copied -> D
  copy rows -> E
  copy D -> alone
  copy alone -> D
}
)";

TEST(InferLayouts, StrictThenCommonThenFree) {
  Inferred k(kGemm);
  ASSERT_TRUE(k.error().diagnostics.empty()) << k.error().to_text();
  EXPECT_EQ(k.value("acc").origin, Origin::strict);
  EXPECT_TRUE(k.fragment("acc").equivalent(k.gemm().c));
  EXPECT_EQ(k.value("As").origin, Origin::strict);
  EXPECT_EQ(*k.value("As").memory, *k.gemm().a_memory);
  for (const char* name : {"columns", "rows", "copied"})
    EXPECT_EQ(k.value(name).origin, Origin::common) << name;
  EXPECT_EQ(k.value("alone").origin, Origin::free);
  EXPECT_TRUE(k.result().conversions.empty());
}

TEST(InferLayouts, ABiasRowIsHeldByWhoeverHoldsItsColumn) {
  Inferred k(kGemm);
  const Fragment &acc = k.fragment("acc"), &columns = k.fragment("columns");
  for (int64_t j = 0; j < 64; ++j) {
    std::set<int64_t> holders;
    for (int64_t i = 0; i < 64; ++i)
      for (int64_t t : acc.holders(std::vector<int64_t>{i, j})) holders.insert(t);
    const std::vector<int64_t> got = columns.holders(std::vector<int64_t>{j});
    EXPECT_EQ(std::set<int64_t>(got.begin(), got.end()), holders) << "column " << j;
  }
  EXPECT_EQ(columns.registers(), 16);  // two of every eight columns
}

TEST(InferLayouts, ARowStatisticIsHeldBesideItsAccumulator) {
  Inferred k(kGemm);
  const Fragment &acc = k.fragment("acc"), &rows = k.fragment("rows");
  for (int64_t i = 0; i < 64; ++i) {
    std::set<int64_t> holders;
    for (int64_t j = 0; j < 64; ++j)
      for (int64_t t : acc.holders(std::vector<int64_t>{i, j})) holders.insert(t);
    const std::vector<int64_t> got = rows.holders(std::vector<int64_t>{i});
    EXPECT_EQ(std::set<int64_t>(got.begin(), got.end()), holders) << "row " << i;
  }
  EXPECT_EQ(rows.registers(), 2);  // g and g + 8
  EXPECT_EQ(rows.replicas(), 4);
}

TEST(InferLayouts, ElementwiseWorkFollowsThePinnedValue) {
  Inferred k(kGemm);
  EXPECT_TRUE(k.fragment("copied").equivalent(k.fragment("acc")));
  EXPECT_TRUE(k.op("i.j").iteration->equivalent(k.fragment("acc")));
  EXPECT_EQ(k.op("i.j#1").vector, 2);
  EXPECT_EQ(k.op("i.j").reason, "threads follow k:acc");
  // What nothing pins moves 16 bytes at a time.
  EXPECT_EQ(k.op("copy#5").vector, 4);
}

TEST(InferLayouts, AConflictGivesAConversionOrARefusal) {
  const std::string text = R"(tl 1 program p
tensor A: f16[64, 64] readonly
tensor B: f16[64, 64] readonly
tensor D: f32[64, 64]

kernel k grid (b: 1) threads 128 {
  alloc As: shared f16[64, 64]
  alloc Bs: shared f16[64, 64]
  alloc x: fragment f32[64, 64]
  alloc y: fragment f32[64, 64]
  copy A -> As
  copy B -> Bs
  gemm As, Bs -> x {clear, policy=full_row}
  gemm As, Bs -> y {clear, policy=full_col}
  parallel i, j in 64, 64 {
    x[i, j] = x[i, j] + y[i, j]
  }
  copy x -> D
}
)";
  Inferred k(text);
  ASSERT_EQ(k.result().conversions.size(), 1u);
  const plan::ConversionPlan& c = k.result().conversions[0];
  EXPECT_EQ(c.value, "k:y");
  EXPECT_EQ(c.producer, "k/gemm#1");
  EXPECT_EQ(c.consumer, "k/i.j");
  EXPECT_EQ(c.kind, layout::ConversionKind::shared_bounce);
  EXPECT_TRUE(c.from.equivalent(k.fragment("y")));
  EXPECT_TRUE(c.to.equivalent(k.fragment("x")));
  Inferred refused(text, nullptr, false);
  ASSERT_FALSE(refused.error().diagnostics.empty());
  EXPECT_EQ(refused.error().diagnostics[0].code, DiagCode::conversion_refused);
  // One thread holds everything: nothing to convert on the host.
  EXPECT_TRUE(Inferred(text, nullptr, true, "x86-64-v4").result().conversions.empty());
}

TEST(InferLayouts, TwoAccumulatorsOfOneValueAreConverted) {
  const std::string text = R"(tl 1 program p
tensor A: f16[64, 64] readonly
tensor B: f16[64, 64] readonly
tensor D: f32[64, 64]

kernel k grid (b: 1) threads 128 {
  alloc As: shared f16[64, 64]
  alloc Bs: shared f16[64, 64]
  alloc x: fragment f32[64, 64]
  copy A -> As
  copy B -> Bs
  gemm As, Bs -> x {clear, policy=full_row}
  gemm As, Bs -> x {policy=full_col}
  copy x -> D
}
)";
  Inferred k(text);
  ASSERT_TRUE(k.error().diagnostics.empty()) << k.error().to_text();
  ASSERT_EQ(k.result().conversions.size(), 2u);  // before the second product and after it
  EXPECT_EQ(k.result().conversions[0].consumer, "k/gemm#1");
  EXPECT_EQ(k.result().conversions[1].producer, "k/gemm#1");
  EXPECT_EQ(k.result().conversions[1].to, k.fragment("x"));

  Inferred strict(text, nullptr, false);
  ASSERT_FALSE(strict.error().diagnostics.empty());
  EXPECT_EQ(strict.error().diagnostics[0].code, DiagCode::conversion_refused);
  EXPECT_EQ(strict.error().diagnostics[0].op, "k/gemm#1");
  EXPECT_FALSE(strict.error().diagnostics[0].hint.empty());
}

// Fragments and local buffers of one kernel: which are in registers, which in shared memory.
const std::string kHeld = R"(tl 1 program p
tensor X: f32[4, 32] readonly
tensor Y: f32[4, 32]
tensor Z: f32[4]

kernel k grid (b: 1) threads 128 {
  alloc followed: fragment f32[4, 32]
  alloc turned: fragment f32[4, 32]
  alloc scalar: local f32[1]
  alloc small: local f32[8]
  alloc scattered: local f32[32]
  alloc chosen: local i64[100]
  alloc part: fragment f32[4]
  copy X -> followed
  copy X -> turned
  fill scalar, 2.0f32
  copy X[0 :+ 1, 0 :+ 4] -> small[2 :+ 4]
  parallel i, j in 4, 32 {
    Y[i, j] = followed[i, j] + turned[3 - i, 31 - j] * scalar[0] + small[3]
  }
  parallel j in 32 {
    scattered[31 - j] = X[0, j]
    Y[1, j] = 1.0f32
  }
  copy scattered -> Y[0 :+ 1, 0 :+ 32]
  fill chosen, 3
  serial i in 0 .. 100 {
    if chosen[i] < 3 {
      fill followed, 0.0f32
    }
  }
  reduce turned[0 :+ 4, 0 :+ 16] -> part {axis=1}
  copy part -> Z
}
)";

TEST(InferLayouts, WhatRegistersCannotHoldIsInMemory) {
  Inferred k(kHeld);
  ASSERT_TRUE(k.error().diagnostics.empty()) << k.error().to_text();
  for (const char* name : {"followed", "scalar", "small", "scattered", "part"}) {
    EXPECT_TRUE(k.value(name).fragment) << name;
    EXPECT_FALSE(k.value(name).memory) << name;
  }
  for (const char* name : {"turned", "chosen"}) {
    EXPECT_TRUE(k.value(name).memory) << name;
    EXPECT_FALSE(k.value(name).fragment) << name;
    const auto& notes = k.result().notes;
    EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [&](const plan::Note& n) {
      return n.path == std::string("k:") + name && n.text.find("shared memory: k/") != std::string::npos;
    })) << name;
  }
  EXPECT_EQ(k.op("copy#2").iteration->replicas(), 128);  // every thread fills its own copy of `small`
}

TEST(InferLayouts, NothingIsInMemoryOnTheHost) {
  Inferred k(kHeld, nullptr, true, "x86-64-v3");
  ASSERT_TRUE(k.error().diagnostics.empty()) << k.error().to_text();
  for (const plan::ValuePlan& v : k.result().values) EXPECT_TRUE(v.fragment) << v.value;
}

TEST(InferLayouts, AMatrixAtomKeepsItsRegisters) {
  const std::string text = R"(tl 1 program p
tensor A: f16[64, 64] readonly
tensor D: f32[64, 64]

kernel k grid (b: 1) threads 128 {
  alloc a: shared f16[64, 64]
  alloc x: fragment f32[64, 64]
  copy A -> a
  gemm a, a -> x {clear}
  parallel i, j in 64, 64 {
    D[i, j] = x[63 - i, j]
  }
}
)";
  Inferred k(text);
  ASSERT_TRUE(k.error().diagnostics.empty()) << k.error().to_text();
  EXPECT_TRUE(k.fragment("x").equivalent(k.gemm().c));
  EXPECT_EQ(k.op("i.j").through_memory, std::vector<std::string>{"k:x"});
  EXPECT_TRUE(k.op("gemm#0").through_memory.empty());

  Inferred strict(text, nullptr, false);
  ASSERT_FALSE(strict.error().diagnostics.empty());
  EXPECT_EQ(strict.error().diagnostics[0].code, DiagCode::conversion_refused);
  EXPECT_EQ(strict.error().diagnostics[0].op, "k/i.j");
}

TEST(InferLayouts, AGivenLayoutComesFirst) {
  plan::KernelSchedule given;
  plan::ValuePlan alone;
  alone.value = "k:alone";
  alone.fragment = Fragment::row_major_vectors(std::vector<int64_t>{64, 64}, 128, 1);
  given.values = {alone};
  Inferred k(kGemm, &given);
  EXPECT_EQ(k.value("alone").origin, Origin::given);
  EXPECT_EQ(k.fragment("alone"), *alone.fragment);
  EXPECT_EQ(k.op("copy#5").vector, 1);

  given.values[0].fragment.reset();
  // shared memory for a fragment
  given.values[0].memory = layout::Layout::row_major(std::vector<int64_t>{64, 64});
  Inferred moved(kGemm, &given);
  EXPECT_EQ(moved.value("alone").memory, given.values[0].memory);
  EXPECT_FALSE(moved.value("alone").fragment);
}

TEST(InferLayouts, AGivenIterationSpreadsToWhatItTouches) {
  plan::KernelSchedule given;
  plan::OpPlan load;
  load.op = "k/copy#5";
  load.iteration = Fragment::row_major_vectors(std::vector<int64_t>{64, 64}, 128, 2);
  given.ops = {load};
  Inferred k(kGemm, &given);
  EXPECT_EQ(*k.op("copy#5").iteration, *load.iteration);
  EXPECT_TRUE(k.fragment("alone").equivalent(*load.iteration));
  EXPECT_EQ(k.value("alone").origin, Origin::common);
}

TEST(InferLayouts, VectorsNeedConsecutiveElements) {
  auto vector_of = [](const char* strides) {
    Inferred k(std::string("tl 1 program p\ndim pitch >= 64\ntensor X: f32[64, 64] ") + strides + R"( readonly
tensor Y: f32[64, 64]

kernel k grid (b: 1) threads 128 {
  alloc x: fragment f32[64, 64]
  copy X -> x
  copy x -> Y
}
)");
    return k.op("copy#0").vector;
  };
  EXPECT_EQ(vector_of(""), 4);
  EXPECT_EQ(vector_of("strides [pitch, 1]"), 4);
  EXPECT_EQ(vector_of("strides [128, 2]"), 1);
  EXPECT_EQ(vector_of("strides [1, pitch]"), 1);
}

TEST(InferLayouts, ALocalBufferIsPrivateToEachThread) {
  Inferred k(R"(tl 1 program p
tensor Y: f32[64]

kernel k grid (b: 1) threads 128 {
  alloc c: local f32[4]
  alloc y: fragment f32[64]
  fill c, 1.0f32
  parallel i in 64 {
    y[i] = c[2]
  }
  copy y -> Y
}
)");
  ASSERT_TRUE(k.error().diagnostics.empty()) << k.error().to_text();
  EXPECT_EQ(k.value("c").origin, Origin::strict);
  EXPECT_TRUE(k.fragment("c").equivalent(Fragment::replicated(std::vector<int64_t>{4}, 128)));
}

TEST(InferLayouts, OnTheHostTheMicroKernelDemandsPanels) {
  Inferred k(R"(tl 1 program p
tensor A: f32[32, 16] readonly
tensor B: f32[16, 64] readonly
tensor C: f32[32, 64]

kernel k grid (b: 1) threads 128 {
  alloc As: shared f32[32, 16]
  alloc Bs: shared f32[16, 64]
  alloc acc: fragment f32[32, 64]
  alloc more: fragment f32[32, 64]
  copy A -> As
  copy B -> Bs
  gemm As, Bs -> acc {clear}
  parallel i, j in 32, 64 {
    more[i, j] = acc[i, j] + 1.0f32
  }
  copy more -> C
}
)",
             nullptr, true, "x86-64-v3");
  ASSERT_TRUE(k.error().diagnostics.empty()) << k.error().to_text();
  EXPECT_EQ(k.value("Bs").origin, Origin::strict);
  EXPECT_EQ(*k.value("Bs").memory, *k.gemm().b_memory);
  EXPECT_EQ(k.value("more").origin, Origin::common);
  EXPECT_TRUE(k.fragment("more").equivalent(k.fragment("acc")));
}

}  // namespace
}  // namespace tilegen::infer
