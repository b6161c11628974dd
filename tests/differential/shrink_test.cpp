// The shrinker on failures made up for it.
#include "shrink.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/op_kinds.h"
#include "ir/text.h"
#include "random_program.h"

namespace tilegen::differential {
namespace {

ir::Program parsed(const std::string& text) {
  return std::move(*ir::parse_program(text, "case.tl", Limits()));
}

int64_t statements_of(const Case& c) {
  int64_t n = 0;
  const ir::Program p = parsed(c.text);
  for (const ir::Kernel& k : p.kernels) ir::for_each_statement(p, k.body, [&](ir::StmtId, int) { ++n; });
  return n;
}

bool has_wide_sum(const Case& c) {
  const ir::Program p = parsed(c.text);
  for (const ir::Kernel& k : p.kernels) {
    bool found = false;
    ir::for_each_statement(p, k.body, [&](ir::StmtId id, int) {
      const auto* op = p.as<ir::TileOp>(id);
      found |= op && op->kind == ir::OpKind::reduce && op->operands[0].extents[0] >= 5;
    });
    if (found) return true;
  }
  return false;
}

TEST(Shrink, FindsTheOneStatementThatMatters) {
  int tried = 0;
  for (uint64_t seed = 1; tried < 4; ++seed) {
    ASSERT_LT(seed, 300u) << "the generator makes hardly any reductions";
    const Case c = random_case(seed);
    if (!Subject(c.text).invalid().empty() || !has_wide_sum(c)) continue;
    // A product's sources are written, each by its own statements.
    if (c.text.find("gemm") != c.text.npos) continue;
    ++tried;
    const Case small = shrink(c, has_wide_sum, 4000);
    EXPECT_TRUE(has_wide_sum(small)) << small.text;
    EXPECT_TRUE(Subject(small.text).invalid().empty()) << Subject(small.text).invalid();
    // What writes the source, perhaps a loop with its store and a copy from another type; the reduction.
    EXPECT_LE(statements_of(small), 5) << small.text;
    EXPECT_LE(std::count(small.text.begin(), small.text.end(), '\n'), 14) << small.text;
  }
}

TEST(Shrink, LowersExtentsTripsAndDims) {
  const Case c = {R"(tl 1 program p
dim n divisible 4
dim unused
scalar s: f32
tensor X: f32[n, 40] readonly
tensor Y: f32[n, 40]
kernel first grid (b: ceildiv(n, 16)) threads 128 {
  alloc t: shared f32[16, 40]
  alloc u: fragment f32[16]
  copy X[b * 16 :+ 16, 0 :+ 40] -> t
  serial k in 0 .. 7 {
    if k < n {
      parallel i, j in 16, 40 {
        t[i, j] = max(t[i, j] * s + 1.0f32, exp(s) - 2.0f32)
      }
    }
  }
  reduce t -> u {axis=1}
  copy t -> Y[b * 16 :+ 16, 0 :+ 40]
}
kernel second grid (b: 1) {
  Y[0, 0] = 1.0f32
}
)",
                  {{{"n", 64}, {"unused", 9}}}};
  // "Fails" while some exp stands in a program launched with n >= 6.
  const auto fails = [](const Case& x) {
    return x.text.find("exp(") != std::string::npos && x.launch.dims.at("n") >= 6;
  };
  const Case small = shrink(c, fails);
  EXPECT_EQ(small.launch.dims.at("n"), 6);
  EXPECT_EQ(small.text.find("unused"), std::string::npos);
  EXPECT_EQ(small.text.find("second"), std::string::npos);
  EXPECT_EQ(small.text.find("serial"), std::string::npos);
  EXPECT_EQ(small.text.find("if "), std::string::npos);
  EXPECT_EQ(small.text.find("40"), std::string::npos);
  EXPECT_LE(small.text.size(), 220u) << small.text;
}

TEST(Shrink, KeepsWhatCannotBeSmaller) {
  const Case c = {"tl 1 program p\ntensor Y: i32[0]\n\nkernel k grid (b: 0) {\n  Y[0] = 0i32\n}\n", {}};
  EXPECT_EQ(shrink(c, [](const Case& x) { return x.text.find("Y[0]") != std::string::npos; }).text, c.text);
}

}  // namespace
}  // namespace tilegen::differential
