/* C = relu(A * B + bias), the matrix product of the TileLang paper with an epilogue.
 *
 *   gemm_bias_relu 1024 1024 1024                      random data
 *   gemm_bias_relu --make 300 200 100 --dtype f16 --a a.npy --b b.npy --bias bias.npy     write inputs and
 * stop gemm_bias_relu --a a.npy --b b.npy --bias bias.npy --out c.npy                        use them
 *
 * A is M x K (K x M with --transpose-a), B is K x N (N x K with --transpose-b), bias has N elements. Sums are
 * formed in f32 (f64 for f64, i32 for integers), which is also the type of C unless --out-dtype says
 * otherwise. The program is built once for all sizes: m, n and k are symbolic. The result is checked against
 * a reference in double. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "gemm_program.h"
#include "npy.h"
#include "options.h"
#include "runner.h"

struct job {
  int64_t sizes[3]; /* m, n, k */
  struct gemm_spec spec;
  struct npy_array a, b, bias, c;
};

/* ---------------------------------------------------------------------------------------------- the check --
 */

enum { PANEL_K = 64, PANEL_N = 512, ROWS = 4 };

static double read_a(const struct job* job, int64_t row, int64_t k) {
  return element_get(job->a.dtype, job->a.data,
                     (size_t)(job->spec.transpose_a ? k * job->sizes[0] + row : row * job->sizes[2] + k));
}

static double read_b(const struct job* job, int64_t k, int64_t col) {
  return element_get(job->b.dtype, job->b.data,
                     (size_t)(job->spec.transpose_b ? col * job->sizes[2] + k : k * job->sizes[1] + col));
}

/* sums[m][PANEL_N] += A * B for the columns from `col` on, one packed panel of B at a time. */
static void reference_columns(const struct job* job, const double* a, int64_t col, int64_t width,
                              double* panel, double* sums) {
  const int64_t m = job->sizes[0], k = job->sizes[2];
  int64_t k0, row, kk, j;
  for (k0 = 0; k0 < k; k0 += PANEL_K) {
    const int64_t depth = k - k0 < PANEL_K ? k - k0 : PANEL_K;
    memset(panel, 0, sizeof(double) * PANEL_K * PANEL_N);
    for (j = 0; j < width; ++j)
      for (kk = 0; kk < depth; ++kk) panel[kk * PANEL_N + j] = read_b(job, k0 + kk, col + j);
    for (row = 0; row < m; row += ROWS) { /* `sums` and `a` are padded to a multiple of ROWS rows */
      double* s = sums + row * PANEL_N;
      for (kk = 0; kk < depth; ++kk) {
        const double* p = panel + kk * PANEL_N;
        const double a0 = a[row * k + k0 + kk], a1 = a[(row + 1) * k + k0 + kk];
        const double a2 = a[(row + 2) * k + k0 + kk], a3 = a[(row + 3) * k + k0 + kk];
        for (j = 0; j < PANEL_N; ++j) {
          s[j] += a0 * p[j];
          s[PANEL_N + j] += a1 * p[j];
          s[2 * PANEL_N + j] += a2 * p[j];
          s[3 * PANEL_N + j] += a3 * p[j];
        }
      }
    }
  }
}

/* What rounding may cost: a sum of k products is off by at most (k + 2) roundings of |a| * |b|, and the
 * result is rounded once more. Integers must be exact. */
static double allowed_error(const struct job* job, double a_norm, double b_norm, double bias,
                            double expected) {
  const double sum = element_rounding(job->spec.sum_dtype) + element_rounding(TL_F64);
  if (!element_is_float(job->spec.sum_dtype)) return 0;
  return ((double)job->sizes[2] + 2) * sum * (a_norm * b_norm + fabs(bias)) +
         2 * element_rounding(job->spec.out_dtype) * fabs(expected) +
         ldexp(1.0, -24) * (job->spec.out_dtype == TL_F16);
}

/* Largest error, and the number of elements that are off by more than rounding explains; -1 when memory is
 * short. */
static int64_t check(const struct job* job, double* max_error) {
  const int64_t m = job->sizes[0], n = job->sizes[1], k = job->sizes[2];
  const int64_t rows = (m + ROWS - 1) / ROWS * ROWS;
  double *a = calloc((size_t)(rows * k) + 1, sizeof *a), *a_norm = calloc((size_t)rows + 1, sizeof *a_norm);
  double *panel = malloc(sizeof *panel * PANEL_K * PANEL_N),
         *sums = malloc(sizeof *sums * PANEL_N * (size_t)(rows + 1));
  int64_t row, col, j, kk, wrong = -1;
  *max_error = 0;
  if (a == NULL || a_norm == NULL || panel == NULL || sums == NULL) goto done;
  for (row = 0; row < m; ++row) {
    for (kk = 0; kk < k; ++kk) {
      a[row * k + kk] = read_a(job, row, kk);
      a_norm[row] += a[row * k + kk] * a[row * k + kk];
    }
    a_norm[row] = sqrt(a_norm[row]);
  }
  wrong = 0;
  for (col = 0; col < n; col += PANEL_N) {
    const int64_t width = n - col < PANEL_N ? n - col : PANEL_N;
    memset(sums, 0, sizeof *sums * PANEL_N * (size_t)rows);
    reference_columns(job, a, col, width, panel, sums);
    for (j = 0; j < width; ++j) {
      const double bias = element_get(job->bias.dtype, job->bias.data, (size_t)(col + j));
      double b_norm = 0;
      for (kk = 0; kk < k; ++kk) b_norm += read_b(job, kk, col + j) * read_b(job, kk, col + j);
      b_norm = sqrt(b_norm);
      for (row = 0; row < m; ++row) {
        const double expected = fmax(sums[row * PANEL_N + j] + bias, 0);
        const double error =
            fabs(element_get(job->c.dtype, job->c.data, (size_t)(row * n + col + j)) - expected);
        if (!(error <= allowed_error(job, a_norm[row], b_norm, bias, expected)))
          ++wrong; /* NaN counts as wrong */
        if (error > *max_error || isnan(error)) *max_error = error;
      }
    }
  }
done:
  free(a);
  free(a_norm);
  free(panel);
  free(sums);
  return wrong;
}

/* ---------------------------------------------------------------------------------------------- inputs -- */

static int make_inputs(struct job* job, tl_dtype dtype, uint64_t seed) {
  const int64_t m = job->sizes[0], n = job->sizes[1], k = job->sizes[2];
  const int64_t a_shape[2] = {job->spec.transpose_a ? k : m, job->spec.transpose_a ? m : k};
  const int64_t b_shape[2] = {job->spec.transpose_b ? n : k, job->spec.transpose_b ? k : n};
  const tl_dtype bias_dtype = element_is_float(dtype) ? dtype : TL_I32;
  if (!npy_make(&job->a, dtype, 2, a_shape) || !npy_make(&job->b, dtype, 2, b_shape) ||
      !npy_make(&job->bias, bias_dtype, 1, &n)) {
    fprintf(stderr, "no memory for matrices of these sizes\n");
    return 0;
  }
  element_random(dtype, job->a.data, job->a.count, seed);
  element_random(dtype, job->b.data, job->b.count, seed + 1);
  element_random(bias_dtype, job->bias.data, job->bias.count, seed + 2);
  return 1;
}

/* The sizes follow from the files; sizes given as well must agree. */
static int read_inputs(struct job* job, const char* a, const char* b, const char* bias) {
  char message[NPY_MESSAGE_SIZE];
  int64_t found[3];
  int i;
  if (!npy_read(a, &job->a, message) || !npy_read(b, &job->b, message) ||
      !npy_read(bias, &job->bias, message)) {
    fprintf(stderr, "%s\n", message);
    return 0;
  }
  if (job->a.rank != 2 || job->b.rank != 2 || job->bias.rank != 1) {
    fprintf(stderr, "A and B must have 2 dimensions and bias 1; got %d, %d and %d\n", job->a.rank,
            job->b.rank, job->bias.rank);
    return 0;
  }
  found[0] = job->a.shape[job->spec.transpose_a ? 1 : 0];
  found[1] = job->b.shape[job->spec.transpose_b ? 0 : 1];
  found[2] = job->a.shape[job->spec.transpose_a ? 0 : 1];
  if (job->b.shape[job->spec.transpose_b ? 1 : 0] != found[2] || job->bias.shape[0] != found[1]) {
    fprintf(stderr, "shapes do not fit: A is %lld x %lld%s, B is %lld x %lld%s, bias has %lld\n",
            (long long)job->a.shape[0], (long long)job->a.shape[1],
            job->spec.transpose_a ? " (transposed)" : "", (long long)job->b.shape[0],
            (long long)job->b.shape[1], job->spec.transpose_b ? " (transposed)" : "",
            (long long)job->bias.shape[0]);
    return 0;
  }
  if (job->a.dtype != job->b.dtype) {
    fprintf(stderr, "A is %s but B is %s; they must have one type\n", tl_dtype_name(job->a.dtype),
            tl_dtype_name(job->b.dtype));
    return 0;
  }
  for (i = 0; i < 3; ++i) {
    if (job->sizes[i] >= 0 && job->sizes[i] != found[i]) {
      fprintf(stderr, "%c is given as %lld but the files have %lld\n", "MNK"[i], (long long)job -> sizes[i],
              (long long)found[i]);
      return 0;
    }
    job->sizes[i] = found[i];
  }
  return 1;
}

static int save(const char* path, const struct npy_array* array) {
  char message[NPY_MESSAGE_SIZE];
  if (path == NULL || npy_write(path, array, message)) return 1;
  fprintf(stderr, "%s\n", message);
  return 0;
}

/* ---------------------------------------------------------------------------------------------- the run --
 */

static int run(struct job* job, const char* target, const char* out, int repeats) {
  struct runner runner;
  tl_builder* builder = NULL;
  tl_error* error = NULL;
  tl_arg args[7];
  double ms = 0, max_error;
  int samples = 0, ok;
  int64_t wrong;
  const double flops = 2.0 * (double)job->sizes[0] * (double)job->sizes[1] * (double)job->sizes[2];

  ok = runner_open(&runner, target);
  if (ok && tl_builder_create(runner.context, "gemm_bias_relu", &builder, &error) != TL_OK) {
    fprintf(stderr, "%s\n", tl_error_message(error));
    tl_error_release(error);
    ok = 0;
  }
  if (ok) {
    job->spec.gpu = runner_is_gpu(&runner);
    gemm_build(builder, &job->spec);
    ok = runner_compile(&runner, builder);
  }
  args[0] = runner_i64(job->sizes[0]);
  args[1] = runner_i64(job->sizes[1]);
  args[2] = runner_i64(job->sizes[2]);
  ok = ok && runner_array(&runner, &args[3], &job->a) && runner_array(&runner, &args[4], &job->b);
  ok = ok && runner_array(&runner, &args[5], &job->bias) && runner_array(&runner, &args[6], &job->c);
  ok = ok && runner_time(&runner, args, 7, repeats, &ms, &samples) && runner_fetch(&runner);
  if (ok) {
    printf("problem   %s %lld x %lld x %lld%s%s -> %s\n", tl_dtype_name(job->a.dtype),
           (long long)job->sizes[0], (long long)job->sizes[1], (long long)job->sizes[2],
           job->spec.transpose_a ? ", A transposed" : "", job->spec.transpose_b ? ", B transposed" : "",
           tl_dtype_name(job->spec.out_dtype));
    printf("time      %.3f ms (median of %d)\nrate      %.1f GFLOP/s\n", ms, samples,
           ms > 0 ? flops / ms * 1e-6 : 0.0);
    wrong = check(job, &max_error);
    if (wrong < 0) {
      fprintf(stderr, "no memory for the reference\n");
      ok = 0;
    } else {
      printf("error     %.3g at most, against a reference in double: %s\n", max_error,
             wrong == 0 ? "right" : "WRONG");
      if (wrong > 0)
        printf("          %lld of %lld elements are off by more than rounding explains\n", (long long)wrong,
               (long long)job->c.count);
      ok = wrong == 0;
    }
    ok = save(out, &job->c) && ok;
    ok = runner_print_schedule(&runner) && ok;
  }
  runner_close(&runner);
  return ok;
}

int main(int argc, char** argv) {
  struct job job;
  const char *target = NULL, *out = NULL, *a = NULL, *b = NULL, *bias = NULL;
  tl_dtype dtype = TL_F32;
  int64_t seed = 1, repeats = 20;
  int make = 0, exit_code = 1, ok;
  const struct option options[] = {
      {"M", OPTION_SIZE, &job.sizes[0], "rows of A and C"},
      {"N", OPTION_SIZE, &job.sizes[1], "columns of B and C"},
      {"K", OPTION_SIZE, &job.sizes[2], "columns of A, rows of B"},
      {"--make", OPTION_FLAG, &make, "only write random inputs to --a, --b, --bias"},
      {"--a", OPTION_TEXT, &a, "A, a .npy file"},
      {"--b", OPTION_TEXT, &b, "B, a .npy file"},
      {"--bias", OPTION_TEXT, &bias, "bias, a .npy file"},
      {"--out", OPTION_TEXT, &out, "where to write C, a .npy file"},
      {"--transpose-a", OPTION_FLAG, &job.spec.transpose_a, "A is stored as K x M"},
      {"--transpose-b", OPTION_FLAG, &job.spec.transpose_b, "B is stored as N x K"},
      {"--dtype", OPTION_DTYPE, &dtype, "of made inputs: f16 bf16 f32 f64 i8"},
      {"--out-dtype", OPTION_DTYPE, &job.spec.out_dtype, "of C (f32; f64 for f64, i32 for i8)"},
      {"--target", OPTION_TEXT, &target, "target to compile for (the best present)"},
      {"--seed", OPTION_INT, &seed, "of the random inputs (1)"},
      {"--repeats", OPTION_INT, &repeats, "timed launches at most (20)"}};
  memset(&job, 0, sizeof job);
  job.sizes[0] = job.sizes[1] = job.sizes[2] = -1;
  if (!options_parse(argc, argv, options, (int)(sizeof options / sizeof *options),
                     "C = relu(A * B + bias), compiled for the best device present.", &exit_code))
    return exit_code;
  if ((a != NULL || b != NULL || bias != NULL || make) && (a == NULL || b == NULL || bias == NULL)) {
    fprintf(stderr, "--a, --b and --bias are needed together\n");
    return 2;
  }
  if (a == NULL || make) {
    int i;
    for (i = 0; i < 3; ++i)
      if (job.sizes[i] < 0) job.sizes[i] = 1024;
    ok = make_inputs(&job, dtype, (uint64_t)seed);
    if (ok && make) ok = save(a, &job.a) && save(b, &job.b) && save(bias, &job.bias);
  } else {
    ok = read_inputs(&job, a, b, bias);
  }
  if (ok && !make) {
    job.spec.dtype = job.a.dtype;
    job.spec.bias_dtype = job.bias.dtype;
    job.spec.sum_dtype = gemm_sum_dtype(job.a.dtype);
    if (job.spec.out_dtype == 0) job.spec.out_dtype = job.spec.sum_dtype;
    ok = npy_make(&job.c, job.spec.out_dtype, 2, job.sizes);
    if (!ok) fprintf(stderr, "no memory for C\n");
    ok = ok && run(&job, target, out, (int)repeats);
  }
  npy_free(&job.a);
  npy_free(&job.b);
  npy_free(&job.bias);
  npy_free(&job.c);
  return ok ? 0 : 1;
}
