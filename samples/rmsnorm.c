/* S = X + R, and Y = rms norm of each row of this sum: y = s / sqrt(mean of s * s + epsilon) * gamma, a row
 * per tile: what stands between two layers of a transformer, in one pass over memory.
 *
 *   rmsnorm 4096 1000            random data
 *   rmsnorm --in x.npy --out y.npy */
#include <math.h>

#include "element.h"
#include "row_sample.h"

enum { X, R, GAMMA };

/* Y is the norm of the sum itself, not of S as it is stored. */
static void reference(const struct row_job* job, int64_t row, double* y, double* allowed) {
  const int64_t cols = job->spec.cols;
  const double eps = element_rounding(job->spec.compute) + element_rounding(TL_F64);
  double *s = y, *norm = y + cols, squares = 0, scale;
  int64_t j;
  for (j = 0; j < cols; ++j) {
    s[j] = row_get(job, X, row, j) + row_get(job, R, row, j);
    allowed[j] = 2 * eps * fabs(s[j]);
    squares += s[j] * s[j];
  }
  scale = 1 / sqrt(squares / (double)cols + job->epsilon);
  for (j = 0; j < cols; ++j) {
    norm[j] = s[j] * scale * row_get(job, GAMMA, 0, j);
    allowed[cols + j] = eps * fabs(norm[j]) * (0.5 * ((double)cols + 8) + 12);
  }
}

int main(int argc, char** argv) {
  const struct row_sample sample = {
      .name = "rmsnorm",
      .about = "S = X + R, Y = rms norm of each row of S, compiled for the best device present.",
      .params = {ROW_X, ROW_MATRIX, ROW_FACTORS, ROW_EPSILON, ROW_RESULT, ROW_RESULT},
      .build = rmsnorm_build,
      .reference = reference};
  return row_sample_main(&sample, argc, argv);
}
