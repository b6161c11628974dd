// Stores to views of fewer bits than the tile's elements: what they become, and what is refused.
#include "view_program.h"

namespace tilegen::ir {
namespace {

const ViewProgram kProgram{
    "tl 1 program p\ndim m\ntensor X: u8[m, 64] readonly\ntensor Y: u32[m, 16]\ntensor W: u4[m, 128]\n"
    "kernel main grid (b: m) threads 64 {\n alloc t: shared u32[32, 16]\n alloc h: fragment f16[32, 32]\n"
    " alloc w: shared u4[32, 16]\n",
    "alloc w: shared u8[32, 8]\n"};

void expect_same(const std::string& with, const std::string& without) { kProgram.expect_same(with, without); }
void expect_error(const std::string& body, const std::string& words) { kProgram.expect_error(body, words); }

const std::string kBytes = "view v = reinterpret(t, u8) ", kTensor = "view v = reinterpret(Y, u8) ";
// An element that the values f(0), f(1), f(2) and f(3) are the bytes of.
template <class Value>
std::string joined(const Value& f) {
  std::string text;
  for (int q = 0; q < 4; ++q)
    text += (q ? " | cast(u32, " : "cast(u32, ") + f(std::to_string(q)) + ")" +
            (q ? " << " + std::to_string(8 * q) + "u32" : "");
  return text;
}

TEST(NarrowStores, IterationsBesideEachOtherAreOne) {
  const std::string whole =
      joined([](const std::string& q) { return "X[b + i, j * 4" + (q == "0" ? "" : " + " + q) + "]"; });
  for (const std::string view :
       {kBytes, std::string("view s = reinterpret(t, i8) view v = reinterpret(s, u8) ")})
    expect_same(view + "parallel i, j in 32, 64 { v[i, j] = X[b + i, j] }",
                "parallel i, j in 32, 16 { t[i, j] = " + whole + " }");
  expect_same(kTensor + "parallel i, j in 32, 64 { v[b + i, j] = X[b + i, j] }",
              "parallel i, j in 32, 16 { Y[b + i, j] = " + whole + " }");
  expect_same(kTensor + "copy X[b :+ 32, 0 :+ 64] -> v[b :+ 32, 0 :+ 64]",
              "parallel i, j in 32, 16 { Y[b + i, j] = " + whole + " }");
  // Other stores stay those of all iterations.
  expect_same(
      kBytes + "parallel i, j in 32, 64 { v[i, j] = 0 h[i, j // 2] = 0 }",
      "parallel i, j in 32, 16 { h[i, j * 4 // 2] = 0 h[i, (j * 4 + 1) // 2] = 0 h[i, (j * 4 + 2) // 2] "
      "= 0 h[i, (j * 4 + 3) // 2] = 0 t[i, j] = 0 }");
}

// However an index is written; and under conditions that all parts share, which stand around the element.
TEST(NarrowStores, PlacesAndConditions) {
  expect_same(kTensor + "parallel j, i in 64, 32 { v[i + b, j % 64] = 1 }",
              "parallel j, i in 16, 32 { Y[i + b, j % 16] = 16843009 }");
  expect_same(kTensor + "view flat = reshape(v, [m * 64]) parallel e in 2048 { flat[b * 64 + e] = 1 }",
              "parallel e in 512 { Y[(b * 16 + e) // 16, (b * 16 + e) % 16] = 16843009 }");
  const auto ones = [](const std::string& condition) {
    std::string text;
    for (int q = 0; q < 4; ++q)
      text += (q ? " | select(" : "select(") + condition + ", " + std::to_string(1 << 8 * q) + "u32, 0u32)";
    return text;
  };
  expect_same(kTensor + "parallel i, j in 32, 64 { let row = b + i if row < m { v[row, j] = 1 } }",
              "parallel i, j in 32, 16 { if b + i < m { Y[b + i, j] = " + ones("b + i < m") + " } }");
  expect_same(kTensor + "parallel i, j in 32, 64 { if i > 3 { } else { v[b + i, j] = 1 } }",
              "parallel i, j in 32, 16 { if 3 < i { } else { Y[b + i, j] = select(3 < i, 0u32, 1u32) | "
              "select(3 < i, 0u32, "
              "256u32) | select(3 < i, 0u32, 65536u32) | select(3 < i, 0u32, 16777216u32) } }");
}

TEST(NarrowStores, ALoopOfAnIterationCountsParts) {
  expect_same(kTensor + "parallel i, j in 32, 8 { unroll q in 0 .. 4 { v[b + i, 8 * j + q] = X[b, q] } }",
              "parallel i, j in 32, 8 { Y[b + i, j * 2] = " + joined([](const std::string& q) {
                return "X[b, " + q + "]";
              }) + " }");
  // A name of the index is what it stands for.
  expect_same(
      kTensor + "parallel i, j in 32, 8 { let at = 8 * j unroll q in 0 .. 4 { v[b + i, at + q] = X[b, q] } }",
      "parallel i, j in 32, 8 { Y[b + i, j * 2] = " + joined([](const std::string& q) {
        return "X[b, " + q + "]";
      }) + " }");
}

// Of tiles the other parts of the element are stored again, as they were.
TEST(NarrowStores, PartsOfTiles) {
  const std::string clear = "fill t, 0 ", zero = "fill h, 0 ";
  expect_same(
      clear + kBytes + "parallel i, j in 32, 16 { v[i, 4 * j + 1] = X[b, j] }",
      clear + "parallel i, j in 32, 16 { t[i, j] = t[i, j] & 4294902015u32 | cast(u32, X[b, j]) << 8u32 }");
  expect_same(
      zero +
          "view c = reinterpret(h, u8) view turned = transpose(c) "
          "parallel i, j in 32, 64 { if j > 2 { turned[j, i] = X[b, i] } }",
      zero +
          "parallel i, j in 32, 32 { "
          "if 2 < j * 2 { h[i, j] = bitcast(f16, bitcast(u16, h[i, j]) & 65280u16 | cast(u16, X[b, i])) } "
          "if 2 < j * 2 + 1 { h[i, j] = bitcast(f16, bitcast(u16, h[i, j]) & 255u16 | cast(u16, X[b, i]) << "
          "8u16) } }");
  expect_same(
      clear + kBytes + "serial k in 0 .. 8 { parallel i in 32 { v[i, k + 3] = 2 } }",
      clear +
          "serial k in 0 .. 8 { parallel i in 32 { t[i, (k + 3) // 4] = t[i, (k + 3) // 4] & (255u32 << "
          "cast(u32, (k + 3) % 4 * 8) ^ 4294967295u32) | 2u32 << cast(u32, (k + 3) % 4 * 8) } }");
}

// Packed elements of words, words of packed elements, and quarters of bytes of these.
TEST(NarrowStores, PackedTypes) {
  const auto expect_body = [](const std::string& body, const std::string& stores) {
    const std::string text = kProgram.made(body);
    EXPECT_NE(text.find(" {\n" + stores + "  }\n}\n"), std::string::npos) << body << "\n" << text;
  };
  expect_body("view u = reinterpret(w, u16) parallel i, j in 32, 4 { u[i, j] = 517 }",
              "    w[i, j * 2] = 5u8\n    w[i, j * 2 + 1] = 2u8\n");
  expect_body("view u = reinterpret(t, u4) parallel i, j in 32, 128 { u[i, j] = cast(u4, 3) }",
              "    t[i, j] = 858993459u32\n");
  expect_body("view u = reinterpret(w, u2) parallel i, j in 32, 32 { u[i, j] = cast(u2, 3) }",
              "    w[i, j] = 255u8\n");
  expect_body("parallel i, j in 32, 16 { unroll q in 0 .. 2 { W[b + i, 2 * j + q] = cast(u4, q + 1) } }",
              "    W[b + i, j] = 33u8\n");
}

TEST(NarrowStores, WhatOthersMayWriteAroundIsRefused) {
  const std::string parts = "elements of 'Y' of u32 are written in parts, as the view 'v' of u8";
  expect_error(kTensor + "parallel i, j in 32, 16 { v[b + i, 4 * j] = 1 }", parts);
  expect_error(kTensor + "parallel i, j in 32, 64 { if j < 33 { v[b + i, j] = 1 } }", parts);
  expect_error(kTensor + "parallel i, j in 32, 16 { v[b + i, 2 * b + j] = 1 }", parts);
  expect_error(kTensor + "parallel i, j in 32, 16 { unroll q in 0 .. 2 { v[b + i, 4 * j + q] = 1 } }", parts);
  expect_error(kTensor + "v[b, 0] = 1", parts);
  const std::string tile = "elements of 't' of u32 are written in parts, as the view 'v' of u8";
  expect_error(kBytes + "parallel i, j in 32, 62 { v[i, j] = 1 }", tile);
  expect_error(kBytes + "parallel i, j in 32, 64 { v[i, j ^ 1] = 1 }", tile);
  expect_error(kBytes + "parallel i, j in 16, 16 { v[i, j + i] = 1 }", tile);
  expect_error(kBytes + "threads w_, l in 2, 32 { v[w_, l] = 1 }", tile);
  expect_error(
      "view u = reinterpret(t, u16) " + kBytes + "parallel i, j in 32, 32 { v[i, j] = 1 u[i, j] = 1 }",
      "elements of 't' of u32 are written in parts, as the view 'u' of u16");
}

}  // namespace
}  // namespace tilegen::ir
