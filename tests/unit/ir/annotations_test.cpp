// Labels and annotations: what programs with them print as, what their statements are called, what is
// refused.
#include "ir/annotations.h"

#include <gtest/gtest.h>

#include "ir/statement_paths.h"
#include "ir/text.h"
#include "ir/tile_op.h"

namespace tilegen::ir {
namespace {

std::string program(const std::string& body, const std::string& head = "", const std::string& tiles = "") {
  return "tl 1 program p\nparam PAD = 8 in {8, 16}\ndim n\ntensor X: f16[n, 64]\ntensor Y: f16[n, "
         "64]\nkernel main grid "
         "(b: ceildiv(n, 32)) " +
         head + "{\nalloc a: shared f16[32, 64] " + tiles + " alloc c: fragment f32[32, 32]\n" + body +
         "\n}\n";
}

Expected<Program> read(const std::string& text) { return parse_program(text, "t.tl", Limits()); }

// What is wrong with it, the first.
std::string wrong(const std::string& text) {
  const auto p = read(text);
  return p ? "nothing: " + print_program(*p) : p.error().diagnostics[0].to_text();
}
void expect_wrong(const std::string& text, const std::string& words) {
  EXPECT_NE(wrong(text).find(words), std::string::npos) << text << "\n" << wrong(text);
}
// Printed, it has the line; printed and read again it prints the same.
void expect_line(const std::string& text, const std::string& line) {
  const auto p = read(text);
  ASSERT_TRUE(p) << p.error().to_text();
  const std::string printed = print_program(*p);
  EXPECT_NE(printed.find(line + "\n"), std::string::npos) << printed;
  const auto again = read(printed);
  ASSERT_TRUE(again) << again.error().to_text() << printed;
  EXPECT_EQ(print_program(*again), printed);
  EXPECT_EQ(program_hash(*again), program_hash(*p));
}

const std::string kCopy = "copy X[b * 32 :+ 32, 0 :+ 64] -> a";

TEST(Annotations, OfOperations) {
  expect_line(program("label load: " + kCopy + " {vector = PAD // 2, engine = async_copy}"),
              "  label load: copy X[b * 32 :+ 32, 0 :+ 64] -> a {vector=4, engine=async_copy}");
  expect_line(
      program("fill c, 0 gemm a, a -> c {unmasked_version = false, transpose_b, warps = [2, 1], atom = "
              "\"mma.x\"}"),
      "  gemm a, a -> c {transpose_b, unmasked_version=false, warps=[2, 1], atom=\"mma.x\"}");
  expect_line(program("fill a, 0 {transposing}"), "  fill a, 0.0f16 {transposing}");
}

TEST(Annotations, OfLoopsKernelsAndTiles) {
  expect_line(program("pipelined k in 0 .. 4 stages 2 with {ping_pong = false, order = [x, y], stage = [0, "
                      "1]} { label x: " +
                      kCopy + " label y: copy a -> Y[b * 32 :+ 32, 0 :+ 64] }"),
              "  pipelined k in 0 .. 4 stages 2 with {ping_pong=false, order=[x, y], stage=[0, 1]} {");
  expect_line(program("parallel i, j in 32, 64 with {vector = 8} { Y[b * 32 + i, j] = 0 }"),
              "  parallel i, j in 32, 64 with {vector=8} {");
  expect_line(program("fill a, 0", "threads 128 with {raster = grouped, group = PAD, persistence = none} "),
              "kernel main grid (b: (n + 31) // 32) threads 128 with {raster=grouped, group=8, "
              "persistence=none} {");
  expect_line(program("fill a, 0", "", "{padding = PAD}"), "  alloc a: shared f16[32, 64] {padding=8}");
  expect_line(program("fill a, 0", "", "{slots = 2, layout = (i, n) -> i * (64 + PAD) + n}"),
              "  alloc a: shared f16[32, 64] {slots=2, layout=(i, n) -> i * 72 + n}");
  expect_line(program("fill a, 0", "", "{layout=\"(32,64) -> [0: d0/1%32*64 + d1/1%64*1]\"}"),
              "  alloc a: shared f16[32, 64] {layout=\"(32,64) -> [0: d0/1%32*64 + d1/1%64*1]\"}");
}

std::vector<std::string> paths(const std::string& body, bool labels = true) {
  const auto p = read(program(body));
  if (!p) return {p.error().to_text()};
  return labels ? statement_paths(*p) : paths_without_labels(*p);
}

TEST(Annotations, PathsOfLabels) {
  const std::string body =
      "fill a, 0 label zero: fill a, 0 fill a, 0 label main: serial k in 0 .. 2 { fill a, 0 label "
      "deep: if k > 0 { fill a, 0 } else { fill a, 0 } } serial main in 0 .. 2 { fill a, 0 }";
  EXPECT_EQ(paths(body),
            (std::vector<std::string>{"main/fill#0", "main/zero", "main/fill#2", "main/main",
                                      "main/main/fill#0", "main/deep", "main/deep/fill#0",
                                      "main/deep.else/fill#0", "main/main#1", "main/main#1/fill#0"}));
  EXPECT_EQ(paths(body, false)[1], "main/fill#1");
  EXPECT_EQ(paths(body, false)[7], "main/k/if#0.else/fill#0");
}

// Names of values, views and jumps leave nothing of themselves; what they stand beside keeps its label.
TEST(Annotations, StayWhereNamesAreResolved) {
  expect_line(program("let z = 1 label x: fill a[z :+ 2, 0 :+ 64], 0 {unroll = 2}"),
              "  label x: fill a[1 :+ 2, 0 :+ 64], 0.0f16 {unroll=2}");
  expect_line(program("view v = reshape(a, [64, 32]) label x: fill v, 0 {unroll = 2}"),
              "  label x: fill a, 0.0f16 {unroll=2}");
  expect_line(program("label go: serial k in 0 .. 4 step 2 { if k > n { break } label in: fill a, 0 }"),
              "      label in: fill a, 0.0f16");
  expect_line(program("label w: while b > 4 { fill a, 0 break }"),
              "  label w: serial trip in 0 .. 2147483647 while 4 < b and going[0] {");
}

TEST(Annotations, WhatIsRefused) {
  expect_wrong(program("label x: fill a, 0 label x: fill a, 0"),
               "[duplicate_name] main: the kernel has a label 'x' already");
  expect_wrong(program("label x: label y: fill a, 0"), "two labels, 'x' and 'y'");
  expect_wrong(program("label x: let y = 4"), "in front of a statement that has no path");
  expect_wrong(program("label x: }"), "expected a statement");
  expect_wrong(program("label if: fill a, 0"), "is a word of the language");
  expect_wrong(program("parallel i in 4 { label x: Y[i, 0] = 0 }"), "stands inside a parallel loop");
  expect_wrong(program("parallel i in 4 { serial k in 0 .. 2 with {split = 2} { Y[i, k] = 0 } }"),
               "annotations stand inside a parallel loop");
  expect_wrong(program("fill a, 0 {vektor = 8}"), "fill has no attribute 'vektor' (did you mean 'vector'");
  expect_wrong(program("fill a, 0", "", "{swizle = 128}"),
               "a tile has no annotation 'swizle' (did you mean 'swizzle'");
  expect_wrong(program("fill a, 0", "with {stages = 2} "), "a kernel has no annotation 'stages'");
  expect_wrong(program("serial k in 0 .. 2 with {vector = 2} { fill a, 0 }"),
               "a serial loop has no annotation 'vector'");
  expect_wrong(program("fill a, 0 {vector = 0}"), "vector is 0, expected 1 to 2147483648");
  expect_wrong(program("fill a, 0 {vector = 1 - 2}"), "vector is -1, expected 1");
  expect_wrong(program("fill a, 0 {vector}"), "expected '='");
  expect_wrong(program("fill a, 0 {vector = 8, vector = 8}"), "the annotation 'vector' is given twice");
  expect_wrong(program("fill a, 0 {engine = tma}"), "engine has no value 'tma'");
  expect_wrong(program("fill a, 0 {transposing = 1}"), "expected the value of transposing");
  expect_wrong(program("fill a, 0 {warps = 2}"), "expected '['");
  expect_wrong(program("fill a, 0", "", "{layout=4}"), "write a function of the indices");
  expect_wrong(program("fill a, 0", "", "{layout=\"row_major\"}"), "expected the text of a layout");
  expect_wrong(program("fill a, 0", "", "{layout=(i, i) -> i}"), "two indices of the layout are called 'i'");
  expect_wrong(program("fill a, 0", "", "{layout=(i, j) -> i * n + j}"), "a layout's function names 'n'");
  expect_wrong(program("fill a, 0", "", "{layout=(i, j) -> cast(i64, X[i, j])}"), "names memory");
  expect_wrong(program("fill a, 0", "", "{layout=(i, j) -> i < j}"), "a layout's function gives bool");
}

// Errors behind one are found, and a name that only annotations give a meaning is free.
TEST(Annotations, ReadOnBehindErrors) {
  const auto p = read(program("fill a, 0 {vektor = [1, 2], engine = x}\nfill b, 0", "", "{padding = }"));
  ASSERT_FALSE(p);
  EXPECT_GE(p.error().diagnostics.size(), 3u) << p.error().to_text();
  expect_line(program("serial label in 0 .. 4 { fill a[label :+ 2, 0 :+ 64], 0 }"),
              "  serial label in 0 .. 4 {");
  expect_line(program("serial vector in 0 .. 4 { fill a[vector :+ 2, 0 :+ 64], 0 }"),
              "  serial vector in 0 .. 4 {");
}

// An operation's attributes and its annotations stand in one list.
TEST(Annotations, KeysAreNoAttributes) {
  for (const OpRow& op : op_rows())
    for (const AttrRow& attr : op.attrs)
      EXPECT_EQ(annotation_row(AnnotationPlace::op, attr.name), nullptr) << op.text << " " << attr.name;
}

TEST(Annotations, IndexFunctions) {
  const int64_t shape[] = {2, 3};
  const auto values = index_function_values("(i, j) -> i * 4 + (j ^ i)", shape, Limits());
  ASSERT_TRUE(values);
  EXPECT_EQ(*values, (std::vector<int64_t>{0, 1, 2, 5, 4, 7}));
  const auto few = index_function_values("(i) -> i", shape, Limits());
  ASSERT_FALSE(few);
  EXPECT_NE(few.error().to_text().find("a function of 1 indices, and the tile has 2 dimensions"),
            std::string::npos);
}

}  // namespace
}  // namespace tilegen::ir
