#include "row_sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "options.h"
#include "runner.h"

#define MAX_COLS 65536

/* ---- the check */

double row_get(const struct row_job* job, int param, int64_t row, int64_t col) {
  const struct npy_array* array = &job->arrays[param];
  const int64_t cols = array->rank == 1 ? array->shape[0] : (int64_t)array->count / array->shape[0];
  return element_get(array->dtype, array->data, (size_t)(row * cols + col));
}

/* Number `which` of the parameters that are results, or -1. */
static int result_param(const struct row_sample* sample, int which) {
  int i;
  for (i = 0; i < ROW_PARAMS && sample->params[i] != ROW_END; ++i)
    if (sample->params[i] == ROW_RESULT && which-- == 0) return i;
  return -1;
}

static int count_results(const struct row_sample* sample) {
  int count = 0;
  while (result_param(sample, count) >= 0) ++count;
  return count;
}

/* The number of wrong elements, -1 when memory is short. */
static int64_t check(const struct row_sample* sample, const struct row_job* job, double* max_error) {
  const int64_t cols = job->spec.cols, all = cols * count_results(sample);
  const tl_dtype dtype = job->spec.dtype;
  double *y = malloc(2 * (size_t)all * sizeof *y), *allowed = y + all;
  int64_t row, j, wrong = 0;
  *max_error = 0;
  if (y == NULL) return -1;
  for (row = 0; row < job->arrays[0].shape[0]; ++row) {
    sample->reference(job, row, y, allowed);
    for (j = 0; j < all; ++j) {
      const double got = row_get(job, result_param(sample, (int)(j / cols)), row, j % cols);
      const double error = fabs(got - y[j]), least = ldexp(1.0, dtype == TL_F16 ? -24 : -126);
      if (!(error <= allowed[j] + 2 * element_rounding(dtype) * fabs(y[j]) + least)) ++wrong; /* or NaN */
      if (error > *max_error || isnan(error)) *max_error = error;
    }
  }
  free(y);
  return wrong;
}

/* Every array is read or written once. */
static double bytes_moved(const struct row_job* job) {
  double bytes = 0;
  int i;
  for (i = 0; i < ROW_PARAMS; ++i)
    bytes += (double)job->arrays[i].count * (double)element_bytes(job->arrays[i].dtype);
  return bytes;
}

static int report(const struct row_sample* sample, const struct row_job* job, double ms, int samples) {
  double max_error;
  const int64_t wrong = check(sample, job, &max_error);
  printf("problem   %s of %lld rows x ", sample->name, (long long)job->arrays[0].shape[0]);
  if (sample->heads) printf("%lld heads x ", (long long)job->spec.heads);
  printf("%lld, %s\n", (long long)(job->spec.cols / job->spec.heads), tl_dtype_name(job->spec.dtype));
  printf("time      %.3f ms (median of %d)\nrate      %.2f GB/s\n", ms, samples,
         ms > 0 ? bytes_moved(job) / ms * 1e-6 : 0.0);
  if (wrong < 0) {
    fprintf(stderr, "no memory for the reference\n");
    return 0;
  }
  printf("error     %.3g at most, against a reference in double: %s\n", max_error,
         wrong == 0 ? "right" : "WRONG");
  if (wrong > 0)
    printf("          %lld of %lld elements are off by more than rounding explains\n", (long long)wrong,
           (long long)job->arrays[0].count * count_results(sample));
  return wrong == 0;
}

/* ---- the run */

static int build(struct runner* runner, const struct row_sample* sample, struct row_job* job) {
  const int64_t heads = job->spec.heads;
  tl_builder* builder = NULL;
  tl_error* error = NULL;
  if (tl_builder_create(runner->context, sample->name, &builder, &error) != TL_OK) {
    fprintf(stderr, "%s\n", tl_error_message(error));
    tl_error_release(error);
    return 0;
  }
  job->spec = row_spec_make(job->spec.dtype, job->spec.cols, runner_is_gpu(runner));
  job->spec.heads = heads;
  sample->build(builder, &job->spec);
  return runner_compile(runner, builder);
}

static int run(const struct row_sample* sample, struct row_job* job, const char* target, int repeats) {
  struct runner runner;
  tl_arg args[1 + ROW_PARAMS];
  double ms = 0;
  int i, samples = 0, ok = runner_open(&runner, target) && build(&runner, sample, job);
  args[0] = runner_i64(job->arrays[0].shape[0]);
  for (i = 0; i < ROW_PARAMS && sample->params[i] != ROW_END; ++i) {
    if (sample->params[i] == ROW_EPSILON)
      args[1 + i] = runner_f64(job->epsilon);
    else
      ok = ok && runner_array(&runner, &args[1 + i], &job->arrays[i]);
  }
  ok = ok && runner_time(&runner, args, (size_t)i + 1, repeats, &ms, &samples) && runner_fetch(&runner);
  ok = ok && report(sample, job, ms, samples);
  ok = ok && runner_print_schedule(&runner);
  runner_close(&runner);
  return ok;
}

/* ---- inputs */

/* X from a file or at random, and what it says of the problem. */
static int make_x(const struct row_sample* sample, struct row_job* job, const int64_t shape[3],
                  const char* in, uint64_t seed) {
  struct npy_array* x = &job->arrays[0];
  const int rank = sample->heads ? 3 : 2;
  char message[NPY_MESSAGE_SIZE];
  if (in != NULL && !npy_read(in, x, message)) {
    fprintf(stderr, "%s\n", message);
    return 0;
  }
  if (in != NULL && (x->rank != rank || !element_is_float(x->dtype))) {
    fprintf(stderr, "%s: a %s of floating type is needed, got %d dimensions of %s\n", in,
            sample->heads ? "tensor of rows, heads and their elements" : "matrix", x->rank,
            tl_dtype_name(x->dtype));
    return 0;
  }
  if (in == NULL) {
    if (!npy_make(x, job->spec.dtype, rank, shape)) return 0;
    element_random(job->spec.dtype, x->data, x->count, seed);
  }
  job->spec.dtype = x->dtype;
  job->spec.heads = sample->heads ? x->shape[1] : 1;
  if (sample->heads && (x->shape[2] % 2 != 0 || x->shape[1] > MAX_COLS || x->shape[2] > MAX_COLS)) {
    fprintf(stderr, "%lld heads of %lld elements; heads of an even number are needed, up to %d\n",
            (long long)x->shape[1], (long long)x->shape[2], MAX_COLS);
    return 0;
  }
  job->spec.cols = x->shape[1] * (sample->heads ? x->shape[2] : 1);
  if (job->spec.cols < 1 || job->spec.cols > MAX_COLS) {
    if (sample->heads)
      fprintf(stderr, "%lld heads of %lld: ", (long long)x->shape[1], (long long)x->shape[2]);
    fprintf(stderr, "%lld columns; from 1 to %d are possible, as a whole row is one tile\n",
            (long long)job->spec.cols, MAX_COLS);
    return 0;
  }
  return 1;
}

/* Cosines or sines of angles that depend on the seed alone. */
static int make_angles(struct row_job* job, struct npy_array* to, uint64_t seed, double (*function)(double)) {
  int64_t shape[2], i;
  shape[0] = job->arrays[0].shape[0];
  shape[1] = job->spec.cols / job->spec.heads / 2;
  if (!npy_make(to, TL_F32, 2, shape)) return 0;
  element_random(TL_F32, to->data, to->count, seed);
  for (i = 0; i < (int64_t)to->count; ++i)
    element_set(TL_F32, to->data, (size_t)i,
                function(3.141592653589793 * element_get(TL_F32, to->data, (size_t)i)));
  return 1;
}

static int make_param(struct row_job* job, int number, enum row_param param, uint64_t seed) {
  struct npy_array *x = &job->arrays[0], *to = &job->arrays[number];
  const int of_columns = param == ROW_FACTORS || param == ROW_OFFSETS;
  size_t i;
  if (param == ROW_EPSILON) return 1;
  if (param == ROW_COSINES) return make_angles(job, to, seed + 1, cos);
  if (param == ROW_SINES) return make_angles(job, to, seed + 1, sin);
  if (!npy_make(to, x->dtype, of_columns ? 1 : x->rank, of_columns ? &job->spec.cols : x->shape)) return 0;
  if (param != ROW_RESULT) element_random(to->dtype, to->data, to->count, seed + (uint64_t)number);
  for (i = 0; i < to->count; ++i) {
    if (param == ROW_FACTORS)
      element_set(to->dtype, to->data, i, 1 + element_get(to->dtype, to->data, i) / 4);
    if (param == ROW_RESULT) element_set(to->dtype, to->data, i, NAN); /* what is never written is found */
  }
  return 1;
}

static int make_params(const struct row_sample* sample, struct row_job* job, uint64_t seed) {
  int i;
  for (i = 1; i < ROW_PARAMS && sample->params[i] != ROW_END; ++i)
    if (!make_param(job, i, sample->params[i], seed)) {
      fprintf(stderr, "no memory for tensors of these sizes\n");
      return 0;
    }
  return 1;
}

/* ---- options */

enum { OPTIONS = 9 };

static int list_options(const struct row_sample* sample, int64_t shape[3], struct option* options) {
  int n = 0;
  options[n++] = (struct option){"ROWS", OPTION_SIZE, &shape[0], "rows of X"};
  if (sample->heads) {
    options[n++] = (struct option){"HEADS", OPTION_SIZE, &shape[1], "heads of a row"};
    options[n++] = (struct option){"DIM", OPTION_SIZE, &shape[2], "elements of a head, an even number"};
  } else {
    options[n++] = (struct option){"COLS", OPTION_SIZE, &shape[1], "columns of X, 1 to 65536"};
  }
  return n;
}

int row_sample_main(const struct row_sample* sample, int argc, char** argv) {
  struct row_job job;
  char message[NPY_MESSAGE_SIZE];
  const char *target = NULL, *in = NULL, *out = NULL;
  int64_t shape[3] = {4096, 4096, 128}, seed = 1, repeats = 20;
  int exit_code = 1, n, i, ok;
  struct option options[OPTIONS];
  memset(&job, 0, sizeof job);
  job.spec.dtype = TL_F32;
  job.epsilon = 1e-5;
  if (sample->heads) shape[1] = 32;
  n = list_options(sample, shape, options);
  options[n++] = (struct option){"--in", OPTION_TEXT, &in, "X, a .npy file (random)"};
  options[n++] = (struct option){"--out", OPTION_TEXT, &out, "where to write Y, a .npy file"};
  options[n++] =
      (struct option){"--dtype", OPTION_DTYPE, &job.spec.dtype, "of random inputs: f16 bf16 f32 f64 (f32)"};
  options[n++] =
      (struct option){"--target", OPTION_TEXT, &target, "target to compile for (the best present)"};
  options[n++] = (struct option){"--seed", OPTION_INT, &seed, "of the random inputs (1)"};
  options[n++] = (struct option){"--repeats", OPTION_INT, &repeats, "timed launches at most (20)"};
  if (!options_parse(argc, argv, options, n, sample->about, &exit_code)) return exit_code;
  if (!element_is_float(job.spec.dtype)) {
    fprintf(stderr, "%s needs a floating type, not %s\n", sample->name, tl_dtype_name(job.spec.dtype));
    return 2;
  }
  ok = make_x(sample, &job, shape, in, (uint64_t)seed) && make_params(sample, &job, (uint64_t)seed) &&
       run(sample, &job, target, (int)repeats);
  i = result_param(sample, count_results(sample) - 1);
  if (ok && out != NULL && !npy_write(out, &job.arrays[i], message)) {
    fprintf(stderr, "%s\n", message);
    ok = 0;
  }
  for (i = 0; i < ROW_PARAMS; ++i) npy_free(&job.arrays[i]);
  return ok ? 0 : 1;
}
