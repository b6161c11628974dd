/* Tile programs on the rows of a matrix, a whole row per tile: softmax, layer norm, rms norm, rotary
 * embedding. The number of columns is a constant of the program, the number of rows is symbolic. */
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
  int64_t heads;     /* that the columns of a row are made of: rotary only, else 1 */
  int64_t tile_rows; /* rows of one block */
  int64_t tile_cols; /* >= cols: whole vectors. The excess reads as 0 and is masked where that matters */
  int64_t threads;   /* of one block, 0 = the planner decides */
};

struct row_spec row_spec_make(tl_dtype dtype, int64_t cols, int gpu);

/* Parameters: dim m; tensors X and Y. */
void softmax_build(tl_builder* b, const struct row_spec* spec);

/* Parameters: dim m; tensors X, gamma, beta; scalar epsilon of the compute type; tensor Y. */
void layernorm_build(tl_builder* b, const struct row_spec* spec);

/* S = X + R, and Y the rms norm of this sum. Parameters: dim m; tensors X, R, gamma; scalar epsilon of the
 * compute type; tensors S and Y. */
void rmsnorm_build(tl_builder* b, const struct row_spec* spec);

/* Of each head the pairs (j, j + dim / 2) are turned by the row's angle j. Parameters: dim m; tensors
 * X [m, heads, dim], cosines and sines of the angles, f32 [m, dim / 2], Y as X. */
void rotary_build(tl_builder* b, const struct row_spec* spec);

#ifdef __cplusplus
}
#endif

#endif
