// reduce and scan by a program's own combination: what they accept, how they refuse, and what they mean.
#include <cmath>
#include <random>

#include "../check/diagnose.h"
#include "../interp/run_text.h"

namespace tilegen {
namespace {

using interp::Tensor;
using ir::DType;

// Maps x -> a x + b one after the other: associative, not commutative. In i32 they wrap, so every order of
// combining neighbours gives the same.
struct Map {
  int32_t a = 1, b = 0;
};
Map then(Map f, Map g) {
  const auto product = [](int32_t x, int32_t y) {
    return static_cast<int32_t>(static_cast<uint32_t>(x) * static_cast<uint32_t>(y));
  };
  return {product(f.a, g.a),
          static_cast<int32_t>(static_cast<uint32_t>(product(f.b, g.a)) + static_cast<uint32_t>(g.b))};
}
constexpr const char* kThen =
    "fn then(a: i32, b: i32, a_2: i32, b_2: i32) -> (i32, i32) { return a * a_2, b * a_2 + b_2 }\n";

std::vector<Map> random_maps(size_t n) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::vector<Map> maps(n);
  for (Map& m : maps) m = {static_cast<int32_t>(random()), static_cast<int32_t>(random())};
  return maps;
}

// Both values of every group that `statement` leaves in tiles p and q of `results` elements.
std::vector<Map> maps_after(const std::string& statement, const std::vector<Map>& maps, size_t results) {
  const size_t n = maps.size();
  Tensor a(DType::i32, n), b(DType::i32, n), p(DType::i32, results), q(DType::i32, results);
  for (size_t i = 0; i < n; ++i) a.set(i, maps[i].a), b.set(i, maps[i].b);
  const std::string in = "i32[1, " + std::to_string(n) + "]", out = "i32[1, " + std::to_string(results) + "]";
  interp::run_text("tl 1 program p\n" + std::string(kThen) + "tensor A: " + in +
                       " readonly\ntensor B: " + in + " readonly\ntensor P: " + out + "\ntensor Q: " + out +
                       "\nkernel k grid(g: 1) {\n  alloc x: shared " + in + "\n  alloc y: fragment " + in +
                       "\n  alloc p: fragment " + out + "\n  alloc q: fragment " + out +
                       "\n  copy A -> x\n  copy B -> y\n  fill p, 3\n  fill q, 5\n  " + statement +
                       "\n  copy p -> P\n  copy q -> Q\n}\n",
                   {a.slot(), b.slot(), p.slot(), q.slot()});
  std::vector<Map> all(results);
  for (size_t i = 0; i < results; ++i)
    all[i] = {static_cast<int32_t>(p.values()[i]), static_cast<int32_t>(q.values()[i])};
  return all;
}

TEST(Combination, ReducesInOrder) {
  for (size_t n : {1, 2, 3, 7, 8, 9, 11, 22, 64, 97, 100, 300}) {
    const std::vector<Map> maps = random_maps(n);
    for (bool accumulate : {false, true}) {
      Map want = accumulate ? then({3, 5}, maps[0]) : maps[0];
      for (size_t i = 1; i < n; ++i) want = then(want, maps[i]);
      const std::string flag = accumulate ? ", accumulate" : "";
      const Map got = maps_after("reduce x, y -> p, q by then {axis=1" + flag + "}", maps, 1)[0];
      EXPECT_EQ(got.a, want.a) << n << flag;
      EXPECT_EQ(got.b, want.b) << n << flag;
    }
  }
}

TEST(Combination, ScansInOrder) {
  for (size_t n : {1, 2, 3, 7, 8, 9, 11, 22, 64, 97, 100, 300}) {
    const std::vector<Map> maps = random_maps(n);
    for (bool reverse : {false, true}) {
      std::vector<Map> want = maps;
      for (size_t i = 1; i < n; ++i) {
        if (reverse)
          want[n - 1 - i] = then(maps[n - 1 - i], want[n - i]);
        else
          want[i] = then(want[i - 1], maps[i]);
      }
      const std::vector<Map> got = maps_after(
          "scan x, y -> p, q by then {axis=1" + std::string(reverse ? ", reverse" : "") + "}", maps, n);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(got[i].a, want[i].a) << n << " " << i << reverse;
        ASSERT_EQ(got[i].b, want[i].b) << n << " " << i << reverse;
      }
    }
  }
}

TEST(Combination, ScansFromAGroup) {
  const Map first{7, -3};
  for (size_t n : {1, 2, 3, 7, 8, 9, 11, 17, 22, 64, 65, 97, 100, 300}) {
    const std::vector<Map> maps = random_maps(n);
    for (bool reverse : {false, true})
      for (bool exclusive : {false, true}) {
        std::vector<Map> want(n);
        Map before = first;
        for (size_t k = 0; k < n; ++k) {
          const size_t i = reverse ? n - 1 - k : k;
          const Map up_to = reverse ? then(maps[i], before) : then(before, maps[i]);
          want[i] = exclusive ? before : up_to;
          before = up_to;
        }
        const std::string flags = std::string(reverse ? ", reverse" : "") + (exclusive ? ", exclusive" : "");
        const std::vector<Map> got =
            maps_after("scan x, y -> p, q by then from 7, -3 {axis=1" + flags + "}", maps, n);
        for (size_t i = 0; i < n; ++i) {
          ASSERT_EQ(got[i].a, want[i].a) << n << " " << i << flags;
          ASSERT_EQ(got[i].b, want[i].b) << n << " " << i << flags;
        }
      }
  }
}

std::string said(const std::string& functions, const std::string& body) {
  const std::string text =
      "tl 1 program p " + functions +
      " tensor R: f32[8, 8] kernel k grid(b: 1) { alloc x: fragment f32[8, 8] alloc y: fragment "
      "f32[8, 8] alloc u: fragment f32[8] alloc v: fragment f32[8] alloc n: fragment i32[8] "
      "fill x, 0 fill y, 0 fill u, 0 fill v, 0 " +
      body + " }";
  auto p = ir::parse_program(text, "t.tl", Limits());
  if (p) return "read";
  const std::string all = p.error().to_text();
  return all.substr(all.find('['));
}

constexpr const char* kPair = "fn f(a: f32, b: f32, c: f32, d: f32) -> (f32, f32) { return a + c, b * d }";
constexpr const char* kOne = "fn f(a: f32, b: f32) -> f32 { return a + b }";

TEST(Combination, Accepts) {
  EXPECT_EQ(said(kPair, "reduce x, y -> u, v by f {axis=1}"), "read");
  EXPECT_EQ(said(kOne, "reduce x -> u by f {accumulate, axis=0}"), "read");
  EXPECT_EQ(said(kOne, "scan x -> x by f {axis=1, reverse}"), "read");
  EXPECT_EQ(said(kPair, "scan x, y -> y, x by f from -1, (0.5) {exclusive, axis=1, reverse}"), "read");
  EXPECT_EQ(said("fn f(a: f32, b: f32) -> f32 { let c = a + b return c * 2 }",
                 "reduce x -> u by f {axis=1} parallel i in 8 { v[i] = f(u[i], 1) }"),
            "read");
}

TEST(Combination, Refuses) {
  EXPECT_EQ(said(kPair, "reduce x -> u by f {axis=1}"),
            "[rank_mismatch] k: reduce of 1 values by a combination of 4 values that gives 2 (it takes the "
            "values of "
            "one group and of another, and gives those of a group: 2 parameters and 1 results)");
  EXPECT_EQ(said(kPair, "reduce x, y -> u by f {axis=1}"),
            "[rank_mismatch] k: reduce of 2 values writes 1 (give a result for each value)");
  EXPECT_EQ(said(kPair, "scan x, y -> u, v by f {axis=1}"),
            "[shape_mismatch] k: u[8] does not fit src x[8, 8] (the results of scan have src's extents)");
  EXPECT_EQ(
      said(kOne, "reduce R -> u by f {axis=1}"),
      "[scope_not_allowed] k: R[8, 8]: expected an on-chip buffer (reduce in fragments and copy from or to "
      "global memory)");
  EXPECT_EQ(said(kOne, "reduce x -> n by f {axis=1}"),
            "[dtype_mismatch] k: value 1 of reduce: the source x[8, 8] is f32, what is written is i32 (use "
            "one type; "
            "copy the source into a tile of i32)");
  EXPECT_EQ(said("fn f(a: i32, b: i32) -> i32 { return a }", "reduce x -> u by f {axis=1}"),
            "[dtype_mismatch] k: value 1 of reduce: the source x[8, 8] is f32, the left operand is i32 (use "
            "one type; "
            "copy the source into a tile of i32)");
  EXPECT_EQ(said(kOne, "reduce x -> u by f {axis=2}"),
            "[bad_attribute] k: axis 2 of reduce is outside src x[8, 8] (axes count from 0)");
  EXPECT_EQ(said(kPair, "reduce x, y[0 :+ 4, 0 :+ 8] -> u, v by f {axis=1}"),
            "[shape_mismatch] k: y[4, 8] is combined with x[8, 8] (the sources have the same extents)");
  EXPECT_EQ(said(kOne, "reduce x -> u by g {axis=1}"),
            "[unknown_name] k: there is no function 'g' (declare it before the kernels: fn g(a: f32, b: f32, "
            "c: f32, "
            "d: f32) -> (f32, f32) { ... return x, y })");
  EXPECT_EQ(said(kOne, "reduce x, y -> u, v {axis=1}"),
            "[syntax_error] k: expected 'by' and a function, found '{' (several values are combined by a "
            "function of "
            "the program: reduce x, y -> m, s by f)");
  EXPECT_EQ(said(kPair, "parallel i in 8 { u[i] = f(u[i], 0, 0, 0) }"),
            "[rank_mismatch] k: 'f' gives 2 values, where one is expected (name them all: let x, y = f(...); "
            "or combine the values of a reduction or scan: reduce x, y -> m, s by f)");
  EXPECT_EQ(
      said("fn f(a: f32, b: f32) -> (f32, f32) { return a }", ""),
      "[rank_mismatch] p: the function is declared to give 2 values, it returns 1 (return a value for each "
      "type)");
  EXPECT_EQ(said(kPair, "scan x, y -> x, y by f from 0 {axis=1}"),
            "[rank_mismatch] k: scan of 2 values begins with 1 (say what the first group is, a value for "
            "each: by f "
            "from 0, 1)");
  EXPECT_EQ(
      said(kOne, "scan x -> x by f {axis=1, exclusive}"),
      "[rank_mismatch] k: an exclusive scan of 1 values begins with 0 (say what the first group is, a value "
      "for each: by f from 0, 1)");
  EXPECT_EQ(
      said(kOne, "scan x -> x by f from 1i32 {axis=1}"),
      "[dtype_mismatch] k: value 1 of the first group is i32, the source x[8, 8] is f32 (use one type; cast "
      "the value)");
  EXPECT_EQ(
      said(kOne, "scan x -> x by f from u[0] {axis=1}"),
      "[scope_not_allowed] k: the combination reads 'u' (it is of its operands, constants, dims and scalars; "
      "pass what it reads as a value)");
  EXPECT_EQ(
      said(kOne, "reduce x -> u by f from 1 {axis=1}"),
      "[bad_attribute] k: reduce is given a first group, which scan has (fill the results with it and reduce "
      "with accumulate)");
  EXPECT_EQ(
      said(kOne, "reduce x -> u by f {axis=1, exclusive}"),
      "[syntax_error] k: expected an attribute of reduce, found 'exclusive' (the attributes are axis and "
      "accumulate)");
  EXPECT_EQ(
      said(kOne, "scan x -> x by f {axis=1, accumulate}"),
      "[syntax_error] k: expected an attribute of scan, found 'accumulate' (the attributes are axis, reverse "
      "and exclusive)");
  EXPECT_NE(said(kOne, "parallel i in 8 { reduce x -> u by f {axis=1} }")
                .find("reduce stands inside a parallel loop"),
            std::string::npos);
}

// What is named by is no function of a reduction that stands before it.
TEST(Combination, TheWordIsAName) {
  auto p = ir::parse_program(
      "tl 1 program p kernel k grid(b: 1) { alloc x: fragment f32[8] alloc u: fragment f32[1] alloc by: "
      "local f32[1] "
      "fill x, 0 reduce x -> u by[0] = 1.0f32 }",
      "t.tl", Limits());
  EXPECT_TRUE(static_cast<bool>(p)) << (p ? std::string() : p.error().to_text());
  // Nor does a tile called "from" begin a group.
  p = ir::parse_program(
      "tl 1 program p fn f(a: f32, b: f32) -> f32 { return a + b } kernel k grid(b: 1) { alloc x: fragment "
      "f32[8] "
      "alloc from: local f32[1] fill x, 0 scan x -> x by f from[0] = 1.0f32 }",
      "t.tl", Limits());
  EXPECT_TRUE(static_cast<bool>(p)) << (p ? std::string() : p.error().to_text());
}

}  // namespace
}  // namespace tilegen
