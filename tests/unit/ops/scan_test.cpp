// scan, argmax, argmin and the kinds of reduce: what they accept, how they refuse, and what they mean.
#include <cmath>
#include <limits>

#include "../check/diagnose.h"
#include "../interp/run_text.h"

namespace tilegen {
namespace {

using check::diagnose;
using interp::Tensor;
using ir::DType;

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Scan, Accepts) {
  for (const char* body :
       {"fill Cf, 0.0f32 scan Cf -> Cf {kind=max, axis=1} }",
        "fill S, 0.0f32 scan S -> V {reverse, exclusive} }",
        "fill As, 0.0f16 scan As -> Cf {kind=product, axis=1} }", "fill W, 0u8 scan W -> W {kind=min} }"})
    EXPECT_EQ(diagnose(body), "") << body;
}

TEST(Scan, Refuses) {
  EXPECT_EQ(
      diagnose("scan R -> V {kind=max} }"),
      "t.tl:6:2: error [scope_not_allowed] k/scan#0: src R[64] (f32, global): expected an on-chip buffer"
      " (scan in a fragment and copy from or to global memory)");
  EXPECT_EQ(
      diagnose("fill P, true scan P -> P {kind=max} }"),
      "t.tl:6:15: error [dtype_mismatch] k/scan#0: src P[64] (bool, shared): bools are not scanned (copy it"
      " into an i32 buffer first)");
  EXPECT_EQ(
      diagnose("fill S, 0.0f32 scan S -> V {kind=min, axis=1} }"),
      "t.tl:6:17: error [bad_attribute] k/scan#0: axis 1 is outside src S[64] of 1 dimensions (axes count"
      " from 0)");
}

// dst of `values` after the statement on a tile `x`; `y` beside it has the type `to`.
std::vector<double> result_of(const std::string& statement, DType type, const std::vector<double>& values) {
  Tensor x(type, values.size()), y(type, values.size());
  for (size_t i = 0; i < values.size(); ++i) x.set(i, values[i]);
  const std::string t = std::string(ir::dtype_name(type)) + "[" + std::to_string(values.size()) + "]";
  interp::run_text("tl 1 program p\ntensor X: " + t + " readonly\ntensor Y: " + t +
                       "\nkernel k grid(b: 1) {\n  alloc x: fragment " + t + "\n  alloc y: fragment " + t +
                       "\n  copy X -> x\n  " + statement + "\n  copy y -> Y\n}\n",
                   {x.slot(), y.slot()});
  return y.values();
}

TEST(Scan, Means) {
  using V = std::vector<double>;
  EXPECT_EQ(result_of("scan x -> y", DType::i32, {1, 2, 3, 4}), (V{1, 3, 6, 10}));
  EXPECT_EQ(result_of("scan x -> y {exclusive}", DType::i32, {1, 2, 3, 4}), (V{0, 1, 3, 6}));
  EXPECT_EQ(result_of("scan x -> y {reverse, exclusive}", DType::i32, {1, 2, 3, 4}), (V{9, 7, 4, 0}));
  EXPECT_EQ(result_of("scan x -> y {kind=product}", DType::f32, {2, 3, -1}), (V{2, 6, -6}));
  EXPECT_EQ(result_of("scan x -> y {kind=max}", DType::f32, {NAN, 1, NAN, -5, 7}), (V{-kInf, 1, 1, 1, 7}));
  EXPECT_EQ(result_of("scan x -> y {kind=max, exclusive}", DType::i8, {3, 1, 9}), (V{-128, 3, 3}));
  EXPECT_EQ(result_of("scan x -> y {kind=min, exclusive, reverse}", DType::f32, {3, 1, 9}), (V{1, 9, kInf}));
}

TEST(ReduceKinds, Mean) {
  const auto one = [](const std::string& kind, DType type, const std::vector<double>& values) {
    return result_of("reduce x -> y[0 :+ 1] {kind=" + kind + "}\n  reduce x -> y[1 :+ 1] {kind=" + kind +
                         "}\n  copy x[2 :+ 1] -> y[2 :+ 1]",
                     type, values)[1];
  };
  EXPECT_EQ(one("product", DType::i32, {2, -3, 5}), -30);
  EXPECT_EQ(one("product", DType::f32, {0.5, 4, 3}), 6);
  EXPECT_EQ(one("abssum", DType::f32, {-2, 3, -5}), 10);
  EXPECT_EQ(one("and", DType::i32, {7, 6, 12}), 4);
  EXPECT_EQ(one("or", DType::u8, {1, 2, 64}), 67);
  EXPECT_EQ(one("xor", DType::i32, {5, 5, 9}), 9);
}

TEST(ReduceKinds, Refuse) {
  EXPECT_EQ(
      diagnose("fill S, 0.0f32 reduce S -> V[0 :+ 1] {kind=xor} }"),
      "t.tl:6:17: error [dtype_mismatch] k/reduce#0: src S[64] (f32, shared): and, or and xor are of the bits"
      " of integers, or of bools (compare it with something into a bool tile first)");
  EXPECT_EQ(
      diagnose("fill P, true reduce P -> Q {kind=product} }"),
      "t.tl:6:15: error [dtype_mismatch] k/reduce#0: src P[64] (bool, shared): a bool has no product (copy it"
      " into an i32 buffer first, or use max (any) or min (all))");
  EXPECT_NE(diagnose("fill W, 0u8 reduce W -> W[0 :+ 1] {kind=abssum} }")
                .find("src W[64] (u8, fragment): abssum is of signed or floating elements (use sum"),
            std::string::npos);
}

TEST(ArgReduce, Means) {
  const std::string text =
      "tl 1 program p\ntensor X: f32[2, 4] readonly\ntensor V: f32[2]\ntensor I: i32[2]\nkernel k grid(b: 1) "
      "{\n"
      "  alloc x: fragment f32[2, 4]\n  alloc v: fragment f32[2]\n  alloc i: fragment i32[2, 1]\n  copy X -> "
      "x\n"
      "  argmax x -> v, i {axis=1}\n  copy v -> V\n  copy i[0 :+ 2, 0 :+ 1] -> I\n}\n";
  Tensor x(DType::f32, 8), v(DType::f32, 2), i(DType::i32, 2);
  const double values[] = {1, 5, NAN, 5, NAN, NAN, NAN, NAN};
  for (size_t at = 0; at < 8; ++at) x.set(at, values[at]);
  interp::run_text(text, {x.slot(), v.slot(), i.slot()});
  EXPECT_EQ(v.values(), (std::vector<double>{5, -kInf}));
  EXPECT_EQ(i.values(), (std::vector<double>{1, 4}));
}

TEST(ArgReduce, Refuses) {
  const auto said = [](const std::string& body) {
    auto p = ir::parse_program(std::string(check::kDeclarations) + " " + body, "t.tl", Limits());
    return p ? std::string("read") : p.error().to_text();
  };
  EXPECT_EQ(said("fill Cf, 0.0f32 argmax Cf -> V, V {axis=1} }"),
            "t.tl:6:18: error [dtype_mismatch] k: the place that argmax tells is i32 or i64, V is f32 (use a "
            "tile of"
            " i32)");
  EXPECT_EQ(said("fill Cf, 0.0f32 argmin Cf -> Cf, V {axis=1} }"),
            "t.tl:6:18: error [shape_mismatch] k: Cf[64, 64] does not fit src Cf[64, 64] without axis 1 (the "
            "results"
            " of argmin have src's extents without the axis, or with extent 1 there)");
  EXPECT_EQ(
      said("fill Cf, 0.0f32 argmax Cf -> V, V {axis=2} }"),
      "t.tl:6:18: error [bad_attribute] k: axis 2 of argmax is outside src Cf[64, 64] (axes count from 0)");
  EXPECT_NE(
      said("parallel i in 4 { argmax Cf -> V, V {axis=1} } }").find("argmax stands inside a parallel loop"),
      std::string::npos);
}

}  // namespace
}  // namespace tilegen
