/* The frame of the samples that work on the rows of a matrix: options, input, timing, check, output. */
#ifndef SAMPLES_ROW_SAMPLE_H
#define SAMPLES_ROW_SAMPLE_H

#include <tilelang.h>

#include "npy.h"
#include "row_programs.h"

struct row_job {
  struct row_spec spec;
  double epsilon;
  struct npy_array x, y, gamma, beta; /* gamma and beta: only with `affine` */
};

struct row_sample {
  const char *name, *about;
  int affine; /* has parameters gamma, beta and epsilon between X and Y */
  void (*build)(tl_builder* builder, const struct row_spec* spec);
  /* One row in double, and how far rounding may take each element of the computed row away from it, before
   * the rounding to the type of Y. */
  void (*reference)(const struct row_job* job, const double* x, double* y, double* allowed);
};

int row_sample_main(const struct row_sample* sample, int argc, char** argv);

#endif
