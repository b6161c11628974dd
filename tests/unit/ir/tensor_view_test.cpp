// Programs with views of tensors are programs of their tensors: what they become, and what is refused.
#include "view_program.h"

namespace tilegen::ir {
namespace {

const ViewProgram kProgram = {
    "tl 1 program p\ndim m\ndim h\ndim s\ndim k divisible 64\n"
    "tensor X: f16[m, h * 64]\ntensor C: f16[m, 256]\ntensor B: f32[4, s, 32]\ntensor K: f16[k]\n"
    "tensor D: f32[h, k, 32] readonly\n"
    "tensor T: f16[32, m] readonly\ntensor I: i64[4] readonly\n"
    "kernel main grid(r: ceildiv(m, 32), g: h) {\n"
    "alloc a: shared f16[32, 64] alloc b: fragment f32[16, 32] alloc w: shared f16[32, 32]\n",
    "alloc w: shared f16[32, 32]\n"};

void expect_same(const std::string& with, const std::string& without) { kProgram.expect_same(with, without); }
void expect_error(const std::string& body, const std::string& words) { kProgram.expect_error(body, words); }

// A box of the view that is one of the tensor stays one, whatever engine moves it.
TEST(TensorView, BoxesOfHeads) {
  const std::string v = "view v = reshape(X, [m, h, 64]) ";
  expect_same(v + "copy v[r * 32 :+ 32, g :+ 1, 0 :+ 64] -> a", "copy X[r * 32 :+ 32, g * 64 :+ 64] -> a");
  expect_same(v + "copy a -> v[r * 32 :+ 32, g :+ 1, 0 :+ 64]", "copy a -> X[r * 32 :+ 32, g * 64 :+ 64]");
  // Of constant extents, by the range of a loop.
  expect_same(
      "view v = reshape(C, [m, 4, 64]) serial q in 0 .. 4 { copy v[r * 32 :+ 32, q :+ 1, 0 :+ 64] -> a }",
      "serial q in 0 .. 4 { copy C[r * 32 :+ 32, q * 64 :+ 64] -> a }");
  expect_same(
      "view v = reshape(C, [m, 4, 64]) serial q in 0 .. 8 { copy v[r * 32 :+ 32, q // 2 :+ 1, 0 :+ 64] "
      "-> a }",
      "serial q in 0 .. 8 { copy C[r * 32 :+ 32, q // 2 * 64 :+ 64] -> a }");
  expect_same("view v = reshape(K, [k // 64, 64]) copy v[r * 32 :+ 32, 0 :+ 64] -> a",
              "copy K[r * 32 * 64 :+ 2048] -> a");
  expect_same("view v = reshape(K, [k // 64, 64]) copy v[g :+ 1, 0 :+ 64] -> a[0 :+ 1, 0 :+ 64]",
              "copy K[g * 64 :+ 64] -> a[0 :+ 1, 0 :+ 64]");
}

// A head that there may not be is beyond the tensor, not the next row's.
TEST(TensorView, BeyondTheView) {
  expect_same("view v = reshape(C, [m, 4, 64]) copy v[r * 32 :+ 32, g :+ 1, 0 :+ 64] -> a",
              "copy C[r * 32 :+ 32, g * 64 :+ 64] -> a");
  expect_same("view v = reshape(C, [m, 2, 2, 64]) copy v[r * 32 :+ 32, 1 :+ 1, g :+ 1, 0 :+ 64] -> a",
              "parallel i, j in 32, 64 { a[i, j] = C[r * 32 + i, select(g < 2, 128 + g * 64 + j, -1)] }");
  expect_same("view v = reshape(C, [m, 4, 64]) parallel i, j in 32, 64 { a[i, j] = v[r, 3, i - 1] }",
              "parallel i, j in 32, 64 { a[i, j] = C[r, select(0 <= i - 1, 3 * 64 + (i - 1), -1)] }");
  expect_same("view v = C[0 :+ m, 64 :+ 64] copy v[r * 32 :+ 32, 0 :+ 64] -> a",
              "copy C[r * 32 :+ 32, 64 :+ 64] -> a");
  expect_same("view v = C[8 :+ m - 8, 0 :+ 256] copy v[r * 32 :+ 32, 0 :+ 64] -> a",
              "copy C[r * 32 + 8 :+ 32, 0 :+ 64] -> a");
  expect_same("view v = C[8 :+ h, 0 :+ 256] copy v[r * 32 :+ 32, 0 :+ 64] -> a",
              "parallel i, j in 32, 64 { a[i, j] = C[select(r * 32 + i < h, r * 32 + i + 8, -1), j] }");
  expect_same("view v = C[8 :+ h, 0 :+ 256] copy v[g :+ 1, 0 :+ 64] -> a[0 :+ 1, 0 :+ 64]",
              "copy C[g + 8 :+ 1, 0 :+ 64] -> a[0 :+ 1, 0 :+ 64]");
}

TEST(TensorView, RowsOfBatches) {
  expect_same("view v = reshape(B, [4 * s, 32]) copy v[r * 16 :+ 16, 0 :+ 32] -> b",
              "parallel i, j in 16, 32 { b[i, j] = B[(r * 16 + i) // s, (r * 16 + i) % s, j] }");
  // An index that says which part of the batch it is in.
  expect_same("view v = reshape(B, [4 * s, 32]) serial t in 0 .. 4 { parallel i in 32 { v[t * s, i] = 0 } }",
              "serial t in 0 .. 4 { parallel i in 32 { B[(t * s) // s, (t * s) % s, i] = 0 } }");
  expect_same(
      "view v = reshape(D, [h * k, 32]) serial t in 0 .. k // 64 { "
      "copy v[g * k + t * 64 :+ 16, 0 :+ 32] -> b }",
      "serial t in 0 .. k // 64 { copy D[g :+ 1, t * 64 :+ 16, 0 :+ 32] -> b }");
  expect_same("view v = reshape(B, [4, s, 4, 8]) parallel i, j in 16, 32 { v[0, i, j // 8, j % 8] = 0 }",
              "parallel i, j in 16, 32 { B[0, i, j // 8 * 8 + j % 8] = 0 }");
}

TEST(TensorView, TransposedAndOfOtherTypes) {
  expect_same("view t = transpose(T) copy t[r * 32 :+ 32, 0 :+ 32] -> w",
              "parallel i, j in 32, 32 { w[i, j] = T[j, r * 32 + i] }");
  expect_same("view t = transpose(X) fill a, 0 parallel i, j in 64, 32 { t[i, r * 32 + j] = a[j, i] }",
              "fill a, 0 parallel i, j in 64, 32 { X[r * 32 + j, i] = a[j, i] }");
  expect_same("view u = reinterpret(X, u16) parallel i, j in 32, 64 { u[i, j] = u[i, j] ^ 1 }",
              "parallel i, j in 32, 64 { X[i, j] = bitcast(f16, bitcast(u16, X[i, j]) ^ 1) }");
}

TEST(TensorView, OffsetsOfNames) {
  expect_same(
      "let o = I[0] let n = I[1] view v = X[o :+ n, 0 :+ 64] copy v[0 :+ 32, 0 :+ 64] -> a",
      "let o = I[0] let n = I[1] parallel i, j in 32, 64 { a[i, j] = X[select(i < n, i + o, -1), j] }");
}

TEST(TensorView, Refused) {
  expect_error("view v = reshape(X, [m, h, 32])",
               "[shape_mismatch] main: the view [m, h, 32] of 'X' [m, h * 64] is not known to have as many "
               "elements");
  expect_error("view v = reshape(X, [m // 2, 2, h, 64])", "with m // 2 only of a dim that is 'divisible 2'");
  expect_error("view v = reshape(C, [m, 4, 0])", "[bad_shape]");
  expect_error("view v = reshape(C, [I[0], 256])",
               "[scope_not_allowed] main: extent 0 of a view of 'C' [m, "
               "256] reads memory");
  expect_error("view v = X[I[0] :+ 32, 0 :+ 64]", "an offset of a view of 'X' [m, h * 64] reads memory");
  expect_error("view v = C[0 :+ m, 200 :+ 64]",
               "[index_out_of_bounds] main: the box [m, 64] leaves 'C' [m, 256] in dimension 1");
  expect_error("view v = C[-1 :+ m, 0 :+ 64]", "[index_out_of_bounds]");
  expect_error("view v = transpose(X, [1, 1])", "[bad_attribute]");
  expect_error("view v = X[0 :+ m, 0 :+ h] view u = reinterpret(v, f32)",
               "the last extent of 'v' [m, h] is not known to be a multiple of 2");
  expect_error("view v = reshape(a, [m, 64])", "[syntax_error]");
  expect_error("view v = reshape(X, [m, h, 64]) copy v -> a", "is not constant");
  expect_error("parallel i in 4 { view v = transpose(X) }", "[misplaced_statement]");
}

}  // namespace
}  // namespace tilegen::ir
