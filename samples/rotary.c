/* Y = rotary position embedding of X [rows, heads, dim]: of each head the pairs (j, j + dim / 2) are turned
 * by the row's angle j, whose cosine and sine are given.
 *
 *   rotary 4096 32 128           rows, heads, size of a head; random data
 *   rotary --in x.npy --out y.npy */
#include <math.h>

#include "element.h"
#include "row_sample.h"

enum { X, COSINES, SINES };

static void reference(const struct row_job* job, int64_t row, double* y, double* allowed) {
  const int64_t dim = job->spec.cols / job->spec.heads, half = dim / 2;
  const double eps = element_rounding(job->spec.compute) + element_rounding(TL_F64);
  int64_t h, j;
  for (h = 0; h < job->spec.heads; ++h) {
    for (j = 0; j < half; ++j) {
      const int64_t low = h * dim + j, high = low + half;
      const double x = row_get(job, X, row, low), z = row_get(job, X, row, high);
      const double c = row_get(job, COSINES, row, j), s = row_get(job, SINES, row, j);
      y[low] = x * c - z * s;
      y[high] = x * s + z * c;
      allowed[low] = 4 * eps * (fabs(x * c) + fabs(z * s));
      allowed[high] = 4 * eps * (fabs(x * s) + fabs(z * c));
    }
  }
}

int main(int argc, char** argv) {
  const struct row_sample sample = {
      .name = "rotary",
      .about = "Y = rotary position embedding of X, compiled for the best device present.",
      .heads = 1,
      .params = {ROW_X, ROW_COSINES, ROW_SINES, ROW_RESULT},
      .build = rotary_build,
      .reference = reference};
  return row_sample_main(&sample, argc, argv);
}
