/* Y = layer norm of each row of X: y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, a row per tile.
 *
 *   layernorm 4096 1000            random data
 *   layernorm --in x.npy --out y.npy */
#include <math.h>

#include "element.h"
#include "row_sample.h"

enum { X, GAMMA, BETA };

static void reference(const struct row_job* job, int64_t row, double* y, double* allowed) {
  const double n = (double)job->spec.cols,
               eps = element_rounding(job->spec.compute) + element_rounding(TL_F64);
  double *x = y /* until it is replaced */, mean = 0, size = 0, variance = 0, scale, mean_error, relative;
  int64_t j;
  for (j = 0; j < job->spec.cols; ++j) mean += x[j] = row_get(job, X, row, j);
  mean /= n;
  for (j = 0; j < job->spec.cols; ++j) size = fmax(size, fabs(x[j]));
  for (j = 0; j < job->spec.cols; ++j) variance += (x[j] - mean) * (x[j] - mean);
  variance = variance / n + job->epsilon;
  scale = 1 / sqrt(variance);
  /* A mean that is off by d shifts each difference by d and the variance by d * d. */
  mean_error = (n + 3) * eps * size;
  relative = 0.5 * ((n + 8) * eps + (mean_error * mean_error) / variance + 4 * eps * size * scale) + 12 * eps;
  for (j = 0; j < job->spec.cols; ++j) {
    const double g = row_get(job, GAMMA, 0, j);
    const double h = row_get(job, BETA, 0, j);
    const double normal = (x[j] - mean) * scale * g;
    allowed[j] = fabs(g) * scale * (mean_error + 2 * eps * size) + fabs(normal) * relative +
                 2 * eps * (fabs(normal) + fabs(h));
    y[j] = normal + h;
  }
}

int main(int argc, char** argv) {
  const struct row_sample sample = {
      .name = "layernorm",
      .about = "Y = layer norm of each row of X, compiled for the best device present.",
      .params = {ROW_X, ROW_FACTORS, ROW_OFFSETS, ROW_EPSILON, ROW_RESULT},
      .build = layernorm_build,
      .reference = reference};
  return row_sample_main(&sample, argc, argv);
}
