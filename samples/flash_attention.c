/* O = softmax(Q * K^T / sqrt(dim)) * V for each batch and head, without ever storing the scores.
 *
 *   flash_attention 2 8 1024 1024 128                      batch, heads, queries, keys, size of a head
 *   flash_attention 2 2 1000 1500 128 --group 4 --causal   8 heads of queries share 2 of keys
 *   flash_attention 1 8 1 8192 128 --group 4 --parts 16    one query: the keys split, so that many blocks have work
 *   flash_attention 1 1 70 130 64 --target sim:sm_90a      without a GPU, on the simulator of one
 *
 * The program is built for one size of heads and for any number of batches, heads, queries and keys. The result
 * is checked against a reference in double. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention_program.h"
#include "element.h"
#include "npy.h"
#include "options.h"
#include "runner.h"

enum { BATCH, HEADS, QUERIES, KEYS, DIM, SIZES };

struct job {
  int64_t sizes[SIZES]; /* heads: of K and V */
  int64_t group, parts; /* parts of the keys; 0: not split */
  int causal;
  tl_dtype dtype;
  struct npy_array q, k, v, o;
};

/* ---- the check */

/* Row `row` of all rows of a tensor, as doubles; gives its norm. */
static double read_row(const struct job* job, const struct npy_array* from, int64_t row, double* to) {
  const int64_t dim = job->sizes[DIM];
  double squares = 0;
  int64_t c;
  for (c = 0; c < dim; ++c) {
    to[c] = element_get(job->dtype, from->data, (size_t)(row * dim + c));
    squares += to[c] * to[c];
  }
  return sqrt(squares);
}

/* One query: out, and for each of its elements what rounding may cost. Scores are sums of dim products in f32, and an
 * error in them is one of the weights; weights are rounded to the tensors' type. */
static void reference(const struct job* job, const double* q, double q_norm, const double* k, const double* k_norm,
                      const double* v, int64_t seen, double* weights, double* out, double* allowed) {
  const int64_t dim = job->sizes[DIM];
  const double scale = 1 / sqrt((double)dim), f32 = element_rounding(TL_F32);
  double top = -INFINITY, total = 0;
  int64_t j, c;
  for (j = 0; j < seen; ++j) {
    double score = 0;
    for (c = 0; c < dim; ++c) score += q[c] * k[j * dim + c];
    weights[j] = score * scale;
    top = fmax(top, weights[j]);
  }
  for (j = 0; j < seen; ++j) total += weights[j] = exp(weights[j] - top);
  for (c = 0; c < dim; ++c) out[c] = allowed[c] = 0;
  for (j = 0; j < seen; ++j) {
    const double weight = weights[j] / total, score_error = f32 * ((double)dim + 4) * q_norm * k_norm[j] * scale;
    const double error = 2 * element_rounding(job->dtype) + 4 * score_error + f32 * ((double)seen + 24);
    for (c = 0; c < dim; ++c) {
      out[c] += weight * v[j * dim + c];
      allowed[c] += weight * error * fabs(v[j * dim + c]);
    }
  }
  for (c = 0; c < dim; ++c) allowed[c] += 2 * element_rounding(job->dtype) * fabs(out[c]) + ldexp(1, -23);
}

/* Elements that are off by more than rounding explains; -1 when memory is short. */
static int64_t check(const struct job* job, double* max_error) {
  const int64_t keys = job->sizes[KEYS], queries = job->sizes[QUERIES], dim = job->sizes[DIM];
  const int64_t heads = job->sizes[HEADS] * job->group;
  double* memory = malloc(sizeof *memory * (size_t)(2 * keys * dim + 2 * keys + 3 * dim));
  double *k = memory, *v = k + keys * dim, *k_norm = v + keys * dim, *weights = k_norm + keys;
  double *q = weights + keys, *out = q + dim, *allowed = out + dim;
  int64_t wrong = 0, head, i, j, c;
  *max_error = 0;
  if (memory == NULL) return -1;
  for (head = 0; head < job->sizes[BATCH] * heads; ++head) {
    const int64_t kv_head = head / heads * job->sizes[HEADS] + head % heads / job->group;
    for (j = 0; j < keys; ++j) {
      k_norm[j] = read_row(job, &job->k, kv_head * keys + j, k + j * dim);
      read_row(job, &job->v, kv_head * keys + j, v + j * dim);
    }
    for (i = 0; i < queries; ++i) {
      const double q_norm = read_row(job, &job->q, head * queries + i, q);
      int64_t seen = job->causal && i + keys - queries + 1 < keys ? i + keys - queries + 1 : keys;
      if (seen < 0) seen = 0;
      reference(job, q, q_norm, k, k_norm, v, seen, weights, out, allowed);
      for (c = 0; c < dim; ++c) {
        const size_t at = (size_t)((head * queries + i) * dim + c);
        const double error = fabs(element_get(job->dtype, job->o.data, at) - out[c]);
        if (!(error <= allowed[c])) ++wrong; /* NaN counts as wrong */
        if (!(error <= *max_error)) *max_error = error;
      }
    }
  }
  free(memory);
  return wrong;
}

/* ---- the run */

static int make_tensors(struct job* job, uint64_t seed) {
  int64_t q[4], k[4];
  q[0] = k[0] = job->sizes[BATCH];
  q[1] = job->sizes[HEADS] * job->group;
  k[1] = job->sizes[HEADS];
  q[2] = job->sizes[QUERIES];
  k[2] = job->sizes[KEYS];
  q[3] = k[3] = job->sizes[DIM];
  if (!npy_make(&job->q, job->dtype, 4, q) || !npy_make(&job->k, job->dtype, 4, k) ||
      !npy_make(&job->v, job->dtype, 4, k) || !npy_make(&job->o, job->dtype, 4, q)) {
    fprintf(stderr, "no memory for tensors of these sizes\n");
    return 0;
  }
  element_random(job->dtype, job->q.data, job->q.count, seed);
  element_random(job->dtype, job->k.data, job->k.count, seed + 1);
  element_random(job->dtype, job->v.data, job->v.count, seed + 2);
  return 1;
}

/* Products of queries with keys that they see: two times as many additions and multiplications, two times over. */
static double operations(const struct job* job) {
  const int64_t queries = job->sizes[QUERIES], keys = job->sizes[KEYS];
  double pairs = (double)queries * (double)keys;
  int64_t i;
  if (job->causal)
    for (pairs = 0, i = 0; i < queries; ++i)
      if (i + keys - queries >= 0) pairs += (double)(i + keys - queries + 1);
  return 4 * pairs * (double)(job->sizes[DIM] * job->sizes[BATCH] * job->sizes[HEADS] * job->group);
}

static int report(const struct job* job, double ms, int samples) {
  double max_error;
  const int64_t wrong = check(job, &max_error), *s = job->sizes;
  printf("problem   %s, %lld batches of %lld heads, %lld queries, %lld keys, heads of %lld%s\n",
         tl_dtype_name(job->dtype), (long long)s[BATCH], (long long)(s[HEADS] * job->group), (long long)s[QUERIES],
         (long long)s[KEYS], (long long)s[DIM], job->causal ? ", causal" : "");
  printf("time      %.3f ms (median of %d)\nrate      %.1f GFLOP/s\n", ms, samples,
         ms > 0 ? operations(job) / ms * 1e-6 : 0.0);
  if (wrong < 0) {
    fprintf(stderr, "no memory for the reference\n");
    return 0;
  }
  printf("error     %.3g at most, against a reference in double: %s\n", max_error, wrong == 0 ? "right" : "WRONG");
  if (wrong > 0)
    printf("          %lld of %lld elements are off by more than rounding explains\n", (long long)wrong,
           (long long)job->o.count);
  return wrong == 0;
}

static int run(struct job* job, const char* target, int repeats) {
  struct runner runner;
  struct attention_spec spec;
  tl_builder* builder = NULL;
  tl_error* error = NULL;
  tl_arg args[10];
  double ms = 0;
  int n = 0, samples = 0, ok = runner_open(&runner, target);
  if (ok && tl_builder_create(runner.context, "flash_attention", &builder, &error) != TL_OK) {
    fprintf(stderr, "%s\n", tl_error_message(error));
    tl_error_release(error);
    ok = 0;
  }
  if (ok) {
    spec = attention_spec_make(job->dtype, job->sizes[DIM], job->group, job->causal, tl_target_name(runner.target));
    if (job->parts > 0) { /* few queries: a tile of one warpgroup's rows */
      spec.split = 1;
      if (spec.threads == 256) {
        spec.tile_queries = 64;
        spec.threads = 128;
      }
    }
    attention_build(builder, &spec);
    ok = runner_compile(&runner, builder);
  }
  for (; n < DIM; ++n) args[n] = runner_i64(job->sizes[n]);
  if (job->parts > 0) args[n++] = runner_i64(job->parts);
  args[n++] = runner_f64(1.4426950408889634 / sqrt((double)job->sizes[DIM]));
  ok = ok && runner_array(&runner, &args[n], &job->q) && runner_array(&runner, &args[n + 1], &job->k);
  ok = ok && runner_array(&runner, &args[n + 2], &job->v) && runner_array(&runner, &args[n + 3], &job->o);
  ok = ok && runner_time(&runner, args, (size_t)n + 4, repeats, &ms, &samples) && runner_fetch(&runner);
  ok = ok && report(job, ms, samples);
  ok = ok && runner_print_schedule(&runner);
  runner_close(&runner);
  return ok;
}

int main(int argc, char** argv) {
  static const int64_t defaults[SIZES] = {1, 4, 1024, 1024, 64};
  struct job job;
  const char* target = NULL;
  int64_t seed = 1, repeats = 20;
  int exit_code = 1, ok, i;
  const struct option options[] = {
      {"BATCH", OPTION_SIZE, &job.sizes[BATCH], "batches (1)"},
      {"HEADS", OPTION_SIZE, &job.sizes[HEADS], "heads of K and V (4)"},
      {"QUERIES", OPTION_SIZE, &job.sizes[QUERIES], "rows of Q and O (1024)"},
      {"KEYS", OPTION_SIZE, &job.sizes[KEYS], "rows of K and V (1024)"},
      {"DIM", OPTION_SIZE, &job.sizes[DIM], "size of a head, a multiple of 16 up to 256 (64)"},
      {"--group", OPTION_INT, &job.group, "heads of Q to a head of K and V (1)"},
      {"--parts", OPTION_INT, &job.parts, "parts that the keys are split into, for few queries (0: not split)"},
      {"--causal", OPTION_FLAG, &job.causal, "queries see only the keys up to their own place"},
      {"--dtype", OPTION_DTYPE, &job.dtype, "f16 bf16 f32 (f16)"},
      {"--target", OPTION_TEXT, &target, "target to compile for (the best present)"},
      {"--seed", OPTION_INT, &seed, "of the random inputs (1)"},
      {"--repeats", OPTION_INT, &repeats, "timed launches at most (20)"}};
  memset(&job, 0, sizeof job);
  for (i = 0; i < SIZES; ++i) job.sizes[i] = -1;
  job.group = 1;
  job.dtype = TL_F16;
  if (!options_parse(argc, argv, options, (int)(sizeof options / sizeof *options),
                     "O = softmax(Q * K^T / sqrt(dim)) * V, compiled for the best device present.", &exit_code))
    return exit_code;
  for (i = 0; i < SIZES; ++i)
    if (job.sizes[i] < 0) job.sizes[i] = defaults[i];
  if (job.sizes[DIM] < 16 || job.sizes[DIM] > 256 || job.sizes[DIM] % 16 != 0 || job.group < 1 ||
      (job.dtype != TL_F16 && job.dtype != TL_BF16 && job.dtype != TL_F32)) {
    fprintf(stderr, "heads of 16, 32 ... 256 elements of f16, bf16 or f32, in groups of 1 or more\n");
    return 2;
  }
  ok = make_tensors(&job, (uint64_t)seed) && run(&job, target, (int)repeats);
  npy_free(&job.q);
  npy_free(&job.k);
  npy_free(&job.v);
  npy_free(&job.o);
  return ok ? 0 : 1;
}
