// reduce: kinds, axes, types, NaN, accumulation.
#include <cmath>
#include <limits>

#include "run_text.h"

namespace tilegen::interp {
namespace {

using ir::DType;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::string program_text(DType src, const std::string& src_shape, DType dst, const std::string& dst_shape,
                         const std::string& attrs) {
  const std::string s = std::string(ir::dtype_name(src)) + src_shape,
                    d = std::string(ir::dtype_name(dst)) + dst_shape;
  return "tl 1 program t tensor A: " + s + " tensor B: " + d + " kernel k grid(x: 1) { alloc Af: fragment " +
         s + " alloc Bf: fragment " + d + " copy A -> Af copy B -> Bf reduce Af -> Bf {" + attrs +
         "} copy Bf -> B }";
}

std::vector<double> reduce_rows(DType src, std::vector<double> values, DType dst, double old,
                                const std::string& attrs) {
  Tensor a(src, values.size()), b(dst, 1, old);
  for (size_t i = 0; i < values.size(); ++i) a.set(i, values[i]);
  run_text(program_text(src, "[1, " + std::to_string(values.size()) + "]", dst, "[1]", attrs + ", axis=1"),
           {a.slot(), b.slot()});
  return b.values();
}

TEST(Reduce, KindsWithAndWithoutOldValue) {
  const std::vector<double> v = {3, -7, 2, 5};
  const auto one = [](double x) { return std::vector<double>{x}; };
  EXPECT_EQ(reduce_rows(DType::f32, v, DType::f32, 100, "kind=sum"), one(3));
  EXPECT_EQ(reduce_rows(DType::f32, v, DType::f32, 100, "kind=sum, accumulate"), one(103));
  EXPECT_EQ(reduce_rows(DType::f32, v, DType::f32, 100, "kind=max"), one(5));
  EXPECT_EQ(reduce_rows(DType::f32, v, DType::f32, 100, "kind=max, accumulate"), one(100));
  EXPECT_EQ(reduce_rows(DType::f32, v, DType::f32, -100, "kind=min"), one(-7));
  EXPECT_EQ(reduce_rows(DType::f32, v, DType::f32, -100, "kind=min, accumulate"), one(-100));
  EXPECT_EQ(reduce_rows(DType::f32, v, DType::f32, 100, "kind=absmax"), one(7));
  EXPECT_EQ(reduce_rows(DType::f32, v, DType::f32, 100, "kind=absmax, accumulate"), one(100));
}

TEST(Reduce, ExtremaOfIntegersStartAtTheTypesEnds) {
  const auto one = [](double x) { return std::vector<double>{x}; };
  EXPECT_EQ(reduce_rows(DType::i8, {-128, -128}, DType::i8, 5, "kind=max"), one(-128));
  EXPECT_EQ(reduce_rows(DType::u8, {255, 255}, DType::u8, 5, "kind=min"), one(255));
  EXPECT_EQ(reduce_rows(DType::i32, {2147483647}, DType::i32, 5, "kind=min"), one(2147483647));
  EXPECT_EQ(reduce_rows(DType::i64, {-9007199254740992.0}, DType::i64, 5, "kind=max"),
            one(-9007199254740992.0));
  EXPECT_EQ(reduce_rows(DType::boolean, {0, 1, 0}, DType::boolean, 0, "kind=max"), one(1));
  EXPECT_EQ(reduce_rows(DType::boolean, {1, 1}, DType::boolean, 0, "kind=min"), one(1));
}

TEST(Reduce, AccumulatesInTheDestinationsType) {
  const auto one = [](double x) { return std::vector<double>{x}; };
  EXPECT_EQ(reduce_rows(DType::i8, {100, 100}, DType::i8, 0, "kind=sum"), one(-56));
  EXPECT_EQ(reduce_rows(DType::i8, {100, 100}, DType::i32, 0, "kind=sum"), one(200));
  EXPECT_EQ(reduce_rows(DType::i8, {-128, 1}, DType::i32, 0, "kind=absmax"), one(128));
  EXPECT_EQ(reduce_rows(DType::f16, {2048, 1, 1}, DType::f16, 0, "kind=sum"), one(2048));
  EXPECT_EQ(reduce_rows(DType::f16, {2048, 1, 1}, DType::f32, 0, "kind=sum"), one(2050));
  EXPECT_EQ(reduce_rows(DType::bf16, {256, 1}, DType::f32, 0, "kind=sum"), one(257));
}

TEST(Reduce, ExtremaIgnoreNanAndSumsKeepIt) {
  const std::vector<double> v = {kNan, 1, kNan, -2};
  EXPECT_EQ(reduce_rows(DType::f32, v, DType::f32, 0, "kind=max")[0], 1);
  EXPECT_EQ(reduce_rows(DType::f32, v, DType::f32, 0, "kind=min")[0], -2);
  EXPECT_EQ(reduce_rows(DType::f32, v, DType::f32, 0, "kind=absmax")[0], 2);
  EXPECT_EQ(reduce_rows(DType::f32, {kNan, kNan}, DType::f32, 0, "kind=max")[0], -kInf);
  EXPECT_EQ(reduce_rows(DType::f32, {kNan, kNan}, DType::f32, 0, "kind=min")[0], kInf);
  EXPECT_TRUE(std::isnan(reduce_rows(DType::f32, v, DType::f32, 0, "kind=sum")[0]));
}

TEST(Reduce, EveryAxisAndDestinationForm) {
  // A[i, j, k] = 100 i + 10 j + k of shape 2 x 3 x 4; sums along each axis.
  Tensor a(DType::i32, 24);
  for (int i = 0; i < 24; ++i) a.set(i, 100 * (i / 12) + 10 * (i / 4 % 3) + i % 4);
  const int extents[] = {2, 3, 4}, strides[] = {12, 4, 1};
  for (int axis = 0; axis < 3; ++axis) {
    for (const bool keep : {false, true}) {
      std::string shape;
      std::vector<double> expected;
      for (int d = 0; d < 3; ++d)
        if (d != axis || keep)
          shape += (shape.empty() ? "" : ", ") + std::to_string(d == axis ? 1 : extents[d]);
      for (int at = 0; at < 24; ++at) {
        if (at / strides[axis] % extents[axis] != 0) continue;
        double sum = 0;
        for (int x = 0; x < extents[axis]; ++x) sum += a.at(at + x * strides[axis]);
        expected.push_back(sum);
      }
      Tensor b(DType::i32, expected.size());
      run_text(program_text(DType::i32, "[2, 3, 4]", DType::i32, "[" + shape + "]",
                            "axis=" + std::to_string(axis)),
               {a.slot(), b.slot()});
      EXPECT_EQ(b.values(), expected) << "axis " << axis << (keep ? " kept" : "");
    }
  }
}

TEST(Reduce, SliceIntoAVectorDropsDimensionsOfExtentOne) {
  Tensor a(DType::f32, 2 * 3 * 4), b(DType::f32, 3);
  for (int i = 0; i < 24; ++i) a.set(i, i);
  run_text(
      "tl 1 program t tensor A: f32[2, 3, 4] tensor B: f32[3] kernel k grid(x: 1) {"
      " alloc S: shared f32[2, 3, 4] alloc R: fragment f32[3] copy A -> S"
      " reduce S[1 :+ 1, 0 :+ 3, 0 :+ 4] -> R {kind=max, axis=2} copy R -> B }",
      {a.slot(), b.slot()});
  EXPECT_EQ(b.values(), (std::vector<double>{15, 19, 23}));
}

}  // namespace
}  // namespace tilegen::interp
