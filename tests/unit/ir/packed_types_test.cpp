// Programs with packed types are programs of bytes: what they become, and what is refused.
#include "ir/packed_types.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace tilegen::ir {
namespace {

std::string made(const std::string& text) {
  const auto p = parse_program(text, "t.tl", Limits());
  if (!p) return p.error().diagnostics[0].to_text();
  return print_program(*p);
}

std::string program(const std::string& declared, const std::string& body) {
  return "tl 1 program p\ndim n\ndim k divisible 64\n" + declared + "\nkernel main grid(b: n) {\n" + body +
         "\n}\n";
}
const std::string kDeclared =
    "tensor W: u4[n, k] tensor X: f16[n, k] tensor S: i2[n, k] strides [k * 2, 1] tensor E: e8m0[n, 3] "
    "workspace";
const std::string kBytes =
    "tensor W: u8[n, k // 2] of u4 tensor X: f16[n, k] tensor S: u8[n, k // 4] strides [k // 2, 1] of i2 "
    "tensor E: u8[n, 3] workspace";
const std::string kTiles =
    "alloc w: shared u4[8, 64] alloc f: fragment u4[8, 64] alloc h: fragment f16[8, 64] ";
const std::string kTilesOfBytes =
    "alloc w: shared u8[8, 32] alloc f: fragment u8[8, 64] alloc h: fragment f16[8, 64] ";

void expect_same(const std::string& with, const std::string& without) {
  const std::string got = made(program(kDeclared, kTiles + with));
  EXPECT_EQ(got, made(program(kBytes, kTilesOfBytes + without))) << with;
  EXPECT_EQ(got.find("error"), std::string::npos) << got;
  EXPECT_EQ(made(got), got) << "printed, it is the same program";
}
void expect_error(const std::string& body, const std::string& words) {
  const std::string got = made(program(kDeclared, kTiles + body));
  EXPECT_NE(got.find(words), std::string::npos) << body << "\n" << got;
}

TEST(PackedTypes, BoxesAreBytes) {
  expect_same("copy W[b :+ 8, 64 :+ 64] -> w", "copy W[b :+ 8, 32 :+ 32] -> w");
  expect_same("serial i in 0 .. k // 64 { copy W[b :+ 8, i * 64 + 2 :+ 32] -> w[0 :+ 8, 32 :+ 32] }",
              "serial i in 0 .. k // 64 { copy W[b :+ 8, i * 32 + 1 :+ 16] -> w[0 :+ 8, 16 :+ 16] }");
  expect_same("copy w -> W[b :+ 8, k - 64 :+ 64]", "copy w -> W[b :+ 8, k // 2 - 32 :+ 32]");
  expect_same("fill w, 3 fill f, 3", "fill w, 51 fill f, 3");
  expect_same("fill f, 1 copy f -> f[0 :+ 8, 0 :+ 64]", "fill f, 1 copy f -> f[0 :+ 8, 0 :+ 64]");
}

TEST(PackedTypes, ElementsAreBitsOfBytes) {
  expect_same("parallel i, j in 8, 64 { h[i, j] = cast(f16, W[i, b * 64 + j]) }",
              "parallel i, j in 8, 64 { h[i, j] = cast(f16, (cast(i32, W[i, b * 32 + j // 2]) >> "
              "cast(i32, j % 2 * 4)) & 15) }");
  expect_same(
      "parallel i, j in 8, 64 { h[i, j] = cast(f16, S[i, 4 * j + 6]) }",
      "parallel i, j in 8, 64 { h[i, j] = cast(f16, ((cast(i32, S[i, j + 1]) >> 4i32 & 3) ^ 2) - 2) }");
  expect_same("fill f, 1 parallel i, j in 8, 64 { h[i, j] = cast(f16, f[i, j]) }",
              "fill f, 1 parallel i, j in 8, 64 { h[i, j] = cast(f16, f[i, j]) }");
}

TEST(PackedTypes, PairsAreWritten) {
  expect_same(
      "parallel i, j in 8, 64 { w[i, j] = cast(u4, cast(i32, i)) }",
      "parallel i, j in 8, 32 { w[i, j] = cast(u8, (cast(i32, i) & 15) | (cast(i32, i) & 15) << 4) }");
  expect_same("parallel i, j in 64, 8 { w[j, i] = cast(u4, cast(i32, i)) X[b, i] = 0 }",
              "parallel i, j in 32, 8 { w[j, i] = cast(u8, (cast(i32, i * 2) & 15) | "
              "(cast(i32, i * 2 + 1) & 15) << 4) X[b, i * 2] = 0 X[b, i * 2 + 1] = 0 }");
  expect_same("parallel i, j in 8, 64 { w[i, 63 - j] = cast(u4, cast(i32, j)) }",
              "parallel i, j in 8, 32 { w[i, 31 - j] = cast(u8, (cast(i32, j * 2 + 1) & 15) | "
              "(cast(i32, j * 2) & 15) << 4) }");
  const auto stored = [](const std::string& body) {
    return made(program(kDeclared, kTiles + "parallel i, j in 8, 64 { " + body + " }"));
  };
  EXPECT_EQ(stored("if cast(f32, h[i, j]) > 1 { W[b, j] = cast(u4, 1) } else { W[b, j] = cast(u4, 2) }"),
            stored("W[b, j] = select(cast(f32, h[i, j]) > 1, cast(u4, 1), cast(u4, 2))"));
  expect_error("w[0, 0] = cast(u4, 1)", "outside of a parallel loop");
}

// Of tiles the other elements of a byte stay.
TEST(PackedTypes, PartsAreWritten) {
  expect_same("fill w, 3 parallel i, j in 8, 32 { w[i, j * 2] = cast(u4, 1) }",
              "fill w, 51 parallel i, j in 8, 32 { w[i, j] = cast(u8, cast(i32, w[i, j]) & -16 | 1) }");
  // What nothing fills is filled first.
  expect_same("parallel i, j in 8, 32 { w[i, j * 2] = cast(u4, 1) }",
              "fill w, 0 parallel i, j in 8, 32 { w[i, j] = cast(u8, cast(i32, w[i, j]) & -16 | 1) }");
  // An iteration for all elements of a byte, one behind the other.
  expect_same("fill w, 0 parallel i, j in 8, 64 { if j < 5 { w[i, j] = cast(u4, 1) } }",
              "fill w, 0 parallel i, j in 8, 32 { "
              "if j * 2 < 5 { w[i, j] = cast(u8, cast(i32, w[i, j]) & -16 | 1) } "
              "if j * 2 + 1 < 5 { w[i, j] = cast(u8, cast(i32, w[i, j]) & -241 | 16) } }");
  // A loop for the first elements of bytes, and one for the second ones.
  expect_same("fill w, 0 parallel i, j in 8, 63 { w[i, j + 1] = cast(u4, 1) }",
              "fill w, 0 parallel i, j in 8, 32 { w[i, j] = cast(u8, cast(i32, w[i, j]) & -241 | 16) } "
              "parallel i, j in 8, 31 { w[i, j + 1] = cast(u8, cast(i32, w[i, j + 1]) & -16 | 1) }");
  // Whose bytes are is not told by data, and what iterations read of each other has one order.
  expect_error("fill w, 0 parallel i, j in 8, 64 { w[i, cast(i64, h[i, j])] = cast(u4, 1) }",
               "a byte is not seen to be of one iteration");
  expect_error("fill w, 0 parallel i, j in 8, 62 { w[i, j + 1] = select(j > 3, w[i, j + 2], cast(u4, 1)) }",
               "a byte is not seen to be of one iteration");
}

// Of tensors the other elements of a byte may be other blocks'.
TEST(PackedTypes, PartsOfTensorsAreWritten) {
  expect_same("parallel i, j in 8, 32 { W[i, j * 2 + 1] = cast(u4, 3) }",
              "parallel i, j in 8, 32 { atomic_and(W[i, j], cast(u8, -241)) } "
              "parallel i, j in 8, 32 { atomic_or(W[i, j], cast(u8, 48)) }");
  // What stands in front of it and behind it in the loop stays there.
  expect_same("parallel i, j in 8, 32 { X[b, j] = 1 if j > 5 { W[i, j * 2] = cast(u4, 3) X[i, j] = 2 } }",
              "parallel i, j in 8, 32 { X[b, j] = 1 } "
              "parallel i, j in 8, 32 { if j > 5 { atomic_and(W[i, j], cast(u8, -16)) } } "
              "parallel i, j in 8, 32 { if j > 5 { atomic_or(W[i, j], cast(u8, 3)) } } "
              "parallel i, j in 8, 32 { if j > 5 { X[i, j] = 2 } }");
  // Two stores to an element: the second one's value.
  expect_same("parallel i in 8 { W[i, 5] = cast(u4, 3) W[i, 5] = cast(u4, 4) }",
              "parallel i in 8 { atomic_and(W[i, 2], cast(u8, -241)) } "
              "parallel i in 8 { atomic_or(W[i, 2], cast(u8, 48)) } "
              "parallel i in 8 { atomic_and(W[i, 2], cast(u8, -241)) } "
              "parallel i in 8 { atomic_or(W[i, 2], cast(u8, 64)) }");
  expect_same("fill w, 3 copy w[0 :+ 8, 1 :+ 1] -> W[b :+ 8, 3 :+ 1]",
              "fill w, 51 parallel i in 8 { atomic_and(W[b + i, 1], cast(u8, -241)) } "
              "parallel i in 8 { atomic_or(W[b + i, 1], cast(u8, (cast(i32, w[i, 0]) >> 4 & 15) << 4)) }");
  expect_error("parallel i, j in 8, 63 { W[i, j] = W[i, j + 1] }", "reads what it writes");
  expect_error("fill w, 0 parallel i, j in 8, 32 { W[i, j * 2] = cast(u4, 1) w[i, j * 2] = cast(u4, 1) }",
               "has other loops or stores in it");
  expect_error("parallel i, j in 8, 32 { if j < 9 { W[i, 5] = cast(u4, 1) } }",
               "iterations (i=0, j=0) and (i=0, j=1) both write the same element of 'W'");
  expect_same("parallel i, j in 8, 32 { if j == 9 { W[i, 4] = cast(u4, 1) } }",
              "parallel i, j in 8, 32 { if j == 9 { atomic_and(W[i, 2], cast(u8, -16)) } } "
              "parallel i, j in 8, 32 { if j == 9 { atomic_or(W[i, 2], cast(u8, 1)) } }");
  EXPECT_NE(made("tl 1 program p\ntensor W: u4[64]\nkernel main grid(b: 1) threads 32 {\n"
                 "  threads t in 32 { W[2 * t] = cast(u4, 1) }\n}\n")
                .find("other threads may write the rest"),
            std::string::npos);
}

TEST(PackedTypes, WhatIsRefused) {
  expect_error("fill w, 0 parallel i in 8 { fill h, 1.0f16 w[i, 3] = cast(u4, 2) }",
               "fill stands inside a parallel loop");
  expect_error("fill w, 16", "does not fit u4");
  expect_error("fill w, cast(u8, 1)", "[dtype_mismatch]");
  expect_error("parallel i, j in 8, 64 { w[i, j] = cast(u8, 1) }", "[dtype_mismatch]");
  expect_error("gemm h, w -> h {transpose_b}", "of which values are kept only");
  expect_error("parallel i, j in 8, 64 { h[i, j] = cast(f16, w[i, j] + w[i, j]) }",
               "takes types that values are computed in, found u4");
  expect_error("parallel i, j in 8, 64 { h[i, j] = cast(f16, w[i, j] & w[i, j]) }", "found u4");
  const auto declared = [](const std::string& text) { return made(program(text, "")); };
  EXPECT_NE(declared("tensor W: u4[k, n]").find("not known to be whole bytes"), std::string::npos);
  EXPECT_NE(declared("tensor W: u4[n, k] strides [k, 2]").find("stride 1 is not known to be 1"),
            std::string::npos);
  EXPECT_NE(declared("tensor W: u4[n, k] strides [n, 1]").find("stride 0 is not known"), std::string::npos);
  EXPECT_NE(declared("scalar s: u4").find("scalar 's' is u4"), std::string::npos);
  EXPECT_NE(declared("tensor W: u16[n, k] of u4").find("hold no u4"), std::string::npos);
  EXPECT_NE(declared("tensor W: u8[n, k] of u16").find("hold no u16"), std::string::npos);
}

}  // namespace
}  // namespace tilegen::ir
