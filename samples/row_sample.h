/* The frame of the samples that work on the rows of a matrix: options, input, timing, check, output. */
#ifndef SAMPLES_ROW_SAMPLE_H
#define SAMPLES_ROW_SAMPLE_H

#include <tilelang.h>

#include "npy.h"
#include "row_programs.h"

/* What the parameters of a program after its number of rows are, and what they hold. */
enum row_param {
  ROW_END,
  ROW_X,       /* the matrix: from a file or at random */
  ROW_MATRIX,  /* another one of its shape and type, at random */
  ROW_FACTORS, /* a number a column, at random near 1 */
  ROW_OFFSETS, /* a number a column, at random near 0 */
  ROW_COSINES, /* f32, of half as many angles a row as a head has elements, between -pi and pi */
  ROW_SINES,   /* of the same angles */
  ROW_EPSILON, /* a scalar of the type that is computed in */
  ROW_RESULT   /* of X's shape and type; --out writes the last one */
};

enum { ROW_PARAMS = 8 };

struct row_job {
  struct row_spec spec;
  double epsilon;
  struct npy_array arrays[ROW_PARAMS]; /* as the sample lists its parameters; none of a scalar */
};

struct row_sample {
  const char *name, *about;
  int heads; /* X is [rows, heads, dim] */
  enum row_param params[ROW_PARAMS];
  void (*build)(tl_builder* builder, const struct row_spec* spec);
  /* One row in double, and how far rounding may take each element of the computed row away from it, before
   * the rounding to the type of the results. Of several results the second one's columns are after the
   * first one's. */
  void (*reference)(const struct row_job* job, int64_t row, double* y, double* allowed);
};

/* An element of array number `param`. What there is once for all rows is row 0. */
double row_get(const struct row_job* job, int param, int64_t row, int64_t col);

int row_sample_main(const struct row_sample* sample, int argc, char** argv);

#endif
