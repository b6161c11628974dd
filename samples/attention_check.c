#include "attention_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

/* The rows of a head in one sequence: element of the first, elements from row to row, how many. */
struct rows {
  int64_t begin, step, count;
};

/* Packed sequences lie after one another, the others each have the same length. */
static struct rows find_rows(const struct attention_job* job, int64_t sequence, int64_t head,
                             int of_queries) {
  const struct npy_array* ends = of_queries ? &job->query_ends : &job->key_ends;
  const int64_t heads = of_queries ? job->sizes[HEADS] * job->spec.group : job->sizes[HEADS];
  const int64_t dim = job->spec.dim;
  int64_t first;
  struct rows rows;
  rows.count = job->sizes[of_queries ? QUERIES : KEYS];
  first = sequence * rows.count;
  if (job->spec.packed) {
    first = (int64_t)element_get(TL_I32, ends->data, (size_t)sequence);
    rows.count = (int64_t)element_get(TL_I32, ends->data, (size_t)sequence + 1) - first;
  }
  if (job->spec.packed || job->spec.heads_last) { /* [row, head, dim] */
    rows.step = heads * dim;
    rows.begin = (first * heads + head) * dim;
  } else { /* [sequence, head, row, dim] */
    rows.step = dim;
    rows.begin = (sequence * heads + head) * rows.count * dim;
  }
  return rows;
}

/* The definition: how far behind the query the key stands, when both sequences end at the same place. */
static int sees(const struct attention_job* job, int64_t queries_left, int64_t keys_left) {
  const int64_t behind = queries_left - keys_left;
  if (job->spec.right >= 0 && behind > job->spec.right) return 0;
  return job->spec.left < 0 || -behind <= job->spec.left;
}

/* Memory of the check, for the longest sequence. */
struct scratch {
  double *k, *v, *k_norm, *weights; /* of all keys of a head */
  int64_t* seen;                    /* by a query */
  double *q, *out, *allowed;        /* of one query */
  double sum, sum_allowed;          /* log of the sum of its weights */
};

static double read_row(const struct attention_job* job, const struct npy_array* from, int64_t at,
                       double* to) {
  double squares = 0;
  int64_t c;
  for (c = 0; c < job->spec.dim; ++c) {
    to[c] = element_get(job->spec.dtype, from->data, (size_t)(at + c));
    squares += to[c] * to[c];
  }
  return sqrt(squares);
}

static double score_of(const struct attention_job* job, const double* q, const double* k) {
  double score = 0;
  int64_t c;
  for (c = 0; c < job->spec.dim; ++c) score += q[c] * k[c];
  score /= sqrt((double)job->spec.dim);
  return job->cap > 0 ? job->cap * tanh(score / job->cap) : score;
}

/* One query: the result, and for each of its elements what rounding may cost. Scores are sums of dim products
 * in f32, and an error in them, which a cap does not increase, is one of the weights; weights are rounded to
 * the tensors' type. */
static void reference(const struct attention_job* job, double q_norm, int64_t count, struct scratch* s) {
  const int64_t dim = job->spec.dim;
  const double f32 = element_rounding(TL_F32), rounding = element_rounding(job->spec.dtype);
  const double score_error = f32 * ((double)dim + 4) * q_norm / sqrt((double)dim);
  double top = -INFINITY, total = 0;
  int64_t n, c;
  for (n = 0; n < count; ++n) {
    s->weights[n] = score_of(job, s->q, s->k + s->seen[n] * dim);
    top = fmax(top, s->weights[n]);
  }
  for (n = 0; n < count; ++n) total += s->weights[n] = exp(s->weights[n] - top);
  for (c = 0; c < dim; ++c) s->out[c] = s->allowed[c] = 0;
  s->sum = count > 0 ? top + log(total) : -INFINITY;
  s->sum_allowed = count > 0 ? 8 * f32 * (1 + fabs(top) + fabs(s->sum)) : 0;
  for (n = 0; n < count; ++n) {
    const double *v = s->v + s->seen[n] * dim, weight = s->weights[n] / total;
    const double error = 4 * score_error * s->k_norm[s->seen[n]] + f32 * ((double)count + 24);
    s->sum_allowed += weight * error;
    for (c = 0; c < dim; ++c) {
      s->out[c] += weight * v[c];
      s->allowed[c] += weight * (error + 2 * rounding) * fabs(v[c]);
    }
  }
  for (c = 0; c < dim; ++c) s->allowed[c] += 2 * rounding * fabs(s->out[c]) + ldexp(1, -23);
}

/* NaN counts as wrong; -inf is met by -inf alone. */
static void compare(double got, double expected, double allowed, int64_t* wrong, double* error) {
  const double off = got == expected ? 0 : fabs(got - expected);
  if (!(off <= allowed)) ++*wrong;
  if (off > *error || isnan(off)) *error = off;
}

static void check_query(const struct attention_job* job, struct rows queries, struct rows keys, int64_t i,
                        int64_t sum_at, struct scratch* s, struct attention_result* result) {
  const int64_t at = queries.begin + i * queries.step;
  const double q_norm = read_row(job, &job->q, at, s->q);
  int64_t count = 0, j, c;
  for (j = 0; j < keys.count; ++j)
    if (sees(job, queries.count - i, keys.count - j)) s->seen[count++] = j;
  reference(job, q_norm, count, s);
  result->pairs += (double)count;
  for (c = 0; c < job->spec.dim; ++c)
    compare(element_get(job->spec.dtype, job->o.data, (size_t)(at + c)), s->out[c], s->allowed[c],
            &result->wrong, &result->error);
  if (job->spec.row_sums)
    compare(element_get(TL_F32, job->row_sums.data, (size_t)sum_at), s->sum, s->sum_allowed, &result->wrong,
            &result->sums_error);
}

static void check_head(const struct attention_job* job, int64_t sequence, int64_t head, struct scratch* s,
                       struct attention_result* result) {
  const struct rows queries = find_rows(job, sequence, head, 1);
  const struct rows keys = find_rows(job, sequence, head / job->spec.group, 0);
  const int64_t dim = job->spec.dim, heads = job->sizes[HEADS] * job->spec.group;
  int64_t i, j, sums = (sequence * heads + head) * queries.count;
  if (job->spec.packed) /* [heads, length of all] */
    sums = head * job->q.shape[0] + (int64_t)element_get(TL_I32, job->query_ends.data, (size_t)sequence);
  for (j = 0; j < keys.count; ++j) {
    s->k_norm[j] = read_row(job, &job->k, keys.begin + j * keys.step, s->k + j * dim);
    read_row(job, &job->v, keys.begin + j * keys.step, s->v + j * dim);
  }
  for (i = 0; i < queries.count; ++i) check_query(job, queries, keys, i, sums + i, s, result);
}

int attention_check(const struct attention_job* job, struct attention_result* result) {
  const size_t keys = (size_t)job->sizes[KEYS], dim = (size_t)job->spec.dim;
  double* memory = malloc(sizeof *memory * (2 * keys * dim + 2 * keys + 3 * dim));
  int64_t sequence, head;
  struct scratch s;
  memset(result, 0, sizeof *result);
  s.seen = malloc(sizeof *s.seen * (keys + 1));
  if (memory == NULL || s.seen == NULL) {
    free(memory);
    free(s.seen);
    return 0;
  }
  s.k = memory;
  s.v = s.k + keys * dim;
  s.k_norm = s.v + keys * dim;
  s.weights = s.k_norm + keys;
  s.q = s.weights + keys;
  s.out = s.q + dim;
  s.allowed = s.out + dim;
  for (sequence = 0; sequence < job->sizes[BATCH]; ++sequence)
    for (head = 0; head < job->sizes[HEADS] * job->spec.group; ++head)
      check_head(job, sequence, head, &s, result);
  free(memory);
  free(s.seen);
  return 1;
}
