// Random words by counter: the known answers of Random123, and what expressions make of them.
#include "ir/philox.h"

#include <gtest/gtest.h>

#include "ir/expr.h"
#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

using Words = std::array<uint32_t, 4>;

// kat_vectors of Random123 1.14, "philox4x32 10".
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

ScalarValue u64(uint64_t v) { return {DType::u64, static_cast<int64_t>(v), 0}; }

TEST(Philox, WordsOfExpressions) {
  const uint64_t seed = 0x299f31d0a4093822, offset = 0x85a308d3243f6a88, block = 0x0370734413198a2e;
  const Words words = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  ExprPool pool;
  const auto literal = [&](uint64_t v) { return pool.const_int(static_cast<int64_t>(v), DType::u64); };
  for (uint64_t w = 0; w < 4; ++w) {
    const uint64_t lane = 4 * block + w;
    EXPECT_EQ(philox_word(seed, offset, lane), words[w]);
    const ScalarValue v = eval_ternary(ExprOp::philox, DType::u32, u64(seed), u64(offset), u64(lane));
    EXPECT_EQ(v.type, DType::u32);
    EXPECT_EQ(static_cast<uint32_t>(v.i), words[w]);
    const ExprId folded = pool.ternary(ExprOp::philox, literal(seed), literal(offset), literal(lane));
    int64_t number = 0;
    ASSERT_TRUE(pool.is_const_int(folded, &number));
    EXPECT_EQ(static_cast<uint32_t>(number), words[w]);
    EXPECT_EQ(pool.type(folded), DType::u32);
  }
}

TEST(Philox, UniformNumbers) {
  ExprPool pool;
  const auto uniform = [&](uint32_t word) {
    return pool[pool.uniform(pool.const_int(word, DType::u32))].float_value();
  };
  EXPECT_EQ(uniform(0), 0);
  EXPECT_EQ(uniform(0xff), 0);
  EXPECT_EQ(uniform(0x80000000), 0.5);
  EXPECT_EQ(uniform(0xffffffff), 1 - 0x1p-24);
}

std::string said(const std::string& value) {
  const Expected<Program> p = parse_program(
      "tl 1 program t\nscalar s: i32\ntensor Y: f32[8]\ntensor W: u32[8]\n"
      "kernel k grid (b: 1) {\n  parallel i in 8 {\n    " +
          value + "\n  }\n}\n",
      "p.tl", Limits());
  return p ? print_program(*p) : p.error().to_text();
}

TEST(Philox, Text) {
  const std::string made = said("W[i] = philox(s, 7, i)");
  EXPECT_NE(made.find("W[i] = philox(cast(u64, s), 7u64, cast(u64, i))"), std::string::npos) << made;
  const std::string number = said("Y[i] = uniform(philox(1, 2, i))");
  EXPECT_NE(number.find("cast(f32, philox(1u64, 2u64, cast(u64, i)) >> 8u32) * "), std::string::npos)
      << number;
  EXPECT_NE(said("W[i] = philox(1.5f32, 2, i)").find("takes integers, found f32"), std::string::npos);
  EXPECT_NE(said("Y[i] = uniform(i)").find("uniform takes u32, found i64"), std::string::npos);
  EXPECT_NE(said("W[i] = philox(1, 2)").find("takes 3 arguments, found 2"), std::string::npos);
}

}  // namespace
}  // namespace tilegen::ir
