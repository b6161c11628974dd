/* Y = layer norm of each row of X: y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, a row per tile.
 *
 *   layernorm 4096 1000            random data
 *   layernorm --in x.npy --out y.npy */
#include <math.h>

#include "element.h"
#include "row_sample.h"

static void reference(const struct row_job* job, const double* x, double* y, double* allowed) {
  const double n = (double)job->spec.cols,
               eps = element_rounding(job->spec.compute) + element_rounding(TL_F64);
  double mean = 0, size = 0, variance = 0, scale, mean_error, relative;
  int64_t j;
  for (j = 0; j < job->spec.cols; ++j) mean += x[j];
  mean /= n;
  for (j = 0; j < job->spec.cols; ++j) size = fmax(size, fabs(x[j]));
  for (j = 0; j < job->spec.cols; ++j) variance += (x[j] - mean) * (x[j] - mean);
  variance = variance / n + job->epsilon;
  scale = 1 / sqrt(variance);
  /* A mean that is off by d shifts each difference by d and the variance by d * d. */
  mean_error = (n + 3) * eps * size;
  relative = 0.5 * ((n + 8) * eps + (mean_error * mean_error) / variance + 4 * eps * size * scale) + 12 * eps;
  for (j = 0; j < job->spec.cols; ++j) {
    const double g = element_get(job->spec.dtype, job->gamma.data, (size_t)j);
    const double h = element_get(job->spec.dtype, job->beta.data, (size_t)j);
    const double normal = (x[j] - mean) * scale * g;
    y[j] = normal + h;
    allowed[j] = fabs(g) * scale * (mean_error + 2 * eps * size) + fabs(normal) * relative +
                 2 * eps * (fabs(normal) + fabs(h));
  }
}

int main(int argc, char** argv) {
  const struct row_sample sample = {"layernorm",
                                    "Y = layer norm of each row of X, compiled for the best device present.",
                                    1, layernorm_build, reference};
  return row_sample_main(&sample, argc, argv);
}
