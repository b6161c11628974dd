/* The frame of the samples that work on the rows of a matrix: options, input, timing, check, output. */
#ifndef SAMPLES_ROW_SAMPLE_H
#define SAMPLES_ROW_SAMPLE_H

#include <tilelang.h>

#include "npy.h"

/* The number of columns is a constant of the program, so that a row is one tile; the number of rows is
 * symbolic. */
struct row_job {
  int64_t cols;      /* of the matrix */
  int64_t tile_rows; /* rows of one block */
  int64_t tile_cols; /* >= cols: rounded up to whole vectors. The excess reads as 0 and must be masked */
  int64_t threads;
  tl_dtype dtype;   /* of the matrices */
  tl_dtype compute; /* f32, or f64 for f64 */
  double epsilon;
  struct npy_array x, y, gamma, beta; /* gamma and beta: only with `affine` */
};

struct row_sample {
  const char *name, *about;
  int affine; /* has parameters gamma[cols], beta[cols] and epsilon behind X */
  /* Parameters in this order: dim m, X, (gamma, beta, scalar epsilon,) Y. */
  void (*build)(tl_builder* builder, const struct row_job* job);
  /* One row in double, and how far rounding may take each element of the computed row away from it, before
   * the rounding to the type of Y. */
  void (*reference)(const struct row_job* job, const double* x, double* y, double* allowed);
};

int row_sample_main(const struct row_sample* sample, int argc, char** argv);

/* Offsets {block * tile_rows, 0} of a block's rows in X and Y. */
void row_sample_offsets(tl_builder* builder, const struct row_job* job, tl_expr block, tl_expr offsets[2]);

/* Opens the kernel over ceil(m / tile_rows) blocks. */
tl_scope row_sample_kernel(tl_builder* builder, const struct row_job* job, const char* name, tl_expr m,
                           tl_expr* block);

#endif
