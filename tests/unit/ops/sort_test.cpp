// sort and topk: what they accept, how they refuse, and what they mean, against the standard library's sort.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "../check/diagnose.h"
#include "../interp/run_text.h"

namespace tilegen {
namespace {

using check::diagnose;
using interp::Tensor;
using ir::DType;

struct Sorted {
  std::vector<double> values, places;
};

// One row of `of`; the first `wanted` elements.
Sorted sorted(const std::string& word, DType type, const std::vector<double>& of, size_t wanted,
              const std::string& flag, const std::string& place = "i32") {
  const DType place_type = place == "i32" ? DType::i32 : DType::i64;
  Tensor x(type, of.size()), y(type, wanted), p(place_type, wanted);
  for (size_t i = 0; i < of.size(); ++i) x.set(i, of[i]);
  const std::string n = std::to_string(of.size()), k = std::to_string(wanted), t = ir::dtype_name(type);
  interp::run_text("tl 1 program p\ntensor X: " + t + "[" + n + "] readonly\ntensor Y: " + t + "[" + k +
                       "]\ntensor P: " + place + "[" + k + "]\nkernel k grid(b: 1) {\n  alloc x: fragment " +
                       t + "[" + n + "]\n  alloc y: fragment " + t + "[" + k + "]\n  alloc p: fragment " +
                       place + "[" + k + "]\n  copy X -> x\n  " + word + " x -> y, p {axis=0" + flag +
                       "}\n  copy y -> Y\n  copy p -> P\n}\n",
                   {x.slot(), y.slot(), p.slot()});
  return {y.values(), p.values()};
}

// NaN behind all others, -0 before 0.
bool before(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}

Sorted expected(const std::vector<double>& of, size_t wanted, bool descending) {
  std::vector<size_t> order(of.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return descending ? before(of[b], of[a]) : before(of[a], of[b]);
  });
  Sorted all;
  for (size_t i = 0; i < wanted; ++i) {
    all.values.push_back(of[order[i]]);
    all.places.push_back(static_cast<double>(order[i]));
  }
  return all;
}

std::vector<uint64_t> bits(const std::vector<double>& values) {
  std::vector<uint64_t> all;
  for (double v : values) all.push_back(std::isnan(v) ? ~uint64_t{0} : std::bit_cast<uint64_t>(v));
  return all;
}

TEST(Sort, OrdersAsStableSort) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::mt19937 random(7);
  for (DType type : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8, DType::u8, DType::i16,
                     DType::u16, DType::i32, DType::u32, DType::i64})
    for (size_t n : {1, 2, 3, 5, 8, 9, 16, 33, 64, 100}) {
      std::vector<double> of;
      for (size_t i = 0; i < n; ++i) {
        const bool is_signed = ir::dtype_kind(type) != ir::DTypeKind::unsigned_int;
        double v = static_cast<double>(random() % 40) - (is_signed ? 20 : 0);
        if (ir::is_float(type) && random() % 4 == 0) {
          const double special[] = {NAN, kInf, -kInf, -0.0, 0.0};
          v = special[random() % 5];
        }
        of.push_back(v);
      }
      for (bool turned : {false, true})
        for (const std::string word : {"sort", "topk"}) {
          const bool descending = word == "sort" ? turned : !turned;
          const size_t wanted = word == "sort" ? n : 1 + random() % n;
          const std::string flag = !turned ? "" : word == "sort" ? ", descending" : ", smallest";
          const Sorted got = sorted(word, type, of, wanted, flag, n % 2 ? "i32" : "i64");
          const Sorted want = expected(of, wanted, descending);
          ASSERT_EQ(got.places, want.places) << word << flag << " " << ir::dtype_name(type) << " " << n;
          ASSERT_EQ(bits(got.values), bits(want.values))
              << word << flag << " " << ir::dtype_name(type) << " " << n;
        }
    }
}

// Powers of two, numbers beside them, and all between: with padding and without, of keys in fragments and in
// memory.
TEST(Sort, OrdersRowsOfAllLengths) {
  std::mt19937 random(11);
  std::vector<size_t> lengths = {127, 128, 129, 1024, 4096};
  for (size_t n = 1; n <= 70; ++n) lengths.push_back(n);
  int at = 0;
  for (size_t n : lengths)
    for (const std::string word : {"sort", "topk"}) {
      const DType types[] = {DType::f32, DType::i8, DType::u64, DType::bf16};
      const DType type = types[++at % 4];
      std::vector<double> of;
      for (size_t i = 0; i < n; ++i)
        of.push_back(ir::is_float(type) && random() % 8 == 0 ? NAN
                                                             : static_cast<double>(random() % (n + 1) % 100));
      const size_t wanted = word == "sort" ? n : 1 + random() % n;
      const Sorted got = sorted(word, type, of, wanted, ""), want = expected(of, wanted, word == "topk");
      ASSERT_EQ(got.places, want.places) << word << " " << ir::dtype_name(type) << " " << n;
      ASSERT_EQ(bits(got.values), bits(want.values)) << word << " " << ir::dtype_name(type) << " " << n;
    }
}

// Keys without places: equal ones are one, and padding is behind NaN and the greatest number.
TEST(Sort, OrdersWithoutPlaces) {
  Tensor x(DType::f32, 6), y(DType::f32, 6), z(DType::f32, 3);
  const double values[] = {2, NAN, -0.0, 2, NAN, -5};
  for (size_t i = 0; i < 6; ++i) x.set(i, values[i]);
  interp::run_text(
      "tl 1 program p\ntensor X: f32[6] readonly\ntensor Y: f32[6]\ntensor Z: f32[3]\n"
      "kernel k grid(b: 1) {\n  alloc x: fragment f32[6]\n  alloc y: fragment f32[6]\n"
      "  alloc z: fragment f32[3]\n  copy X -> x\n  topk x -> z\n  sort x -> y\n  copy y -> Y\n"
      "  copy z -> Z\n}\n",
      {x.slot(), y.slot(), z.slot()});
  EXPECT_EQ(bits(y.values()), bits({-5, -0.0, 2, 2, NAN, NAN}));
  EXPECT_EQ(bits(z.values()), bits({NAN, NAN, 2}));
}

TEST(Sort, OrdersTheWholeRangeOfIntegers) {
  EXPECT_EQ(sorted("sort", DType::i8, {127, -128, 0, -1}, 4, "").values,
            (std::vector<double>{-128, -1, 0, 127}));
  EXPECT_EQ(sorted("sort", DType::u32, {4294967295.0, 0, 2147483648.0}, 3, ", descending").values,
            (std::vector<double>{4294967295.0, 2147483648.0, 0}));
  EXPECT_EQ(sorted("topk", DType::u64, {5, 9007199254740992.0, 7}, 1, "").places, (std::vector<double>{1}));
}

TEST(Sort, TakesAnyAxis) {
  Tensor x(DType::i32, 6), y(DType::i32, 6), z(DType::i32, 3);
  const double values[] = {3, 1, 2, 0, 5, -4};
  for (size_t i = 0; i < 6; ++i) x.set(i, values[i]);
  interp::run_text(
      "tl 1 program p\ntensor X: i32[2, 3] readonly\ntensor Y: i32[2, 3]\ntensor Z: i32[1, 3]\n"
      "kernel k grid(b: 1) {\n  alloc x: shared i32[2, 3]\n  alloc z: fragment i32[1, 3]\n  copy X -> x\n"
      "  topk x -> z {axis=0}\n  sort x -> x {axis=0}\n  copy x -> Y\n  copy z -> Z\n}\n",
      {x.slot(), y.slot(), z.slot()});
  EXPECT_EQ(y.values(), (std::vector<double>{0, 1, -4, 3, 5, 2}));
  EXPECT_EQ(z.values(), (std::vector<double>{3, 5, 2}));
}

std::string said(const std::string& body) {
  auto p = ir::parse_program(std::string(check::kDeclarations) + " " + body, "t.tl", Limits());
  return p ? std::string("read") : p.error().to_text();
}

TEST(Sort, Accepts) {
  for (const char* body : {"fill Cf, 0.0f32 sort Cf -> Cf {axis=1, descending} }",
                           "fill S, 0.0f32 sort S -> V }", "fill S, 0.0f32 topk S -> V[0 :+ 3] {smallest} }"})
    EXPECT_EQ(diagnose(body), "") << body;
}

TEST(Sort, Refuses) {
  EXPECT_EQ(
      said("sort R -> V }"),
      "t.tl:6:2: error [scope_not_allowed] k: R[64]: expected an on-chip buffer (sort in a fragment and copy "
      "from or to global memory)");
  EXPECT_EQ(said("fill S, 0.0f32 sort S -> V {axis=1} }"),
            "t.tl:6:17: error [bad_attribute] k: sort of S[64]: there is no axis 1 (axes count from 0)");
  EXPECT_EQ(
      said("fill P, true sort P -> P }"),
      "t.tl:6:15: error [dtype_mismatch] k: sort of P[64]: bool is no number that is computed in (sort u8)");
  EXPECT_EQ(
      said("fill S, 0.0f32 sort S -> W }"),
      "t.tl:6:17: error [dtype_mismatch] k: sort of S[64], which is f32, into W, which is u8 (use one type)");
  EXPECT_EQ(said("fill S, 0.0f32 sort S -> V[0 :+ 3] }"),
            "t.tl:6:17: error [shape_mismatch] k: V[3] does not fit sort of S[64] (it has src's extents; "
            "topk gives "
            "the first elements alone)");
  EXPECT_EQ(
      said("fill S, 0.0f32 topk S[0 :+ 8] -> V[0 :+ 9] }"),
      "t.tl:6:17: error [shape_mismatch] k: V[9] does not fit topk of S[8] (it has src's extents, along the "
      "axis as many as are wanted)");
  EXPECT_EQ(said("fill S, 0.0f32 sort S -> V, V }"),
            "t.tl:6:17: error [dtype_mismatch] k: the places that sort tells are i32 or i64, V is f32 (use a "
            "tile of "
            "i32)");
  EXPECT_NE(
      said("fill S, 0.0f32 sort S -> V {downwards} }")
          .find("expected an attribute of sort, found 'downwards' (the attributes are axis and descending)"),
      std::string::npos);
  EXPECT_NE(said("parallel i in 4 { sort S -> V } }").find("sort stands inside a parallel loop"),
            std::string::npos);
  const auto long_row = ir::parse_program(
      "tl 1 program p kernel k grid(b: 1) { alloc x: shared u8[5000] fill x, 0 sort x -> x }", "t.tl",
      Limits());
  ASSERT_FALSE(static_cast<bool>(long_row));
  EXPECT_EQ(
      long_row.error().to_text(),
      "t.tl:1:73: error [bad_shape] k: sort of x[5000]: 5000 elements in a row, expected at most 4096 (sort "
      "parts, and merge what they give by topk)");
}

}  // namespace
}  // namespace tilegen
