#include "row_sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "options.h"
#include "runner.h"

#define MAX_COLS 65536

/* The number of wrong elements, -1 when memory is short. */
static int64_t check(const struct row_sample* sample, const struct row_job* job, double* max_error) {
  const size_t cols = (size_t)job->spec.cols;
  double *x = malloc(3 * cols * sizeof *x), *y = x + cols, *allowed = y + cols;
  int64_t row, wrong = 0;
  size_t j;
  *max_error = 0;
  if (x == NULL) return -1;
  for (row = 0; row < job->x.shape[0]; ++row) {
    for (j = 0; j < cols; ++j) x[j] = element_get(job->spec.dtype, job->x.data, (size_t)row * cols + j);
    sample->reference(job, x, y, allowed);
    for (j = 0; j < cols; ++j) {
      const double error = fabs(element_get(job->spec.dtype, job->y.data, (size_t)row * cols + j) - y[j]);
      const double bound = allowed[j] + 2 * element_rounding(job->spec.dtype) * fabs(y[j]) +
                           (job->spec.dtype == TL_F16 ? ldexp(1.0, -24) : ldexp(1.0, -126));
      if (!(error <= bound)) ++wrong; /* NaN counts as wrong */
      if (!(error <= *max_error)) *max_error = error;
    }
  }
  free(x);
  return wrong;
}

static int report(const struct row_sample* sample, const struct row_job* job, double ms, int samples) {
  const double bytes = 2.0 * (double)job->x.count * (double)element_bytes(job->spec.dtype);
  double max_error;
  const int64_t wrong = check(sample, job, &max_error);
  printf("problem   %s of %lld rows x %lld, %s\n", sample->name, (long long)job->x.shape[0],
         (long long)job->spec.cols, tl_dtype_name(job->spec.dtype));
  printf("time      %.3f ms (median of %d)\nrate      %.2f GB/s\n", ms, samples,
         ms > 0 ? bytes / ms * 1e-6 : 0.0);
  if (wrong < 0) {
    fprintf(stderr, "no memory for the reference\n");
    return 0;
  }
  printf("error     %.3g at most, against a reference in double: %s\n", max_error,
         wrong == 0 ? "right" : "WRONG");
  if (wrong > 0)
    printf("          %lld of %lld elements are off by more than rounding explains\n", (long long)wrong,
           (long long)job->y.count);
  return wrong == 0;
}

static int run(const struct row_sample* sample, struct row_job* job, const char* target, int repeats) {
  struct runner runner;
  tl_builder* builder = NULL;
  tl_error* error = NULL;
  tl_arg args[6];
  size_t count = 0;
  double ms = 0;
  int samples = 0, ok = runner_open(&runner, target);
  if (ok) job->spec = row_spec_make(job->x.dtype, job->x.shape[1], runner_is_gpu(&runner));
  if (ok && tl_builder_create(runner.context, sample->name, &builder, &error) != TL_OK) {
    fprintf(stderr, "%s\n", tl_error_message(error));
    tl_error_release(error);
    ok = 0;
  }
  if (ok) {
    sample->build(builder, &job->spec);
    ok = runner_compile(&runner, builder);
  }
  args[count++] = runner_i64(job->x.shape[0]);
  ok = ok && runner_array(&runner, &args[count++], &job->x);
  if (sample->affine) {
    ok = ok && runner_array(&runner, &args[count++], &job->gamma);
    ok = ok && runner_array(&runner, &args[count++], &job->beta);
    args[count++] = runner_f64(job->epsilon);
  }
  ok = ok && runner_array(&runner, &args[count++], &job->y);
  ok = ok && runner_time(&runner, args, count, repeats, &ms, &samples) && runner_fetch(&runner);
  ok = ok && report(sample, job, ms, samples);
  ok = ok && runner_print_schedule(&runner);
  runner_close(&runner);
  return ok;
}

/* X from a file or at random; gamma and beta always at random, near 1 and 0. */
static int make_inputs(const struct row_sample* sample, struct row_job* job, const int64_t shape[2],
                       const char* in, uint64_t seed) {
  char message[NPY_MESSAGE_SIZE];
  int64_t i;
  if (in != NULL && !npy_read(in, &job->x, message)) {
    fprintf(stderr, "%s\n", message);
    return 0;
  }
  if (in != NULL && (job->x.rank != 2 || !element_is_float(job->x.dtype))) {
    fprintf(stderr, "%s: a matrix of floating type is needed, got %d dimensions of %s\n", in, job->x.rank,
            tl_dtype_name(job->x.dtype));
    return 0;
  }
  if (in == NULL) {
    if (!npy_make(&job->x, job->spec.dtype, 2, shape)) return 0;
    element_random(job->spec.dtype, job->x.data, job->x.count, seed);
  }
  job->spec.dtype = job->x.dtype;
  job->spec.cols = job->x.shape[1];
  if (job->spec.cols < 1 || job->spec.cols > MAX_COLS) {
    fprintf(stderr, "%lld columns; from 1 to %d are possible, as a whole row is one tile\n",
            (long long)job->spec.cols, MAX_COLS);
    return 0;
  }
  if (!npy_make(&job->y, job->spec.dtype, 2, job->x.shape)) return 0;
  if (!sample->affine) return 1;
  if (!npy_make(&job->gamma, job->spec.dtype, 1, &job->spec.cols) ||
      !npy_make(&job->beta, job->spec.dtype, 1, &job->spec.cols))
    return 0;
  element_random(job->spec.dtype, job->gamma.data, job->gamma.count, seed + 1);
  element_random(job->spec.dtype, job->beta.data, job->beta.count, seed + 2);
  for (i = 0; i < job->spec.cols; ++i)
    element_set(job->spec.dtype, job->gamma.data, (size_t)i,
                1 + element_get(job->spec.dtype, job->gamma.data, (size_t)i) / 4);
  return 1;
}

int row_sample_main(const struct row_sample* sample, int argc, char** argv) {
  struct row_job job;
  char message[NPY_MESSAGE_SIZE];
  const char *target = NULL, *in = NULL, *out = NULL;
  int64_t shape[2] = {4096, 4096}, seed = 1, repeats = 20;
  int exit_code = 1, ok;
  const struct option options[] = {
      {"ROWS", OPTION_SIZE, &shape[0], "rows of X"},
      {"COLS", OPTION_SIZE, &shape[1], "columns of X, 1 to 65536"},
      {"--in", OPTION_TEXT, &in, "X, a .npy file (random)"},
      {"--out", OPTION_TEXT, &out, "where to write Y, a .npy file"},
      {"--dtype", OPTION_DTYPE, &job.spec.dtype, "of random inputs: f16 bf16 f32 f64 (f32)"},
      {"--target", OPTION_TEXT, &target, "target to compile for (the best present)"},
      {"--seed", OPTION_INT, &seed, "of the random inputs (1)"},
      {"--repeats", OPTION_INT, &repeats, "timed launches at most (20)"}};
  memset(&job, 0, sizeof job);
  job.spec.dtype = TL_F32;
  job.epsilon = 1e-5;
  if (!options_parse(argc, argv, options, (int)(sizeof options / sizeof *options), sample->about, &exit_code))
    return exit_code;
  if (!element_is_float(job.spec.dtype)) {
    fprintf(stderr, "%s needs a floating type, not %s\n", sample->name, tl_dtype_name(job.spec.dtype));
    return 2;
  }
  ok = make_inputs(sample, &job, shape, in, (uint64_t)seed) && run(sample, &job, target, (int)repeats);
  if (ok && out != NULL && !npy_write(out, &job.y, message)) {
    fprintf(stderr, "%s\n", message);
    ok = 0;
  }
  npy_free(&job.x);
  npy_free(&job.y);
  npy_free(&job.gamma);
  npy_free(&job.beta);
  return ok ? 0 : 1;
}
