/* Tile programs on the rows of a matrix, a whole row per tile: softmax and layer norm. The number of columns
 * is a constant of the program, the number of rows is symbolic. */
#ifndef SAMPLES_ROW_PROGRAMS_H
#define SAMPLES_ROW_PROGRAMS_H

#include <tilelang.h>

#ifdef __cplusplus
extern "C" {
#endif

struct row_spec {
  tl_dtype dtype;   /* of the tensors */
  tl_dtype compute; /* f32, or f64 for f64 */
  int64_t cols;
  int64_t tile_rows; /* rows of one block */
  int64_t
      tile_cols; /* >= cols: whole vectors. The excess columns read as 0 and are masked where that matters */
  int64_t threads; /* of one block, 0 = the planner decides */
};

struct row_spec row_spec_make(tl_dtype dtype, int64_t cols, int gpu);

/* Parameters: dim m; tensors X and Y. */
void softmax_build(tl_builder* b, const struct row_spec* spec);

/* Parameters: dim m; tensors X, gamma, beta; scalar epsilon of the compute type; tensor Y. */
void layernorm_build(tl_builder* b, const struct row_spec* spec);

#ifdef __cplusplus
}
#endif

#endif
