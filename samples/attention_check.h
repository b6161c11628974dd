/* One run of the attention sample, and its check against the definition, in double. */
#ifndef SAMPLES_ATTENTION_CHECK_H
#define SAMPLES_ATTENTION_CHECK_H

#include "attention_program.h"
#include "npy.h"

enum { BATCH, HEADS, QUERIES, KEYS, SIZES };

struct attention_job {
  struct attention_spec spec;
  int64_t sizes[SIZES]; /* heads: of K and V; packed, queries and keys: the most that a sequence may have */
  int64_t parts;        /* of the keys; 0: not split */
  double cap;           /* 0: none */
  struct npy_array q, k, v, o, row_sums, query_ends, key_ends;
};

struct attention_result {
  int64_t wrong; /* elements that are off by more than rounding explains */
  double error, sums_error;
  double pairs; /* of a query and a key that it sees, over all heads */
};

/* 0 when memory is short. */
int attention_check(const struct attention_job* job, struct attention_result* result);

#endif
