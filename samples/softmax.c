/* Y = softmax of each row of X: y = exp(x - max) / sum(exp(x - max)), a row per tile.
 *
 *   softmax 4096 1000            random data
 *   softmax --in x.npy --out y.npy */
#include <math.h>

#include "element.h"
#include "row_sample.h"

enum { X };

static void reference(const struct row_job* job, int64_t row, double* y, double* allowed) {
  const double eps = element_rounding(job->spec.compute) + element_rounding(TL_F64);
  double top = -INFINITY, sum = 0;
  int64_t j;
  for (j = 0; j < job->spec.cols; ++j) top = fmax(top, row_get(job, X, row, j));
  for (j = 0; j < job->spec.cols; ++j) sum += y[j] = exp(row_get(job, X, row, j) - top);
  for (j = 0; j < job->spec.cols; ++j) {
    y[j] /= sum;
    allowed[j] = eps * y[j] * ((double)job->spec.cols + 24 + 2 * (top - row_get(job, X, row, j)));
  }
}

int main(int argc, char** argv) {
  const struct row_sample sample = {
      .name = "softmax",
      .about = "Y = softmax of each row of X, compiled for the best device present.",
      .params = {ROW_X, ROW_RESULT},
      .build = softmax_build,
      .reference = reference};
  return row_sample_main(&sample, argc, argv);
}
