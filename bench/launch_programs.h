// The programs whose launches are timed: few arguments; tensor maps; tensor maps, divisors and blocks that
// claim their work.
#pragma once

#include <tilelang.h>

namespace bench {

// Z = X + Y over n elements: three tensors and one dimension.
void build_add(tl_builder* b);

// C = A * B of m x n x k, B stored n x k, f16: tiles of 128 x 256 x 64 by two warpgroups in four stages.
void build_gemm(tl_builder* b);

// Attention of the samples, causal, heads of 128.
void build_attention(tl_builder* b);

}  // namespace bench
