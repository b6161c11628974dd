/* The tile program O = softmax(Q * K^T * scale) * V, in blocks of keys: the scores are never stored. */
#ifndef SAMPLES_ATTENTION_PROGRAM_H
#define SAMPLES_ATTENTION_PROGRAM_H

#include <tilelang.h>

#ifdef __cplusplus
extern "C" {
#endif

struct attention_spec {
  tl_dtype dtype; /* of all tensors: f16, bf16 or f32 */
  int64_t dim;    /* size of a head */
  int64_t group;  /* heads of Q that share a head of K and V */
  int causal;     /* query i sees the keys up to i + keys - queries */
  int split;      /* keys in parts, for few queries: other blocks' work each, combined by a second kernel */
  int64_t tile_queries, tile_keys, threads;
};

/* With tiles and threads for the target of this name. */
struct attention_spec attention_spec_make(tl_dtype dtype, int64_t dim, int64_t group, int causal, const char* target);

/* Parameters: dims batch, heads (of K), queries, keys, and parts where the keys are split; scalar scale, f32, times
 * log2(e); tensors Q [batch, heads * group, queries, dim], K and V [batch, heads, keys, dim], O as Q. Split, Q and O
 * are the same memory as [batch, heads, group * queries, dim]. Queries that see no key get zeros. */
void attention_build(tl_builder* b, const struct attention_spec* spec);

#ifdef __cplusplus
}
#endif

#endif
