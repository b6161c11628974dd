/* Y = layer norm of each row of X: y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, a row per tile.
 *
 *   layernorm 4096 1000            random data
 *   layernorm --in x.npy --out y.npy */
#include <math.h>

#include "element.h"
#include "row_sample.h"

/* The sum over a row, times 1 / cols. */
static tl_expr mean_of(tl_builder* b, const struct row_job* job, tl_expr sum) {
  return tl_binary(b, TL_MUL, sum, tl_const_f64(b, job->compute, 1.0 / (double)job->cols));
}

/* x -= mean, and 0 in the columns that only round the tile up; squares = x * x. */
static void centre(tl_builder* b, const struct row_job* job, tl_buffer x, tl_buffer sum, tl_buffer squares) {
  static const char* const names[2] = {"i", "j"};
  const int64_t tile[2] = {job->tile_rows, job->tile_cols};
  tl_expr ij[2], value;
  tl_scope loop = tl_begin_parallel(b, 2, tile, names, ij);
  value = tl_binary(b, TL_SUB, tl_load(b, x, 2, ij), mean_of(b, job, tl_load(b, sum, 1, &ij[0])));
  if (job->tile_cols != job->cols)
    value = tl_select(b, tl_binary(b, TL_LT, ij[1], tl_index(b, job->cols)), value,
                      tl_const_f64(b, job->compute, 0));
  tl_store(b, x, 2, ij, value);
  tl_end(b, loop);
  loop = tl_begin_parallel(b, 2, tile, names, ij);
  value = tl_load(b, x, 2, ij);
  tl_store(b, squares, 2, ij, tl_binary(b, TL_MUL, value, value));
  tl_end(b, loop);
}

static void build(tl_builder* b, const struct row_job* job) {
  static const char* const names[2] = {"i", "j"};
  const int64_t tile[2] = {job->tile_rows, job->tile_cols};
  const tl_expr m = tl_dim(b, "m"), n = tl_index(b, job->cols), zero = tl_index(b, 0);
  const tl_expr shape[2] = {m, n};
  const tl_buffer X = tl_tensor(b, "X", job->dtype, 2, shape, NULL, TL_TENSOR_READ_ONLY);
  const tl_buffer G = tl_tensor(b, "gamma", job->dtype, 1, &n, NULL, TL_TENSOR_READ_ONLY);
  const tl_buffer B = tl_tensor(b, "beta", job->dtype, 1, &n, NULL, TL_TENSOR_READ_ONLY);
  const tl_expr epsilon = tl_scalar(b, "epsilon", job->compute);
  const tl_buffer Y = tl_tensor(b, "Y", job->dtype, 2, shape, NULL, 0);
  tl_expr block, origin[2], ij[2], value;
  const tl_scope kernel = row_sample_kernel(b, job, "layernorm", m, &block);
  const tl_buffer x = tl_alloc(b, "x", TL_SCOPE_FRAGMENT, job->compute, 2, tile);
  const tl_buffer squares = tl_alloc(b, "squares", TL_SCOPE_FRAGMENT, job->compute, 2, tile);
  const tl_buffer sum = tl_alloc(b, "sum", TL_SCOPE_FRAGMENT, job->compute, 1, tile);
  const tl_buffer scale = tl_alloc(b, "scale", TL_SCOPE_FRAGMENT, job->compute, 1, tile);
  const tl_buffer g = tl_alloc(b, "g", TL_SCOPE_FRAGMENT, job->compute, 1, &tile[1]);
  const tl_buffer h = tl_alloc(b, "h", TL_SCOPE_FRAGMENT, job->compute, 1, &tile[1]);
  tl_scope loop;

  row_sample_offsets(b, job, block, origin);
  tl_copy(b, tl_region_of(b, X, 2, origin, tile), tl_whole(b, x));
  tl_copy(b, tl_region_of(b, G, 1, &zero, &tile[1]), tl_whole(b, g));
  tl_copy(b, tl_region_of(b, B, 1, &zero, &tile[1]), tl_whole(b, h));
  tl_reduce(b, tl_whole(b, x), tl_whole(b, sum), TL_REDUCE_SUM, 1, 0);
  centre(b, job, x, sum, squares);
  tl_reduce(b, tl_whole(b, squares), tl_whole(b, scale), TL_REDUCE_SUM, 1, 0);
  loop = tl_begin_parallel(b, 1, tile, names, ij);
  value = tl_binary(b, TL_ADD, mean_of(b, job, tl_load(b, scale, 1, ij)), epsilon);
  tl_store(b, scale, 1, ij, tl_unary(b, TL_RSQRT, value));
  tl_end(b, loop);
  loop = tl_begin_parallel(b, 2, tile, names, ij);
  value = tl_binary(b, TL_MUL, tl_load(b, x, 2, ij), tl_load(b, scale, 1, &ij[0]));
  value = tl_binary(b, TL_MUL, value, tl_load(b, g, 1, &ij[1]));
  tl_store(b, x, 2, ij, tl_binary(b, TL_ADD, value, tl_load(b, h, 1, &ij[1])));
  tl_end(b, loop);
  tl_copy(b, tl_whole(b, x), tl_region_of(b, Y, 2, origin, tile));
  tl_end(b, kernel);
}

static void reference(const struct row_job* job, const double* x, double* y, double* allowed) {
  const double n = (double)job->cols, eps = element_rounding(job->compute) + element_rounding(TL_F64);
  double mean = 0, size = 0, variance = 0, scale, mean_error, relative;
  int64_t j;
  for (j = 0; j < job->cols; ++j) mean += x[j];
  mean /= n;
  for (j = 0; j < job->cols; ++j) size = fmax(size, fabs(x[j]));
  for (j = 0; j < job->cols; ++j) variance += (x[j] - mean) * (x[j] - mean);
  variance = variance / n + job->epsilon;
  scale = 1 / sqrt(variance);
  /* A mean that is off by d shifts each difference by d and the variance by d * d. */
  mean_error = (n + 3) * eps * size;
  relative = 0.5 * ((n + 8) * eps + (mean_error * mean_error) / variance + 4 * eps * size * scale) + 12 * eps;
  for (j = 0; j < job->cols; ++j) {
    const double g = element_get(job->dtype, job->gamma.data, (size_t)j);
    const double h = element_get(job->dtype, job->beta.data, (size_t)j);
    const double normal = (x[j] - mean) * scale * g;
    y[j] = normal + h;
    allowed[j] = fabs(g) * scale * (mean_error + 2 * eps * size) + fabs(normal) * relative +
                 2 * eps * (fabs(normal) + fabs(h));
  }
}

int main(int argc, char** argv) {
  const struct row_sample sample = {"layernorm",
                                    "Y = layer norm of each row of X, compiled for the best device present.",
                                    1, build, reference};
  return row_sample_main(&sample, argc, argv);
}
