#include "row_programs.h"

#include <math.h>

/* A CPU core keeps the rows of a block in its first-level cache, a GPU block keeps them in registers. */
struct row_spec row_spec_make(tl_dtype dtype, int64_t cols, int gpu) {
  const int64_t vector = gpu ? 128 : 16, elements = 4096, most = gpu ? 8 : 64;
  struct row_spec spec;
  spec.dtype = dtype;
  spec.compute = dtype == TL_F64 ? TL_F64 : TL_F32;
  spec.cols = cols;
  spec.heads = 1;
  spec.tile_cols = (cols + vector - 1) / vector * vector;
  spec.tile_rows = elements / spec.tile_cols;
  if (spec.tile_rows < 1) spec.tile_rows = 1;
  if (spec.tile_rows > most) spec.tile_rows = most;
  spec.threads = gpu ? 128 : 0;
  return spec;
}

/* What both programs have: the kernel over blocks of rows, and one fragment that holds the block's rows. */
struct frame {
  int64_t tile[2];
  tl_expr origin[2]; /* of the block's rows in X and Y */
  tl_scope kernel;
  tl_buffer x;
};

static struct frame begin(tl_builder* b, const struct row_spec* spec, const char* name, tl_expr m) {
  static const char* const names[1] = {"by"};
  struct frame f;
  tl_expr blocks = tl_binary(b, TL_ADD, m, tl_index(b, spec->tile_rows - 1)), block;
  blocks = tl_binary(b, TL_FLOORDIV, blocks, tl_index(b, spec->tile_rows));
  f.tile[0] = spec->tile_rows;
  f.tile[1] = spec->tile_cols;
  f.kernel = tl_begin_kernel(b, name, 1, &blocks, spec->threads, names, &block);
  f.origin[0] = tl_binary(b, TL_MUL, block, tl_index(b, spec->tile_rows));
  f.origin[1] = tl_index(b, 0);
  f.x = tl_alloc(b, "x", TL_SCOPE_FRAGMENT, spec->compute, 2, f.tile);
  return f;
}

static tl_scope each(tl_builder* b, const struct frame* f, tl_expr ij[2]) {
  static const char* const names[2] = {"i", "j"};
  return tl_begin_parallel(b, 2, f->tile, names, ij);
}

static tl_buffer row_values(tl_builder* b, const struct row_spec* spec, const char* name) {
  return tl_alloc(b, name, TL_SCOPE_FRAGMENT, spec->compute, 1, &spec->tile_rows);
}

/* value where the column exists, `padding` in the columns that only round the tile up. */
static tl_expr masked(tl_builder* b, const struct row_spec* spec, tl_expr col, tl_expr value,
                      double padding) {
  if (spec->tile_cols == spec->cols) return value;
  return tl_select(b, tl_binary(b, TL_LT, col, tl_index(b, spec->cols)), value,
                   tl_const_f64(b, spec->compute, padding));
}

void softmax_build(tl_builder* b, const struct row_spec* spec) {
  const tl_expr m = tl_dim(b, "m");
  tl_expr shape[2], ij[2], value;
  tl_buffer X, Y, top, sum;
  struct frame f;
  tl_scope loop;
  shape[0] = m;
  shape[1] = tl_index(b, spec->cols);
  X = tl_tensor(b, "X", spec->dtype, 2, shape, NULL, TL_TENSOR_READ_ONLY);
  Y = tl_tensor(b, "Y", spec->dtype, 2, shape, NULL, 0);
  f = begin(b, spec, "softmax", m);
  top = row_values(b, spec, "top");
  sum = row_values(b, spec, "sum");

  tl_copy(b, tl_region_of(b, X, 2, f.origin, f.tile), tl_whole(b, f.x));
  if (spec->tile_cols != spec->cols) {
    loop = each(b, &f, ij);
    tl_store(b, f.x, 2, ij, masked(b, spec, ij[1], tl_load(b, f.x, 2, ij), -INFINITY));
    tl_end(b, loop);
  }
  tl_reduce(b, tl_whole(b, f.x), tl_whole(b, top), TL_REDUCE_MAX, 1, 0);
  loop = each(b, &f, ij);
  value = tl_binary(b, TL_SUB, tl_load(b, f.x, 2, ij), tl_load(b, top, 1, &ij[0]));
  tl_store(b, f.x, 2, ij, tl_unary(b, TL_EXP, value));
  tl_end(b, loop);
  tl_reduce(b, tl_whole(b, f.x), tl_whole(b, sum), TL_REDUCE_SUM, 1, 0);
  loop = each(b, &f, ij);
  tl_store(b, f.x, 2, ij, tl_binary(b, TL_DIV, tl_load(b, f.x, 2, ij), tl_load(b, sum, 1, &ij[0])));
  tl_end(b, loop);
  tl_copy(b, tl_whole(b, f.x), tl_region_of(b, Y, 2, f.origin, f.tile));
  tl_end(b, f.kernel);
}

/* The sum over a row, times 1 / cols. */
static tl_expr mean_of(tl_builder* b, const struct row_spec* spec, tl_expr sum) {
  return tl_binary(b, TL_MUL, sum, tl_const_f64(b, spec->compute, 1.0 / (double)spec->cols));
}

static void square(tl_builder* b, const struct frame* f, tl_buffer squares) {
  tl_expr ij[2], value;
  const tl_scope loop = each(b, f, ij);
  value = tl_load(b, f->x, 2, ij);
  tl_store(b, squares, 2, ij, tl_binary(b, TL_MUL, value, value));
  tl_end(b, loop);
}

/* 1 / sqrt(mean + epsilon), of sums over rows. */
static void invert(tl_builder* b, const struct row_spec* spec, tl_buffer sums, tl_expr epsilon) {
  static const char* const names[1] = {"i"};
  tl_expr i, value;
  const tl_scope loop = tl_begin_parallel(b, 1, &spec->tile_rows, names, &i);
  value = tl_binary(b, TL_ADD, mean_of(b, spec, tl_load(b, sums, 1, &i)), epsilon);
  tl_store(b, sums, 1, &i, tl_unary(b, TL_RSQRT, value));
  tl_end(b, loop);
}

/* x -= mean, squares = x * x; both 0 in the columns that only round the tile up. */
static void centre(tl_builder* b, const struct row_spec* spec, const struct frame* f, tl_buffer sum,
                   tl_buffer squares) {
  tl_expr ij[2], value;
  const tl_scope loop = each(b, f, ij);
  value = tl_binary(b, TL_SUB, tl_load(b, f->x, 2, ij), mean_of(b, spec, tl_load(b, sum, 1, &ij[0])));
  tl_store(b, f->x, 2, ij, masked(b, spec, ij[1], value, 0));
  tl_end(b, loop);
  square(b, f, squares);
}

/* Element of a row of parameters in the type the program computes in; 0 beyond its end. */
static tl_expr parameter(tl_builder* b, const struct row_spec* spec, tl_buffer row, tl_expr col) {
  return tl_cast(b, spec->compute, tl_load(b, row, 1, &col));
}

void layernorm_build(tl_builder* b, const struct row_spec* spec) {
  const tl_expr m = tl_dim(b, "m"), n = tl_index(b, spec->cols);
  tl_expr shape[2], epsilon, ij[2], value;
  tl_buffer X, gamma, beta, Y, squares, sum, scale;
  struct frame f;
  tl_scope loop;
  shape[0] = m;
  shape[1] = n;
  X = tl_tensor(b, "X", spec->dtype, 2, shape, NULL, TL_TENSOR_READ_ONLY);
  gamma = tl_tensor(b, "gamma", spec->dtype, 1, &n, NULL, TL_TENSOR_READ_ONLY);
  beta = tl_tensor(b, "beta", spec->dtype, 1, &n, NULL, TL_TENSOR_READ_ONLY);
  epsilon = tl_scalar(b, "epsilon", spec->compute);
  Y = tl_tensor(b, "Y", spec->dtype, 2, shape, NULL, 0);
  f = begin(b, spec, "layernorm", m);
  squares = tl_alloc(b, "squares", TL_SCOPE_FRAGMENT, spec->compute, 2, f.tile);
  sum = row_values(b, spec, "sum");
  scale = row_values(b, spec, "scale");

  tl_copy(b, tl_region_of(b, X, 2, f.origin, f.tile), tl_whole(b, f.x));
  tl_reduce(b, tl_whole(b, f.x), tl_whole(b, sum), TL_REDUCE_SUM, 1, 0);
  centre(b, spec, &f, sum, squares);
  tl_reduce(b, tl_whole(b, squares), tl_whole(b, scale), TL_REDUCE_SUM, 1, 0);
  invert(b, spec, scale, epsilon);
  loop = each(b, &f, ij);
  value = tl_binary(b, TL_MUL, tl_load(b, f.x, 2, ij), tl_load(b, scale, 1, &ij[0]));
  value = tl_binary(b, TL_MUL, value, parameter(b, spec, gamma, ij[1]));
  tl_store(b, f.x, 2, ij, tl_binary(b, TL_ADD, value, parameter(b, spec, beta, ij[1])));
  tl_end(b, loop);
  tl_copy(b, tl_whole(b, f.x), tl_region_of(b, Y, 2, f.origin, f.tile));
  tl_end(b, f.kernel);
}

void rmsnorm_build(tl_builder* b, const struct row_spec* spec) {
  const tl_expr m = tl_dim(b, "m"), n = tl_index(b, spec->cols);
  tl_expr shape[2], epsilon, ij[2], value;
  tl_buffer X, R, gamma, S, Y, r, squares, scale;
  struct frame f;
  tl_scope loop;
  shape[0] = m;
  shape[1] = n;
  X = tl_tensor(b, "X", spec->dtype, 2, shape, NULL, TL_TENSOR_READ_ONLY);
  R = tl_tensor(b, "R", spec->dtype, 2, shape, NULL, TL_TENSOR_READ_ONLY);
  gamma = tl_tensor(b, "gamma", spec->dtype, 1, &n, NULL, TL_TENSOR_READ_ONLY);
  epsilon = tl_scalar(b, "epsilon", spec->compute);
  S = tl_tensor(b, "S", spec->dtype, 2, shape, NULL, 0);
  Y = tl_tensor(b, "Y", spec->dtype, 2, shape, NULL, 0);
  f = begin(b, spec, "rmsnorm", m);
  r = tl_alloc(b, "r", TL_SCOPE_FRAGMENT, spec->dtype, 2, f.tile);
  squares = tl_alloc(b, "squares", TL_SCOPE_FRAGMENT, spec->compute, 2, f.tile);
  scale = row_values(b, spec, "scale");

  tl_copy(b, tl_region_of(b, X, 2, f.origin, f.tile), tl_whole(b, f.x));
  tl_copy(b, tl_region_of(b, R, 2, f.origin, f.tile), tl_whole(b, r));
  loop = each(b, &f, ij);
  value = tl_cast(b, spec->compute, tl_load(b, r, 2, ij));
  tl_store(b, f.x, 2, ij, tl_binary(b, TL_ADD, tl_load(b, f.x, 2, ij), value));
  tl_end(b, loop);
  tl_copy(b, tl_whole(b, f.x), tl_region_of(b, S, 2, f.origin, f.tile));
  square(b, &f, squares); /* 0 in the columns that only round the tile up, as X and R read there */
  tl_reduce(b, tl_whole(b, squares), tl_whole(b, scale), TL_REDUCE_SUM, 1, 0);
  invert(b, spec, scale, epsilon);
  loop = each(b, &f, ij);
  value = tl_binary(b, TL_MUL, tl_load(b, f.x, 2, ij), tl_load(b, scale, 1, &ij[0]));
  tl_store(b, f.x, 2, ij, tl_binary(b, TL_MUL, value, parameter(b, spec, gamma, ij[1])));
  tl_end(b, loop);
  tl_copy(b, tl_whole(b, f.x), tl_region_of(b, Y, 2, f.origin, f.tile));
  tl_end(b, f.kernel);
}
