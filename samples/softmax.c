/* Y = softmax of each row of X: y = exp(x - max) / sum(exp(x - max)), a row per tile.
 *
 *   softmax 4096 1000            random data
 *   softmax --in x.npy --out y.npy */
#include <math.h>

#include "element.h"
#include "row_sample.h"

/* value where the column exists, `padding` in the columns that only round the tile up. */
static tl_expr masked(tl_builder* b, const struct row_job* job, tl_expr col, tl_expr value, double padding) {
  if (job->tile_cols == job->cols) return value;
  return tl_select(b, tl_binary(b, TL_LT, col, tl_index(b, job->cols)), value,
                   tl_const_f64(b, job->compute, padding));
}

static void build(tl_builder* b, const struct row_job* job) {
  static const char* const names[2] = {"i", "j"};
  const int64_t tile[2] = {job->tile_rows, job->tile_cols};
  const tl_expr m = tl_dim(b, "m");
  const tl_expr shape[2] = {m, tl_index(b, job->cols)};
  const tl_buffer X = tl_tensor(b, "X", job->dtype, 2, shape, NULL, TL_TENSOR_READ_ONLY);
  const tl_buffer Y = tl_tensor(b, "Y", job->dtype, 2, shape, NULL, 0);
  tl_expr block, origin[2], ij[2];
  const tl_scope kernel = row_sample_kernel(b, job, "softmax", m, &block);
  const tl_buffer x = tl_alloc(b, "x", TL_SCOPE_FRAGMENT, job->compute, 2, tile);
  const tl_buffer top = tl_alloc(b, "top", TL_SCOPE_FRAGMENT, job->compute, 1, tile);
  const tl_buffer sum = tl_alloc(b, "sum", TL_SCOPE_FRAGMENT, job->compute, 1, tile);
  tl_scope loop;

  row_sample_offsets(b, job, block, origin);
  tl_copy(b, tl_region_of(b, X, 2, origin, tile), tl_whole(b, x));
  if (job->tile_cols != job->cols) {
    loop = tl_begin_parallel(b, 2, tile, names, ij);
    tl_store(b, x, 2, ij, masked(b, job, ij[1], tl_load(b, x, 2, ij), -INFINITY));
    tl_end(b, loop);
  }
  tl_reduce(b, tl_whole(b, x), tl_whole(b, top), TL_REDUCE_MAX, 1, 0);
  loop = tl_begin_parallel(b, 2, tile, names, ij);
  tl_store(b, x, 2, ij,
           tl_unary(b, TL_EXP, tl_binary(b, TL_SUB, tl_load(b, x, 2, ij), tl_load(b, top, 1, &ij[0]))));
  tl_end(b, loop);
  tl_reduce(b, tl_whole(b, x), tl_whole(b, sum), TL_REDUCE_SUM, 1, 0);
  loop = tl_begin_parallel(b, 2, tile, names, ij);
  tl_store(b, x, 2, ij, tl_binary(b, TL_DIV, tl_load(b, x, 2, ij), tl_load(b, sum, 1, &ij[0])));
  tl_end(b, loop);
  tl_copy(b, tl_whole(b, x), tl_region_of(b, Y, 2, origin, tile));
  tl_end(b, kernel);
}

static void reference(const struct row_job* job, const double* x, double* y, double* allowed) {
  const double eps = element_rounding(job->compute) + element_rounding(TL_F64);
  double top = -INFINITY, sum = 0;
  int64_t j;
  for (j = 0; j < job->cols; ++j) top = fmax(top, x[j]);
  for (j = 0; j < job->cols; ++j) sum += y[j] = exp(x[j] - top);
  for (j = 0; j < job->cols; ++j) {
    y[j] /= sum;
    allowed[j] = eps * y[j] * ((double)job->cols + 24 + 2 * (top - x[j]));
  }
}

int main(int argc, char** argv) {
  const struct row_sample sample = {
      "softmax", "Y = softmax of each row of X, compiled for the best device present.", 0, build, reference};
  return row_sample_main(&sample, argc, argv);
}
