/* O = softmax(Q * K^T / sqrt(dim)) * V for each batch and head, without ever storing the scores.
 *
 *   flash_attention 2 8 1024 1024 128                      batch, heads, queries, keys, size of a head
 *   flash_attention 2 2 1000 1500 128 --group 4 --causal   8 heads of queries share 2 of keys
 *   flash_attention 1 8 1 8192 128 --group 4 --parts 16    one query, so the keys are split over blocks
 *   flash_attention 1 8 4096 4096 128 --left 512 --causal  a sliding window
 *   flash_attention 8 4 1000 1000 64 --packed --causal     8 sequences of any lengths, up to 1000
 *   flash_attention 1 1 70 130 64 --target sim:sm_90a      without a GPU, on the simulator of one
 *
 * The program is built for one size of heads and for any number of batches, heads, queries and keys. The
 * result is checked against a reference in double. */
#include <math.h>
#include <stdio.h>

#include "attention_check.h"
#include "element.h"
#include "options.h"
#include "runner.h"

#define WINDOW_LIMIT ((int64_t)1 << 40) /* places add up without overflow */

/* ---- inputs */

/* Where sequences begin, and the last one ends: lengths up to `most`, about every fifth 0. */
static int make_ends(struct npy_array* ends, int64_t batch, int64_t most, uint64_t seed, int64_t* all) {
  const int64_t places = batch + 1;
  struct npy_array random;
  int64_t i;
  if (!npy_make(ends, TL_I32, 1, &places) || !npy_make(&random, TL_F64, 1, &places)) return 0;
  element_random(TL_F64, random.data, random.count, seed);
  for (*all = i = 0; i < batch; ++i) {
    const double part = 0.625 * element_get(TL_F64, random.data, (size_t)i) + 0.375; /* -0.25 to 1 */
    element_set(TL_I32, ends->data, (size_t)i, (double)*all);
    if (part > 0) *all += (int64_t)(part * (double)(most + 1));
  }
  element_set(TL_I32, ends->data, (size_t)batch, (double)*all);
  npy_free(&random);
  return 1;
}

/* [batch, heads, length, dim]; heads last [batch, length, heads, dim]; packed [all, heads, dim]. */
static int make_tensor(const struct attention_job* job, struct npy_array* tensor, int64_t heads,
                       int64_t length) {
  const int last = job->spec.heads_last, packed = job->spec.packed;
  int64_t shape[4];
  shape[0] = job->sizes[BATCH];
  shape[1] = last || packed ? length : heads;
  shape[2] = last || packed ? heads : length;
  shape[3] = job->spec.dim;
  return npy_make(tensor, job->spec.dtype, packed ? 3 : 4, packed ? shape + 1 : shape);
}

/* Results begin as NaN, so that what is never written is found. */
static void spoil(struct npy_array* results) {
  size_t i;
  for (i = 0; i < results->count; ++i) element_set(results->dtype, results->data, i, NAN);
}

static int make_tensors(struct attention_job* job, uint64_t seed) {
  const int64_t heads = job->sizes[HEADS], q_heads = heads * job->spec.group;
  int64_t queries = job->sizes[QUERIES], keys = job->sizes[KEYS], sums[3];
  int ok = 1;
  if (job->spec.packed)
    ok = make_ends(&job->query_ends, job->sizes[BATCH], queries, seed + 3, &queries) &&
         make_ends(&job->key_ends, job->sizes[BATCH], keys, seed + 4, &keys);
  sums[0] = job->sizes[BATCH];
  sums[1] = q_heads;
  sums[2] = queries;
  ok = ok && make_tensor(job, &job->q, q_heads, queries) && make_tensor(job, &job->k, heads, keys);
  ok = ok && make_tensor(job, &job->v, heads, keys) && make_tensor(job, &job->o, q_heads, queries);
  if (job->spec.row_sums)
    ok = ok && npy_make(&job->row_sums, TL_F32, job->spec.packed ? 2 : 3, job->spec.packed ? sums + 1 : sums);
  if (!ok) {
    fprintf(stderr, "no memory for tensors of these sizes\n");
    return 0;
  }
  element_random(job->spec.dtype, job->q.data, job->q.count, seed);
  element_random(job->spec.dtype, job->k.data, job->k.count, seed + 1);
  element_random(job->spec.dtype, job->v.data, job->v.count, seed + 2);
  spoil(&job->o);
  spoil(&job->row_sums);
  return 1;
}

/* ---- the run */

static void print_problem(const struct attention_job* job) {
  const struct attention_spec* spec = &job->spec;
  const long long batch = job->sizes[BATCH], heads = job->sizes[HEADS] * spec->group;
  const long long queries = job->sizes[QUERIES], keys = job->sizes[KEYS];
  printf("problem   %s, ", tl_dtype_name(spec->dtype));
  if (spec->packed)
    printf("%lld sequences of up to %lld queries (%lld in all) and %lld keys (%lld), %lld heads of %lld",
           batch, queries, (long long)job->q.shape[0], keys, (long long)job->k.shape[0], heads,
           (long long)spec->dim);
  else
    printf("%lld batches of %lld heads, %lld queries, %lld keys, heads of %lld", batch, heads, queries, keys,
           (long long)spec->dim);
  if (spec->left != ATTENTION_ALL) printf(", %lld keys to the left", (long long)spec->left);
  if (spec->right > 0) printf(", %lld keys to the right", (long long)spec->right);
  printf("%s%s%s\n", spec->right == 0 ? ", causal" : "", spec->cap ? ", capped" : "",
         spec->heads_last ? ", heads last" : "");
}

static int report(const struct attention_job* job, double ms, int samples) {
  struct attention_result result;
  const int checked = attention_check(job, &result);
  print_problem(job);
  if (!checked) {
    fprintf(stderr, "no memory for the reference\n");
    return 0;
  }
  /* Two products of each pair, each of as many additions as multiplications. */
  printf("time      %.3f ms (median of %d)\nrate      %.1f GFLOP/s\n", ms, samples,
         ms > 0 ? 4 * result.pairs * (double)job->spec.dim / ms * 1e-6 : 0.0);
  printf("error     %.3g at most", result.error);
  if (job->spec.row_sums) printf(", of row sums %.3g", result.sums_error);
  printf(", against a reference in double: %s\n", result.wrong == 0 ? "right" : "WRONG");
  if (result.wrong > 0)
    printf("          %lld of %lld elements are off by more than rounding explains\n",
           (long long)result.wrong, (long long)(job->o.count + job->row_sums.count));
  return result.wrong == 0;
}

static int build(struct runner* runner, struct attention_job* job) {
  tl_builder* builder = NULL;
  tl_error* error = NULL;
  if (tl_builder_create(runner->context, "flash_attention", &builder, &error) != TL_OK) {
    fprintf(stderr, "%s\n", tl_error_message(error));
    tl_error_release(error);
    return 0;
  }
  attention_spec_fit(&job->spec, tl_target_name(runner->target));
  attention_build(builder, &job->spec);
  return runner_compile(runner, builder);
}

enum { MOST_ARGS = 14 };

/* In the order that attention_program.h states; how many, or 0. */
static size_t make_args(struct runner* runner, const struct attention_job* job, tl_arg* args) {
  const struct npy_array* arrays[7];
  const double log2_e = 1.4426950408889634;
  size_t n = 0, count = 0, i;
  args[n++] = runner_i64(job->sizes[BATCH]);
  args[n++] = runner_i64(job->sizes[HEADS]);
  if (job->spec.packed) {
    args[n++] = runner_i64(job->q.shape[0]);
    args[n++] = runner_i64(job->k.shape[0]);
  }
  args[n++] = runner_i64(job->sizes[QUERIES]);
  if (!job->spec.packed) args[n++] = runner_i64(job->sizes[KEYS]);
  if (job->spec.split) args[n++] = runner_i64(job->parts);
  args[n++] = runner_f64(log2_e / sqrt((double)job->spec.dim));
  if (job->spec.cap) args[n++] = runner_f64(log2_e * job->cap);
  arrays[count++] = &job->q;
  arrays[count++] = &job->k;
  arrays[count++] = &job->v;
  if (job->spec.packed) {
    arrays[count++] = &job->query_ends;
    arrays[count++] = &job->key_ends;
  }
  arrays[count++] = &job->o;
  if (job->spec.row_sums) arrays[count++] = &job->row_sums;
  for (i = 0; i < count; ++i)
    if (!runner_array(runner, &args[n++], arrays[i])) return 0;
  return n;
}

static int run(struct attention_job* job, const char* target, int repeats) {
  struct runner runner;
  tl_arg args[MOST_ARGS];
  double ms = 0;
  size_t count = 0;
  int samples = 0, ok = runner_open(&runner, target) && build(&runner, job);
  if (ok) count = make_args(&runner, job, args);
  ok = count > 0 && runner_time(&runner, args, count, repeats, &ms, &samples) && runner_fetch(&runner);
  ok = ok && report(job, ms, samples);
  ok = ok && runner_print_schedule(&runner);
  runner_close(&runner);
  return ok;
}

/* ---- options */

/* Why these options are no problem to solve, or NULL. */
static const char* refusal(const struct attention_job* job, int causal) {
  const struct attention_spec* spec = &job->spec;
  const int64_t longest = job->sizes[job->sizes[QUERIES] < job->sizes[KEYS] ? KEYS : QUERIES];
  if (spec->dim < 16 || spec->dim > 256 || spec->dim % 16 != 0 || spec->group < 1 ||
      (spec->dtype != TL_F16 && spec->dtype != TL_BF16 && spec->dtype != TL_F32))
    return "heads of 16, 32 ... 256 elements of f16, bf16 or f32, in groups of 1 or more";
  if (spec->left > WINDOW_LIMIT || spec->right > WINDOW_LIMIT)
    return "windows of 2^40 places at most; without --left or --right that side has no limit";
  if (causal && spec->right != ATTENTION_ALL && spec->right != 0)
    return "--causal is --right 0: leave one of them out";
  if (job->cap != 0 && !(job->cap >= 1e-30 && job->cap <= 1e30))
    return "--cap wants a number from 1e-30 to 1e30, or 0 for no cap";
  if (job->parts > 0 && spec->packed)
    return "--parts splits keys of one length: it does not go with --packed";
  if (job->parts > 0 && spec->heads_last && spec->group > 1)
    return "--parts with --heads-last wants --group 1: rows of several heads are no rows of one, as they lie "
           "apart";
  if (spec->packed && spec->heads_last) return "--packed has its heads last already: leave --heads-last out";
  if (spec->packed && job->sizes[BATCH] > 0 && longest > INT32_MAX / job->sizes[BATCH])
    return "--packed counts rows in 32 bits: sequences of less than 2^31 rows in all";
  return NULL;
}

static void free_tensors(struct attention_job* job) {
  npy_free(&job->q);
  npy_free(&job->k);
  npy_free(&job->v);
  npy_free(&job->o);
  npy_free(&job->row_sums);
  npy_free(&job->query_ends);
  npy_free(&job->key_ends);
}

int main(int argc, char** argv) {
  struct attention_job job = {.sizes = {1, 4, 1024, 1024}};
  struct attention_spec* spec = &job.spec;
  const char *target = NULL, *why;
  int64_t seed = 1, repeats = 20;
  int causal = 0, exit_code = 1, ok;
  const struct option options[] = {
      {"BATCH", OPTION_SIZE, &job.sizes[BATCH], "batches (1)"},
      {"HEADS", OPTION_SIZE, &job.sizes[HEADS], "heads of K and V (4)"},
      {"QUERIES", OPTION_SIZE, &job.sizes[QUERIES], "rows of Q and O (1024)"},
      {"KEYS", OPTION_SIZE, &job.sizes[KEYS], "rows of K and V (1024)"},
      {"DIM", OPTION_SIZE, &spec->dim, "size of a head, a multiple of 16 up to 256 (64)"},
      {"--group", OPTION_INT, &spec->group, "heads of Q to a head of K and V (1)"},
      {"--causal", OPTION_FLAG, &causal, "queries see only the keys up to their own place, as --right 0"},
      {"--left", OPTION_INT, &spec->left, "keys that a query sees before its own place (all)"},
      {"--right", OPTION_INT, &spec->right, "keys that a query sees after its own place (all)"},
      {"--cap", OPTION_REAL, &job.cap, "scores become cap * tanh(score / cap) (0: not capped)"},
      {"--row-sums", OPTION_FLAG, &spec->row_sums, "also the logarithm of the sum of each query's weights"},
      {"--heads-last", OPTION_FLAG, &spec->heads_last, "tensors lie as [batch, length, heads, dim]"},
      {"--packed", OPTION_FLAG, &spec->packed, "sequences of 0 to QUERIES and KEYS rows after one another"},
      {"--parts", OPTION_INT, &job.parts,
       "parts that the keys are split into, for few queries (0: not split)"},
      {"--dtype", OPTION_DTYPE, &spec->dtype, "f16 bf16 f32 (f16)"},
      {"--target", OPTION_TEXT, &target, "target to compile for (the best present)"},
      {"--seed", OPTION_INT, &seed, "of the random inputs and lengths (1)"},
      {"--repeats", OPTION_INT, &repeats, "timed launches at most (20)"}};
  *spec = attention_spec_make(TL_F16, 64, 1, 0, "host");
  if (!options_parse(argc, argv, options, (int)(sizeof options / sizeof *options),
                     "O = softmax(Q * K^T / sqrt(dim)) * V, compiled for the best device present.",
                     &exit_code))
    return exit_code;
  why = refusal(&job, causal);
  if (why != NULL) {
    fprintf(stderr, "%s\n", why);
    return 2;
  }
  if (causal) spec->right = 0;
  spec->cap = job.cap > 0;
  spec->split = job.parts > 0;
  ok = make_tensors(&job, (uint64_t)seed) && run(&job, target, (int)repeats);
  free_tensors(&job);
  return ok ? 0 : 1;
}
