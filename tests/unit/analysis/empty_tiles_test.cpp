// Which stores of a kernel can be told from outside its blocks.
#include "analysis/empty_tiles.h"

#include <gtest/gtest.h>

#include "check/check_program.h"
#include "ir/text.h"

namespace tilegen::analysis {
namespace {

// Rows of sequences of any length after one another; `body` stores the tile y of 64 rows from row `first`
// on.
Expected<ir::Program> rows_of_sequences(const std::string& body) {
  return ir::parse_program(
      "tl 1 program rows\ndim batch\ndim all\ndim longest\n"
      "tensor ends: i32[batch + 1] readonly\ntensor X: f32[all, 64] readonly\ntensor Y: f32[all, 64]\ntensor "
      "Z: f32[all, 64]\n"
      "tensor counts: i32[batch + 1]\n"
      "kernel rows grid (bb: batch, bq: ceildiv(longest, 64)) threads 128 {\n  alloc y: fragment f32[64, "
      "64]\n"
      "  copy X[bq * 64 :+ 64, 0 :+ 64] -> y\n" +
          body + "}\n",
      "test.tl", Limits{});
}

// The tests as text: comparisons of one in brackets, with what variables inside the block count as.
std::string tests_of(const std::string& body) {
  const auto parsed = rows_of_sequences(body);
  if (!parsed) return parsed.error().to_text();
  const ir::Program& p = *parsed;
  for (const Diagnostic& d : check::check_program(p, Limits{})) ADD_FAILURE() << d.to_text();
  std::string text;
  const auto side = [&](ir::ExprId e, const std::map<ir::VarId, int64_t>& inside) {
    text += ir::print_expr(p, e);
    for (const auto& [v, number] : inside) text += " at " + p.var(v).name + " = " + std::to_string(number);
  };
  for (const StoreTest& test : store_tests(p, p.kernels[0], analysis::collect_kernel_ops(p, 0))) {
    text += "[";
    for (const StoreComparison& c : test) {
      if (text.back() != '[') text += "; ";
      side(c.a, c.in_a);
      text += c.or_equal ? " <= " : " < ";
      side(c.b, c.in_b);
    }
    text += "]";
  }
  return text;
}

TEST(EmptyTiles, StoresOutsideOfBranchesMayHappenAnywhere) {
  EXPECT_EQ(tests_of("copy y -> Y[bq * 64 :+ 64, 0 :+ 64]\n"), "");
  EXPECT_EQ(
      tests_of(
          "if bq < batch {\n copy y -> Y[bq * 64 :+ 64, 0 :+ 64]\n}\ncopy y -> Z[bq * 64 :+ 64, 0 :+ 64]\n"),
      "");
}

TEST(EmptyTiles, BothSidesOfABranchAreToldApart) {
  EXPECT_EQ(tests_of("if bq * 64 + 64 <= longest {\n copy y -> Y[bq * 64 :+ 64, 0 :+ 64]\n} else {\n"
                     " parallel i, j in 64, 64 {\n  if bq * 64 + i < longest {\n   Y[bq * 64 + i, j] = y[i, "
                     "j]\n  }\n }\n}\n"),
            "[bq * 64 + 64 <= longest][longest < bq * 64 + 64; bq * 64 + i at i = 0 < longest]");
}

TEST(EmptyTiles, VariablesInsideCountAsWhatLetsMostStoresHappen) {
  const auto in_rows = [](const std::string& condition) {
    return tests_of("parallel i, j in 64, 64 {\n if " + condition +
                    " {\n  Y[bq * 64 + i, j] = y[i, j]\n }\n}\n");
  };
  EXPECT_EQ(in_rows("longest <= bq * 64 + i"), "[longest <= bq * 64 + i at i = 63]");
  EXPECT_EQ(in_rows("bq - i * 2 < longest + j"), "[bq - i * 2 at i = 63 < longest + j at j = 63]");
  EXPECT_EQ(in_rows("not(longest < bq * 64 - i) and bq < batch"),
            "[bq * 64 - i at i = 63 <= longest; bq < batch]");
  EXPECT_EQ(in_rows("i * i < longest"), "") << "whether that grows with i is not told";
  EXPECT_EQ(in_rows("bq < batch or i < longest"), "") << "one of two is no comparison";
}

TEST(EmptyTiles, OnlyTensorsThatNobodyWritesTell) {
  const auto by = [](const std::string& tensor) {
    return tests_of("if bq * 64 < cast(i64, " + tensor + "[bb + 1]) - cast(i64, " + tensor +
                    "[bb]) {\n"
                    " copy y -> Y[bq * 64 :+ 64, 0 :+ 64]\n}\n");
  };
  EXPECT_EQ(by("ends"), "[bq * 64 < cast(i64, ends[bb + 1]) - cast(i64, ends[bb])]");
  EXPECT_EQ(by("counts"), "");
}

}  // namespace
}  // namespace tilegen::analysis
