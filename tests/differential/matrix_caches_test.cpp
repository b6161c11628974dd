// What caches are told of a copy's lines: the same elements come, beyond a tensor zeros.
#include <gtest/gtest.h>

#include "matrix.h"

namespace tilegen::differential {
namespace {

std::string product(const std::string& engine, const std::string& a, const std::string& b) {
  return "tl 1 program product\ndim m\ndim n\ndim k divisible 8\ntensor A: f16[m, k] readonly\n"
         "tensor B: f16[n, k] constant\ntensor C: f32[m, n]\n\n"
         "kernel g grid (by: ceildiv(m, 40), bx: ceildiv(n, 32)) threads 128 {\n"
         "  alloc a: shared f16[40, 64]\n  alloc b: shared f16[32, 64]\n  alloc acc: fragment f32[40, 32]\n"
         "  fill acc, 0.0f32\n  pipelined ko in 0 .. ceildiv(k, 64) stages 2 {\n"
         "    copy A[by * 40 :+ 40, ko * 64 :+ 64] -> a {engine = " +
         engine + ", cache = " + a + "}\n    copy B[bx * 32 :+ 32, ko * 64 :+ 64] -> b {engine = " + engine +
         ", cache = " + b +
         "}\n    gemm a, b -> acc {transpose_b}\n  }\n  copy acc -> C[by * 40 :+ 40, bx * 32 :+ 32]\n}\n";
}

// Tiles of which some rows and steps are beyond the tensors, and whole ones.
TEST(Caches, OfCopiesThatReadNothing) {
  for (const char* engine : {"async_copy", "vector_copy"}) {
    Launch l;
    l.magnitude = 2;
    l.bound = Bound::of_sum(DType::f32, 4, 1);
    std::vector<Launch> launches;
    for (const auto& [m, n, k] : {std::tuple(42, 104, 72), std::tuple(80, 64, 128)}) {
      l.dims = {{"m", m}, {"n", n}, {"k", k}};
      launches.push_back(l);
    }
    expect_agree(product(engine, "evict_last", "evict_first"), launches);
  }
}

}  // namespace
}  // namespace tilegen::differential
