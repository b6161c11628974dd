/* Y = softmax of each row of X: y = exp(x - max) / sum(exp(x - max)), a row per tile.
 *
 *   softmax 4096 1000            random data
 *   softmax --in x.npy --out y.npy */
#include <math.h>

#include "element.h"
#include "row_sample.h"

static void reference(const struct row_job* job, const double* x, double* y, double* allowed) {
  const double eps = element_rounding(job->spec.compute) + element_rounding(TL_F64);
  double top = -INFINITY, sum = 0;
  int64_t j;
  for (j = 0; j < job->spec.cols; ++j) top = fmax(top, x[j]);
  for (j = 0; j < job->spec.cols; ++j) sum += y[j] = exp(x[j] - top);
  for (j = 0; j < job->spec.cols; ++j) {
    y[j] /= sum;
    allowed[j] = eps * y[j] * ((double)job->spec.cols + 24 + 2 * (top - x[j]));
  }
}

int main(int argc, char** argv) {
  const struct row_sample sample = {"softmax",
                                    "Y = softmax of each row of X, compiled for the best device present.", 0,
                                    softmax_build, reference};
  return row_sample_main(&sample, argc, argv);
}
