// cumsum: what it accepts, the words in which it refuses, and what it means.
#include <cmath>
#include <limits>

#include "../check/diagnose.h"
#include "../interp/run_text.h"

namespace tilegen {
namespace {

using check::diagnose;
using interp::Tensor;
using ir::DType;

TEST(Cumsum, Accepts) {
  for (const char* body :
       {"fill Cf, 0.0f32 cumsum Cf -> Cf {axis=1} }", "fill S, 0.0f32 cumsum S -> V {reverse} }",
        "fill As, 0.0f16 cumsum As -> Cf {axis=1} }", "fill W, 0u8 cumsum W -> W }",
        "fill S, 0.0f32 cumsum S[0 :+ 8] -> S[8 :+ 8] }", "fill S, 0.0f32 cumsum S[8 :+ 8] -> S[8 :+ 8] }"})
    EXPECT_EQ(diagnose(body), "") << body;
}

TEST(Cumsum, Scopes) {
  EXPECT_EQ(diagnose("cumsum R -> V }"),
            "t.tl:6:2: error [scope_not_allowed] k/cumsum#0: src R[64] (f32, global): expected an on-chip"
            " buffer (sum in a fragment and copy from or to global memory)");
  EXPECT_EQ(
      diagnose("fill Cf, 0.0f32 cumsum Cf -> C }"),
      "t.tl:6:18: error [scope_not_allowed] k/cumsum#0: dst C[64, 64] (f32, global): expected an on-chip"
      " buffer (sum in a fragment and copy from or to global memory)");
}

TEST(Cumsum, Types) {
  EXPECT_EQ(
      diagnose("fill Cf, 0.0f32 cumsum Cf -> As }"),
      "t.tl:6:18: error [dtype_mismatch] k/cumsum#0: src Cf[64, 64] (f32, fragment) cannot be summed into"
      " dst As[64, 64] (f16, shared) (dst has src's type, or f32 for f16 and bf16, or i32 for i8 and u8)");
  EXPECT_EQ(
      diagnose("fill P, true cumsum P -> P }"),
      "t.tl:6:15: error [dtype_mismatch] k/cumsum#0: src P[64] (bool, shared): a bool has no sum (copy it"
      " into an i32 buffer first)");
}

TEST(Cumsum, Axis) {
  EXPECT_EQ(diagnose("fill S, 0.0f32 cumsum S -> V {axis=1} }"),
            "t.tl:6:17: error [bad_attribute] k/cumsum#0: axis 1 is outside src S[64] of 1 dimensions (axes"
            " count from 0)");
  EXPECT_EQ(diagnose("fill S, 0.0f32 cumsum S -> V {axis=-1} }"),
            "t.tl:6:17: error [bad_attribute] k/cumsum#0: axis -1 is outside src S[64] of 1 dimensions (axes"
            " count from 0)");
}

TEST(Cumsum, Shapes) {
  EXPECT_EQ(diagnose("fill Cf, 0.0f32 cumsum Cf[0 :+ 1, 0 :+ 64] -> S {axis=1} }"),
            "t.tl:6:18: error [shape_mismatch] k/cumsum#0: src Cf[1, 64] (f32, fragment) and dst S[64] (f32,"
            " shared) have different extents (give both regions the same rank and extents: every element of"
            " src has its sum)");
}

TEST(Cumsum, OverlapsOnlyInPlace) {
  EXPECT_EQ(
      diagnose("fill S, 0.0f32 cumsum S[0 :+ 32] -> S[31 :+ 32] }"),
      "t.tl:6:17: error [parallel_race] k/cumsum#0: dst S[31 :+ 32] overlaps src S[0 :+ 32]; the elements"
      " of one cumsum have no order (write to a buffer of its own and copy it back)");
}

TEST(Cumsum, ReadsWhatWasWritten) {
  EXPECT_EQ(
      diagnose("cumsum S -> V }"),
      "t.tl:6:2: error [uninitialised_read] k/cumsum#0: S (shared) is read before anything wrote it (fill"
      " it or copy into it first)");
}

std::vector<double> sums(DType from, DType to, const std::string& shape, const std::vector<double>& values,
                         const std::string& attributes) {
  Tensor a(from, values.size()), b(to, values.size());
  for (size_t i = 0; i < values.size(); ++i) a.set(i, values[i]);
  const std::string s = std::string(ir::dtype_name(from)) + shape,
                    d = std::string(ir::dtype_name(to)) + shape;
  interp::run_text("tl 1 program t tensor A: " + s + " tensor B: " + d +
                       " kernel k grid(g: 1) { alloc x: fragment " + s + " alloc y: shared " + d +
                       " copy A -> x cumsum x -> y {" + attributes + "} copy y -> B }",
                   {a.slot(), b.slot()});
  return b.values();
}

TEST(Cumsum, SumsUpToEachElement) {
  using Values = std::vector<double>;
  const Values six = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(sums(DType::f32, DType::f32, "[6]", six, "axis=0"), (Values{1, 3, 6, 10, 15, 21}));
  EXPECT_EQ(sums(DType::f32, DType::f32, "[6]", six, "axis=0, reverse"), (Values{21, 20, 18, 15, 11, 6}));
  EXPECT_EQ(sums(DType::i32, DType::i32, "[2, 3]", six, "axis=0"), (Values{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(sums(DType::i64, DType::i64, "[2, 3]", six, "axis=1"), (Values{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(sums(DType::f64, DType::f64, "[1, 2, 3]", six, "axis=1, reverse"), (Values{5, 7, 9, 4, 5, 6}));
  EXPECT_EQ(sums(DType::f32, DType::f32, "[6, 1]", six, "axis=1"), six);
}

TEST(Cumsum, SumsInTheDestinationsType) {
  using Values = std::vector<double>;
  EXPECT_EQ(sums(DType::i8, DType::i8, "[3]", {100, 100, 100}, "axis=0"), (Values{100, -56, 44}));
  EXPECT_EQ(sums(DType::i8, DType::i32, "[3]", {100, 100, 100}, "axis=0"), (Values{100, 200, 300}));
  EXPECT_EQ(sums(DType::f16, DType::f16, "[3]", {2048, 1, 1}, "axis=0"), (Values{2048, 2048, 2048}));
  EXPECT_EQ(sums(DType::f16, DType::f32, "[3]", {2048, 1, 1}, "axis=0"), (Values{2048, 2049, 2050}));
}

// A sum is not spoilt by what stands after it, and begins with its first element, a zero's sign included.
TEST(Cumsum, OnlyWhatStandsBeforeCounts) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const auto s = sums(DType::f32, DType::f32, "[5]", {-0.0, 1, inf, -inf, nan}, "axis=0");
  EXPECT_TRUE(std::signbit(s[0]));
  EXPECT_EQ(s[1], 1);
  EXPECT_EQ(s[2], inf);
  EXPECT_TRUE(std::isnan(s[3]) && std::isnan(s[4]));
}

TEST(Cumsum, InPlaceAndPartly) {
  Tensor a(DType::f32, 8);
  for (size_t i = 0; i < 8; ++i) a.set(i, 1);
  interp::run_text(
      "tl 1 program t tensor A: f32[8] kernel k grid(g: 1) { alloc x: shared f32[8] copy A -> x"
      " cumsum x[2 :+ 4] -> x[2 :+ 4] copy x -> A }",
      {a.slot()});
  EXPECT_EQ(a.values(), (std::vector<double>{1, 1, 1, 2, 3, 4, 1, 1}));
}

}  // namespace
}  // namespace tilegen
