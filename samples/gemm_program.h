/* The tile program C = A * B, or C = relu(A * B + bias): the matrix product of the TileLang paper and its
 * epilogue. */
#ifndef SAMPLES_GEMM_PROGRAM_H
#define SAMPLES_GEMM_PROGRAM_H

#include <tilelang.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gemm_spec {
  tl_dtype dtype;      /* of A and B */
  tl_dtype bias_dtype; /* 0: no bias and no ReLU */
  tl_dtype sum_dtype;  /* of the accumulator */
  tl_dtype out_dtype;  /* of C */
  int transpose_a;     /* A is stored as k x m */
  int transpose_b;     /* B is stored as n x k */
  int gpu;             /* tiles for a GPU block rather than for a CPU core */
};

/* f64 for f64, f32 for the other floats, i32 for integers. */
tl_dtype gemm_sum_dtype(tl_dtype dtype);

/* Parameters: dims m, n, k; tensors A, B, (bias,) C. Sizes are symbolic: one program serves all. */
void gemm_build(tl_builder* b, const struct gemm_spec* spec);

#ifdef __cplusplus
}
#endif

#endif
