/* The tile program O = softmax(Q * K^T * scale) * V, in blocks of keys: the scores are never stored. */
#ifndef SAMPLES_ATTENTION_PROGRAM_H
#define SAMPLES_ATTENTION_PROGRAM_H

#include <tilelang.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ATTENTION_ALL = -1 };

/* A query's own place among the keys is i + keys - queries: the last one's is the last key. Keys are split
 * for few queries, into parts that are the work of other blocks each and that a second kernel combines. That
 * does not go with packed sequences, and with heads last only where group is 1. */
struct attention_spec {
  tl_dtype dtype; /* of Q, K, V and O: f16, bf16 or f32 */
  int64_t dim;    /* size of a head */
  int64_t group;  /* heads of Q that share a head of K and V */
  int64_t left;   /* a query sees the keys up to so many places before its own, or ATTENTION_ALL of them */
  int64_t right;  /* the same after it */
  int cap;        /* scores are capped smoothly: cap * tanh(score / cap) */
  int row_sums;   /* also L, the logarithm of the sum of a query's weights: -inf where it sees no key */
  int heads_last; /* tensors lie in memory as [batch, length, heads, dim] */
  int packed;     /* sequences of any lengths after one another */
  int split;      /* keys in parts */
  int64_t tile_queries, tile_keys, threads;
};

/* The plain form, or the causal one, which is `right` 0; tiles and threads for the target of this name. */
struct attention_spec attention_spec_make(tl_dtype dtype, int64_t dim, int64_t group, int causal,
                                          const char* target);

/* Tiles and threads for the target of this name, of a spec that is otherwise complete. */
void attention_spec_fit(struct attention_spec* spec, const char* target);

/* Parameters:
 *   dims     batch, heads (of K), queries, keys, and parts where the keys are split.
 *            Packed: batch, heads, all_queries, all_keys, queries (at least those of the longest sequence)
 *   scalars  scale, times log2(e) and positive; with a cap: cap, times log2(e), too. f32
 *   tensors  Q [batch, heads * group, queries, dim], K and V [batch, heads, keys, dim], O as Q;
 *            with row sums L after them, f32 [batch, heads * group, queries].
 *            Split: Q, O and L are the same memory as [batch, heads, group * queries(, dim)].
 *            Packed: Q [all_queries, heads * group, dim], K and V [all_keys, heads, dim]; query_ends and
 *            key_ends i32 [batch + 1], where each sequence begins and the last one ends; O; then
 *            L [heads * group, all_queries]
 * Queries that see no key get zeros. */
void attention_build(tl_builder* b, const struct attention_spec* spec);

#ifdef __cplusplus
}
#endif

#endif
