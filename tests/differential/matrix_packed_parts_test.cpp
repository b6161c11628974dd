// Elements of packed types that are written alone: the others of their bytes stay as they are.
#include "matrix.h"

namespace tilegen::differential {
namespace {

// $e elements of type $t in a byte; x has a number for each element of the tile w.
std::string program(const std::string& type, const std::string& body, const std::string& tile = "8, 64",
                    const std::string& at = "i, j") {
  const std::string in_byte = type == "u2" || type == "i2" ? "4" : "2";
  return replaced(
      "tl 1 program p\ndim m\ntensor X: f32[m, 64] readonly\ntensor W: u8[m, 64]\n"
      "kernel k grid (g: ceildiv(m, 8)) threads 64 {\n  alloc w: shared $t[" +
          tile + "]\n" + body + "  parallel i, j in 8, 64 { W[g * 8 + i, j] = bitcast(u8, cast(i8, w[" + at +
          "])) }\n}\n",
      {{"t", type}, {"e", in_byte}, {"x", "cast(" + type + ", X[g * 8 + i, j])"}});
}

void expect_parts(const std::string& body, const std::string& tile = "8, 64",
                  const std::string& at = "i, j") {
  for (const std::string type : {"u4", "i2", "i4", "u2"}) {
    std::vector<Launch> all;
    for (const int64_t m : {8, 21}) {
      Launch l = seeds({all.size() + 1}).front();
      l.dims = {{"m", m}};
      l.magnitude = 9;
      all.push_back(std::move(l));
    }
    const std::string text = program(type, body, tile, at);
    expect_agree(text, all);
    if (take_case) continue;
    Subject subject(text, {"sim:gfx942"});
    ASSERT_EQ(subject.invalid(), "") << text;
    for (const Launch& l : all) expect_agree(subject, text, l);
  }
}

TEST(PackedParts, UnderIfs) {
  expect_parts("  fill w, 1\n  parallel i, j in 8, 64 { if X[g * 8 + i, j] > 1 { w[i, j] = $x } }\n");
  expect_parts("  fill w, 1\n  parallel i, j in 8, 64 { if j <= i * 8 { w[i, j] = $x } }\n");
  expect_parts("  parallel i, j in 8, 64 { if j % 3 == 0 { w[i, j] = $x } else { w[i, j] = 1 } }\n");
}

TEST(PackedParts, ColumnsAndLoops) {
  expect_parts("  serial j in 0 .. 64 { parallel i in 8 { w[i, j] = $x } }\n");
  expect_parts("  fill w, 1\n  parallel i in 8 { let j = 5 w[i, j] = $x }\n");
  expect_parts(
      "  parallel i in 8 { serial j in 0 .. 64 { if j < m { w[i, j] = $x } else { w[i, j] = 0 } } }\n");
  expect_parts("  serial i in 0 .. 8 { serial j in 0 .. 64 { parallel o in 1 { w[i, j] = $x } } }\n");
}

TEST(PackedParts, OneBehindTheOther) {
  expect_parts(
      "  unroll q in 0 .. $e { parallel i, c in 8, 64 // $e { let j = c * $e + q w[i, j] = $x } }\n");
  expect_parts("  fill w, 1\n  parallel i, c in 8, 59 { let j = c + 3 w[i, j] = $x }\n");
  expect_parts("  parallel i, c in 8, 64 { let j = 63 - c w[i, j] = $x }\n");
}

TEST(PackedParts, BoxesAtOddElements) {
  expect_parts(
      "  alloc v: shared $t[8, 64]\n  parallel i, j in 8, 64 { v[i, j] = $x }\n  fill w, 1\n"
      "  copy v[0 :+ 8, 1 :+ 7] -> w[0 :+ 8, 3 :+ 7]\n  fill w[2 :+ 3, 9 :+ 5], 0\n");
}

TEST(PackedParts, OfThreads) {
  expect_parts(
      "  threads t in 64 { serial c in 0 .. 8 { let i = t // 8 let j = t % 8 * 8 + c w[t, c] = $x } }\n",
      "64, 8", "i * 8 + j // 8, j % 8");
  expect_parts(
      "  fill w, 1\n  threads t in 64 { serial c in 0 .. 8 {\n    let i = t // 8 let j = t % 8 * 8 + c\n"
      "    if X[g * 8 + i, c] > 2 { w[i, j] = $x } } }\n");
}

// A thread puts its row in order, neighbour by neighbour.
TEST(PackedParts, NeighboursOfARow) {
  expect_parts(
      "  threads t in 64 {\n    serial c in 0 .. 8 { let i = t // 8 let j = t % 8 * 8 + c w[t, c] = $x }\n"
      "    serial c in 0 .. 7 {\n      if cast(i32, w[t, c]) > cast(i32, w[t, c + 1]) {\n"
      "        let a = w[t, c]\n        w[t, c] = w[t, c + 1]\n        w[t, c + 1] = a\n      }\n    }\n  "
      "}\n",
      "64, 8", "i * 8 + j // 8, j % 8");
}

// The same of tensors, of whose bytes other blocks and threads write other elements. Those of a block begin
// and end within bytes.
void expect_tensor_parts(const std::string& body) {
  for (const std::string type : {"u4", "i2", "i4", "u2"}) {
    std::vector<Launch> all;
    for (const int64_t n : {1, 3}) {
      Launch l = seeds({all.size() + 1}).front();
      l.dims = {{"n", n}};
      l.magnitude = 9;
      all.push_back(std::move(l));
    }
    const std::string text = replaced(
        "tl 1 program p\ndim n\ntensor X: f32[n, 3, 24] readonly\ntensor Q: $t[3, n * 24]\n"
        "tensor Y: f32[n, 3]\ntensor R: $t[n, 3, 24]\nkernel k grid (g: n) threads 64 {\n" +
            body + "}\n",
        {{"t", type}, {"x", "cast(" + type + ", X[g, i, j])"}});
    expect_agree(text, all);
    if (take_case) continue;
    Subject subject(text, {"sim:gfx942"});
    ASSERT_EQ(subject.invalid(), "") << text;
    for (const Launch& l : all) expect_agree(subject, text, l);
  }
}

TEST(PackedParts, OfTensorsBytesOfSeveralBlocks) {
  expect_tensor_parts("  parallel i, j in 3, 21 { Q[i, g * 21 + j] = $x }\n");
  expect_tensor_parts("  parallel i in 3 { Q[i, g] = cast($t, X[g, i, 0]) }\n");
  expect_tensor_parts("  serial j in 0 .. 21 { parallel i in 3 { Q[i, g * 21 + j] = $x } }\n");
}

TEST(PackedParts, OfTensorsUnderIfs) {
  expect_tensor_parts("  parallel i, j in 3, 24 { if X[g, i, j] > 1 { Q[i, g * 24 + j] = $x } }\n");
  expect_tensor_parts(
      "  parallel i, j in 3, 24 {\n    if j % 5 == 0 { R[g, i, j] = $x if j == 10 { Y[g, i] = 1 } } "
      "else { if j > 3 { R[g, i, j] = 1 } }\n  }\n");
}

// What one store leaves the next one changes; behind the last row nothing is written.
TEST(PackedParts, OfTensorsOneBehindTheOther) {
  expect_tensor_parts(
      "  parallel i, j in 3, 21 { Q[i, g * 21 + j] = $x\n    if j > 7 { Q[i, g * 21 + j] = 1 } }\n");
  expect_tensor_parts("  parallel i, j in 3, 21 { Q[i, g * 21 + j + n * 12 + 1] = $x }\n");
}

TEST(PackedParts, OfTensorsBoxesAtOddElements) {
  expect_tensor_parts(
      "  alloc v: shared $t[3, 24]\n  parallel i, j in 3, 24 { v[i, j] = $x }\n"
      "  copy v[0 :+ 3, 1 :+ 7] -> Q[0 :+ 3, g * 7 + 2 :+ 7]\n  fill R[g, 1 :+ 2, 9 :+ 5], 0\n"
      "  copy v[0 :+ 3, 2 :+ 3] -> R[g, 0 :+ 3, 19 :+ 3]\n");
}

}  // namespace
}  // namespace tilegen::differential
